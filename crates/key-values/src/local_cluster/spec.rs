//! The shape of a cluster.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use super::error::Error;

/// The shape of a cluster.
#[derive(Clone)]
pub struct ClusterSpec {
    /// Number of masters; the slots are spread evenly over them.
    pub n_masters: usize,
    /// Number of replicas of each master.
    pub n_replicas_per_master: usize,
    /// Limit on the memory of each node, in bytes (`maxmemory`); `None` for no limit. A node at its
    /// limit refuses to write; it never evicts.
    pub max_memory: Option<u64>,
    /// Password of all nodes.
    pub password: Option<String>,
    /// Existing folder in which the temporary folder is made; `None` for the system's.
    pub folder: Option<PathBuf>,
    /// Time without an answer after which a node counts as dead (`cluster-node-timeout`). A replica
    /// takes over after about twice this time.
    pub node_timeout: Duration,
    /// Certificate of all nodes. With it, nodes use TLS among themselves and have a second port
    /// for clients with TLS. Clients without TLS are still served.
    pub tls: Option<TlsFiles>,
    /// `false` for a single server that is not a cluster.
    pub is_cluster: bool,
    /// Path of the server's program; `None` for the one on the PATH.
    pub program: Option<PathBuf>,
    /// Time within which the cluster must work, and within which each change must take effect.
    pub deadline: Duration,
}

/// Files in PEM format for a server's TLS.
#[derive(Debug, Clone)]
pub struct TlsFiles {
    /// The certificate. It must be valid for `127.0.0.1`.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
    /// The certificate of the authority that signed it, or the same certificate if nobody did.
    pub authority: PathBuf,
}

impl Default for ClusterSpec {
    /// Three masters without replicas, password, TLS or limit.
    fn default() -> Self {
        Self {
            n_masters: 3,
            n_replicas_per_master: 0,
            max_memory: None,
            password: None,
            folder: None,
            node_timeout: Duration::from_secs(5),
            tls: None,
            is_cluster: true,
            program: None,
            deadline: Duration::from_mins(1),
        }
    }
}

impl fmt::Debug for ClusterSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClusterSpec")
            .field("n_masters", &self.n_masters)
            .field("n_replicas_per_master", &self.n_replicas_per_master)
            .field("max_memory", &self.max_memory)
            .field("password", &self.password.as_ref().map(|_| "***"))
            .field("is_cluster", &self.is_cluster)
            .finish_non_exhaustive()
    }
}

impl ClusterSpec {
    /// Fails if no cluster can have this shape.
    pub(super) fn check(&self) -> Result<(), Error> {
        let refused = |problem: &str| Err(Error::Spec { problem: problem.to_owned() });
        if self.n_masters == 0 {
            return refused("it has no master");
        }
        if !self.is_cluster && (self.n_masters, self.n_replicas_per_master) != (1, 0) {
            return refused("a server that is not a cluster is alone: one master, no replica");
        }
        // The password is a word of the configuration file.
        if self.password.as_ref().is_some_and(|word| word.is_empty() || !is_plain(word)) {
            return refused("the password is empty, or has spaces, quotes or backslashes");
        }
        Ok(())
    }
}

fn is_plain(word: &str) -> bool {
    word.chars().all(|c| c.is_ascii_graphic() && !matches!(c, '"' | '\'' | '\\' | '#'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_shapes_are_refused() {
        let default = ClusterSpec::default;
        let with_password = |word: &str| ClusterSpec { password: Some(word.into()), ..default() };
        for spec in [
            ClusterSpec { n_masters: 0, ..default() },
            ClusterSpec { is_cluster: false, ..default() },
            ClusterSpec { is_cluster: false, n_masters: 1, n_replicas_per_master: 1, ..default() },
            with_password(""),
            with_password("two words"),
        ] {
            assert!(matches!(spec.check(), Err(Error::Spec { .. })), "{spec:?}");
        }
        default().check().unwrap();
        with_password("s3cret!").check().unwrap();
    }

    #[test]
    fn the_password_is_not_shown() {
        let spec = ClusterSpec { password: Some("s3cret".into()), ..ClusterSpec::default() };
        assert!(!format!("{spec:?}").contains("s3cret"));
    }
}
