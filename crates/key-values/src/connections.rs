//! Connections to servers, kept between calls.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use redis::{Client, Connection, ConnectionAddr, ConnectionInfo, ErrorKind, TlsCertificates};

use crate::address::NodeAddress;
use crate::error::Error;
use crate::spec::ServerSpec;

/// Connections to one server that wait for the next call. More threads than this at once open new
/// ones.
const MOST_IDLE: usize = 16;

/// Makes connections and keeps the idle ones.
pub(crate) struct Connections {
    /// User, password and database of all servers, and whether they speak TLS.
    info: ConnectionInfo,
    certificates: TlsCertificates,
    connect_timeout: Duration,
    response_timeout: Duration,
    idle: Mutex<HashMap<NodeAddress, Vec<Connection>>>,
}

impl fmt::Debug for Connections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Connections")
    }
}

impl Connections {
    pub(crate) fn new(spec: &ServerSpec, info: ConnectionInfo) -> Self {
        // The name of the library is of no use to the server, and old ones refuse it.
        let login = info.redis_settings().clone().set_skip_set_lib_name();
        Self {
            info: info.set_redis_settings(login),
            certificates: TlsCertificates {
                client_tls: None,
                root_cert: spec.root_certificates.clone(),
            },
            connect_timeout: spec.connect_timeout,
            response_timeout: spec.response_timeout,
            idle: Mutex::default(),
        }
    }

    /// Number of the database; a cluster has only 0.
    pub(crate) fn database(&self) -> i64 {
        self.info.redis_settings().db()
    }

    /// Time that a server may take to answer.
    pub(crate) fn response_timeout(&self) -> Duration {
        self.response_timeout
    }

    /// An idle connection, or a new one.
    pub(crate) fn take(&self, address: &NodeAddress) -> Result<Connection, Error> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let found = idle.get_mut(address).and_then(Vec::pop);
        drop(idle);
        found.map_or_else(|| self.dial(address), Ok)
    }

    /// Keeps a connection that has no answer outstanding.
    pub(crate) fn give_back(&self, address: &NodeAddress, connection: Connection) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = idle.entry(address.clone()).or_default();
        if kept.len() < MOST_IDLE {
            kept.push(connection);
        }
    }

    /// Closes idle connections to a server that closed another one.
    pub(crate) fn forget(&self, address: &NodeAddress) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        drop(idle.remove(address));
    }

    fn dial(&self, address: &NodeAddress) -> Result<Connection, Error> {
        let failed = |error: &redis::RedisError| dial_error(address, error);
        let (host, port) = (address.host.clone(), address.port);
        let client = if matches!(self.info.addr(), ConnectionAddr::TcpTls { .. }) {
            choose_ciphers();
            let addr = ConnectionAddr::TcpTls { host, port, insecure: false, tls_params: None };
            Client::build_with_tls(self.info.clone().set_addr(addr), self.certificates.clone())
        } else {
            Client::open(self.info.clone().set_addr(ConnectionAddr::Tcp(host, port)))
        };
        let client = client.map_err(|error| failed(&error))?;
        let mut connection = client
            .get_connection_with_timeout(self.connect_timeout)
            .map_err(|error| failed(&error))?;
        let timeouts = |connection: &Connection, timeout| {
            connection.set_read_timeout(Some(timeout))?;
            connection.set_write_timeout(Some(timeout))
        };
        timeouts(&connection, self.connect_timeout).map_err(|error| failed(&error))?;
        // Without a login nothing has been sent yet, not even TLS's greeting.
        match redis::cmd("PING").query::<redis::Value>(&mut connection) {
            Err(error) if !is_of_a_working_server(&error) => return Err(failed(&error)),
            _ => {}
        }
        timeouts(&connection, self.response_timeout).map_err(|error| failed(&error))?;
        Ok(connection)
    }
}

/// rustls wants one provider of ciphers for the process.
fn choose_ciphers() {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // It fails if another thread was faster.
        drop(rustls::crypto::ring::default_provider().install_default());
    }
}

/// Whether the server answers, though not to this command or not yet.
fn is_of_a_working_server(error: &redis::RedisError) -> bool {
    error.code().is_some_and(|code| ["LOADING", "NOPERM", "MASTERDOWN"].contains(&code))
}

/// The reason of a failed exchange.
pub(crate) fn reason(error: &redis::RedisError) -> String {
    // The system calls it `Resource temporarily unavailable`.
    if error.is_timeout() { "no answer in time".to_owned() } else { error.to_string() }
}

fn dial_error(address: &NodeAddress, error: &redis::RedisError) -> Error {
    let (node, problem) = (address.to_string(), reason(error));
    let is_login = error.kind() == ErrorKind::AuthenticationFailed
        || error.code().is_some_and(|code| ["NOAUTH", "WRONGPASS"].contains(&code));
    if is_login { Error::Login { node, problem } } else { Error::Connect { node, problem } }
}
