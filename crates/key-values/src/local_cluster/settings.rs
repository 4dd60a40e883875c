//! The configuration of a node.

use std::fmt::Write as _;
use std::time::Duration;

use super::ports::Ports;
use super::spec::{ClusterSpec, TlsFiles};

/// Settings that all nodes of a cluster share.
#[derive(Clone)]
pub(super) struct Settings {
    max_memory: Option<u64>,
    password: Option<String>,
    node_timeout: Duration,
    pub(super) tls: Option<TlsFiles>,
    pub(super) is_cluster: bool,
}

impl From<ClusterSpec> for Settings {
    fn from(spec: ClusterSpec) -> Self {
        let ClusterSpec { max_memory, password, node_timeout, tls, is_cluster, .. } = spec;
        Self { max_memory, password, node_timeout, tls, is_cluster }
    }
}

impl Settings {
    pub(super) fn password(&self) -> Option<&str> {
        self.password.as_deref()
    }

    /// The configuration file. The server's working folder is the node's.
    pub(super) fn configuration(&self, ports: Ports) -> String {
        let Ports { plain, bus, tls } = ports;
        let mut text = format!(
            "port {plain}\nbind 127.0.0.1\ndaemonize no\nsave \"\"\nappendonly no\nlogfile \"\"\n\
             repl-diskless-sync yes\nrepl-diskless-sync-delay 0\nmaxmemory-policy noeviction\n"
        );
        let mut add = |line: std::fmt::Arguments<'_>| {
            // A String takes any text.
            let _written = text.write_fmt(format_args!("{line}\n"));
        };
        if self.is_cluster {
            add(format_args!("cluster-enabled yes\ncluster-port {bus}"));
            add(format_args!("cluster-config-file nodes.conf"));
            add(format_args!("cluster-node-timeout {}", self.node_timeout.as_millis()));
            add(format_args!("cluster-announce-ip 127.0.0.1"));
            // A replica stays with its master, also when another one has none.
            add(format_args!("cluster-allow-replica-migration no"));
        }
        if let Some(bytes) = self.max_memory {
            add(format_args!("maxmemory {bytes}"));
        }
        if let Some(password) = &self.password {
            add(format_args!("requirepass {password}\nmasterauth {password}"));
        }
        if let (Some(files), Some(port)) = (&self.tls, tls) {
            add(format_args!("tls-port {port}\ntls-auth-clients no"));
            add(format_args!("tls-cert-file \"{}\"", files.certificate.display()));
            add(format_args!("tls-key-file \"{}\"", files.key.display()));
            add(format_args!("tls-ca-cert-file \"{}\"", files.authority.display()));
            if self.is_cluster {
                // Redis 7.0 names the ports for TLS to clients only if nodes use TLS, too.
                add(format_args!("tls-cluster yes\ntls-replication yes"));
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_configuration_follows_the_specification() {
        let ports = Ports { plain: 7001, bus: 7002, tls: Some(7003) };
        let mut spec = ClusterSpec {
            max_memory: Some(1 << 20),
            password: Some("s3cret".into()),
            ..ClusterSpec::default()
        };
        let text = Settings::from(spec.clone()).configuration(ports);
        for line in [
            "port 7001",
            "cluster-port 7002",
            "maxmemory 1048576",
            "maxmemory-policy noeviction",
            "requirepass s3cret",
            "masterauth s3cret",
            "save \"\"",
        ] {
            assert!(text.lines().any(|one| one == line), "{line} is not in {text}");
        }
        assert!(!text.contains("tls"));
        spec.is_cluster = false;
        let [certificate, key, authority] = ["/c.pem", "/k.pem", "/a.pem"].map(Into::into);
        spec.tls = Some(TlsFiles { certificate, key, authority });
        let text = Settings::from(spec).configuration(ports);
        assert!(!text.contains("cluster") && text.contains("tls-port 7003"), "{text}");
    }
}
