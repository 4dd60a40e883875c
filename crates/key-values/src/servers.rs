//! The servers of a store: who owns what, and commands to single ones.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use redis::{Cmd, Value};

use crate::address::NodeAddress;
use crate::connections::{Connections, reason};
use crate::error::Error;
use crate::slot::Namespace;
use crate::spec::ServerSpec;
use crate::topology::Topology;

/// What a server that is not in a cluster says to commands about one.
const ALONE: &str = "cluster support disabled";

/// The servers of a store.
pub(crate) struct Servers {
    pub(crate) namespace: Namespace,
    pub(crate) connections: Connections,
    pub(crate) pipeline_bytes: usize,
    pub(crate) pipeline_keys: usize,
    pub(crate) retry_for: Duration,
    pub(crate) is_cluster: bool,
    /// Connections that broke while commands were carried out.
    n_broken: AtomicU64,
    /// Servers of the addresses that were given.
    seeds: Vec<NodeAddress>,
    topology: RwLock<Arc<Topology>>,
    /// Held while the topology is asked for; the number of times that it was.
    refreshing: Mutex<usize>,
}

impl fmt::Debug for Servers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Servers")
            .field("namespace", &self.namespace.name())
            .field("masters", &self.topology().masters)
            .finish_non_exhaustive()
    }
}

impl Servers {
    pub(crate) fn open(spec: &ServerSpec) -> Result<Self, Error> {
        let namespace = Namespace::new(&spec.namespace)?;
        let (info, seeds) = spec.parse()?;
        let connections = Connections::new(spec, info);
        let (topology, is_cluster) = first_topology(&connections, &seeds)?;
        if is_cluster && connections.database() != 0 {
            let problem = "a cluster has only database 0".to_owned();
            return Err(Error::Spec { what: "database of the address".into(), problem });
        }
        Ok(Self {
            namespace,
            connections,
            pipeline_bytes: spec.pipeline_bytes,
            pipeline_keys: spec.pipeline_keys,
            retry_for: spec.retry_for,
            is_cluster,
            n_broken: AtomicU64::new(0),
            seeds,
            topology: RwLock::new(Arc::new(topology)),
            refreshing: Mutex::new(0),
        })
    }

    /// The owners, as far as known.
    pub(crate) fn topology(&self) -> Arc<Topology> {
        Arc::clone(&self.topology.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes note of a connection that broke. The others to that server are probably broken, too.
    pub(crate) fn connection_broke(&self, address: &NodeAddress) {
        self.n_broken.fetch_add(1, Ordering::Relaxed);
        self.connections.forget(address);
    }

    /// Number of connections that broke so far.
    pub(crate) fn n_broken(&self) -> u64 {
        self.n_broken.load(Ordering::Relaxed)
    }

    /// Asks a server who owns what, unless another thread did so since `seen`. `hint` is a server
    /// that probably knows.
    pub(crate) fn refresh(
        &self,
        seen: &Arc<Topology>,
        hint: Option<&NodeAddress>,
    ) -> Result<(), Error> {
        if !self.is_cluster {
            return Ok(());
        }
        let mut n_times = self.refreshing.lock().unwrap_or_else(PoisonError::into_inner);
        if !Arc::ptr_eq(seen, &self.topology()) {
            return Ok(());
        }
        *n_times += 1;
        // Another one first each time: a server that was cut off may not know the latest.
        let mut others: Vec<&NodeAddress> = seen.addresses().chain(&self.seeds).collect();
        let n_others = others.len().max(1);
        others.rotate_left(*n_times % n_others);
        let mut last_error = None;
        for address in hint.into_iter().chain(others) {
            match ask_topology(&self.connections, address) {
                Ok(topology) => {
                    let mut current = self.topology.write().unwrap_or_else(PoisonError::into_inner);
                    *current = Arc::new(topology);
                    return Ok(());
                }
                Err(error) => last_error = Some(error),
            }
        }
        last_error.map_or(Ok(()), Err)
    }

    /// Runs a command on a server, with an idle connection if there is one.
    pub(crate) fn command(
        &self,
        address: &NodeAddress,
        name: &str,
        command: &Cmd,
    ) -> Result<Value, Error> {
        run(&self.connections, address, name, command)
    }

    /// Runs a command whose answer is a text.
    pub(crate) fn text(
        &self,
        address: &NodeAddress,
        name: &str,
        command: &Cmd,
    ) -> Result<String, Error> {
        match self.command(address, name, command)? {
            Value::BulkString(text) => Ok(String::from_utf8_lossy(&text).into_owned()),
            Value::SimpleString(text) | Value::VerbatimString { text, .. } => Ok(text),
            other => Err(unknown_answer(address, name, &other)),
        }
    }
}

/// The error for an answer of another form than documented.
pub(crate) fn unknown_answer(address: &NodeAddress, command: &str, answer: &Value) -> Error {
    let answer: String = format!("{answer:?}").chars().take(200).collect();
    Error::Answer { node: address.to_string(), command: command.to_owned(), answer }
}

fn run(
    connections: &Connections,
    address: &NodeAddress,
    name: &str,
    command: &Cmd,
) -> Result<Value, Error> {
    let node = address.to_string();
    let mut is_second = false;
    loop {
        let mut connection = connections.take(address)?;
        match command.query::<Value>(&mut connection) {
            Ok(value) => {
                connections.give_back(address, connection);
                return Ok(value);
            }
            // The server may have closed an idle connection long ago.
            Err(error) if error.is_io_error() && !is_second => {
                connections.forget(address);
                is_second = true;
            }
            Err(error) if error.is_io_error() => {
                return Err(Error::Connect { node, problem: reason(&error) });
            }
            Err(error) => {
                return Err(Error::Refused {
                    node,
                    key: name.to_owned(),
                    answer: error.to_string(),
                });
            }
        }
    }
}

fn ask_topology(connections: &Connections, address: &NodeAddress) -> Result<Topology, Error> {
    let mut command = Cmd::new();
    command.arg("CLUSTER").arg("SLOTS");
    let answer = run(connections, address, "CLUSTER SLOTS", &command)?;
    if matches!(&answer, Value::Array(ranges) if ranges.is_empty()) {
        return Err(Error::Refused {
            node: address.to_string(),
            key: "every key".to_owned(),
            answer: "no slot of its cluster has an owner".to_owned(),
        });
    }
    Topology::parse(&answer, address)
        .ok_or_else(|| unknown_answer(address, "CLUSTER SLOTS", &answer))
}

/// Asks the given servers in turn. Returns the owners, and whether the server is in a cluster.
fn first_topology(
    connections: &Connections,
    seeds: &[NodeAddress],
) -> Result<(Topology, bool), Error> {
    let mut first_error = None;
    for address in seeds {
        match ask_topology(connections, address) {
            Ok(topology) => return Ok((topology, true)),
            Err(Error::Refused { node, answer, .. }) if answer.contains(ALONE) => {
                if 1 < seeds.len() {
                    return Err(Error::NotCluster { node });
                }
                return Ok((Topology::single(address.clone()), false));
            }
            Err(error @ Error::Login { .. }) => return Err(error),
            Err(error) => {
                first_error.get_or_insert(error);
            }
        }
    }
    Err(first_error.unwrap_or_else(|| Error::Spec {
        what: "addresses".to_owned(),
        problem: "there is none".to_owned(),
    }))
}
