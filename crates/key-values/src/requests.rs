//! Many commands for one key each, sent to the owners of the keys.

use std::sync::Arc;

use redis::Value;

use crate::address::NodeAddress;
use crate::batch::{Batch, Command, KeyCommand};
use crate::error::Error;
use crate::lanes::Lanes;
use crate::servers::Servers;
use crate::slot::Key;
use crate::strays::{OnReply, Stray, settle};
use crate::topology::Topology;

/// Carries out a command for each key, with all servers at once. The tag of a command is the
/// position of its key.
pub(crate) fn for_each_key(
    servers: &Servers,
    command: KeyCommand,
    keys: impl Iterator<Item = Key>,
    most_at_once: usize,
    stop: &dyn Fn() -> bool,
    on_reply: &mut OnReply<'_>,
) -> Result<(), Error> {
    let mut lanes = Lanes::new(servers, stop);
    let mut router = Router::new(servers);
    for (tag, key) in keys.enumerate() {
        let text = servers.namespace.key(key);
        let Some(owner) = router.owner(text.slot) else {
            let mut alone = Batch::default();
            alone.key_command(command, tag, key, &text);
            settle(servers, strays_of(&alone), stop, on_reply)?;
            continue;
        };
        let batch = router.batch(owner);
        batch.key_command(command, tag, key, &text);
        if batch.commands().len() < most_at_once {
            continue;
        }
        let (to, full) = router.take(owner, lanes.spare());
        lanes.send(&to, full, on_reply)?;
        if router.is_outdated() {
            for (to, batch) in router.renew() {
                lanes.send(&to, batch, on_reply)?;
            }
        }
    }
    for (to, batch) in router.renew() {
        lanes.send(&to, batch, on_reply)?;
    }
    lanes.finish(on_reply)
}

/// Carries out one command.
pub(crate) fn one(
    servers: &Servers,
    batch: &Batch,
    stop: &dyn Fn() -> bool,
) -> Result<Option<Value>, Error> {
    let mut reply = None;
    settle(servers, strays_of(batch), stop, &mut |_: &Command, value, _: &NodeAddress| {
        reply = Some(value);
        Ok(())
    })?;
    Ok(reply)
}

/// The commands of a batch, to be sent to whom they concern.
pub(crate) fn strays_of(batch: &Batch) -> Vec<Stray> {
    batch.iter_from(0).map(|(command, bytes)| Stray::new(command, bytes)).collect()
}

/// Batches that are being packed, one for each master.
pub(crate) struct Router<'a> {
    servers: &'a Servers,
    topology: Arc<Topology>,
    batches: Vec<Batch>,
}

impl<'a> Router<'a> {
    pub(crate) fn new(servers: &'a Servers) -> Self {
        let topology = servers.topology();
        let batches = topology.masters.iter().map(|_| Batch::default()).collect();
        Self { servers, topology, batches }
    }

    /// Position of the owner of a slot.
    pub(crate) fn owner(&self, slot: u16) -> Option<usize> {
        self.topology.owner(slot)
    }

    /// The batch of the master `at`, a position that [`owner`](Self::owner) returned.
    pub(crate) fn batch(&mut self, at: usize) -> &mut Batch {
        &mut self.batches[at]
    }

    /// The address and the batch of the master `at`; `spare` takes the batch's place.
    pub(crate) fn take(&mut self, at: usize, spare: Batch) -> (NodeAddress, Batch) {
        let address = self.topology.masters[at].address.clone();
        (address, std::mem::replace(&mut self.batches[at], spare))
    }

    /// Whether slots have changed hands since the batches were begun.
    pub(crate) fn is_outdated(&self) -> bool {
        !Arc::ptr_eq(&self.topology, &self.servers.topology())
    }

    /// Takes all batches and begins new ones for the masters of now.
    pub(crate) fn renew(&mut self) -> Vec<(NodeAddress, Batch)> {
        let old = std::mem::replace(self, Self::new(self.servers));
        let addresses = old.topology.masters.iter().map(|master| master.address.clone());
        addresses.zip(old.batches).filter(|(_, batch)| !batch.is_empty()).collect()
    }
}
