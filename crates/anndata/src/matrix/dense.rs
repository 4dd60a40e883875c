//! Dense matrices, of which the values that are not zero are returned.

use std::ops::Range;

use arrays::{KeptChunks, KeptRead, StoredArray};
use csr::{CsrBuffers, Narrowing};
use storage::NextReads;
use worktime::ReadStats;

use super::{OpenPart, exact};
use crate::elements::Elements;
use crate::error::Error;
use crate::parts::{of_parts, starts};

/// Bytes of dense rows that are in memory at once.
const PIECE_BYTES: u64 = 64 << 20;

/// Most bytes of a matrix whose decoded chunks are kept without a loader that allows it.
///
/// h5py cuts a compressed matrix into chunks of a few columns and a thousand rows or more, so that
/// each block of scattered rows wants nearly all chunks. A table of proteins is small enough to
/// decode it once.
const KEPT_BYTES: u64 = 64 << 20;

/// The dense matrices of all data sets.
#[derive(Debug)]
pub(super) struct Dense {
    parts: Vec<DensePart>,
    /// The first row of each, and the number of all rows.
    starts: Vec<u64>,
    /// The chunks that were decoded: all of them, if they are few, or as many as loaders allow.
    kept: KeptChunks,
    /// Bytes that these may be without a loader.
    kept_bytes: u64,
}

/// The dense matrix of one data set.
#[derive(Debug)]
pub(super) struct DensePart {
    array: StoredArray,
    n_columns: usize,
}

impl Dense {
    pub(super) fn new(parts: Vec<DensePart>) -> Self {
        let starts = starts(parts.iter().map(|part| part.array.n_rows()));
        let all = parts.iter().map(|part| part.array.decoded_bytes());
        let all = all.fold(0, u64::saturating_add);
        let kept_bytes = if all <= KEPT_BYTES { all } else { 0 };
        Self { parts, starts, kept: KeptChunks::up_to(kept_bytes), kept_bytes }
    }

    /// Bytes of memory of a thread that reads chunks.
    pub(super) fn working_bytes(&self) -> u64 {
        self.parts.iter().map(|part| part.array.working_bytes()).max().unwrap_or(0)
    }

    /// Bytes of the dense rows that are in memory at once, and of the chunks that are kept.
    pub(super) fn piece_bytes(&self) -> u64 {
        let of_piece = self.parts.iter().map(DensePart::piece_bytes).max().unwrap_or(0);
        of_piece.saturating_add(self.kept_bytes)
    }

    /// Keeps decoded chunks of so many bytes for a loader.
    pub(super) fn keep(&self, holder: u64, n_bytes: u64) {
        self.kept.allow(holder, n_bytes);
    }

    /// Bytes of the chunks that are kept for loaders.
    pub(super) fn kept_for_loaders(&self) -> u64 {
        self.kept.n_bytes().saturating_sub(self.kept_bytes)
    }

    /// Reads rows, which exist.
    pub(super) fn read(
        &self,
        elements: &Elements,
        (rows, next_reads): (&[Range<u64>], Option<&NextReads>),
        narrowing: Narrowing,
        out: &mut CsrBuffers,
    ) -> Result<ReadStats, Error> {
        out.clear();
        let mut stats = ReadStats::nothing();
        let n_rows = rows.iter().map(|range| range.end - range.start).sum();
        let read = self.kept.begin(n_rows, next_reads.cloned());
        for (part, rows) in of_parts(&self.starts, rows) {
            let keep_in = (&read, self.starts[part]);
            stats += self.parts[part].append((elements, keep_in), &rows, narrowing, out)?;
        }
        Ok(stats)
    }
}

impl DensePart {
    /// Opens an array of two dimensions.
    pub(super) fn open(elements: &Elements, path: &str) -> Result<OpenPart<Self>, Error> {
        let array = elements.array(path)?;
        let [n_rows, n_columns] = *array.shape() else {
            return Err(elements.unsupported(path, "it has one dimension, a matrix has two"));
        };
        let Some(element) = array.element() else {
            let reason = format!("its values are of type {}", array.type_name());
            return Err(elements.unsupported(path, reason));
        };
        let too_large = |_| elements.damaged(path, format!("it has {n_columns} columns"));
        let width = usize::try_from(n_columns).map_err(too_large)?;
        let part = Self { array, n_columns: width };
        Ok(OpenPart { part, n_rows, n_columns, element })
    }

