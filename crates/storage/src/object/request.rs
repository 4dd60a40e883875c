//! One request: the answer that a blocked thread waits for, and the errors of stores.

use std::error::Error as StdError;
use std::io;
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use bytes::Bytes;
use futures_util::TryStreamExt as _;
use object_store::path::Path;
use object_store::{Error, GetOptions, ObjectMeta, ObjectStoreExt as _};

use super::FORBIDDEN_IS_MISSING;
use super::requests::Client;

/// An answer that will come, or has come. Any number of threads may wait for it.
#[derive(Debug)]
pub(super) struct Pending<T> {
    answer: Mutex<Option<Result<T, Arc<io::Error>>>>,
    arrived: Condvar,
}

/// The other side of a [`Pending`]. Dropped without an answer, it gives an error, so that nobody
/// waits forever.
#[derive(Debug)]
pub(super) struct Promise<T>(Arc<Pending<T>>);

/// Both sides of an answer.
pub(super) fn promise<T>() -> (Promise<T>, Arc<Pending<T>>) {
    let pending = Arc::new(Pending { answer: Mutex::new(None), arrived: Condvar::new() });
    (Promise(Arc::clone(&pending)), pending)
}

impl<T: Clone> Pending<T> {
    /// Blocks until there is an answer.
    pub(super) fn wait(&self) -> io::Result<T> {
        let mut answer = self.answer.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match &*answer {
                Some(Ok(value)) => return Ok(value.clone()),
                Some(Err(error)) => return Err(io::Error::new(error.kind(), Arc::clone(error))),
                None => {
                    answer = self.arrived.wait(answer).unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }
}

impl<T> Promise<T> {
    /// Gives the answer.
    pub(super) fn keep(self, answer: io::Result<T>) {
        self.settle(answer);
    }

    fn settle(&self, answer: io::Result<T>) {
        let mut place = self.0.answer.lock().unwrap_or_else(PoisonError::into_inner);
        if place.is_none() {
            *place = Some(answer.map_err(Arc::new));
            self.0.arrived.notify_all();
        }
    }
}

impl<T> Drop for Promise<T> {
    fn drop(&mut self) {
        self.settle(Err(io::Error::other("the request ended without an answer")));
    }
}

/// Bytes of an object, all of them or an error, and the object's metadata when they were read.
pub(super) async fn get(
    client: &Client,
    key: &Path,
    range: Range<u64>,
) -> io::Result<(Bytes, ObjectMeta)> {
    let beyond = |size: u64| {
        let what = format!("{key} ends at {size}, before byte {}", range.end);
        io::Error::new(io::ErrorKind::UnexpectedEof, what)
    };
    let wanted = range.end.saturating_sub(range.start);
    match answer(client, key, range.clone()).await {
        Ok((bytes, meta)) if bytes.len() as u64 == wanted => Ok((bytes, meta)),
        Ok((bytes, _)) if (bytes.len() as u64) < wanted => {
            Err(beyond(range.start + bytes.len() as u64))
        }
        Ok((bytes, _)) => {
            let what = format!("{key}: {wanted} bytes were asked for, {} came", bytes.len());
            Err(io::Error::new(io::ErrorKind::InvalidData, what))
        }
        Err(error) => {
            // Stores refuse a range that begins behind the end, each with its own message.
            match refused(client, key, &error).await {
                Some(Ok(found)) if found.size <= range.start => Err(beyond(found.size)),
                Some(Err(missing)) => Err(missing),
                _ => Err(client.object_failure(key, &error)),
            }
        }
    }
}

/// The first `most` bytes of an object, or all if it is shorter, and the object's metadata.
pub(super) async fn get_first(
    client: &Client,
    key: &Path,
    most: u64,
) -> io::Result<(Bytes, ObjectMeta)> {
    match answer(client, key, 0..most).await {
        Ok((bytes, meta)) if bytes.len() as u64 == meta.size.min(most) => Ok((bytes, meta)),
        Ok((bytes, meta)) => {
            let (wanted, n) = (meta.size.min(most), bytes.len());
            let what = format!("{key}: {wanted} bytes were asked for, {n} came");
            Err(io::Error::new(io::ErrorKind::UnexpectedEof, what))
        }
        Err(error) => {
            // Stores refuse any range of an empty object, each with its own message.
            match refused(client, key, &error).await {
                Some(Ok(found)) if found.size == 0 => Ok((Bytes::new(), found)),
                Some(Err(missing)) => Err(missing),
                _ => Err(client.object_failure(key, &error)),
            }
        }
    }
}

/// What is there, after an error that does not say it: the object's metadata, or the error that
/// there is none. The answer that an object is missing may have been cut, which no client repeats;
/// the answer to this request has no body.
async fn refused(client: &Client, key: &Path, error: &Error) -> Option<io::Result<ObjectMeta>> {
    if !matches!(error, Error::Generic { .. }) {
        return None;
    }
    match client.store.head(key).await {
        Ok(found) => Some(Ok(found)),
        Err(missing @ Error::NotFound { .. }) => Some(Err(failure(key, &missing))),
        Err(_) => None,
    }
}

/// The metadata of an object.
pub(super) async fn head(client: &Client, key: &Path) -> io::Result<ObjectMeta> {
    let mut measure = client.meter.send();
    let found = client.store.head(key).await.map_err(|error| client.object_failure(key, &error))?;
    measure.first_byte();
    measure.complete(0);
    Ok(found)
}

/// Requests a range, and measures the answer.
async fn answer(
    client: &Client,
    key: &Path,
    range: Range<u64>,
) -> object_store::Result<(Bytes, ObjectMeta)> {
    let wanted = range.end.saturating_sub(range.start);
    let mut measure = client.meter.send();
    let found = client.store.get_opts(key, GetOptions::new().with_range(Some(range))).await?;
    measure.first_byte();
    let meta = found.meta.clone();
    let len = found.range.end.saturating_sub(found.range.start).min(wanted);
    // In memory of its own: a piece of the client's buffer would keep all of that buffer.
    let mut bytes = Vec::with_capacity(usize::try_from(len).unwrap_or(0));
    let mut body = found.into_stream();
    while let Some(piece) = body.try_next().await? {
        measure.arrived(piece.len());
        bytes.extend_from_slice(&piece);
    }
    measure.complete(bytes.len());
    Ok((bytes.into(), meta))
}

impl Client {
    /// The error of a request for an object: there is none if the store forbids it, where that is
    /// what the answer means.
    fn object_failure(&self, key: &Path, error: &Error) -> io::Error {
        let failure = failure(key, error);
        let is_forbidden = matches!(error, Error::PermissionDenied { .. });
        if is_forbidden && self.bounds.forbidden_is_missing {
            io::Error::new(io::ErrorKind::NotFound, failure)
        } else {
            failure
        }
    }
}

/// Whether the body of an answer was cut. Errors of requests, which the client has repeated, have
/// the HTTP client's error deeper among their causes.
pub(super) fn is_cut(error: &Error) -> bool {
    #[cfg(feature = "http")]
    {
        let direct = error.source().and_then(StdError::source);
        direct.is_some_and(<dyn StdError>::is::<object_store::client::HttpError>)
    }
    #[cfg(not(feature = "http"))]
    {
        let _ = error;
        false
    }
}

/// The kind of the connection's error among the causes, for example that it was refused. Other
/// kinds may be of other files, such as one with credentials that is not there.
fn connection_kind(error: &Error) -> Option<io::ErrorKind> {
    use io::ErrorKind as Kind;
    let is_of_connection = |kind: &Kind| {
        matches!(
            kind,
            Kind::ConnectionRefused
                | Kind::ConnectionReset
                | Kind::ConnectionAborted
                | Kind::NotConnected
                | Kind::HostUnreachable
                | Kind::NetworkUnreachable
                | Kind::NetworkDown
                | Kind::TimedOut
        )
    };
    let mut cause = error.source();
    while let Some(deeper) = cause {
        let kind = deeper.downcast_ref::<io::Error>().map(io::Error::kind);
        if let Some(kind) = kind.filter(is_of_connection).or_else(|| http_kind(deeper)) {
            return Some(kind);
        }
        cause = deeper.source();
    }
    None
}

/// The kind of an HTTP client's error, if no server answered in time.
fn http_kind(error: &(dyn StdError + 'static)) -> Option<io::ErrorKind> {
    #[cfg(feature = "http")]
    {
        use object_store::client::{HttpError, HttpErrorKind};
        match error.downcast_ref::<HttpError>()?.kind() {
            HttpErrorKind::Connect => Some(io::ErrorKind::NotConnected),
            HttpErrorKind::Timeout => Some(io::ErrorKind::TimedOut),
            _ => None,
        }
    }
    #[cfg(not(feature = "http"))]
    {
        let _ = error;
        None
    }
}

/// An error of the store, with all its causes.
pub(super) fn failure(key: &Path, error: &Error) -> io::Error {
    let kind = match error {
        Error::NotFound { .. } => io::ErrorKind::NotFound,
        Error::PermissionDenied { .. } | Error::Unauthenticated { .. } => {
            io::ErrorKind::PermissionDenied
        }
        Error::NotSupported { .. } | Error::NotImplemented { .. } => io::ErrorKind::Unsupported,
        Error::InvalidPath { .. } => io::ErrorKind::InvalidInput,
        error => connection_kind(error).unwrap_or(io::ErrorKind::Other),
    };
    let mut text = match error {
        Error::PermissionDenied { .. } => format!(
            "{error} (if the store answers so for files that are not there, as buckets that may not be listed do, set {FORBIDDEN_IS_MISSING}=true)"
        ),
        error => error.to_string(),
    };
    // HTTP clients say only "error sending request"; the reason is in the causes.
    let mut cause = error.source();
    while let Some(deeper) = cause {
        let more = deeper.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = deeper.source();
    }
    if !text.contains(key.as_ref()) {
        text = format!("{key}: {text}");
    }
    io::Error::new(kind, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_promise_that_is_not_kept_is_an_error() {
        let (kept, pending) = promise();
        kept.keep(Ok(3));
        assert_eq!(pending.wait().unwrap(), 3);
        let (broken, pending) = promise::<u8>();
        drop(broken);
        assert!(pending.wait().is_err());
    }

    #[test]
    fn errors_keep_every_cause_once() {
        let deep = io::Error::new(io::ErrorKind::ConnectionRefused, "connection refused");
        let source: Box<dyn StdError + Send + Sync> = Box::new(deep);
        let error = Error::Generic { store: "S3", source };
        let found = failure(&Path::from("array/a.tdb"), &error);
        assert_eq!(found.kind(), io::ErrorKind::ConnectionRefused);
        assert_eq!(found.to_string(), "array/a.tdb: Generic S3 error: connection refused");
        let error = Error::NotFound { path: "array/a.tdb".to_owned(), source: "gone".into() };
        let error = failure(&Path::from("array/a.tdb"), &error);
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert_eq!(error.to_string(), "Object at location array/a.tdb not found: gone");
    }
}
