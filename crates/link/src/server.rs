//! The server: a port on loopback, and threads of its own.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Handle, Runtime};

use crate::body::{Buffers, Rates};
use crate::client_settings::client_settings;
use crate::counts::LinkCounts;
use crate::error::Error;
use crate::faults::{Draws, LinkFaults};
use crate::files::Folder;
use crate::pace::Pace;
use crate::service::{Connection, Service};
use crate::spec::LinkSpec;

/// Threads that read and send.
const N_THREADS: usize = 2;

/// How long a dropped server waits for its threads; they wait for nothing but the network.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);

/// How long to wait before the next connection after the system refused one, for instance because
/// too many files are open.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);

/// A server over a folder, on a free port of the loopback interface.
///
/// Dropping it closes its connections, frees the port and ends its threads.
#[derive(Debug)]
pub struct LinkServer {
    address: SocketAddr,
    folder: PathBuf,
    spec: LinkSpec,
    service: Arc<Service>,
    /// `Some` until the server is dropped.
    runtime: Option<Runtime>,
}

/// How a folder is served.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ServeOptions {
    /// Latency and rates.
    pub spec: LinkSpec,
    /// Faults.
    pub faults: LinkFaults,
    /// Name of the folder in the bucket, the first part of all keys; empty if the folder is the
    /// bucket itself.
    pub name: String,
}

impl LinkServer {
    /// Serves `folder` as the bucket, with the latency and rates of `spec` and without faults.
    ///
    /// # Errors
    /// The folder cannot be opened, or the port or the threads cannot be had.
    pub fn start(folder: impl AsRef<Path>, spec: LinkSpec) -> Result<Self, Error> {
        Self::start_with(folder, &ServeOptions { spec, ..ServeOptions::default() })
    }

    /// Serves `folder` with these options.
    ///
    /// # Errors
    /// The folder cannot be opened, or the port or the threads cannot be had.
    pub fn start_with(folder: impl AsRef<Path>, options: &ServeOptions) -> Result<Self, Error> {
        let ServeOptions { spec, faults, name } = options;
        let spec = *spec;
        let folder = folder.as_ref().to_owned();
        let opened = Folder::new(&folder, name)
            .map_err(|source| Error::Folder { folder: folder.clone(), source })?;
        let failed = |source| Error::Start { source };
        let service = Arc::new(Service {
            folder: opened,
            latency: spec.latency,
            buffers: Buffers::default(),
            draws: Draws::new(*faults),
            counters: Arc::default(),
        });
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let runtime = Builder::new_multi_thread()
            .worker_threads(N_THREADS)
            .thread_name("link-server")
            .enable_all()
            .build()
            .map_err(failed)?;
        let listener = {
            let _entered = runtime.enter();
            TcpListener::from_std(listener).map_err(failed)?
        };
        drop(runtime.spawn(listen(listener, Arc::clone(&service), spec)));
        Ok(Self { address, folder, spec, service, runtime: Some(runtime) })
    }

    /// The address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// A TileDB config with which S3 is read from this server.
    pub fn config(&self) -> BTreeMap<String, String> {
        let settings = client_settings(&self.address.to_string());
        settings.map(|(name, value)| (name.to_owned(), value)).into()
    }

    /// The served folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The link.
    pub fn spec(&self) -> LinkSpec {
        self.spec
    }

    /// Its counts so far; the most requests under way since they were last taken.
    pub fn counts(&self) -> LinkCounts {
        self.service.counters.counts()
    }

    /// Its counts so far. The next counts have the most requests under way from now on, as after
    /// [`LinkCounts::take`].
    pub fn take_counts(&self) -> LinkCounts {
        self.service.counters.take()
    }
}

impl Drop for LinkServer {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // A thread of another runtime must not wait for this one.
            if Handle::try_current().is_ok() {
                runtime.shutdown_background();
            } else {
                runtime.shutdown_timeout(SHUTDOWN_TIMEOUT);
            }
        }
    }
}

/// Accepts connections until the runtime ends.
async fn listen(listener: TcpListener, service: Arc<Service>, spec: LinkSpec) -> ! {
    let total = spec.total_bytes_per_sec.map(|rate| Arc::new(Pace::new(rate)));
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let own = spec.connection_bytes_per_sec.map(|rate| Arc::new(Pace::new(rate)));
        let rates = Rates { connection: own, total: total.clone() };
        let connection = Connection { rates, has_requests: Arc::new(AtomicBool::new(false)) };
        drop(tokio::spawn(serve(stream, Arc::clone(&service), connection)));
    }
}

async fn serve(stream: TcpStream, service: Arc<Service>, connection: Connection) {
    // Without it the last piece of an answer may wait for the client's acknowledgement. If it
    // cannot be set, answers come all the same.
    drop(stream.set_nodelay(true));
    let answer =
        service_fn(move |request| Arc::clone(&service).answer(request, connection.clone()));
    // An error is the client's: it closed the connection, or sent something other than HTTP.
    drop(http1::Builder::new().serve_connection(TokioIo::new(stream), answer).await);
}
