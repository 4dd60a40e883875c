//! Pipelines to several servers at once, from one thread.
//!
//! Each server has a lane: a connection on which at most [`DEPTH`] batches wait for their replies.
//! While this thread packs or sends a batch for one server, the others work. A server reads
//! whatever is sent and keeps its replies until they are received, so sending never waits for this
//! thread to receive.

use std::collections::VecDeque;
use std::sync::Arc;

use redis::Connection;

use crate::address::NodeAddress;
use crate::batch::Batch;
use crate::connections::reason;
use crate::error::Error;
use crate::servers::Servers;
use crate::strays::{Consequence, OnReply, Stray, judge, settle};

/// Batches without reply on one connection: the server works on one while the next is on its way.
const DEPTH: usize = 2;

/// A connection and the batches whose replies it owes.
struct Lane {
    address: NodeAddress,
    /// `None` if it broke.
    connection: Option<Connection>,
    in_flight: VecDeque<Batch>,
}

/// Pipelines to several servers.
pub(crate) struct Lanes<'a> {
    servers: &'a Servers,
    stop: &'a dyn Fn() -> bool,
    open: Vec<Lane>,
    /// Memory of batches whose replies have come.
    spare: Vec<Batch>,
}

impl<'a> Lanes<'a> {
    pub(crate) fn new(servers: &'a Servers, stop: &'a dyn Fn() -> bool) -> Self {
        Self { servers, stop, open: Vec::new(), spare: Vec::new() }
    }

    /// An empty batch.
    pub(crate) fn spare(&mut self) -> Batch {
        self.spare.pop().unwrap_or_default()
    }

    /// Sends a batch. Receives the replies to an earlier one first, if the server owes too many.
    pub(crate) fn send(
        &mut self,
        to: &NodeAddress,
        batch: Batch,
        on_reply: &mut OnReply<'_>,
    ) -> Result<(), Error> {
        if batch.is_empty() {
            self.spare.push(batch);
            return Ok(());
        }
        let at = self.lane(to);
        while DEPTH <= self.open[at].in_flight.len() {
            self.receive(at, on_reply)?;
        }
        let lane = &mut self.open[at];
        if lane.connection.is_none() {
            match self.servers.connections.take(to) {
                Ok(connection) => lane.connection = Some(connection),
                Err(error @ Error::Login { .. }) => return Err(error),
                Err(error) => {
                    lane.in_flight.push_back(batch);
                    return self.lose(at, 0, &error.to_string(), on_reply);
                }
            }
        }
        let sent = lane
            .connection
            .as_mut()
            .map(|connection| connection.send_packed_command(batch.bytes()));
        lane.in_flight.push_back(batch);
        match sent {
            Some(Err(error)) => self.lose(at, 0, &reason(&error), on_reply),
            _ => Ok(()),
        }
    }

    /// Receives the replies to one batch. Returns `false` if no server owes any.
    pub(crate) fn receive_some(&mut self, on_reply: &mut OnReply<'_>) -> Result<bool, Error> {
        let fullest = (0..self.open.len()).max_by_key(|at| self.open[*at].in_flight.len());
        match fullest.filter(|at| !self.open[*at].in_flight.is_empty()) {
            Some(at) => self.receive(at, on_reply).map(|()| true),
            None => Ok(false),
        }
    }

    /// Receives all replies, and waits until the replicas of the servers that were written to have
    /// copied everything. Returns the number of those that have not in the time of a response.
    pub(crate) fn replicate(&mut self, on_reply: &mut OnReply<'_>) -> Result<usize, Error> {
        while self.receive_some(on_reply)? {}
        let topology = self.servers.topology();
        let mut n_behind = 0;
        for lane in &mut self.open {
            let master = topology.masters.iter().find(|master| master.address == lane.address);
            let n_replicas = master.map_or(0, |master| master.replicas.len());
            let Some(connection) = lane.connection.as_mut().filter(|_| n_replicas != 0) else {
                continue;
            };
            // It answers for what came through this connection.
            let milliseconds = self.servers.connections.response_timeout().as_millis() / 2;
            let mut wait = redis::cmd("WAIT");
            wait.arg(n_replicas).arg(u64::try_from(milliseconds).unwrap_or(u64::MAX));
            if let Ok(n_copied) = wait.query::<usize>(connection) {
                n_behind += n_replicas.saturating_sub(n_copied);
            } else {
                n_behind += n_replicas;
                lane.connection = None;
                self.servers.connection_broke(&lane.address);
            }
        }
        Ok(n_behind)
    }

    /// Receives all replies and gives the connections back.
    pub(crate) fn finish(mut self, on_reply: &mut OnReply<'_>) -> Result<(), Error> {
        while self.receive_some(on_reply)? {}
        for lane in self.open {
            if let Some(connection) = lane.connection {
                self.servers.connections.give_back(&lane.address, connection);
            }
        }
        Ok(())
    }

    fn lane(&mut self, to: &NodeAddress) -> usize {
        if let Some(at) = self.open.iter().position(|lane| lane.address == *to) {
            return at;
        }
        let (address, in_flight) = (to.clone(), VecDeque::new());
        self.open.push(Lane { address, connection: None, in_flight });
        self.open.len() - 1
    }

    /// Receives the replies to the lane's oldest batch.
    fn receive(&mut self, at: usize, on_reply: &mut OnReply<'_>) -> Result<(), Error> {
        if (self.stop)() {
            return Err(Error::Stopped);
        }
        let lane = &mut self.open[at];
        let Some(batch) = lane.in_flight.front() else { return Ok(()) };
        // It is put back only if every reply was received: after an error it is of no use.
        let Some(mut connection) = lane.connection.take() else { return Ok(()) };
        let mut strays = Vec::new();
        let mut broken = None;
        for (place, (command, bytes)) in batch.iter_from(0).enumerate() {
            let value = match connection.recv_response() {
                Ok(value) => value,
                Err(error) => {
                    broken = Some((place, reason(&error)));
                    break;
                }
            };
            match judge(self.servers, command, bytes, value, &lane.address)? {
                Consequence::Done(value) => on_reply(command, value, &lane.address)?,
                Consequence::Repeat(stray) => strays.push(stray),
            }
        }
        if let Some((first, problem)) = broken {
            settle(self.servers, strays, self.stop, on_reply)?;
            return self.lose(at, first, &problem, on_reply);
        }
        lane.connection = Some(connection);
        if let Some(mut batch) = lane.in_flight.pop_front() {
            batch.clear();
            self.spare.push(batch);
        }
        settle(self.servers, strays, self.stop, on_reply)
    }

    /// Repeats everything that the lane owes, from command `first` of the oldest batch on: its
    /// connection broke.
    fn lose(
        &mut self,
        at: usize,
        first: usize,
        problem: &str,
        on_reply: &mut OnReply<'_>,
    ) -> Result<(), Error> {
        let lane = &mut self.open[at];
        lane.connection = None;
        self.servers.connection_broke(&lane.address);
        let problem = Arc::from(problem);
        let mut strays = Vec::new();
        for (idx, mut batch) in lane.in_flight.drain(..).enumerate() {
            let from = if idx == 0 { first } else { 0 };
            let lost = batch.iter_from(from);
            strays.extend(
                lost.map(|(command, bytes)| Stray::lost(command, bytes, &lane.address, &problem)),
            );
            batch.clear();
            self.spare.push(batch);
        }
        settle(self.servers, strays, self.stop, on_reply)
    }
}
