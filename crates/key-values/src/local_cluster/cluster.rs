//! The cluster: starting it, and looking at it.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use redis::{Connection, FromRedisValue};
use tempfile::TempDir;

use super::N_SLOTS;
use super::control;
use super::error::Error;
use super::node::Node;
use super::program;
use super::settings::Settings;
use super::spec::ClusterSpec;
use super::view::{self, Line, NodeInfo, Role};
use super::wait::{Look, until};
use super::watchdog::Watchdog;

/// A running cluster.
///
/// Nodes are numbered from 0: first the masters, then the replicas, then those that were added.
/// Dropping the value kills all nodes and removes their files.
pub struct LocalCluster {
    // Fields are dropped in this order: processes, folder, watchdog.
    pub(super) nodes: Vec<Node>,
    folder: TempDir,
    _watchdog: Watchdog,
    program: PathBuf,
    pub(super) settings: Settings,
    pub(super) deadline: Duration,
}

impl fmt::Debug for LocalCluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalCluster").field("nodes", &self.nodes).finish_non_exhaustive()
    }
}

impl LocalCluster {
    /// Starts a cluster and waits until it works, which takes about three seconds: a new master
    /// accepts writes only after two.
    ///
    /// # Errors
    /// The server's program is missing, a node does not start, or the cluster does not work within
    /// the deadline.
    pub fn start(spec: ClusterSpec) -> Result<Self, Error> {
        spec.check()?;
        let program = program::choose(spec.program.as_deref())?;
        let folder = new_folder(spec.folder.as_deref())?;
        let watchdog = Watchdog::start(folder.path())?;
        let (n_masters, deadline) = (spec.n_masters, spec.deadline);
        let n_nodes = n_masters * (1 + spec.n_replicas_per_master);
        let mut cluster = Self {
            nodes: Vec::new(),
            folder,
            _watchdog: watchdog,
            program,
            settings: spec.into(),
            deadline,
        };
        for _ in 0..n_nodes {
            cluster.start_node()?;
        }
        if cluster.settings.is_cluster {
            cluster.assign_slots(n_masters)?;
            cluster.introduce(1..n_nodes)?;
            for replica in n_masters..n_nodes {
                let master = (replica - n_masters) % n_masters;
                let words = format!("CLUSTER REPLICATE {}", cluster.nodes[master].id);
                cluster.ask::<()>(replica, &words)?;
            }
            cluster.wait_until_ok()?;
        }
        Ok(cluster)
    }

    /// Addresses of all running nodes, like `redis://127.0.0.1:40001`. They do not contain the
    /// password.
    pub fn urls(&self) -> Vec<String> {
        let running = self.nodes.iter().filter(|node| node.pid().is_some());
        running.map(|node| format!("redis://127.0.0.1:{}", node.ports.plain)).collect()
    }

    /// Addresses of the TLS ports of all running nodes, like `rediss://127.0.0.1:40003`; none
    /// without [`ClusterSpec::tls`].
    pub fn tls_urls(&self) -> Vec<String> {
        let running = self.nodes.iter().filter(|node| node.pid().is_some());
        let ports = running.filter_map(|node| node.ports.tls);
        ports.map(|port| format!("rediss://127.0.0.1:{port}")).collect()
    }

    /// The folder of all files of the nodes.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// All nodes, with their roles now.
    ///
    /// # Errors
    /// A running node does not answer.
    pub fn nodes(&self) -> Result<Vec<NodeInfo>, Error> {
        self.nodes.iter().enumerate().map(|(at, node)| self.describe(at, node)).collect()
    }

    /// Waits until all running nodes agree that the cluster works, and all replicas have copied
    /// their masters.
    ///
    /// # Errors
    /// It does not happen within the deadline.
    pub fn wait_until_ok(&self) -> Result<(), Error> {
        until(self.deadline, "working", || {
            Ok(self.problem()?.map_or(Look::Reached(()), Look::NotYet))
        })
    }

    /// Kills a node by SIGKILL. The others notice after [`ClusterSpec::node_timeout`].
    ///
    /// # Errors
    /// There is no such node, or it is not running.
    pub fn kill(&mut self, node: usize) -> Result<(), Error> {
        self.running_node(node)?;
        self.nodes[node].kill();
        Ok(())
    }

    /// Starts a killed node again, on its ports, with its id and with empty memory. A master that
    /// is restarted before the others noticed its death has lost its keys.
    ///
    /// # Errors
    /// There is no such node, it is running, or it does not start.
    pub fn restart(&mut self, node: usize) -> Result<(), Error> {
        let refused = |problem: &str| Error::Node { node, problem: problem.to_owned() };
        let stopped = self.nodes.get_mut(node).ok_or_else(|| refused("there is no such node"))?;
        if stopped.pid().is_some() {
            return Err(refused("it is running"));
        }
        stopped.restart(&self.program, &self.settings, self.deadline)
    }

    /// Adds a master without slots and returns its position.
    ///
    /// # Errors
    /// The node does not start, or the others do not get to know it within the deadline.
    pub fn add_master(&mut self) -> Result<usize, Error> {
        self.start_node()?;
        let added = self.nodes.len() - 1;
        self.introduce(added..added + 1)?;
        self.wait_until_ok()?;
        Ok(added)
    }

    /// Positions of the running nodes.
    pub(super) fn running(&self) -> Vec<usize> {
        (0..self.nodes.len()).filter(|node| self.nodes[*node].pid().is_some()).collect()
    }

    /// A new connection to a running node.
    pub(super) fn connection(&self, node: usize) -> Result<Connection, Error> {
        let port = self.running_node(node)?.ports.plain;
        control::connect(port, self.settings.password())
            .map_err(|source| self.command_error(node, "PING", source))
    }

