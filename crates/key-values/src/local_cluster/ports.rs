//! Free ports of the loopback interface.

use std::net::{Ipv4Addr, TcpListener};

use super::error::Error;

/// Ports of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ports {
    /// Port for clients, without TLS.
    pub(super) plain: u16,
    /// Port for the other nodes.
    pub(super) bus: u16,
    /// Port for clients with TLS.
    pub(super) tls: Option<u16>,
}

impl Ports {
    /// The port by which other nodes know this one.
    pub(super) fn among_nodes(self) -> u16 {
        self.tls.unwrap_or(self.plain)
    }
}

/// Asks the system for ports that nobody listens on.
///
/// They are free again when this returns, so that a server can take them. Another process may be
/// faster: then the server does not start, and needs other ports.
pub(super) fn free_ports(with_tls: bool) -> Result<Ports, Error> {
    let failed = |source| Error::System { what: "find a free port on 127.0.0.1".into(), source };
    let listen = || {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(failed)?;
        let port = listener.local_addr().map_err(failed)?.port();
        Ok((port, listener))
    };
    // All are taken at once, so that they differ.
    let (plain, bus) = (listen()?, listen()?);
    let tls = if with_tls { Some(listen()?) } else { None };
    Ok(Ports { plain: plain.0, bus: bus.0, tls: tls.map(|(port, _listener)| port) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_differ_and_are_free() {
        let is_free = |port| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok();
        // Another process may take a port meanwhile, but not again and again.
        let are_free = (0..20).any(|_| {
            let ports = free_ports(true).unwrap();
            let tls = ports.tls.unwrap();
            assert!(ports.plain != ports.bus && ports.bus != tls && tls != ports.plain);
            [ports.plain, ports.bus, tls].into_iter().all(is_free)
        });
        assert!(are_free);
        assert_eq!(free_ports(false).unwrap().tls, None);
    }
}
