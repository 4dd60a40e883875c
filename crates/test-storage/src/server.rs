//! The server: S3 over the folders of a temporary directory, with injected faults.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::header::{AUTHORIZATION, HOST};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use s3s::access::{S3Access, S3AccessContext};
use s3s::auth::SimpleAuth;
use s3s::host::MultiDomain;
use s3s::service::{S3Service, S3ServiceBuilder};
use s3s::{S3Result, s3_error};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;

use crate::faults::{Answer, Between, Fault, Seen, What, in_place, with_fault};

/// The access key that may sign requests.
pub const KEY_ID: &str = "AKIATEST";
/// The secret of [`KEY_ID`].
pub const SECRET: &str = "a/secret+key";

/// The server's host name; a bucket's name may precede it.
pub const DOMAIN: &str = "s3.test";

/// A bucket that unsigned requests may read as well.
pub const PUBLIC: &str = "public";
/// A bucket that only signed requests may read.
pub const PRIVATE: &str = "private";
/// The bucket of the CELLxGENE Census, which unsigned requests may read.
pub const CENSUS: &str = "cellxgene-census-public-us-west-2";

/// An S3 server that stops when it is dropped.
pub struct Server {
    /// The address that it listens on.
    pub address: SocketAddr,
    root: Arc<tempfile::TempDir>,
    handler: Arc<Handler>,
    listening: Mutex<Option<JoinHandle<()>>>,
    runtime: Option<Runtime>,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("address", &self.address).finish_non_exhaustive()
    }
}

/// Answers requests from the store, unless a fault affects them.
struct Handler {
    service: S3Service,
    root: PathBuf,
    between: Between,
    tls: Option<TlsAcceptor>,
}

/// Lets unsigned requests read public buckets only.
struct Access;

#[async_trait::async_trait]
impl S3Access for Access {
    async fn check(&self, context: &mut S3AccessContext<'_>) -> S3Result<()> {
        let is_public = context
            .s3_path()
            .get_bucket_name()
            .is_some_and(|name| [PUBLIC, CENSUS].contains(&name));
        if is_public || context.credentials().is_some() {
            Ok(())
        } else {
            Err(s3_error!(AccessDenied, "sign the request"))
        }
    }
}

impl Server {
    /// Starts a server with the empty buckets [`PUBLIC`], [`PRIVATE`] and [`CENSUS`].
    pub fn start() -> Self {
        let root = tempfile::tempdir().unwrap();
        for bucket in [PUBLIC, PRIVATE, CENSUS] {
            std::fs::create_dir(root.path().join(bucket)).unwrap();
        }
        Self::over(Arc::new(root))
    }

    /// Starts another server for the same buckets.
    #[must_use]
    pub fn beside(&self) -> Self {
        Self::over(Arc::clone(&self.root))
    }

    /// Starts another server for the same buckets, with TLS.
    #[must_use]
    pub fn encrypted(&self, tls: ServerConfig) -> Self {
        Self::with(Arc::clone(&self.root), Some(TlsAcceptor::from(Arc::new(tls))))
    }

    fn over(root: Arc<tempfile::TempDir>) -> Self {
        Self::with(root, None)
    }