    fn running_node(&self, node: usize) -> Result<&Node, Error> {
        let refused = |problem: &str| Error::Node { node, problem: problem.to_owned() };
        let found = self.nodes.get(node).ok_or_else(|| refused("there is no such node"))?;
        if found.pid().is_none() {
            return Err(refused("it is not running"));
        }
        Ok(found)
    }

    /// Runs a command on a new connection.
    pub(super) fn ask<T: FromRedisValue>(&self, node: usize, words: &str) -> Result<T, Error> {
        let mut connection = self.connection(node)?;
        control::ask(&mut connection, words)
            .map_err(|source| self.command_error(node, words, source))
    }

    pub(super) fn command_error(
        &self,
        node: usize,
        words: &str,
        source: redis::RedisError,
    ) -> Error {
        let port = self.nodes.get(node).map_or(0, |node| node.ports.plain);
        Error::Command { node, port, command: words.to_owned(), source }
    }

    /// The cluster as a node sees it.
    pub(super) fn view_of(&self, node: usize) -> Result<Vec<Line>, Error> {
        let command = "CLUSTER NODES";
        let answer: String = self.ask(node, command)?;
        view::parse(&answer).ok_or_else(|| Error::Answer {
            node,
            port: self.nodes[node].ports.plain,
            command: command.to_owned(),
            answer: answer.chars().take(200).collect(),
        })
    }

    fn start_node(&mut self) -> Result<(), Error> {
        let folder = self.folder.path().join(format!("node-{}", self.nodes.len()));
        self.nodes.push(Node::start(&self.program, &self.settings, &folder, self.deadline)?);
        Ok(())
    }

    /// Spreads the slots evenly over the first `n_masters` nodes.
    fn assign_slots(&self, n_masters: usize) -> Result<(), Error> {
        let border = |master: usize| usize::from(N_SLOTS) * master / n_masters;
        for master in 0..n_masters {
            // Equal epochs of masters that meet would have to be resolved first.
            self.ask::<()>(master, &format!("CLUSTER SET-CONFIG-EPOCH {}", master + 1))?;
            let (first, last) = (border(master), border(master + 1) - 1);
            self.ask::<()>(master, &format!("CLUSTER ADDSLOTSRANGE {first} {last}"))?;
        }
        Ok(())
    }

    /// Makes nodes known to all others, and waits for it.
    fn introduce(&self, newcomers: std::ops::Range<usize>) -> Result<(), Error> {
        let first = self.running().first().copied().unwrap_or(0);
        for newcomer in newcomers {
            let ports = self.nodes[newcomer].ports;
            let words = format!("CLUSTER MEET 127.0.0.1 {} {}", ports.among_nodes(), ports.bus);
            self.ask::<()>(first, &words)?;
        }
        let n_nodes = self.running().len();
        until(self.deadline, "a cluster of all nodes", || {
            for node in self.running() {
                let n_known = self.view_of(node)?.iter().filter(|line| line.is_well).count();
                if n_known < n_nodes {
                    let state = format!("node {node} knows {n_known} of {n_nodes}");
                    return Ok(Look::NotYet(state));
                }
            }
            Ok(Look::Reached(()))
        })
    }

    /// Why the cluster cannot be used yet.
    fn problem(&self) -> Result<Option<String>, Error> {
        let running = self.running();
        let views: Vec<Vec<Line>> =
            running.iter().map(|node| self.view_of(*node)).collect::<Result<_, _>>()?;
        let is_replica = |at: &usize| {
            let id = &self.nodes[running[*at]].id;
            views[*at].iter().any(|line| line.id == *id && line.master.is_some())
        };
        let n_replicas = (0..running.len()).filter(is_replica).count();
        for (at, node) in running.iter().enumerate() {
            let info: String = self.ask(*node, "CLUSTER INFO")?;
            if !info.lines().any(|line| line == "cluster_state:ok") {
                return Ok(Some(format!("node {node} says that the cluster is down")));
            }
            let n_known = views[at].iter().filter(|line| line.master.is_some()).count();
            if n_known < n_replicas {
                return Ok(Some(format!("node {node} knows {n_known} of {n_replicas} replicas")));
            }
            if is_replica(&at) {
                let replication: String = self.ask(*node, "INFO replication")?;
                if !replication.contains("master_link_status:up") {
                    return Ok(Some(format!("node {node} has not copied its master yet")));
                }
            }
        }
        Ok(None)
    }

    fn describe(&self, at: usize, node: &Node) -> Result<NodeInfo, Error> {
        let (mut role, mut n_slots) = (Role::Stopped, 0);
        if node.pid().is_some() {
            role = Role::Master;
            if self.settings.is_cluster {
                let lines = self.view_of(at)?;
                let mine = lines.iter().find(|line| line.id == node.id);
                n_slots = mine.map_or(0, |line| line.n_slots);
                let master = mine.and_then(|line| line.master.as_ref());
                let place = master.and_then(|id| self.nodes.iter().position(|n| n.id == *id));
                role = place.map_or(Role::Master, |of| Role::Replica { of });
            }
        }
        Ok(NodeInfo {
            id: node.id.clone(),
            host: "127.0.0.1".to_owned(),
            port: node.ports.plain,
            pid: node.pid(),
            role,
            n_slots,
        })
    }
}

/// A new folder with a canonical path: the watchdog compares it with what the kernel says.
fn new_folder(parent: Option<&Path>) -> Result<TempDir, Error> {
    let parent = parent.map_or_else(std::env::temp_dir, Path::to_path_buf);
    let failed =
        |source| Error::System { what: format!("make a folder in {}", parent.display()), source };
    let canonical = parent.canonicalize().map_err(failed)?;
    tempfile::Builder::new().prefix("redis-cluster-").tempdir_in(canonical).map_err(failed)
}
