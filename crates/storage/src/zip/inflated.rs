//! Entries that were deflated.

use std::collections::VecDeque;
use std::io::{self, Read as _};
use std::sync::{Arc, Mutex, PoisonError};

use flate2::read::DeflateDecoder;

use super::entry::{Entry, invalid};
use crate::storage::too_large;

/// Bytes of entries that were inflated last and are kept, as an entry is read in pieces.
const KEPT_BYTES: usize = 8 << 20;

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
    pub(super) fn keep(&self, header: u64, bytes: Vec<u8>) -> Arc<Vec<u8>> {
        let bytes = Arc::new(bytes);
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        entries.push_back((header, Arc::clone(&bytes)));
        while 1 < entries.len()
            && KEPT_BYTES < entries.iter().map(|(_, bytes)| bytes.len()).sum::<usize>()
        {
            entries.pop_front();
        }
        bytes
    }
}

/// Inflates an entry, whose declared size was checked, and compares its checksum.
pub(super) fn inflate(stored: &[u8], entry: &Entry) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let len = usize::try_from(entry.n_bytes).unwrap_or(usize::MAX);
    bytes.try_reserve_exact(len).map_err(|_| too_large(entry.n_bytes))?;
    let mut decoder = DeflateDecoder::new(stored).take(entry.n_bytes.saturating_add(1));
    let read = decoder.read_to_end(&mut bytes);
    read.map_err(|error| invalid(&format!("it cannot be inflated: {error}")))?;
    if bytes.len() != len {
        return Err(invalid("it has another number of bytes than the directory says"));
    }
    entry.check_sum(&bytes)?;
    Ok(bytes)
}
