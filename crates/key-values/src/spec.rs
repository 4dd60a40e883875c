//! Which servers, which namespace, and how patient to be.

use std::fmt;
use std::time::Duration;

use redis::{ConnectionAddr, ConnectionInfo, IntoConnectionInfo as _};

use crate::address::{NodeAddress, has_plain_separator, without_secrets};
use crate::error::Error;

/// The servers of a store and how to talk to them.
#[derive(Clone)]
pub struct ServerSpec {
    /// Addresses like `redis://127.0.0.1:7001`, `rediss://user:password@host` (with TLS) or
    /// `valkey://host`. One node of a cluster is enough: it names the others. More help if one is
    /// down. User, password and TLS are the same for all nodes. Characters of a password that mean
    /// something in an address are written as `%` and two digits: `%40` for `@`, `%2F` for `/`.
    pub urls: Vec<String>,
    /// Name of the data set: the first part of all its keys. Short is better; a server stores it
    /// once for each value.
    pub namespace: String,
    /// Certificates of the authorities that sign the servers' certificates, in PEM format; `None`
    /// for those of the system.
    pub root_certificates: Option<Vec<u8>>,
    /// Time to connect to a server.
    pub connect_timeout: Duration,
    /// Time that a server may take to answer; longer ones count as lost connections.
    pub response_timeout: Duration,
    /// How long a key may fail because nobody owns its slot or its server does not answer. A
    /// cluster needs about twice its node timeout to replace a dead master by a replica.
    pub retry_for: Duration,
    /// Bytes that are sent to a server at once.
    pub pipeline_bytes: usize,
    /// Largest number of commands that are sent to a server at once.
    pub pipeline_keys: usize,
}

impl ServerSpec {
    /// The servers at these addresses, with times and sizes that suit most networks.
    pub fn new<U: Into<String>>(
        urls: impl IntoIterator<Item = U>,
        namespace: impl Into<String>,
    ) -> Self {
        Self {
            urls: urls.into_iter().map(Into::into).collect(),
            namespace: namespace.into(),
            root_certificates: None,
            connect_timeout: Duration::from_secs(5),
            response_timeout: Duration::from_secs(15),
            retry_for: Duration::from_mins(1),
            pipeline_bytes: 256 << 10,
            pipeline_keys: 1024,
        }
    }

    /// The first address, whose login is that of all servers, and the places of all.
    pub(crate) fn parse(&self) -> Result<(ConnectionInfo, Vec<NodeAddress>), Error> {
        if self.pipeline_bytes == 0 || self.pipeline_keys == 0 {
            let problem = "a pipeline of nothing never sends a command".to_owned();
            return Err(Error::Spec { what: "pipeline_bytes and pipeline_keys".into(), problem });
        }
        let mut places = Vec::new();
        let mut first: Option<ConnectionInfo> = None;
        for url in &self.urls {
            let refused = |problem: &str| Error::Spec {
                what: format!("address `{}`", without_secrets(url)),
                problem: problem.to_owned(),
            };
            if has_plain_separator(url) {
                return Err(refused(QUOTING));
            }
            let info = url.as_str().into_connection_info();
            // Its error may quote the address.
            let info = info.map_err(|_| {
                let has_login = url.contains('@');
                let problem = "write redis://HOST:PORT, or rediss:// for TLS";
                refused(&if has_login { format!("{problem}; {QUOTING}") } else { problem.into() })
            })?;
            places.push(place_of(&info).ok_or_else(|| refused("sockets in files are not used"))?);
            match &first {
                Some(first) if !same_login(first, &info) => {
                    return Err(refused(
                        "it has another user, password, database or TLS than the first",
                    ));
                }
                Some(_) => {}
                None => first = Some(info),
            }
        }
        let none = || Error::Spec { what: "addresses".into(), problem: "there is none".into() };
        Ok((first.ok_or_else(none)?, places))
    }
}

/// How a login is written in an address.
const QUOTING: &str = "in its user and password write % as %25, : as %3A, / as %2F, ? as %3F, # as \
                       %23, @ as %40, a comma as %2C and a blank as %20";

fn place_of(info: &ConnectionInfo) -> Option<NodeAddress> {
    match info.addr() {
        ConnectionAddr::Tcp(host, port) | ConnectionAddr::TcpTls { host, port, .. } => {
            let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
            Some(NodeAddress { host, port: *port })
        }
        _ => None,
    }
}

fn same_login(one: &ConnectionInfo, other: &ConnectionInfo) -> bool {
    let login_of = |info: &ConnectionInfo| {
        let login = info.redis_settings();
        let text = |word: Option<&str>| word.map(str::to_owned);
        let has_tls = matches!(info.addr(), ConnectionAddr::TcpTls { .. });
        (text(login.username()), text(login.password()), login.db(), has_tls)
    };
    login_of(one) == login_of(other)
}

impl fmt::Debug for ServerSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let urls: Vec<String> = self.urls.iter().map(|url| without_secrets(url)).collect();
        f.debug_struct("ServerSpec")
            .field("urls", &urls)
            .field("namespace", &self.namespace)
            .field("retry_for", &self.retry_for)
            .field("pipeline_bytes", &self.pipeline_bytes)
            .field("pipeline_keys", &self.pipeline_keys)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refused(urls: &[&str], expect: &str) {
        let error = ServerSpec::new(urls.to_vec(), "n").parse().unwrap_err().to_string();
        assert!(error.contains(expect) && !error.contains("s3cret"), "{error}");
    }

    #[test]
    fn addresses_are_checked_without_showing_secrets() {
        refused(&[], "there is none");
        refused(&["http://me:s3cret@host"], "`http://***@host`: write redis://");
        refused(&["redis://me:s3cret@ho st"], "write redis://");
        refused(&["unix:///tmp/socket"], "sockets");
        for login in [":s3cret/1", "me:12/s3cret", "me:12?s3cret", "me:12#s3cret", "s3cret:a b/"] {
            refused(&[&format!("redis://{login}@host")], "/ as %2F, ? as %3F");
        }
        // What a list divided at its commas leaves of a password with one.
        refused(&["redis://:s3cret", "a@host"], "address `redis://***`");
        refused(&["redis://a", "rediss://b"], "TLS than the first");
        refused(&["redis://:s3cret@a", "redis://:other@b"], "`redis://***@b`");
    }

    #[test]
    fn places_have_ports() {
        let urls = ["rediss://me:s3cret@host:7001", "rediss://me:s3cret@[::1]"];
        let spec = ServerSpec::new(urls, "n");
        let (info, places) = spec.parse().unwrap();
        assert_eq!(info.redis_settings().password(), Some("s3cret"));
        let shown: Vec<String> = places.iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["host:7001", "[::1]:6379"]);
        assert!(!format!("{spec:?}").contains("s3cret"));
    }
}
