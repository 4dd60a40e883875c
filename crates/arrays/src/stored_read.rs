//! Plans reads of ranges of rows of several arrays, and runs them together.

use std::collections::HashMap;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;
use storage::{Expected, FileVersion, Piece, Storage};
use worktime::ReadStats;

use crate::chunk_files::{ChunkFile, check_version};
use crate::chunk_task::stored_len;
use crate::error::{Cause, Error};
use crate::joined::join;
use crate::numbers::Number;
use crate::stored::{Numbers, StoredArray};
use crate::stored_batch::{Band, DecodeMemory, Place, Run, Wanted};

/// Least bytes of a batch: to hand over fewer to another thread costs more than it saves.
const MIN_BATCH_BYTES: u64 = 64 << 10;

/// Ranges of rows of one array, and the memory that they are read into.
#[derive(Debug)]
pub struct Request<'a> {
    array: &'a StoredArray,
    bands: Vec<Band<'a>>,
    stored_only: bool,
}

impl Request<'_> {
    /// Makes a chunk whose file is missing an error, if `stored_only`; otherwise it reads as the
    /// fill value, like a chunk that the index of its shard leaves out.
    #[must_use]
    pub fn stored_only(self, stored_only: bool) -> Self {
        Self { stored_only, ..self }
    }
}

impl StoredArray {
    /// Asks for ranges of rows as numbers of type `T`: `into` is as long as all elements of these
    /// rows, which ascend and do not overlap.
    ///
    /// # Errors
    /// [`Error::ReadElements`] if the rows are beyond the array or not in order, if `into` has
    /// another length, or if `T` does not take the elements.
    pub fn request<'a, T: Number>(
        &'a self,
        rows: &[Range<u64>],
        into: &'a mut [T],
    ) -> Result<Request<'a>, Error> {
        let taken = self.numbers.as_ref().filter(|numbers| T::takes(numbers.element));
        let numbers = taken.ok_or_else(|| {
            self.failed(format!("its elements of type {} do not fit", self.type_name()).into())
        })?;
        let convert = (!T::is_as_stored(numbers.element)).then_some(
            (|element, from, into| T::convert(element, from, bytemuck::cast_slice_mut(into)))
                as fn(_, &[u8], &mut [u8]),
        );
        let bytes = bytemuck::cast_slice_mut(into);
        self.plan(numbers, rows, (bytes, size_of::<T>()), convert)
    }

    /// Asks for ranges of rows as they are stored, as bytes in the machine's order.
    ///
    /// # Errors
    /// Those of [`request`](Self::request).
    pub fn request_bytes<'a>(
        &'a self,
        rows: &[Range<u64>],
        into: &'a mut [u8],
    ) -> Result<Request<'a>, Error> {
        let numbers = self.numbers.as_ref().ok_or_else(|| {
            self.failed(format!("its elements of type {} are no numbers", self.type_name()).into())
        })?;
        self.plan(numbers, rows, (into, numbers.element.n_bytes()), None)
    }

    fn plan<'a>(
        &'a self,
        numbers: &'a Numbers,
        rows: &[Range<u64>],
        (into, n_bytes): (&'a mut [u8], usize),
        convert: crate::stored_batch::Convert,
    ) -> Result<Request<'a>, Error> {
        let n_rows = self.n_rows();
        let mut at = 0;
        let mut total = 0_u64;
        for range in rows {
            if range.start < at || range.end < range.start || n_rows < range.end {
                let text = format!("rows {range:?} are beyond its {n_rows} rows, or out of order");
                return Err(self.failed(text.into()));
            }
            at = range.end;
            total += range.end - range.start;
        }
        let row_bytes = numbers.row_len.checked_mul(n_bytes);
        let wanted = row_bytes.and_then(|of_row| of_row.checked_mul(usize::try_from(total).ok()?));
        let Some(row_bytes) = row_bytes.filter(|_| wanted == Some(into.len())) else {
            let text = format!("{total} rows do not fit memory of {} bytes", into.len());
            return Err(self.failed(text.into()));
        };
        let chunk_rows = numbers.chunk.0;
        let mut rest = into;
        let mut bands: Vec<Band<'a>> = Vec::new();
        let mut take = |chunk_row: u64, runs: Vec<Run>| {
            let n_rows: usize = runs.iter().map(|run| run.len).sum();
            let (into, after) = std::mem::take(&mut rest).split_at_mut(n_rows * row_bytes);
            rest = after;
            bands.push(Band { path: &self.path, numbers, chunk_row, runs, into, convert });
        };
        let mut open: Option<(u64, Vec<Run>)> = None;
        for range in rows {
            let mut at = range.start;
            while at < range.end {
                let chunk_row = at / chunk_rows;
                let end = range.end.min(chunk_row.saturating_add(1).saturating_mul(chunk_rows));
                let run = Run { src: (at % chunk_rows) as usize, len: (end - at) as usize };
                match &mut open {
                    Some((of, runs)) if *of == chunk_row => match runs.last_mut() {
                        Some(last) if last.src + last.len == run.src => last.len += run.len,
                        _ => runs.push(run),
                    },
                    _ => {
                        if let Some((of, runs)) = open.replace((chunk_row, vec![run])) {
                            take(of, runs);
                        }
                    }
                }
                at = end;
            }
        }
        if let Some((of, runs)) = open {
            take(of, runs);
        }
        Ok(Request { array: self, bands, stored_only: false })
    }
}

