//! Faults between client and store, in the order in which they were put there, each a few times or
//! always.

use std::fmt;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::Frame;
use hyper::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderValue};
use hyper::{Method, Response, StatusCode};

pub(crate) type Answer = Response<UnsyncBoxBody<Bytes, io::Error>>;

/// Longer than any time limit of a test.
const FOREVER: Duration = Duration::from_mins(10);

/// What happens to a request.
#[derive(Clone)]
pub enum What {
    /// It is answered with this status, as S3 does.
    Status(u16),
    /// The connection is closed without an answer.
    HangUp,
    /// The connection is closed after half of the body.
    CutBody,
    /// The body stops halfway.
    StallBody,
    /// No answer comes.
    Silence,
    /// The body comes in 16 pieces, with this pause before each.
    SlowBody(Duration),
    /// Runs a function before the normal answer.
    First(Arc<dyn Fn() + Send + Sync>),
}

impl fmt::Debug for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(status) => write!(f, "status {status}"),
            Self::HangUp => write!(f, "hang up"),
            Self::CutBody => write!(f, "cut body"),
            Self::StallBody => write!(f, "stalled body"),
            Self::Silence => write!(f, "silence"),
            Self::SlowBody(pause) => write!(f, "a pause of {pause:?} before each 16th"),
            Self::First(_) => write!(f, "a deed"),
        }
    }
}

/// The affected requests, and how often.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) what: What,
    /// Part of the path and query.
    pub(crate) of: &'static str,
    /// Requests that pass before.
    pub(crate) after: usize,
    pub(crate) times: usize,
}

/// A received request.
#[derive(Debug, Clone)]
pub struct Seen {
    /// As sent.
    pub method: Method,
    /// Path and query.
    pub target: String,
    /// The host that the client named.
    pub host: String,
    /// Whether it carried a signature.
    pub is_signed: bool,
    /// Bytes of the body that were to be sent.
    pub n_bytes: u64,
}

impl Seen {
    /// Whether it asked for the bytes of an object.
    pub fn is_get(&self) -> bool {
        self.method == Method::GET && !self.target.contains("list-type=2")
    }
}

/// The faults, and the requests so far.
#[derive(Debug, Default)]
pub(crate) struct Between {
    faults: Mutex<Vec<Fault>>,
    seen: Mutex<Vec<Seen>>,
    trouble: Mutex<Option<Trouble>>,
}

/// Random faults.
#[derive(Debug)]
struct Trouble {
    seed: u64,
    one_in: u64,
    n_requests: u64,
}

impl Between {
    pub(crate) fn put(&self, fault: Fault) {
        self.faults.lock().unwrap().push(fault);
    }

    pub(crate) fn clear(&self) {
        self.faults.lock().unwrap().clear();
        *self.trouble.lock().unwrap() = None;
    }

    pub(crate) fn trouble(&self, seed: u64, one_in: u64) {
        *self.trouble.lock().unwrap() = Some(Trouble { seed, one_in, n_requests: 0 });
    }

    pub(crate) fn note(&self, seen: Seen) {
        self.seen.lock().unwrap().push(seen);
    }

    /// All requests since the last call.
    pub(crate) fn take_seen(&self) -> Vec<Seen> {
        std::mem::take(&mut *self.seen.lock().unwrap())
    }

    /// The fault that this request meets.
    pub(crate) fn of(&self, target: &str) -> Option<What> {
        if let Some(trouble) = &mut *self.trouble.lock().unwrap() {
            trouble.n_requests += 1;
            let drawn = mix(trouble.seed, trouble.n_requests);
            let passing = [What::Status(503), What::Status(500), What::HangUp, What::CutBody];
            return drawn
                .is_multiple_of(trouble.one_in)
                .then(|| passing[(drawn / trouble.one_in % 4) as usize].clone());
        }
        let mut faults = self.faults.lock().unwrap();
        let fault = faults.iter_mut().find(|fault| 0 < fault.times && target.contains(fault.of))?;
        if 0 < fault.after {
            fault.after -= 1;
            return None;
        }
        fault.times -= usize::from(fault.times < usize::MAX);
        Some(fault.what.clone())
    }
}

/// A number that depends on both as if it were drawn.
fn mix(seed: u64, at: u64) -> u64 {
    let mut state = (seed << 32 ^ at).wrapping_add(0x9e37_79b9_7f4a_7c15);
    for shift in [30, 27, 31] {
        state = (state ^ (state >> shift)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    }
    state >> 8
}

/// An answer of the store's, with a fault in its body.
pub(crate) fn with_fault(what: Option<&What>, answer: Response<Bytes>) -> Answer {
    let (mut head, body) = answer.into_parts();
    if !body.is_empty() {
        head.headers.insert(CONTENT_LENGTH, HeaderValue::from(body.len()));
    }
    let half = body.slice(..body.len() / 2);
    let body = match what {
        Some(What::CutBody) => pieces(vec![half], Duration::ZERO, Some(End::Cut)),
        Some(What::StallBody) => pieces(vec![half], Duration::ZERO, Some(End::Never)),
        Some(What::SlowBody(pause)) => {
            let len = body.len().div_ceil(16).max(1);
            let starts = (0..body.len()).step_by(len);
            let parts = starts.map(|at| body.slice(at..body.len().min(at + len))).collect();
            pieces(parts, *pause, None)
        }
        _ => Full::new(body).map_err(|never| match never {}).boxed_unsync(),
    };
    Response::from_parts(head, body)
}

/// An answer instead of the store's; `None` closes the connection.
pub(crate) async fn in_place(what: &What) -> Option<Answer> {
    match what {
        What::Silence => {
            tokio::time::sleep(FOREVER).await;
            None
        }
        What::Status(status) => {
            let status = StatusCode::from_u16(*status).unwrap();
            let code = match status.as_u16() {
                403 => "AccessDenied",
                404 => "NoSuchKey",
                // Of S3's two codes, the one that libtiledb does not retry a hundred times.
                503 => "ServiceUnavailable",
                _ => "InternalError",
            };
            let text = format!(
                "<?xml version=\"1.0\" encoding=\"UTF-8\"?><Error><Code>{code}</Code><Message>a fault</Message></Error>"
            );
            let mut answer = with_fault(None, Response::new(Bytes::from(text)));
            *answer.status_mut() = status;
            answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/xml"));
            Some(answer)
        }
        _ => None,
    }
}

#[derive(Clone, Copy)]
enum End {
    Cut,
    Never,
}

fn pieces(parts: Vec<Bytes>, pause: Duration, end: Option<End>) -> UnsyncBoxBody<Bytes, io::Error> {
    let parts = stream::unfold(parts.into_iter(), move |mut parts| async move {
        tokio::time::sleep(pause).await;
        match (parts.next(), end) {
            (Some(part), _) => Some((Ok(Frame::data(part)), parts)),
            (None, None) => None,
            (None, Some(End::Cut)) => Some((Err(io::Error::other("cut")), parts)),
            (None, Some(End::Never)) => {
                tokio::time::sleep(FOREVER).await;
                None
            }
        }
    });
    StreamBody::new(parts).boxed_unsync()
}