    /// Bytes of the dense rows that are in memory at once.
    fn piece_bytes(&self) -> u64 {
        let chunk_rows = self.array.chunk_rows().unwrap_or(1).max(1);
        let of_chunks = chunk_rows.saturating_mul(self.n_columns as u64).saturating_mul(4);
        // Values as they are stored, too, if they must not be rounded.
        PIECE_BYTES.saturating_add(of_chunks).saturating_mul(3)
    }

    /// Appends rows, which exist.
    fn append(
        &self,
        (elements, (read, first_row)): (&Elements, (&KeptRead<'_>, u64)),
        rows: &[Range<u64>],
        narrowing: Narrowing,
        out: &mut CsrBuffers,
    ) -> Result<ReadStats, Error> {
        let path = self.array.path();
        let mut stats = ReadStats::nothing();
        let (mut values, mut stored): (Vec<f32>, Vec<u64>) = (Vec::new(), Vec::new());
        for piece in self.pieces(rows) {
            let n_rows: u64 = piece.iter().map(|range| range.end - range.start).sum();
            let len = usize::try_from(n_rows).ok().and_then(|n| n.checked_mul(self.n_columns));
            let missing = len.map(|len| (len, len.saturating_sub(values.len())));
            let fits = missing.filter(|(_, more)| values.try_reserve_exact(*more).is_ok());
            let Some((len, _)) = fits else {
                return Err(elements.damaged(path, format!("{n_rows} rows do not fit memory")));
            };
            values.resize(len, 0.0);
            stats += match self.array.element() {
                Some(element) if narrowing == Narrowing::Exact && exact::may_round(&self.array) => {
                    let n_bytes = len.saturating_mul(element.n_bytes());
                    stored.resize(n_bytes.div_ceil(size_of::<u64>()), 0);
                    let bytes = &mut bytemuck::cast_slice_mut(&mut stored)[..n_bytes];
                    let request = self.array.request_bytes(&piece, bytes)?;
                    let of_piece = elements.read(vec![request.keep_in(read, first_row)])?;
                    elements.pool().install(|| exact::narrow(element, bytes, &mut values));
                    of_piece
                }
                _ => {
                    let request = self.array.request(&piece, &mut values)?;
                    elements.read(vec![request.keep_in(read, first_row)])?
                }
            };
            if self.n_columns == 0 {
                out.row_offsets.extend((0..n_rows).map(|_| 0));
                continue;
            }
            for row in values.chunks_exact(self.n_columns) {
                let stored = row.iter().zip(0_u32..).filter(|(value, _)| **value != 0.0);
                for (value, column) in stored {
                    out.columns.push(column);
                    out.values.push(*value);
                }
                out.row_offsets.push(out.values.len());
            }
        }
        Ok(stats)
    }

    /// Cuts rows at the borders of chunks, so that each chunk is decoded once.
    fn pieces(&self, rows: &[Range<u64>]) -> Vec<Vec<Range<u64>>> {
        let chunk_rows = self.array.chunk_rows().unwrap_or(1).max(1);
        let row_bytes = (self.n_columns.max(1) as u64).saturating_mul(4);
        let most_rows = (PIECE_BYTES / row_bytes).max(1);
        let (mut pieces, mut n_rows, mut last_chunk) = (Vec::new(), most_rows, None);
        for range in rows {
            let mut at = range.start;
            while at < range.end {
                let chunk = at / chunk_rows;
                let end = range.end.min(chunk.saturating_add(1).saturating_mul(chunk_rows));
                if n_rows >= most_rows && last_chunk != Some(chunk) {
                    pieces.push(Vec::new());
                    n_rows = 0;
                }
                if let Some(last) = pieces.last_mut() {
                    last.push(at..end);
                }
                n_rows += end - at;
                last_chunk = Some(chunk);
                at = end;
            }
        }
        pieces
    }
}