/// The files that a read needs, with the version that their places were taken from.
#[derive(Default)]
struct FileTable {
    names: Vec<String>,
    versions: Vec<Option<Arc<FileVersion>>>,
    known: HashMap<String, usize>,
}

impl FileTable {
    fn add(&mut self, name: String, version: Option<Arc<FileVersion>>) -> usize {
        if let Some(idx) = self.known.get(&name) {
            return *idx;
        }
        self.names.push(name.clone());
        self.versions.push(version);
        self.known.insert(name, self.names.len() - 1);
        self.names.len() - 1
    }
}

/// Reads requests of several arrays in `storage` together: each chunk is decoded once, by the
/// threads of the current rayon pool, straight into its place where it is wanted whole.
///
/// A storage that prefetches gets all ranges announced at once. A file that changes meanwhile is an
/// error.
///
/// # Errors
/// [`Error::ReadElements`]. The memory of the requests then has any content.
pub fn read_requests(
    storage: &dyn Storage,
    memory: &DecodeMemory,
    requests: Vec<Request<'_>>,
) -> Result<ReadStats, Error> {
    let mut files = FileTable::default();
    let mut wanted: Vec<Wanted<'_>> = Vec::new();
    for Request { array, bands, stored_only } in requests {
        place_bands(storage, array, (bands, stored_only), (&mut files, &mut wanted))
            .map_err(|source| array.failed(source))?;
    }
    let first = |wanted: &Wanted<'_>| {
        let first = wanted.chunks.iter().find_map(|(_, place)| place.as_ref());
        first.map(|place| (place.file, place.range.start))
    };
    wanted.sort_by_key(first);
    let coalesce = storage.coalesce();
    let total: u64 = wanted.iter().map(Wanted::stored_bytes).sum();
    let share = total / (4 * rayon::current_num_threads().max(1) as u64);
    let batch_bytes = share.clamp(MIN_BATCH_BYTES, coalesce.batch_bytes.max(MIN_BATCH_BYTES));
    let mut batches: Vec<Vec<Wanted<'_>>> = Vec::new();
    let mut n_bytes = batch_bytes;
    for one in wanted {
        if n_bytes >= batch_bytes {
            batches.push(Vec::new());
            n_bytes = 0;
        }
        n_bytes = n_bytes.saturating_add(one.stored_bytes().max(one.delivered_bytes() / 4));
        if let Some(last) = batches.last_mut() {
            last.push(one);
        }
    }
    let names = &files.names;
    if coalesce.prefetches() {
        let pieces = batches.iter().flatten().flat_map(|wanted| wanted.pieces(names));
        storage.prefetch(&join(pieces, coalesce.gap_bytes).reads, Expected::Now);
    }
    let read = batches
        .into_par_iter()
        .map(|batch| memory.run(storage, names, batch, coalesce.gap_bytes))
        .try_reduce(ReadStats::nothing, |mut sum, part| {
            sum += part;
            Ok(sum)
        });
    let unchanged = if storage.keeps_versions() { Ok(()) } else { check_files(storage, &files) };
    let failed = |(path, source): (String, Cause)| Error::ReadElements {
        array: path,
        place: storage.place(),
        source,
    };
    // Bytes that make no chunk may come from another version.
    match (unchanged, read) {
        (Ok(()), read) => read.map_err(failed),
        (Err(changed), Ok(_)) => Err(failed((String::new(), changed))),
        (Err(changed), Err((path, _))) => Err(failed((path, changed))),
    }
}

