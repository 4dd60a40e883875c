//! Data on a local disk, read over a link: a process of its own serves a folder in the way of S3,
//! with the latency, the rates and the faults of the link.

mod access;
mod cores;
mod meter;
mod process;
mod proxies;

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use bench_report::HostInfo;
use clap::Args;
use link::{LinkFaults, LinkSpec, ServeOptions};

pub use access::LinkAccess;
pub use meter::LinkMeter;
pub use process::{SUBCOMMAND as SERVE_LINK, ServeLinkArgs, serve as serve_link};

use crate::digest::digest;
use cores::ServerCores;
use process::LinkProcess;

/// Flags of commands that read local data over a link.
#[derive(Clone, Debug, Default, Args)]
pub struct LinkFlags {
    /// Read data on a local disk over a link: the latency of a request, the rate of each connection
    /// and the rate of all, like 30ms,90MB/s,1GB/s; a single rate is that of all. A process of its
    /// own serves the files in the way of S3
    #[arg(long, value_name = "LINK")]
    pub link: Option<LinkSpec>,
    /// Faults of the link, separated by commas: refused=1/50, slow=1/20:2s, cut=1/40, storm=300:20
    /// (20 answers of 503 after every 300), replaced=500 (another ETag from the 500th request on),
    /// expired=1000 (403 from then on), seed=7
    #[arg(long, value_name = "FAULTS", requires = "link")]
    pub link_faults: Option<LinkFaults>,
}

impl LinkFlags {
    /// The flags as typed, each with its value.
    pub fn typed(&self) -> impl Iterator<Item = (&'static str, String)> {
        let link = self.link.as_ref().map(|link| ("--link", link.to_string()));
        let faults = self.link_faults.as_ref().map(|faults| ("--link-faults", faults.to_string()));
        link.into_iter().chain(faults)
    }

    /// Prepares the servers of the link, if there is one. On a machine with several cores they get
    /// cores of their own, which this thread and the processes that it starts leave alone until the
    /// servers are dropped. `host` must be gathered before: its cores include those of the servers.
    ///
    /// If the environment names a proxy, this replaces the process by the same command without it.
    /// Call this before anything that must not be done twice.
    ///
    /// # Errors
    /// The program cannot be started again without the proxy, or the system refuses to bind this
    /// thread to its cores.
    pub fn servers(&self, host: &HostInfo) -> anyhow::Result<Option<LinkServers>> {
        let Some(spec) = self.link else { return Ok(None) };
        proxies::leave()?;
        let faults = self.link_faults.filter(|faults| !faults.is_none());
        let cores = ServerCores::take().context("cannot set apart cores for the link's server")?;
        let n_cores = host.n_cores;
        Ok(Some(LinkServers { spec, faults, cores, n_cores, served: Vec::new() }))
    }
}

/// Servers over one link, each a process; they end when this is dropped.
#[derive(Debug)]
pub struct LinkServers {
    spec: LinkSpec,
    faults: Option<LinkFaults>,
    cores: ServerCores,
    /// Cores of the machine, those of the servers included.
    n_cores: u64,
    served: Vec<Served>,
}

/// A folder that is served.
#[derive(Debug)]
struct Served {
    folder: PathBuf,
    access: LinkAccess,
    /// Ends when this is dropped.
    _process: LinkProcess,
}

impl LinkServers {
    /// Starts a server over `folder`, unless it has one; returns how to read it. `stored_bytes` are
    /// the bytes in its files that an epoch over all samples needs, if known. Nothing else is
    /// served: any user of the machine may ask the server.
    ///
    /// # Errors
    /// The folder does not exist, or the server cannot be started.
    pub fn serve(
        &mut self,
        folder: &Path,
        stored_bytes: Option<u64>,
    ) -> anyhow::Result<LinkAccess> {
        let cannot = || format!("cannot serve {}", folder.display());
        let folder = folder.canonicalize().with_context(cannot)?;
        if let Some(served) = self.served.iter().find(|served| served.folder == folder) {
            return Ok(served.access.clone());
        }
        let name = format!("data-{}", digest(&folder)?);
        let faults = self.faults.unwrap_or_default();
        let options = ServeOptions { spec: self.spec, faults, name };
        let process = LinkProcess::start(&folder, &options, self.cores.of_server())?;
        let access = LinkAccess {
            link: self.spec.to_string(),
            faults: self.faults.map(|faults| faults.to_string()),
            name: options.name,
            address: process.address().to_owned(),
            cores: Some(self.cores.of_server().len() as u64).filter(|n| 0 < *n),
            stored_bytes,
        };
        self.served.push(Served { folder, access: access.clone(), _process: process });
        Ok(access)
    }

    /// Describes the link in a line, for the progress.
    pub fn describe(&self) -> String {
        let faults = self.faults.map_or_else(String::new, |faults| format!(", faults {faults}"));
        let cores = match (self.cores.of_server().len(), self.n_cores) {
            (0, 1) => "whose server shares the only core".to_owned(),
            (0, all) => format!("whose server shares the {all} cores"),
            (n, all) => format!("whose server has {n} of the {all} cores"),
        };
        format!("over a link of {}{faults}, {cores}", self.spec)
    }
}
