//! Writes values: one thread packs, one for each master sends.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, TryRecvError, channel, sync_channel};
use std::thread::{Builder, Scope, ScopedJoinHandle, scope};
use std::time::Duration;

use crate::address::NodeAddress;
use crate::batch::{Batch, Command};
use crate::clock::Stopwatch;
use crate::error::Error;
use crate::lanes::Lanes;
use crate::memory::{self, Before};
use crate::requests::{Router, strays_of};
use crate::servers::Servers;
use crate::slot::Key;
use crate::strays::settle;

/// Batches that wait for a writer. When they are as many, packing waits: that is the
/// back-pressure.
const QUEUED: usize = 2;

/// What a fill wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FillReport {
    /// Values written.
    pub n_keys: u64,
    /// Bytes of these values.
    pub n_bytes: u64,
    /// Time from the first value until the last was acknowledged, and copied to the replicas.
    pub duration: Duration,
    /// The same by server, in the order of addresses.
    pub nodes: Vec<NodeFill>,
    /// Whether slots changed hands or connections broke meanwhile. A master that died may have
    /// lost values that it had acknowledged: ask
    /// [`KeyValues::which_are_missing`](crate::KeyValues::which_are_missing).
    pub masters_changed: bool,
    /// Replicas that had not copied all values when the fill stopped waiting for them. If their
    /// masters die now, values are lost.
    pub n_replicas_behind: usize,
}

impl FillReport {
    /// Megabytes (10^6 bytes) of values per second.
    pub fn mb_per_sec(&self) -> f64 {
        self.n_bytes as f64 / 1e6 / self.duration.as_secs_f64().max(1e-9)
    }
}

/// What a fill wrote to one server.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct NodeFill {
    /// The server.
    pub address: NodeAddress,
    /// Values written.
    pub n_keys: u64,
    /// Bytes of these values.
    pub n_bytes: u64,
}

/// State that packer and writers share.
struct Fill<'a> {
    servers: &'a Servers,
    stop: &'a (dyn Fn() -> bool + Sync),
    /// Set when one of them fails: the others stop.
    has_failed: AtomicBool,
    n_stored: AtomicU64,
}

/// A batch and the master it is for.
type Parcel = (NodeAddress, Batch);

/// What writers wrote.
#[derive(Default)]
struct Tally {
    nodes: Vec<NodeFill>,
    n_replicas_behind: usize,
}

/// Writes `items`, about `n_expected` of them.
pub(crate) fn put_all<V: AsRef<[u8]>>(
    servers: &Servers,
    items: impl IntoIterator<Item = (u64, V)>,
    n_expected: u64,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<FillReport, Error> {
    let topology = servers.topology();
    let (before, n_broken) = (memory::before(servers, &topology)?, servers.n_broken());
    let watch = Stopwatch::start();
    let fill =
        Fill { servers, stop, has_failed: AtomicBool::new(false), n_stored: AtomicU64::new(0) };
    let filled = scope(|scope| {
        let mut writers = Writers::start(scope, &fill, topology.masters.len())?;
        let packed = writers.pack(&fill, items);
        writers.join(packed)
    });
    let duration = watch.elapsed();
    let n_stored = fill.n_stored.load(Ordering::Relaxed);
    let Tally { nodes, n_replicas_behind } =
        filled.map_err(|error| complete(servers, error, &before, n_stored, n_expected))?;
    Ok(FillReport {
        n_keys: n_stored,
        n_bytes: nodes.iter().map(|node| node.n_bytes).sum(),
        duration,
        nodes,
        masters_changed: n_broken != servers.n_broken()
            || !topology.has_same_owners(&servers.topology()),
        n_replicas_behind,
    })
}

/// Adds to an error of full memory how much would do.
fn complete(
    servers: &Servers,
    error: Error,
    before: &[Before],
    n_stored: u64,
    n_expected: u64,
) -> Error {
    match error {
        Error::MemoryFull(full) => {
            memory::explain(servers, &full.node, before, n_stored, n_expected)
        }
        other => other,
    }
}

/// The threads that write.
struct Writers<'scope> {
    queues: Vec<SyncSender<Parcel>>,
    threads: Vec<ScopedJoinHandle<'scope, Result<Tally, Error>>>,
    /// Batches that come back to be packed again.
    spare: Receiver<Batch>,
}

impl<'scope> Writers<'scope> {
    fn start(
        scope: &'scope Scope<'scope, '_>,
        fill: &'scope Fill<'_>,
        n_writers: usize,
    ) -> Result<Self, Error> {
        let (used, spare) = channel();
        let mut writers = Self { queues: Vec::new(), threads: Vec::new(), spare };
        for number in 0..n_writers {
            let (queue, parcels) = sync_channel(QUEUED);
            let used = used.clone();
            let thread = Builder::new()
                .name(format!("key-values-{number}"))
                .spawn_scoped(scope, move || write(fill, &parcels, &used))
                .map_err(|source| Error::Thread { source })?;
            writers.queues.push(queue);
            writers.threads.push(thread);
        }
        Ok(writers)
    }