/// Fails if a file is not in the version that its places were taken from.
fn check_files(storage: &dyn Storage, files: &FileTable) -> Result<(), Cause> {
    let names: Vec<&str> = files.names.iter().map(String::as_str).collect();
    for ((file, first), now) in names.iter().zip(&files.versions).zip(storage.versions(&names)) {
        let Some(first) = first else { continue };
        if !now.is_ok_and(|now| now == **first) {
            // Says what is wrong.
            check_version(storage, file, first)?;
        }
    }
    Ok(())
}

/// Finds the chunks of bands in their files.
fn place_bands<'a>(
    storage: &dyn Storage,
    array: &'a StoredArray,
    (bands, stored_only): (Vec<Band<'a>>, bool),
    (files, wanted): (&mut FileTable, &mut Vec<Wanted<'a>>),
) -> Result<(), Cause> {
    let Some(numbers) = &array.numbers else { return Ok(()) };
    let n_columns = numbers.row_len.div_ceil(numbers.chunk.1.max(1)) as u64;
    let is_list = array.shape().len() == 1;
    let indices = |chunk_row: u64, column: u64| -> Vec<u64> {
        if is_list { vec![chunk_row] } else { vec![chunk_row, column] }
    };
    let all: Vec<Vec<u64>> = bands
        .iter()
        .flat_map(|band| (0..n_columns).map(|column| indices(band.chunk_row, column)))
        .collect();
    array.files.learn_shards(storage, all.iter().map(Vec::as_slice))?;
    let mut found = Vec::with_capacity(all.len());
    for chunk in &all {
        let name = |source: Cause| format!("chunk {chunk:?}: {source}");
        found.push(array.files.find(storage, chunk).map_err(name)?);
    }
    let whole: Vec<&str> = found
        .iter()
        .flatten()
        .filter(|file| file.in_shard.is_none())
        .map(|file| file.file.as_str())
        .collect();
    let mut versions = storage.versions(&whole).into_iter();
    let mut places = Vec::with_capacity(found.len());
    let chunk_bytes = numbers.chunk_bytes();
    for (chunk, found) in all.iter().zip(&found) {
        let place = match found {
            None => None,
            Some(ChunkFile { file, in_shard: Some(place) }) => {
                let file = files.add(file.clone(), Some(Arc::clone(&place.version)));
                Some(Place { file, range: place.range.clone() })
            }
            Some(ChunkFile { file, in_shard: None }) => match versions.next() {
                Some(Ok(version)) => {
                    let range = 0..version.size;
                    Some(Place { file: files.add(file.clone(), Some(Arc::new(version))), range })
                }
                Some(Err(error)) if error.kind() == io::ErrorKind::NotFound => None,
                Some(Err(error)) => return Err(error.into()),
                None => return Err("the storage knows no version of a file".into()),
            },
        };
        if stored_only && place.is_none() && !array.files.is_left_out(chunk) {
            let what = "its file was lost, or left out since it has nothing but zeros";
            return Err(format!("chunk {chunk:?} is not stored: {what}").into());
        }
        if let Some(place) = &place {
            stored_len(&place.range, chunk_bytes, numbers.decoder.is_raw())
                .map_err(|source| format!("chunk {chunk:?}: {source}"))?;
        }
        places.push(place);
    }
    let mut places = places.into_iter();
    for band in bands {
        let mut chunks: Vec<(u64, Option<Place>)> =
            (0..n_columns).map(|column| (column, places.next().flatten())).collect();
        let start =
            |place: &Option<Place>| place.as_ref().map(|place| (place.file, place.range.start));
        chunks.sort_by_key(|(_, place)| start(place));
        wanted.push(Wanted { band, chunks });
    }
    Ok(())
}

impl Wanted<'_> {
    /// Bytes of its chunks as stored.
    fn stored_bytes(&self) -> u64 {
        let places = self.chunks.iter().filter_map(|(_, place)| place.as_ref());
        places.map(|place| place.range.end - place.range.start).sum()
    }

    /// Bytes that it delivers.
    fn delivered_bytes(&self) -> u64 {
        self.band.into.len() as u64
    }

    /// The stored bytes of its chunks.
    pub(crate) fn pieces<'n>(&self, names: &'n [String]) -> impl Iterator<Item = Piece<'n>> {
        self.chunks.iter().filter_map(|(_, place)| {
            let place = place.as_ref()?;
            Some(Piece { file: names.get(place.file)?, range: place.range.clone() })
        })
    }
}