    fn with(root: Arc<tempfile::TempDir>, tls: Option<TlsAcceptor>) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("s3-server")
            .enable_all()
            .build()
            .unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        let mut builder = S3ServiceBuilder::new(s3s_fs::FileSystem::new(root.path()).unwrap());
        builder.set_auth(SimpleAuth::from_single(KEY_ID, SECRET));
        builder.set_access(Access);
        // The names before the host's are buckets; an IP address has none.
        builder.set_host(MultiDomain::new([DOMAIN]).unwrap());
        let handler = Arc::new(Handler {
            service: builder.build(),
            root: root.path().to_owned(),
            between: Between::default(),
            tls,
        });
        let listening = runtime.spawn(listen(listener, Arc::clone(&handler)));
        let listening = Mutex::new(Some(listening));
        Self { address, root, handler, listening, runtime: Some(runtime) }
    }

    /// The folder of a bucket.
    pub fn bucket(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// A client's configuration, in TileDB's parameters, with short time limits.
    pub fn config(&self) -> BTreeMap<String, String> {
        let port = self.address.port();
        BTreeMap::from(
            [
                ("vfs.s3.endpoint_override", format!("127.0.0.1:{port}").as_str()),
                ("vfs.s3.scheme", "http"),
                ("vfs.s3.region", "eu-test-1"),
                ("vfs.s3.aws_access_key_id", KEY_ID),
                ("vfs.s3.aws_secret_access_key", SECRET),
                ("vfs.s3.use_virtual_addressing", "false"),
                ("vfs.s3.connect_timeout_ms", "1000"),
                ("vfs.s3.request_timeout_ms", "1000"),
                ("vfs.s3.connect_max_tries", "4"),
                ("soma.retry_limit_ms", "4000"),
                ("soma.request_limit_ms", "4000"),
            ]
            .map(|(name, value)| (name.to_owned(), value.to_owned())),
        )
    }

    /// Injects a fault into the next `times` requests whose path or query contains `of`.
    pub fn fault(&self, of: &'static str, times: usize, what: What) {
        self.handler.between.put(Fault { what, of, after: 0, times });
    }

    /// Like [`Server::fault`], after `after` matching requests were answered.
    pub fn fault_after(&self, of: &'static str, after: usize, times: usize, what: What) {
        self.handler.between.put(Fault { what, of, after, times });
    }

    /// Injects temporary faults into one in `one_in` requests from now on, drawn by `seed`.
    pub fn trouble(&self, seed: u64, one_in: u64) {
        self.handler.between.trouble(seed, one_in);
    }

    /// Removes all faults.
    pub fn heal(&self) {
        self.handler.between.clear();
    }

    /// Returns the requests since the last call.
    pub fn seen(&self) -> Vec<Seen> {
        self.handler.between.take_seen()
    }

    /// Closes all connections, and refuses new ones for this long.
    pub fn refuse(&self, time: Duration) {
        let runtime = self.runtime.as_ref().unwrap();
        if let Some(listening) = self.listening.lock().unwrap().take() {
            listening.abort();
            assert!(runtime.block_on(listening).is_err_and(|error| error.is_cancelled()));
        }
        let (address, handler) = (self.address, Arc::clone(&self.handler));
        *self.listening.lock().unwrap() = Some(runtime.spawn(async move {
            tokio::time::sleep(time).await;
            listen(TcpListener::bind(address).await.unwrap(), handler).await;
        }));
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Serves requests until it is aborted, which also ends its connections.
async fn listen(listener: TcpListener, handler: Arc<Handler>) {
    let mut connections = tokio::task::JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let handler = Arc::clone(&handler);
        connections.spawn(async move {
            match &handler.tls {
                None => serve(stream, handler).await,
                Some(tls) => {
                    // A client that does not trust the certificate closes the connection.
                    if let Ok(stream) = tls.accept(stream).await {
                        serve(stream, handler).await;
                    }
                }
            }
        });
    }
}

async fn serve(stream: impl AsyncRead + AsyncWrite + Unpin, handler: Arc<Handler>) {
    let service = service_fn(move |request| {
        let handler = Arc::clone(&handler);
        async move { handler.answer(request).await }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .serve_connection(TokioIo::new(stream), service);
    // A connection that a fault closes returns an error.
    drop(connection.await);
}

impl Handler {
    async fn answer(&self, request: Request<Incoming>) -> Result<Answer, io::Error> {
        let uri = request.uri();
        let target = uri.path_and_query().map_or_else(String::new, ToString::to_string);
        let host = request.headers().get(HOST).and_then(|host| host.to_str().ok());
        let mut seen = Seen {
            method: request.method().clone(),
            host: host.unwrap_or_default().to_owned(),
            is_signed: request.headers().contains_key(AUTHORIZATION),
            target,
            n_bytes: 0,
        };
        let what = self.between.draw(&seen.target);
        if let Some(what @ (What::Status(_) | What::HangUp | What::Silence)) = &what {
            self.between.note(seen);
            return in_place(what).await.ok_or_else(|| io::Error::other("hung up"));
        }
        if let Some(What::First(deed)) = &what {
            deed();
        }
        let answer = self.store(request).await.unwrap_or_else(|never| match never {});
        seen.n_bytes = answer.body().len() as u64;
        self.between.note(seen);
        Ok(with_fault(what.as_ref(), answer))
    }

    /// The store's complete answer, without a fault.
    async fn store(&self, request: Request<Incoming>) -> Result<Response<Bytes>, Infallible> {
        // The store treats folders as objects, which S3 does not have.
        let is_head = request.method() == Method::HEAD;
        if is_head && self.is_folder(request.uri().path()) {
            let mut answer = Response::new(Bytes::new());
            *answer.status_mut() = StatusCode::NOT_FOUND;
            return Ok(answer);
        }
        let answer = self.service.call(request.map(s3s::Body::from)).await;
        let Ok(answer) = answer else {
            let mut answer = Response::new(Bytes::from_static(b"the store failed"));
            *answer.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
            return Ok(answer);
        };
        let (head, body) = answer.into_parts();
        let body = if is_head { Bytes::new() } else { body.collect().await.unwrap().to_bytes() };
        Ok(Response::from_parts(head, body))
    }

    fn is_folder(&self, path: &str) -> bool {
        let path = path.trim_matches('/');
        path.contains('/') && Path::new(&self.root).join(path).is_dir()
    }
}
