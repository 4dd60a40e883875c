//! Flags of servers that keep sequences.

use anyhow::Context as _;
use bytesize::ByteSize;
use clap::Args;
use redis_cluster::{ClusterSpec, LocalCluster};
use sequences::key_values::ServerSpec;

/// Flags of servers.
#[derive(Debug, Args)]
pub(crate) struct ServerFlags {
    /// Addresses of Redis or Valkey servers: redis://HOST:PORT, rediss:// for TLS, with
    /// USER:PASSWORD@ if they ask for it. One node of a cluster is enough
    #[arg(
        long,
        value_name = "URLS",
        value_delimiter = ',',
        conflicts_with = "cluster",
        required_unless_present = "cluster"
    )]
    servers: Vec<String>,
    /// Start a cluster of this many masters on this machine; it ends with the command
    #[arg(long, value_name = "N")]
    cluster: Option<usize>,
    /// Limit on the memory of each server of that cluster
    #[arg(long, value_name = "SIZE", requires = "cluster", conflicts_with = "servers")]
    max_memory: Option<ByteSize>,
    /// Name of the data set among the keys of the servers
    #[arg(long, value_name = "NAME", default_value = "sequences")]
    namespace: String,
}

/// Servers, and the cluster that was started for them.
#[derive(Debug)]
pub(crate) struct Servers {
    pub(crate) spec: ServerSpec,
    /// Its servers end when it is dropped.
    _cluster: Option<LocalCluster>,
}

impl ServerFlags {
    /// Starts the cluster, if one was asked for.
    pub(crate) fn start(&self) -> anyhow::Result<Servers> {
        let cluster = match self.cluster {
            Some(n_masters) => {
                let max_memory = self.max_memory.map(|size| size.as_u64());
                let spec = ClusterSpec { n_masters, max_memory, ..ClusterSpec::default() };
                Some(LocalCluster::start(spec).context("cannot start a cluster")?)
            }
            None => None,
        };
        let urls = match &cluster {
            Some(cluster) => cluster.urls(),
            None => self.servers.clone(),
        };
        Ok(Servers { spec: ServerSpec::new(urls, &self.namespace), _cluster: cluster })
    }
}
