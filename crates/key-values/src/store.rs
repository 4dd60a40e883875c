//! The store.

use std::ops::Range;

use redis::Value;

use crate::batch::{Batch, KeyCommand};
use crate::census::{self, NodeCount};
use crate::error::Error;
use crate::fetch::{self, TypicalValue};
use crate::fill::{self, FillReport};
use crate::memory;
use crate::requests::one;
use crate::servers::{Servers, unknown_answer};
use crate::slot::Key;
use crate::spec::ServerSpec;
use crate::stats::{self, NodeStats};
use crate::topology::Topology;

/// Values by number, in a namespace of a cluster.
///
/// Threads share it. Connections are opened when they are needed and kept for the next call.
/// Functions that take `stop` call it between pipelines, and end with [`Error::Stopped`] once it
/// returns `true`.
#[derive(Debug)]
pub struct KeyValues {
    servers: Servers,
    typical: TypicalValue,
}

impl KeyValues {
    /// Connects to the first server that answers, and asks it for the others.
    ///
    /// # Errors
    /// A setting is not valid, no server can be reached, or the login is refused.
    pub fn connect(spec: &ServerSpec) -> Result<Self, Error> {
        Ok(Self { servers: Servers::open(spec)?, typical: TypicalValue::default() })
    }

    /// Name of the data set.
    pub fn namespace(&self) -> &str {
        self.servers.namespace.name()
    }

    /// Whether the server is in a cluster.
    pub fn is_cluster(&self) -> bool {
        self.servers.is_cluster
    }

    /// Writes values with their numbers, which should differ. A value that exists is replaced.
    ///
    /// `n_expected` is the number of items. Only the advice for full memory depends on it.
    ///
    /// # Errors
    /// A server's memory is full, or it would evict keys; a key fails for too long. Values that
    /// were written before stay.
    pub fn put_all<V: AsRef<[u8]>>(
        &self,
        items: impl IntoIterator<Item = (u64, V)>,
        n_expected: u64,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<FillReport, Error> {
        fill::put_all(&self.servers, items, n_expected, stop)
    }

    /// Reads the values with the numbers `keys`. Passes each on with the position of its number in
    /// `keys`, in the order in which servers answer.
    ///
    /// # Errors
    /// A value is missing, or a key fails for too long.
    pub fn get_many(
        &self,
        keys: &[u64],
        stop: &dyn Fn() -> bool,
        each: impl FnMut(usize, &[u8]),
    ) -> Result<(), Error> {
        fetch::get_many(&self.servers, &self.typical, keys, stop, each)
    }

    /// Returns the numbers in `numbers` that have no value, as ascending ranges, so that a second
    /// fill writes only these.
    ///
    /// # Errors
    /// A key fails for too long.
    pub fn which_are_missing(
        &self,
        numbers: Range<u64>,
        stop: &dyn Fn() -> bool,
    ) -> Result<Vec<Range<u64>>, Error> {
        fetch::which_are_missing(&self.servers, numbers, stop)
    }

    /// Reads the description of the data set; `None` if there is none.
    ///
    /// # Errors
    /// The key fails for too long.
    pub fn manifest(&self) -> Result<Option<Vec<u8>>, Error> {
        let mut batch = Batch::default();
        let text = self.servers.namespace.key(Key::Manifest);
        batch.key_command(KeyCommand::Get, 0, Key::Manifest, &text);
        match one(&self.servers, &batch, &|| false)? {
            Some(Value::BulkString(bytes)) => Ok(Some(bytes)),
            Some(Value::Nil) | None => Ok(None),
            Some(other) => Err(self.unknown("GET", &other)),
        }
    }

    /// Writes the description of the data set.
    ///
    /// # Errors
    /// A server's memory is full, or the key fails for too long.
    pub fn put_manifest(&self, manifest: &[u8]) -> Result<(), Error> {
        let mut batch = Batch::default();
        let text = self.servers.namespace.key(Key::Manifest);
        batch.set(0, Key::Manifest, &text, manifest);
        self.write_one(&batch).map(|_| ())
    }

    /// Writes the description of the data set if there is none, and returns whether it did. If
    /// several callers try at a time, one succeeds.
    ///
    /// After a lost connection it may return `false` although it wrote: read the description to
    /// learn whose it is.
    ///
    /// # Errors
    /// A server's memory is full, or the key fails for too long.
    pub fn put_new_manifest(&self, manifest: &[u8]) -> Result<bool, Error> {
        let mut batch = Batch::default();
        let text = self.servers.namespace.key(Key::Manifest);
        batch.set_new(0, Key::Manifest, &text, manifest);
        Ok(!matches!(self.write_one(&batch)?, Some(Value::Nil) | None))
    }

    fn write_one(&self, batch: &Batch) -> Result<Option<Value>, Error> {
        match one(&self.servers, batch, &|| false) {
            Ok(answer) => Ok(answer),
            Err(Error::MemoryFull(full)) => {
                Err(memory::explain(&self.servers, &full.node, &[], 0, 1))
            }
            Err(error) => Err(error),
        }
    }

    /// Removes all keys of the namespace, and no others. Returns their number. Looks at every key
    /// of every master.
    ///
    /// # Errors
    /// A server does not answer.
    pub fn clear(&self, stop: &dyn Fn() -> bool) -> Result<u64, Error> {
        self.refresh()?;
        census::clear(&self.servers, stop)
    }

    /// Counts keys and bytes of the namespace on each master. Looks at every key of every master.
    ///
    /// # Errors
    /// A server does not answer.
    pub fn count(&self, stop: &dyn Fn() -> bool) -> Result<Vec<NodeCount>, Error> {
        self.refresh()?;
        census::count(&self.servers, stop)
    }

    /// Statistics of all masters, in the order of addresses.
    ///
    /// # Errors
    /// A server does not answer.
    pub fn stats(&self) -> Result<Vec<NodeStats>, Error> {
        self.refresh()?;
        stats::stats(&self.servers)
    }

    fn refresh(&self) -> Result<(), Error> {
        self.servers.refresh(&self.servers.topology(), None)
    }

    fn unknown(&self, command: &str, answer: &Value) -> Error {
        let topology: &Topology = &self.servers.topology();
        let slot = self.servers.namespace.key(Key::Manifest).slot;
        let owner = topology.owner(slot).map(|at| &topology.masters[at].address);
        let nowhere = crate::NodeAddress { host: "no server".to_owned(), port: 0 };
        unknown_answer(owner.unwrap_or(&nowhere), command, answer)
    }
}
