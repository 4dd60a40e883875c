//! Changes of a running cluster: slots move, replicas take over.

use std::ops::Range;

use redis::{Connection, cmd};

use super::cluster::LocalCluster;
use super::control;
use super::error::Error;
use super::view::Role;
use super::wait::{Look, until};

/// Keys that one MIGRATE moves. The nodes answer nobody else meanwhile.
const KEYS_AT_ONCE: usize = 64;

/// Milliseconds after which a MIGRATE fails.
const MIGRATE_TIMEOUT: u32 = 5_000;

/// Connections to the two nodes between which slots move.
struct Move<'a> {
    cluster: &'a LocalCluster,
    from: usize,
    to: usize,
    source: Connection,
    target: Connection,
    /// All other masters. Replicas learn of a new owner from their masters.
    others: Vec<(usize, Connection)>,
}

impl LocalCluster {
    /// Moves slots with all their keys from one master to another, as resharding does: slot by
    /// slot, while clients may read and write.
    ///
    /// # Errors
    /// `from` does not serve the slots, or a node refuses.
    pub fn move_slots(&self, slots: Range<u16>, from: usize, to: usize) -> Result<(), Error> {
        let mut others = Vec::new();
        for (node, info) in self.nodes()?.iter().enumerate() {
            if info.role == Role::Master && node != from && node != to {
                others.push((node, self.connection(node)?));
            }
        }
        let mut moving = Move {
            cluster: self,
            from,
            to,
            source: self.connection(from)?,
            target: self.connection(to)?,
            others,
        };
        slots.into_iter().try_for_each(|slot| moving.one(slot))
    }

    /// Makes a replica of the master the new master, and waits until it is. Returns its position.
    ///
    /// If the master runs, it hands over without losing a write, and becomes a replica. Otherwise
    /// the replica takes over with what it has.
    ///
    /// # Errors
    /// The master has no running replica, or the takeover does not happen within the deadline.
    pub fn failover(&self, master: usize) -> Result<usize, Error> {
        let id = self.nodes.get(master).map(|node| node.id.clone()).unwrap_or_default();
        let mut replica = None;
        for node in self.running() {
            let lines = self.view_of(node)?;
            let mine = lines.iter().find(|line| line.id == self.nodes[node].id);
            if mine.is_some_and(|line| line.master.as_ref() == Some(&id)) {
                replica = Some(node);
            }
        }
        let problem = "it has no running replica".to_owned();
        let replica = replica.ok_or(Error::Node { node: master, problem })?;
        let runs = self.running().contains(&master);
        let words = if runs { "CLUSTER FAILOVER" } else { "CLUSTER FAILOVER TAKEOVER" };
        self.ask::<()>(replica, words)?;
        until(self.deadline, "a new master", || {
            let role = self.nodes()?[replica].role;
            if role == Role::Master {
                return Ok(Look::Reached(()));
            }
            Ok(Look::NotYet(format!("node {replica} is {role:?}")))
        })?;
        Ok(replica)
    }
}

impl Move<'_> {
    /// Moves a slot. The order of the last commands is the documented one: a slot must never be
    /// without an owner.
    fn one(&mut self, slot: u16) -> Result<(), Error> {
        let ids = &self.cluster.nodes;
        let importing = format!("CLUSTER SETSLOT {slot} IMPORTING {}", ids[self.from].id);
        let migrating = format!("CLUSTER SETSLOT {slot} MIGRATING {}", ids[self.to].id);
        let owner = format!("CLUSTER SETSLOT {slot} NODE {}", ids[self.to].id);
        self.at_target(&importing)?;
        if let Err(error) = self.at_source(&migrating) {
            self.at_target(&format!("CLUSTER SETSLOT {slot} STABLE"))?;
            return Err(error);
        }
        self.keys(slot)?;
        self.at_target(&owner)?;
        self.at_source(&owner)?;
        for (other, connection) in &mut self.others {
            control::ask::<()>(connection, &owner)
                .map_err(|source| self.cluster.command_error(*other, &owner, source))?;
        }
        Ok(())
    }

    fn keys(&mut self, slot: u16) -> Result<(), Error> {
        let list = format!("CLUSTER GETKEYSINSLOT {slot} {KEYS_AT_ONCE}");
        loop {
            let keys: Vec<Vec<u8>> = control::ask(&mut self.source, &list)
                .map_err(|source| self.cluster.command_error(self.from, &list, source))?;
            if keys.is_empty() {
                return Ok(());
            }
            let port = self.cluster.nodes[self.to].ports.among_nodes();
            let mut migrate = cmd("MIGRATE");
            migrate.arg("127.0.0.1").arg(port).arg("").arg(0).arg(MIGRATE_TIMEOUT);
            if let Some(password) = self.cluster.settings.password() {
                migrate.arg("AUTH").arg(password);
            }
            migrate.arg("KEYS").arg(keys);
            migrate
                .query::<()>(&mut self.source)
                .map_err(|source| self.cluster.command_error(self.from, "MIGRATE", source))?;
        }
    }

    fn at_source(&mut self, words: &str) -> Result<(), Error> {
        control::ask(&mut self.source, words)
            .map_err(|source| self.cluster.command_error(self.from, words, source))
    }

    fn at_target(&mut self, words: &str) -> Result<(), Error> {
        control::ask(&mut self.target, words)
            .map_err(|source| self.cluster.command_error(self.to, words, source))
    }
}
