//! Commands that did not succeed at their first server: they are repeated until they do.

use std::sync::Arc;

use redis::Connection;

use crate::address::NodeAddress;
use crate::batch::{Batch, Command};
use crate::clock::Patience;
use crate::connections::reason;
use crate::error::{Error, MemoryFull};
use crate::reply::Reply;
use crate::servers::Servers;
use crate::topology::Topology;

/// Receives each command that was carried out, with its result and the server.
pub(crate) type OnReply<'a> =
    dyn FnMut(&Command, redis::Value, &NodeAddress) -> Result<(), Error> + 'a;

/// Where a command goes next.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Next {
    /// To the owner of its slot.
    Owner,
    /// To the server that another one named.
    At(NodeAddress),
    /// The same, which does not own the slot yet.
    Ask(NodeAddress),
}

/// A command to be repeated.
#[derive(Debug)]
pub(crate) struct Stray {
    command: Command,
    bytes: Vec<u8>,
    next: Next,
    /// The server that was asked last.
    node: NodeAddress,
    problem: Arc<str>,
}

impl Stray {
    /// A command that was never sent.
    pub(crate) fn new(command: &Command, bytes: &[u8]) -> Self {
        let node = NodeAddress { host: "no server".into(), port: 0 };
        Self::lost(command, bytes, &node, &Arc::from("not sent yet"))
    }

    /// A command whose connection broke before the answer came, if it was sent at all.
    pub(crate) fn lost(
        command: &Command,
        bytes: &[u8],
        node: &NodeAddress,
        problem: &Arc<str>,
    ) -> Self {
        Self {
            command: *command,
            bytes: bytes.to_vec(),
            next: Next::Owner,
            node: node.clone(),
            problem: Arc::clone(problem),
        }
    }
}

/// A reply's consequence.
pub(crate) enum Consequence {
    /// The command is carried out.
    Done(redis::Value),
    /// It is to be repeated.
    Repeat(Stray),
}

/// Draws the consequence of `value`, which `node` replied to a command.
pub(crate) fn judge(
    servers: &Servers,
    command: &Command,
    bytes: &[u8],
    value: redis::Value,
    node: &NodeAddress,
) -> Result<Consequence, Error> {
    let (next, problem) = match Reply::classify(value, node) {
        Reply::Done(value) => return Ok(Consequence::Done(value)),
        Reply::Moved(to) => (Next::At(to.clone()), format!("the slot has moved to {to}")),
        Reply::Ask(to) => (Next::Ask(to.clone()), format!("the key may have moved to {to}")),
        Reply::Later(problem) => (Next::Owner, problem),
        // The caller knows how many values are to come.
        Reply::Full => return Err(full(node)),
        Reply::Refused(answer) => {
            let (node, key) = (node.to_string(), servers.namespace.show(command.key));
            return Err(Error::Refused { node, key, answer });
        }
    };
    let stray = Stray::lost(command, bytes, node, &Arc::from(problem));
    Ok(Consequence::Repeat(Stray { next, ..stray }))
}

fn full(node: &NodeAddress) -> Error {
    Error::MemoryFull(Box::new(MemoryFull {
        node: node.to_string(),
        used: 0,
        limit: 0,
        n_stored: 0,
        n_expected: 0,
        needed: None,
    }))
}

/// Repeats commands until all are carried out. Fails if none of them is for longer than
/// [`ServerSpec::retry_for`](crate::ServerSpec::retry_for), if a server refuses one for good, or
/// once `stop` says so.
pub(crate) fn settle(
    servers: &Servers,
    mut strays: Vec<Stray>,
    stop: &dyn Fn() -> bool,
    on_reply: &mut OnReply<'_>,
) -> Result<(), Error> {
    let mut patience = Patience::new(servers.retry_for);
    while !strays.is_empty() {
        if stop() {
            return Err(Error::Stopped);
        }
        let topology = servers.topology();
        let n_before = strays.len();
        strays = attempt(servers, &topology, strays, on_reply)?;
        // Nothing is learnt from a redirection for one time.
        let named = strays.iter().find_map(|stray| match &stray.next {
            Next::At(place) => Some(place.clone()),
            Next::Owner | Next::Ask(_) => None,
        });
        let is_redirected_only = strays.iter().all(|stray| matches!(stray.next, Next::Ask(_)));
        if !strays.is_empty() && !is_redirected_only {
            // If nobody answers, the next attempt fails, too, until patience ends.
            drop(servers.refresh(&topology, named.as_ref()));
        }
        if strays.len() < n_before {
            patience.renew();
        } else if let Some(stray) = strays.first()
            && let Err(waited) = patience.pause()
        {
            return Err(Error::GaveUp {
                node: stray.node.to_string(),
                key: servers.namespace.show(stray.command.key),
                waited,
                problem: stray.problem.to_string(),
            });
        }
    }
    Ok(())
}