    /// Packs all items. Stops without an error if a writer has failed: it has the error.
    fn pack<V: AsRef<[u8]>>(
        &mut self,
        fill: &Fill<'_>,
        items: impl IntoIterator<Item = (u64, V)>,
    ) -> Result<(), Error> {
        let servers = fill.servers;
        let mut router = Router::new(servers);
        for (number, value) in items {
            let key = Key::Value(number);
            let text = servers.namespace.key(key);
            let Some(owner) = router.owner(text.slot) else {
                fill.put_alone(key, value.as_ref())?;
                continue;
            };
            let batch = router.batch(owner);
            batch.set(0, key, &text, value.as_ref());
            let is_full = servers.pipeline_bytes <= batch.bytes().len()
                || servers.pipeline_keys <= batch.commands().len();
            if !is_full {
                continue;
            }
            if fill.has_failed.load(Ordering::Relaxed) {
                return Ok(());
            }
            let spare = self.spare.try_recv().unwrap_or_default();
            let parcel = router.take(owner, spare);
            self.hand_over(owner, parcel);
            if router.is_outdated() {
                self.hand_over_all(&mut router);
            }
        }
        self.hand_over_all(&mut router);
        Ok(())
    }

    fn hand_over_all(&self, router: &mut Router<'_>) {
        for (at, parcel) in router.renew().into_iter().enumerate() {
            self.hand_over(at, parcel);
        }
    }

    /// Waits until the writer of master `at` can take the parcel.
    fn hand_over(&self, at: usize, parcel: Parcel) {
        if let Some(queue) = self.queues.get(at % self.queues.len().max(1)) {
            // A writer that is gone has failed, and returns its error.
            drop(queue.send(parcel));
        }
    }

    /// Waits for the writers. Returns what they wrote, or the first error.
    fn join(self, packed: Result<(), Error>) -> Result<Tally, Error> {
        drop(self.queues);
        let mut whole = Tally::default();
        let mut first_error = packed.err();
        for thread in self.threads {
            match thread.join() {
                Ok(Ok(tally)) => whole.add_all(&tally),
                // Stopping is the consequence of another one's error, or the caller's wish.
                Ok(Err(Error::Stopped)) if first_error.is_some() => {}
                Ok(Err(error)) => match first_error {
                    None | Some(Error::Stopped) => first_error = Some(error),
                    Some(_) => {}
                },
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        whole.nodes.sort();
        first_error.map_or(Ok(whole), Err)
    }
}

impl Fill<'_> {
    /// Whether to give up: the caller says so, or another thread failed.
    fn is_over(&self) -> bool {
        self.has_failed.load(Ordering::Relaxed) || (self.stop)()
    }

    /// Writes a value whose slot nobody owns now.
    fn put_alone(&self, key: Key, value: &[u8]) -> Result<(), Error> {
        let mut batch = Batch::default();
        batch.set(0, key, &self.servers.namespace.key(key), value);
        settle(self.servers, strays_of(&batch), &|| self.is_over(), &mut |_, _, _| {
            self.n_stored.fetch_add(1, Ordering::Relaxed);
            Ok(())
        })
    }
}

/// A writer: sends the parcels and counts the replies, until the queue is closed.
fn write(
    fill: &Fill<'_>,
    parcels: &Receiver<Parcel>,
    used: &Sender<Batch>,
) -> Result<Tally, Error> {
    let written = send_all(fill, parcels, used);
    if written.is_err() {
        fill.has_failed.store(true, Ordering::Relaxed);
    }
    written
}

fn send_all(
    fill: &Fill<'_>,
    parcels: &Receiver<Parcel>,
    used: &Sender<Batch>,
) -> Result<Tally, Error> {
    let stop = || fill.is_over();
    let mut lanes = Lanes::new(fill.servers, &stop);
    let mut tally = Tally::default();
    let mut count = |command: &Command, _reply: redis::Value, node: &NodeAddress| {
        let one =
            NodeFill { address: node.clone(), n_keys: 1, n_bytes: command.n_value_bytes as u64 };
        tally.add(&one);
        fill.n_stored.fetch_add(1, Ordering::Relaxed);
        Ok(())
    };
    loop {
        let parcel = match parcels.try_recv() {
            Ok(parcel) => Some(parcel),
            // Nothing to send: receive, and wait only if there is nothing to receive either.
            Err(TryRecvError::Empty) if lanes.receive_some(&mut count)? => continue,
            Err(TryRecvError::Empty) => parcels.recv().ok(),
            Err(TryRecvError::Disconnected) => None,
        };
        let Some((to, batch)) = parcel else { break };
        lanes.send(&to, batch, &mut count)?;
        // The packer may have ended.
        drop(used.send(lanes.spare()));
    }
    let n_replicas_behind = lanes.replicate(&mut count)?;
    lanes.finish(&mut count)?;
    Ok(Tally { n_replicas_behind, ..tally })
}

impl Tally {
    fn add(&mut self, more: &NodeFill) {
        match self.nodes.iter_mut().find(|node| node.address == more.address) {
            Some(node) => {
                node.n_keys += more.n_keys;
                node.n_bytes += more.n_bytes;
            }
            None => self.nodes.push(more.clone()),
        }
    }

    fn add_all(&mut self, more: &Self) {
        for node in &more.nodes {
            self.add(node);
        }
        self.n_replicas_behind += more.n_replicas_behind;
    }
}
