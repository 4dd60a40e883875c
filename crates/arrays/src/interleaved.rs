//! Reads chunks whose elements take turns in a row, for instance some channels each, in bands.
//!
//! A row is larger than the caches. Written one chunk after another, it would pass through them
//! once for each chunk. A band is a range of the second dimension: small enough that its part of
//! the row stays in the caches until all chunks have written theirs.

use std::sync::Arc;

use storage::{FileVersion, Piece, Storage};

use crate::chunk_files::{check_version, version_of};
use crate::chunk_task::{Task, Worker, failure, stored_len};
use crate::error::Cause;
use crate::geometry::SelectedChunk;
use crate::memory::words;
use crate::part::Part;
use crate::read::Failure;
use crate::variable::OpenVariable;

/// Bytes of a band in all chunks together.
const BAND_BYTES: usize = 1 << 20;

/// A chunk of a file.
struct StoredChunk<'a> {
    chunk: &'a SelectedChunk,
    indices: Vec<u64>,
    file: String,
    /// Its first byte in the file.
    start: u64,
    version: Arc<FileVersion>,
}

impl Task<'_> {
    /// Whether its chunks can be read in bands: several, stored as in memory, for a single row.
    pub(crate) fn is_interleaved(&self) -> bool {
        let has_one_row = self.variable.geometry.chunk_rows == 1 && self.rows.len() == 1;
        has_one_row && 1 < self.segment.chunks.len() && self.variable.decoder.is_raw()
    }
}

impl Worker {
    /// Reads the chunks of a task from a storage that answers at once, band by band.
    pub(crate) fn run_interleaved(
        &mut self,
        storage: &dyn Storage,
        task: &mut Task<'_>,
    ) -> Result<(), Failure> {
        let (variable, segment) = (task.variable, task.segment);
        let mut stored = Vec::new();
        for chunk in &segment.chunks {
            let indices = task.indices(chunk);
            match find(storage, variable, chunk, &indices) {
                Ok(Some(found)) => stored.push(found),
                Ok(None) => task.fill(chunk),
                Err(source) => return Err(failure(variable, &indices, &source)),
            }
        }
        let [row] = &mut task.rows[..] else { return Ok(()) };
        let n_from = variable.stored.n_bytes();
        let n_outer = stored.first().map_or(0, |one| one.chunk.part.n_outer());
        let of_index: usize = stored.iter().map(|one| one.chunk.part.outer_stride() * n_from).sum();
        let step = (BAND_BYTES / of_index.max(1)).max(1);
        for start in (0..n_outer).step_by(step) {
            let band = start..n_outer.min(start + step);
            for one in &stored {
                let part = one.chunk.part.band(band.clone());
                let read = self.read_band(storage, variable, (one, &part), row.into);
                read.map_err(|source| failure(variable, &one.indices, &source))?;
            }
        }
        if !storage.keeps_versions() {
            for one in &stored {
                // Bytes that were read in bands may be of two versions.
                let checked = check_version(storage, &one.file, &one.version);
                checked.map_err(|source| failure(variable, &one.indices, &source))?;
            }
        }
        Ok(())
    }

    /// Reads the part of a chunk that a band selects.
    fn read_band(
        &mut self,
        storage: &dyn Storage,
        variable: &OpenVariable,
        (one, part): (&StoredChunk<'_>, &Part),
        into: &mut [u8],
    ) -> Result<(), Cause> {
        let begun = worktime::now();
        let n_from = variable.stored.n_bytes();
        let span = part.span();
        let range =
            one.start + (span.start * n_from) as u64..one.start + (span.end * n_from) as u64;
        let n_bytes = span.len() * n_from;
        let encoded = words(&mut self.encoded, n_bytes)?;
        storage.read(&[Piece { file: &one.file, range }], encoded)?;
        let fetched = worktime::now();
        variable.scatter(part, (encoded, span.start), into);
        self.stats.add_fetched(n_bytes as u64, fetched - begun);
        self.stats.add_decoded(0, n_bytes as u64, worktime::now() - fetched);
        Ok(())
    }
}

/// Where a chunk is stored, and the version of its file; `None` if it is not stored.
fn find<'a>(
    storage: &dyn Storage,
    variable: &OpenVariable,
    chunk: &'a SelectedChunk,
    indices: &[u64],
) -> Result<Option<StoredChunk<'a>>, Cause> {
    let Some(found) = variable.files.find(storage, indices)? else { return Ok(None) };
    let (range, version) = match found.in_shard {
        Some(place) => (place.range, place.version),
        None => match version_of(storage, &found.file)? {
            Some(version) => (0..version.size, Arc::new(version)),
            None => return Ok(None),
        },
    };
    stored_len(&range, variable.chunk_bytes(), true)?;
    let (file, indices) = (found.file, indices.to_vec());
    Ok(Some(StoredChunk { chunk, indices, file, start: range.start, version }))
}
