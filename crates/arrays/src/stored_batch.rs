//! Reads and decodes the chunks of a batch of bands.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use storage::Storage;
use worktime::ReadStats;

use crate::decoder::Contexts;
use crate::element::ElementType;
use crate::error::Cause;
use crate::joined::join;
use crate::memory::{check_chunk, words};
use crate::stored::Numbers;

/// Converts elements, if they are not delivered as stored.
pub(crate) type Convert = Option<fn(ElementType, &[u8], &mut [u8])>;

/// Rows of a chunk that are consecutive in it and in the result.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Run {
    /// The first row in the chunk.
    pub(crate) src: usize,
    pub(crate) len: usize,
}

/// The wanted rows that lie in one chunk of the first dimension, and their memory.
#[derive(Debug)]
pub(crate) struct Band<'a> {
    pub(crate) path: &'a str,
    pub(crate) numbers: &'a Numbers,
    /// The chunks' index in the first dimension.
    pub(crate) chunk_row: u64,
    pub(crate) runs: Vec<Run>,
    pub(crate) into: &'a mut [u8],
    pub(crate) convert: Convert,
}

/// The stored bytes of a chunk.
#[derive(Debug)]
pub(crate) struct Place {
    /// Its number among the names of the read.
    pub(crate) file: usize,
    pub(crate) range: Range<u64>,
}

/// A band with its chunks: the index of each in the second dimension, and its place if it is
/// stored.
#[derive(Debug)]
pub(crate) struct Wanted<'a> {
    pub(crate) band: Band<'a>,
    pub(crate) chunks: Vec<(u64, Option<Place>)>,
}

impl Numbers {
    /// Bytes of a decoded chunk.
    pub(crate) fn chunk_bytes(&self) -> usize {
        self.chunk.0 as usize * self.chunk.1 * self.element.n_bytes()
    }
}

/// Memory of decoding that reads use again. Several reads may use it at the same time.
#[derive(Debug, Default)]
pub struct DecodeMemory {
    free: Mutex<Vec<Scratch>>,
}

/// Memory of one thread.
#[derive(Debug, Default)]
struct Scratch {
    /// Chunks as stored.
    encoded: Vec<u64>,
    /// A chunk decoded. Words, so that elements in it are aligned.
    decoded: Vec<u64>,
    contexts: Contexts,
}

impl DecodeMemory {
    /// Reads a batch. An error comes with the path of its array.
    pub(crate) fn run(
        &self,
        storage: &dyn Storage,
        names: &[String],
        mut batch: Vec<Wanted<'_>>,
        gap_bytes: u64,
    ) -> Result<ReadStats, (String, Cause)> {
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut scratch = free.unwrap_or_default();
        let totals = scratch.run(storage, names, &mut batch, gap_bytes);
        self.free.lock().unwrap_or_else(PoisonError::into_inner).push(scratch);
        totals
    }
}

