//! Answers to requests.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use hyper::header::{
    ACCEPT_RANGES, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG, HeaderName, HeaderValue,
    LAST_MODIFIED, RANGE,
};
use hyper::{Method, Request, Response, StatusCode};

use crate::BUCKET;
use crate::body::{Body, Buffers, Content, Rates, body, empty};
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
    pub(crate) requests: AtomicU64,
    pub(crate) bytes_sent: Arc<AtomicU64>,
    pub(crate) connections: AtomicU64,
    /// The longest chain among the answered requests.
    pub(crate) rounds: AtomicU64,
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
    /// Answers a request of a connection with `rates`, after the latency.
    pub(crate) async fn answer<B>(
        self: Arc<Self>,
        request: Request<B>,
        rates: Rates,
    ) -> Result<Response<Body>, Infallible> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        let round = 1 + self.rounds.load(Ordering::Relaxed);
        let is_head = request.method() == Method::HEAD;
        let answer = self.find(&request).await;
        if !self.latency.is_zero() {
            tokio::time::sleep(self.latency).await;
        }
        self.rounds.fetch_max(round, Ordering::Relaxed);
        let Answer { status, headers, content } = answer;
        let n_bytes = content.len();
        let sent = if is_head || n_bytes == 0 {
            empty()
        } else {
            body(content, rates, self.buffers.clone(), Arc::clone(&self.bytes_sent))
        };
        let mut response = Response::new(sent);
        *response.status_mut() = status;
        response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(n_bytes));
        for (name, value) in headers {
            if let Ok(value) = HeaderValue::try_from(value) {
                response.headers_mut().insert(name, value);
            }
        }
        Ok(response)
    }

    async fn find<B>(self: &Arc<Self>, request: &Request<B>) -> Answer {
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
        let range = request.headers().get(RANGE).and_then(|range| range.to_str().ok());
        match self.folder.open(&key) {
            Ok(file) => of_file(file, range, path),
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

/// The answer with a file, or with a part of it.
fn of_file(open: OpenFile, range: Option<&str>, path: &str) -> Answer {
    let OpenFile { file, facts } = open;
    let size = facts.size;
    let mut headers = vec![
        (CONTENT_TYPE, "application/octet-stream".to_owned()),
        (ACCEPT_RANGES, "bytes".to_owned()),
        (ETAG, facts.etag()),
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
