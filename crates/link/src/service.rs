//! Answers to requests.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use hyper::header::{
    ACCEPT_RANGES, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG, HeaderName, HeaderValue,
    LAST_MODIFIED, RANGE,
};
use hyper::{Method, Request, Response, StatusCode};

use crate::BUCKET;
use crate::body::{Body, Buffers, Content, Rates, body, empty, text_body};
use crate::counts::{COUNTS_PATH, Counters, UnderWay};
use crate::faults::{Draws, Fault, RESTART_FAULTS_PATH};
use crate::files::{Folder, NoFile, OpenFile};
use crate::listing::{ListRequest, escaped, list};
use crate::range::{Asked, asked};
use crate::request_path::{bucket_and_key, parameter};

/// The folder behind a server, its link and its counts.
#[derive(Debug)]
pub(crate) struct Service {
    pub(crate) folder: Folder,
    pub(crate) latency: Duration,
    pub(crate) buffers: Buffers,
    pub(crate) draws: Draws,
    pub(crate) counters: Arc<Counters>,
}

/// A connection of a client.
#[derive(Debug, Clone)]
pub(crate) struct Connection {
    pub(crate) rates: Rates,
    /// Whether a request came on it that counts.
    pub(crate) has_requests: Arc<AtomicBool>,
}

/// A request that counts.
struct Counted {
    /// Its number, from 0.
    number: u64,
    under_way: UnderWay,
    fault: Option<Fault>,
}

/// An answer before its body is paced.
struct Answer {
    status: StatusCode,
    headers: Vec<(HeaderName, String)>,
    content: Content,
}

impl Answer {
    fn xml(status: StatusCode, text: String) -> Self {
        let headers = vec![(CONTENT_TYPE, "application/xml".to_owned())];
        Self { status, headers, content: Content::Text(Bytes::from(text)) }
    }

    /// An error as S3 writes it.
    fn error(status: StatusCode, code: &str, message: &str, path: &str) -> Self {
        let text = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>{code}</Code>\
             <Message>{message}</Message><Resource>{}</Resource></Error>",
            escaped(path)
        );
        Self::xml(status, text)
    }
}

impl Service {
    /// Answers a request of a connection, after the latency. An error closes the connection.
    pub(crate) async fn answer<B>(
        self: Arc<Self>,
        request: Request<B>,
        connection: Connection,
    ) -> io::Result<Response<Body>> {
        match request.uri().path() {
            COUNTS_PATH => return Ok(self.counts()),
            RESTART_FAULTS_PATH => return Ok(self.restart_faults()),
            _ => {}
        }
        let is_first = !connection.has_requests.swap(true, Ordering::Relaxed);
        let counted = self.count(&request);
        if is_first && self.draws.refuses(self.counters.connected()) {
            self.counters.failed();
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
        let is_head = request.method() == Method::HEAD;
        let answer = match counted.fault.and_then(|fault| refusal(fault, request.uri().path())) {
            Some(refusal) => refusal,
            None => self.find(&request, counted.number).await,
        };
        let later = match counted.fault {
            Some(Fault::Slow(by)) => by,
            _ => Duration::ZERO,
        };
        if !(self.latency + later).is_zero() {
            tokio::time::sleep(self.latency + later).await;
        }
        counted.under_way.answered();
        Ok(self.response(answer, is_head, counted, connection.rates))
    }

    /// Counts a request, and draws its fault.
    fn count<B>(&self, request: &Request<B>) -> Counted {
        let (number, under_way) = self.counters.begin();
        let fault = self.draws.fault(number, request.uri().path(), range_of(request));
        if fault.is_some() {
            self.counters.failed();
        }
        Counted { number, under_way, fault }
    }

    fn counts(&self) -> Response<Body> {
        let text = serde_json::to_string(&self.counters.take()).unwrap_or_default();
        Response::new(text_body(text))
    }

    fn restart_faults(&self) -> Response<Body> {
        let counts = self.counters.counts();
        self.draws.restart(counts.requests, counts.connections);
        Response::new(empty())
    }

    fn response(
        &self,
        answer: Answer,
        is_head: bool,
        counted: Counted,
        rates: Rates,
    ) -> Response<Body> {
        let Answer { status, headers, content } = answer;
        let n_bytes = content.len();
        let sent = if is_head || n_bytes == 0 {
            empty()
        } else {
            let counting = (Arc::clone(&self.counters), counted.under_way);
            let is_cut = counted.fault == Some(Fault::Cut);
            body(content, rates, self.buffers.clone(), counting, is_cut)
        };
        let mut response = Response::new(sent);
        *response.status_mut() = status;
        response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(n_bytes));
        for (name, value) in headers {
            if let Ok(value) = HeaderValue::try_from(value) {
                response.headers_mut().insert(name, value);
            }
        }
        response
    }