impl Scratch {
    fn run(
        &mut self,
        storage: &dyn Storage,
        names: &[String],
        batch: &mut [Wanted<'_>],
        gap_bytes: u64,
    ) -> Result<ReadStats, (String, Cause)> {
        let joined = join(batch.iter().flat_map(|wanted| wanted.pieces(names)), gap_bytes);
        let path = batch.first().map_or("", |wanted| wanted.band.path).to_owned();
        let encoded = words(&mut self.encoded, joined.n_bytes).map_err(|cause| (path, cause))?;
        storage.read(&joined.reads, encoded).map_err(|error| {
            let path = batch.first().map_or("", |wanted| wanted.band.path);
            let file = joined.reads.first().map_or("", |read| read.file);
            let n = joined.reads.len();
            (path.to_owned(), format!("{n} ranges of bytes, the first in {file}: {error}").into())
        })?;
        let mut stats =
            ReadStats { bytes_read: Some(joined.n_bytes as u64), ..ReadStats::nothing() };
        let mut places = joined.places.iter();
        for Wanted { band, chunks } in batch {
            for (column, place) in chunks {
                let stored = match place {
                    Some(_) => places.next().and_then(|place| encoded.get(place.clone())),
                    None => None,
                };
                let decoding = (&mut self.decoded, &mut self.contexts);
                let n_bytes = put(band, *column, stored, decoding).map_err(|source| {
                    let of = (band.chunk_row, *column);
                    (band.path.to_owned(), format!("chunk {of:?}: {source}").into())
                })?;
                let n_values = n_bytes / band.numbers.element.n_bytes();
                stats += ReadStats::of_decoded(n_values as u64, n_bytes as u64);
            }
        }
        Ok(stats)
    }
}

/// Decodes a chunk as far as needed, puts its wanted rows into their place, and returns how many
/// bytes were decoded. `stored` is `None` for a chunk that is not stored.
fn put(
    band: &mut Band<'_>,
    column: u64,
    stored: Option<&[u8]>,
    (decoded, contexts): (&mut Vec<u64>, &mut Contexts),
) -> Result<usize, Cause> {
    let Band { numbers, runs, into, convert, .. } = band;
    let n_bytes = numbers.chunk_bytes();
    let (chunk_rows, chunk_columns) = (numbers.chunk.0 as usize, numbers.chunk.1);
    let is_whole_rows = chunk_columns == numbers.row_len;
    if let (Some(stored), None, [Run { src: 0, len }]) = (stored, *convert, &runs[..])
        && is_whole_rows
        && *len == chunk_rows
    {
        numbers.decoder.decode(stored, into, contexts)?;
        return Ok(n_bytes);
    }
    let Some(stored) = stored else {
        fill(band, column);
        return Ok(0);
    };
    let from_bytes = numbers.element.n_bytes();
    let chunk_row_bytes = chunk_columns * from_bytes;
    let wanted_rows = runs.last().map_or(0, |run| run.src + run.len);
    let to_decode = numbers.decoder.bytes_to_decode(wanted_rows * chunk_row_bytes, n_bytes);
    check_chunk(to_decode)?;
    let decoded = words(decoded, to_decode)?;
    numbers.decoder.decode_first(stored, (decoded, n_bytes), contexts)?;
    let convert = *convert;
    let deliver = |from: &[u8], into: &mut [u8]| match convert {
        Some(convert) => convert(numbers.element, from, into),
        None => into.copy_from_slice(from),
    };
    let n_rows: usize = runs.iter().map(|run| run.len).sum();
    let row_bytes = into.len() / n_rows.max(1);
    let into_bytes = row_bytes / numbers.row_len.max(1);
    if is_whole_rows {
        let mut rest = &mut **into;
        for run in runs.iter() {
            let (to, after) = rest.split_at_mut(run.len * row_bytes);
            rest = after;
            deliver(&decoded[run.src * chunk_row_bytes..][..run.len * chunk_row_bytes], to);
        }
        return Ok(to_decode);
    }
    let first = column as usize * chunk_columns;
    let n_columns = chunk_columns.min(numbers.row_len - first);
    let rows = runs.iter().flat_map(|run| run.src..run.src + run.len);
    for (row, to) in rows.zip(into.chunks_exact_mut(row_bytes)) {
        let from = &decoded[row * chunk_row_bytes..][..n_columns * from_bytes];
        deliver(from, &mut to[first * into_bytes..][..n_columns * into_bytes]);
    }
    Ok(to_decode)
}

/// Writes the fill value where a chunk that is not stored would go. The chunk itself takes no
/// memory: no byte says that it is as large as the metadata has it.
fn fill(band: &mut Band<'_>, column: u64) {
    let Band { numbers, runs, into, convert, .. } = band;
    let n_rows: usize = runs.iter().map(|run| run.len).sum();
    let row_bytes = into.len() / n_rows.max(1);
    let into_bytes = row_bytes / numbers.row_len.max(1);
    // Words are aligned for every type.
    let (mut stored, mut element) = ([0_u64], [0_u64]);
    let stored = &mut bytemuck::bytes_of_mut(&mut stored)[..numbers.fill.len()];
    stored.copy_from_slice(&numbers.fill);
    let element = &mut bytemuck::bytes_of_mut(&mut element)[..into_bytes];
    match convert {
        Some(convert) => convert(numbers.element, stored, element),
        None => element.copy_from_slice(stored),
    }
    let first = column as usize * numbers.chunk.1;
    let n_columns = numbers.chunk.1.min(numbers.row_len - first);
    for row in into.chunks_exact_mut(row_bytes.max(1)) {
        let part = &mut row[first * into_bytes..][..n_columns * into_bytes];
        part.chunks_exact_mut(into_bytes.max(1)).for_each(|to| to.copy_from_slice(element));
    }
}
