//! Flags of servers that keep sequences.

use anyhow::Context as _;
use bytesize::ByteSize;
use clap::Args;
use key_values::local_cluster::{ClusterSpec, LocalCluster};
use sequences::key_values::ServerSpec;

/// Flags of servers.
#[derive(Debug, Args)]
pub(crate) struct ServerFlags {
    /// Addresses of Redis or Valkey servers: redis://HOST:PORT, rediss:// for TLS, with
    /// USER:PASSWORD@ if they ask for it (/ is written %2F there, ? %3F, # %23, @ %40, % %25). One
    /// node of a cluster is enough
    #[arg(
        long,
        value_name = "URLS",
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
            None => self.servers.iter().flat_map(|list| addresses(list)).collect(),
        };
        Ok(Servers { spec: ServerSpec::new(urls, &self.namespace), _cluster: cluster })
    }
}

/// The addresses of a list. A comma divides it only if the scheme of an address follows, because a
/// password may have commas.
fn addresses(list: &str) -> Vec<String> {
    let mut addresses: Vec<String> = Vec::new();
    for part in list.split(',') {
        match addresses.last_mut() {
            Some(last) if !part.contains("://") => {
                last.push(',');
                last.push_str(part);
            }
            _ => addresses.push(part.to_owned()),
        }
    }
    addresses
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_of_passwords_do_not_divide_a_list() {
        for (list, expected) in [
            ("redis://a", &["redis://a"][..]),
            ("redis://a:1,rediss://b", &["redis://a:1", "rediss://b"]),
            ("redis://:s3,cret@a,redis://b", &["redis://:s3,cret@a", "redis://b"]),
        ] {
            assert_eq!(addresses(list), expected);
        }
    }
}