/// Sends each command once. Returns those that are to be repeated.
fn attempt(
    servers: &Servers,
    topology: &Topology,
    strays: Vec<Stray>,
    on_reply: &mut OnReply<'_>,
) -> Result<Vec<Stray>, Error> {
    let mut again = Vec::new();
    let mut parcels: Vec<Parcel> = Vec::new();
    for mut stray in strays {
        let (place, asking) = match std::mem::replace(&mut stray.next, Next::Owner) {
            Next::At(place) => (place, false),
            Next::Ask(place) => (place, true),
            Next::Owner => {
                let Some(owner) = topology.owner(stray.command.slot) else {
                    stray.problem = Arc::from("nobody owns its slot");
                    again.push(stray);
                    continue;
                };
                (topology.masters[owner].address.clone(), false)
            }
        };
        let has_room = |parcel: &Parcel| {
            (&parcel.place, parcel.asking) == (&place, asking)
                && parcel.batch.bytes().len() < servers.pipeline_bytes
                && parcel.batch.commands().len() < servers.pipeline_keys
        };
        let at = parcels.iter().rposition(has_room).unwrap_or(parcels.len());
        if at == parcels.len() {
            parcels.push(Parcel { place, asking, batch: Batch::default() });
        }
        let batch = &mut parcels[at].batch;
        if asking {
            batch.asking();
        }
        batch.copy(&stray.command, &stray.bytes);
    }
    for parcel in &parcels {
        exchange(servers, parcel, &mut again, on_reply)?;
    }
    Ok(again)
}

/// Commands that go to the same server in the same way.
struct Parcel {
    place: NodeAddress,
    /// Whether ASKING precedes each command.
    asking: bool,
    batch: Batch,
}

/// Sends a batch and receives all replies.
fn exchange(
    servers: &Servers,
    parcel: &Parcel,
    again: &mut Vec<Stray>,
    on_reply: &mut OnReply<'_>,
) -> Result<(), Error> {
    let Parcel { place, asking, batch } = parcel;
    let mut lose =
        |first: usize, problem: String| {
            let problem = Arc::from(problem);
            let lost = batch.iter_from(first);
            again.extend(lost.map(|(command, bytes)| {
                Stray::lost(command, without_asking(bytes), place, &problem)
            }));
        };
    let mut connection = match servers.connections.take(place) {
        Ok(connection) => connection,
        Err(error @ Error::Login { .. }) => return Err(error),
        Err(error) => {
            lose(0, error.to_string());
            return Ok(());
        }
    };
    if let Err(error) = connection.send_packed_command(batch.bytes()) {
        servers.connection_broke(place);
        lose(0, reason(&error));
        return Ok(());
    }
    let mut repeated = Vec::new();
    for (at, (command, bytes)) in batch.iter_from(0).enumerate() {
        let value = match receive(&mut connection, *asking) {
            Ok(value) => value,
            Err(error) => {
                servers.connection_broke(place);
                lose(at, reason(&error));
                again.append(&mut repeated);
                return Ok(());
            }
        };
        match judge(servers, command, without_asking(bytes), value, place)? {
            Consequence::Done(value) => on_reply(command, value, place)?,
            Consequence::Repeat(stray) => repeated.push(stray),
        }
    }
    again.append(&mut repeated);
    servers.connections.give_back(place, connection);
    Ok(())
}

/// The reply to a command, after the one to ASKING if there is one.
fn receive(connection: &mut Connection, asking: bool) -> redis::RedisResult<redis::Value> {
    if asking {
        connection.recv_response()?;
    }
    connection.recv_response()
}

/// The command itself. No command begins like ASKING.
fn without_asking(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(Batch::ASKING).unwrap_or(bytes)
}
