//! Entries that were deflated.

use std::collections::VecDeque;
use std::fmt;
use std::io::{self, Cursor, Read};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use crc32fast::Hasher;
use flate2::read::DeflateDecoder;

use super::entry::{Entry, check_sum, invalid};
use crate::storage::{Piece, Storage, zeroed};

/// Bytes of entries that were inflated last and are kept, as an entry is read in pieces. Larger
/// entries are not inflated whole.
pub(super) const KEPT_BYTES: usize = 8 << 20;
/// Stored bytes that are read at once.
pub(super) const WINDOW_BYTES: u64 = 8 << 20;

/// The entries that were inflated last, by where their headers are.
#[derive(Debug, Default)]
pub(super) struct InflatedEntries(Mutex<VecDeque<(u64, Arc<Vec<u8>>)>>);

impl InflatedEntries {
    pub(super) fn find(&self, header: u64) -> Option<Arc<Vec<u8>>> {
        let entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = entries.iter().find(|(of, _)| *of == header);
        found.map(|(_, bytes)| Arc::clone(bytes))
    }

    /// Keeps an entry, in place of the oldest ones.
    pub(super) fn keep(&self, header: u64, bytes: Vec<u8>) {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        entries.push_back((header, Arc::new(bytes)));
        while KEPT_BYTES < entries.iter().map(|(_, bytes)| bytes.len()).sum::<usize>() {
            entries.pop_front();
        }
    }
}

/// The stored bytes of an entry, which are read from the archive as they are needed.
pub(super) struct StoredBytes {
    storage: Arc<dyn Storage>,
    archive: String,
    read: Cursor<Vec<u8>>,
    /// The bytes of the archive that are still to be read.
    rest: Range<u64>,
}

impl StoredBytes {
    /// The bytes that were read already, then those in `rest` of the archive.
    pub(super) fn new(
        (storage, archive): (Arc<dyn Storage>, String),
        read: Vec<u8>,
        rest: Range<u64>,
    ) -> Self {
        Self { storage, archive, read: Cursor::new(read), rest }
    }
}

impl Read for StoredBytes {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let n_read = self.read.read(into)?;
        if n_read > 0 || into.is_empty() || self.rest.is_empty() {
            return Ok(n_read);
        }
        let end = self.rest.end.min(self.rest.start + WINDOW_BYTES);
        let piece = Piece { file: &self.archive, range: self.rest.start..end };
        let mut bytes = zeroed((end - self.rest.start) as usize)?;
        self.storage.read(&[piece], &mut bytes)?;
        self.rest.start = end;
        self.read = Cursor::new(bytes);
        self.read.read(into)
    }
}

/// An entry that is inflated from its start on.
pub(super) struct Inflation {
    header: u64,
    n_bytes: u64,
    sum: u32,
    /// Bytes inflated so far, and their checksum.
    at: u64,
    sum_so_far: Hasher,
    decoder: DeflateDecoder<StoredBytes>,
}

impl Inflation {
    /// An entry whose declared size was checked.
    pub(super) fn new(entry: &Entry, stored: StoredBytes) -> Self {
        Self {
            header: entry.header,
            n_bytes: entry.n_bytes,
            sum: entry.sum,
            at: 0,
            sum_so_far: Hasher::new(),
            decoder: DeflateDecoder::new(stored),
        }
    }

    /// Whether this range of an entry is still to come.
    pub(super) fn is_before(&self, entry: &Entry, range: &Range<u64>) -> bool {
        self.header == entry.header && self.at <= range.start
    }

    /// The whole entry.
    pub(super) fn whole(mut self) -> io::Result<Vec<u8>> {
        let mut bytes = zeroed(usize::try_from(self.n_bytes).unwrap_or(usize::MAX))?;
        self.read(&mut bytes)?;
        Ok(bytes)
    }

    /// Inflates up to a place of the entry.
    pub(super) fn skip_to(&mut self, place: u64) -> io::Result<()> {
        let mut skipped = [0; 1 << 14];
        while self.at < place {
            let len = (place - self.at).min(skipped.len() as u64) as usize;
            self.read(&mut skipped[..len])?;
        }
        Ok(())
    }

    /// Inflates the next bytes; with the last of them, compares the checksum of all.
    pub(super) fn read(&mut self, into: &mut [u8]) -> io::Result<()> {
        self.decoder.read_exact(into).map_err(damaged)?;
        self.at += into.len() as u64;
        self.sum_so_far.update(into);
        if self.at < self.n_bytes {
            return Ok(());
        }
        if self.decoder.read(&mut [0]).map_err(damaged)? > 0 {
            return Err(invalid(OTHER_SIZE));
        }
        check_sum(self.sum_so_far.clone().finalize(), self.sum)
    }
}

const OTHER_SIZE: &str = "it has another number of bytes than the directory says";

/// Names what is wrong with the bytes; errors of the storage stay.
fn damaged(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::InvalidInput => invalid(&format!("it cannot be inflated: {error}")),
        io::ErrorKind::UnexpectedEof => invalid(OTHER_SIZE),
        _ => error,
    }
}

impl fmt::Debug for Inflation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Inflation({} of {} bytes)", self.at, self.n_bytes)
    }
}
