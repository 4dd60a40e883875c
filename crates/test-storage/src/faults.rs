//! Faults between client and store, in the order in which tests inject them, each a few times or
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

/// The effect of a fault on a request.
#[derive(Clone)]
pub enum What {
    /// Answers with this status, like S3.
    Status(u16),
    /// Closes the connection without an answer.
    HangUp,
    /// Closes the connection after half of the body.
    CutBody,
    /// Stops halfway through the body.
    StallBody,
    /// Never answers.
    Silence,
    /// Sends the body in 16 pieces, with this pause before each.
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

/// A fault, the requests that it affects, and how often.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) what: What,
    /// Part of the path and query of the affected requests.
    pub(crate) of: &'static str,
    /// Number of matching requests that are answered normally first.
    pub(crate) after: usize,
    pub(crate) times: usize,
}

/// A received request.
#[derive(Debug, Clone)]
pub struct Seen {
    /// The request's method.
    pub method: Method,
    /// Path and query.
    pub target: String,
    /// The host that the client requested.
    pub host: String,
    /// Whether the request was signed.
    pub is_signed: bool,
    /// Bytes of the body of the answer.
    pub n_bytes: u64,
}

impl Seen {
    /// Whether the request was for the bytes of an object.
    pub fn is_get(&self) -> bool {
        self.method == Method::GET && !self.target.contains("list-type=2")
    }
}

/// The injected faults, and the requests received.
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

    /// Returns all requests since the last call.
    pub(crate) fn take_seen(&self) -> Vec<Seen> {
        std::mem::take(&mut *self.seen.lock().unwrap())
    }

    /// The fault for a request with this path and query, if there is one.
    pub(crate) fn draw(&self, target: &str) -> Option<What> {
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

/// A number that depends on both arguments and looks random.
fn mix(seed: u64, at: u64) -> u64 {
    let mut state = (seed << 32 ^ at).wrapping_add(0x9e37_79b9_7f4a_7c15);
    for shift in [30, 27, 31] {
        state = (state ^ (state >> shift)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    }
    state >> 8
}

/// Applies a fault to the body of the store's answer.
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

/// Makes the answer that a fault sends instead of the store's; `None` closes the connection.
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
                // S3 has two codes for this; libtiledb retries the other one a hundred times.
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
