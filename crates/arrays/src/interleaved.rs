//! Reads chunks whose elements take turns in a row, for instance some channels each, in bands.
//!
//! A row is larger than the caches. Written one chunk after another, it would pass through them
//! once for each chunk. A band is a range of the second dimension: small enough that its part of
//! the row stays in the caches until all chunks have written theirs.

use storage::{Piece, Storage};

use crate::chunk_task::{Place, PlacedChunks, Rows, Task, Worker};
use crate::error::Cause;
use crate::memory::words;
use crate::part::Part;
use crate::read::Failure;
use crate::read_files::ReadFiles;

/// Bytes of a band in all chunks together.
const BAND_BYTES: usize = 1 << 20;

impl Task<'_> {
    /// Whether its chunks can be read in bands: several, stored as in memory, for a single row.
    pub(crate) fn is_interleaved(&self) -> bool {
        let has_one_row = self.chunks.geometry.chunk_rows == 1 && self.rows.len() == 1;
        has_one_row
            && self.counting.is_none()
            && 1 < self.n_chunks()
            && self.chunks.decoder.is_raw()
    }
}

impl Worker {
    /// Reads the chunks of a task from a storage that answers at once, band by band.
    pub(crate) fn read_bands(
        &mut self,
        storage: &dyn Storage,
        task: &mut Task<'_>,
        (placed, files): (&PlacedChunks<'_>, &ReadFiles<'_>),
    ) -> Result<(), Failure> {
        let mut stored = Vec::new();
        for (chunk, place) in placed {
            match place {
                Some(place) => stored.push((*chunk, place)),
                None => task.fill(*chunk),
            }
        }
        let n_outer = stored.iter().map(|(chunk, _)| chunk.selected.part.n_outer()).max();
        let n_outer = n_outer.unwrap_or(0);
        let stride: usize =
            stored.iter().map(|(chunk, _)| chunk.selected.part.outer_stride()).sum();
        let step = (BAND_BYTES / (stride * task.chunks.stored.n_bytes()).max(1)).max(1);
        for start in (0..n_outer).step_by(step) {
            let band = start..n_outer.min(start + step);
            for (chunk, Place { file, range }) in &stored {
                let part = chunk.selected.part.band(band.clone());
                if part.n_outer() == 0 {
                    continue;
                }
                let from = (files.names[*file].as_str(), range.start);
                self.read_band(storage, task, from, &part)
                    .map_err(|source| task.failure(*chunk, &source))?;
            }
        }
        Ok(())
    }

    /// Reads the part of a chunk that a band selects. The chunk begins at this byte of a file.
    fn read_band(
        &mut self,
        storage: &dyn Storage,
        task: &mut Task<'_>,
        (file, start): (&str, u64),
        part: &Part,
    ) -> Result<(), Cause> {
        let begun = worktime::now();
        let task_start = task.first_element();
        let Task { chunks, convert, rows, .. } = task;
        let [Rows { into, .. }] = &mut rows[..] else { return Ok(()) };
        let (stored, span) = (chunks.stored, part.span());
        let [first, end] = [span.start, span.end].map(|at| start + (at * stored.n_bytes()) as u64);
        let n_bytes = span.len() * stored.n_bytes();
        let encoded = words(&mut self.encoded, n_bytes)?;
        storage.read(&[Piece { file, range: first..end }], encoded)?;
        let fetched = worktime::now();
        convert.scatter(stored, part, (encoded, span.start), (into, task_start));
        self.stats.add_fetched(n_bytes as u64, fetched - begun);
        self.stats.add_decoded(0, n_bytes as u64, worktime::now() - fetched);
        Ok(())
    }
}