    /// The answer to the request of this number, without its fault.
    async fn find<B>(self: &Arc<Self>, request: &Request<B>, number: u64) -> Answer {
        let (path, query) = (request.uri().path(), request.uri().query().unwrap_or_default());
        if ![Method::GET, Method::HEAD].contains(request.method()) {
            let status = StatusCode::METHOD_NOT_ALLOWED;
            return Answer::error(status, "MethodNotAllowed", "this server is for reading", path);
        }
        let Some((bucket, key)) = bucket_and_key(path) else {
            let status = StatusCode::BAD_REQUEST;
            return Answer::error(status, "InvalidURI", "the path is not UTF-8", path);
        };
        if bucket != BUCKET {
            let message = format!("the only bucket is {BUCKET}");
            return Answer::error(StatusCode::NOT_FOUND, "NoSuchBucket", &message, path);
        }
        if key.is_empty() {
            return self.list(path, query).await;
        }
        match self.folder.open(&key) {
            Ok(file) => of_file(file, self.draws.replaces(number), range_of(request), path),
            Err(NoFile::Absent) => {
                Answer::error(StatusCode::NOT_FOUND, "NoSuchKey", "there is no such file", path)
            }
            Err(NoFile::Refused) => {
                let message = "the path leaves the folder, or the file may not be read";
                Answer::error(StatusCode::FORBIDDEN, "AccessDenied", message, path)
            }
            Err(NoFile::Failed) => {
                let message = "the file cannot be opened now";
                Answer::error(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable", message, path)
            }
        }
    }

    async fn list(self: &Arc<Self>, path: &str, query: &str) -> Answer {
        let request = match parameter(query, "list-type").as_deref() {
            Some("2") => ListRequest::of_query(query),
            _ => None,
        };
        let Some(request) = request else {
            let message = "of a bucket, ListObjectsV2 with the delimiter / is served";
            return Answer::error(StatusCode::BAD_REQUEST, "InvalidArgument", message, path);
        };
        let service = Arc::clone(self);
        let listed = tokio::task::spawn_blocking(move || list(&service.folder, &request)).await;
        if let Ok(Ok(text)) = listed {
            return Answer::xml(StatusCode::OK, text);
        }
        let status = StatusCode::INTERNAL_SERVER_ERROR;
        Answer::error(status, "InternalError", "the folder cannot be listed", path)
    }
}

fn range_of<B>(request: &Request<B>) -> Option<&str> {
    request.headers().get(RANGE).and_then(|range| range.to_str().ok())
}

/// The answer that a fault gives in place of the folder's.
fn refusal(fault: Fault, path: &str) -> Option<Answer> {
    let (status, code, message) = match fault {
        Fault::Expired => (StatusCode::FORBIDDEN, "ExpiredToken", "the provided token has expired"),
        Fault::Unavailable => {
            (StatusCode::SERVICE_UNAVAILABLE, "SlowDown", "please reduce your request rate")
        }
        Fault::Slow(_) | Fault::Cut => return None,
    };
    Some(Answer::error(status, code, message, path))
}

/// The answer with a file, or with a part of it; with another tag if the file `is_replaced`.
fn of_file(open: OpenFile, is_replaced: bool, range: Option<&str>, path: &str) -> Answer {
    let OpenFile { file, facts } = open;
    let size = facts.size;
    let etag = facts.etag();
    let etag = if is_replaced { etag.replacen('"', "\"replaced-", 1) } else { etag };
    let mut headers = vec![
        (CONTENT_TYPE, "application/octet-stream".to_owned()),
        (ACCEPT_RANGES, "bytes".to_owned()),
        (ETAG, etag),
        (LAST_MODIFIED, facts.http_date()),
    ];
    let (status, range) = match asked(range, size) {
        Asked::All => (StatusCode::OK, 0..size),
        Asked::Part(range) => {
            let part = format!("bytes {}-{}/{size}", range.start, range.end - 1);
            headers.push((CONTENT_RANGE, part));
            (StatusCode::PARTIAL_CONTENT, range)
        }
        Asked::Outside => {
            let status = StatusCode::RANGE_NOT_SATISFIABLE;
            let message = "the range lies outside of the file";
            let mut answer = Answer::error(status, "InvalidRange", message, path);
            answer.headers.push((CONTENT_RANGE, format!("bytes */{size}")));
            return answer;
        }
    };
    Answer { status, headers, content: Content::File { file, range } }
}
