//! Where sequences are kept, and found by their number or name.

mod files;
mod joined;
mod manifest;
#[cfg(feature = "servers")]
mod servers;
#[cfg(feature = "servers")]
mod value;
mod write;

use std::fmt::Debug;
use std::ops::Range;

use pipeline::Stop;

pub use files::SequenceFiles;
pub use joined::JoinedStores;
pub use manifest::Summary;
#[cfg(feature = "servers")]
pub use servers::{SequenceServers, ServerFill};
pub use write::{SequenceFilesWriter, WriteReport};

use crate::error::Error;
use crate::sequence_list::SequenceList;

/// Sequences that are read by their numbers, from 0 on.
pub trait SequenceStore: Debug + Send + Sync {
    /// The store's path or address, for errors.
    fn place(&self) -> String;

    /// Numbers that describe all sequences together.
    fn summary(&self) -> &Summary;

    /// The number of sequences of each store, if these are several joined.
    fn sizes(&self) -> Vec<u64> {
        vec![self.summary().n_sequences]
    }

    /// Bytes of memory that one call of [`read`](Self::read) for `n_rows` rows needs besides what
    /// it appends, estimated.
    fn working_bytes(&self, n_rows: u64, with_names: bool) -> u64;

    /// Appends the sequences of `rows`, in their order, to `into`, and returns the bytes that were
    /// read.
    ///
    /// # Errors
    /// A row does not exist, the store cannot be read or is damaged, or `stop` was set
    /// ([`Error::Stopped`]).
    fn read(
        &self,
        rows: &[Range<u64>],
        with_names: bool,
        into: &mut SequenceList,
        stop: &Stop,
    ) -> Result<u64, Error>;

    /// Appends the names of `rows`, without letters, and returns the bytes that were read.
    ///
    /// # Errors
    /// Those of [`read`](Self::read).
    fn read_names(
        &self,
        rows: &[Range<u64>],
        into: &mut SequenceList,
        stop: &Stop,
    ) -> Result<u64, Error> {
        let mut whole = SequenceList::default();
        let n_bytes = self.read(rows, true, &mut whole, stop)?;
        for name in whole.names() {
            into.push_parts(None, Some(name));
        }
        Ok(n_bytes)
    }
}
