//! Rows of a Zarr array as the engine's samples.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use pipeline::{BlockBytes, BlockPlace, Need, ReadStats, Source, Stop};
use storage::Storage;
use worktime::{ReadTimes, ThreadTime};
use zarrs::array::{Array, ArraySubset};
use zarrs::plugin::ExtensionName as _;

use crate::assemble::RowAssembler;
use crate::batch::{Buffers, RowBatch};
use crate::block::RowBlock;
use crate::chunks::ChunkReader;
use crate::element::Element;
use crate::error::{Cause, Error};
use crate::store::Store;

/// A source of samples in a Zarr array: one row for each index of its first dimension.
pub struct ArrayRows<T: Element> {
    storage: Arc<dyn Storage>,
    path: String,
    array: Array<Store>,
    row_shape: Arc<[usize]>,
    row_len: usize,
    chunk_bytes: u64,
    buffers: Arc<Buffers<T>>,
}

impl<T: Element> std::fmt::Debug for ArrayRows<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ArrayRows")
            .field("array", &self.path)
            .field("place", &self.storage.place())
            .field("shape", &self.array.shape())
            .finish_non_exhaustive()
    }
}

impl<T: Element> ArrayRows<T> {
    /// Opens the array at `path` in `storage`, with names separated by `/`; empty for an array at
    /// the storage's root.
    ///
    /// # Errors
    /// The array does not exist, its metadata is not supported, it has no dimension, or its
    /// elements are not of type `T`.
    pub fn open(storage: Arc<dyn Storage>, path: &str) -> Result<Self, Error> {
        let store = Arc::new(Store::new(Arc::clone(&storage)));
        let path = path.trim_matches('/').to_owned();
        let array = Array::open(store, &format!("/{path}")).map_err(|error| Error::Open {
            array: path.clone(),
            place: storage.place(),
            source: error.into(),
        })?;
        T::validate_data_type(array.data_type()).map_err(|_| Error::Element {
            array: path.clone(),
            stored: element_name(&array),
            wanted: std::any::type_name::<T>(),
        })?;
        let row_shape = row_shape(&array, &path)?;
        let row_len = n_elements::<T>(&row_shape).ok_or_else(|| too_large(&path, "a row"))?;
        let chunk_bytes = chunk_bytes::<T>(&array, &path)?;
        let buffers = Arc::default();
        Ok(Self { storage, path, array, row_shape, row_len, chunk_bytes, buffers })
    }

    /// The shape of a row: the array's without its first dimension.
    pub fn row_shape(&self) -> &[usize] {
        &self.row_shape
    }

    /// Bytes of `n_rows` rows.
    fn bytes_of(&self, n_rows: u64) -> u64 {
        n_rows.saturating_mul((self.row_len * size_of::<T>()) as u64)
    }

    /// Reads consecutive rows into `into`.
    fn read_rows(
        &self,
        reader: &ChunkReader,
        rows: Range<u64>,
        into: &mut [T],
    ) -> Result<(), Cause> {
        let others = self.row_shape.iter().map(|len| 0..*len as u64);
        let region: Vec<Range<u64>> = std::iter::once(rows).chain(others).collect();
        reader.read(&ArraySubset::new_with_ranges(&region), into)
    }

    /// Opens the array for one thread, so that bytes and times are counted per thread.
    fn reader(&self) -> Result<ChunkReader, Error> {
        let store = Arc::new(Store::new(Arc::clone(&self.storage)));
        ChunkReader::new(self.array.with_storage(store)).map_err(|source| Error::Open {
            array: self.path.clone(),
            place: self.storage.place(),
            source,
        })
    }
}

/// The name of the array's elements in its metadata.
fn element_name(array: &Array<Store>) -> String {
    let name = array.data_type().name_v3();
    name.map_or_else(|| format!("{:?}", array.data_type()), Cow::into_owned)
}

fn row_shape(array: &Array<Store>, path: &str) -> Result<Arc<[usize]>, Error> {
    let Some((_, row)) = array.shape().split_first() else {
        return Err(Error::NoRows { array: path.to_owned() });
    };
    let lens: Result<Vec<usize>, _> = row.iter().map(|len| usize::try_from(*len)).collect();
    Ok(lens.map_err(|_| too_large(path, "a row"))?.into())
}

/// The product of `shape`, if memory has addresses for that many elements.
fn n_elements<T>(shape: &[usize]) -> Option<usize> {
    let n = shape.iter().try_fold(1_usize, |n, len| n.checked_mul(*len))?;
    let bytes = n.checked_mul(size_of::<T>())?;
    isize::try_from(bytes).ok().map(|_| n)
}

/// Bytes of a decoded chunk, or of a shard.
fn chunk_bytes<T>(array: &Array<Store>, path: &str) -> Result<u64, Error> {
    let first = vec![0; array.dimensionality()];
    let shape = array.chunk_shape_usize(&first).map_err(|error| Error::Open {
        array: path.to_owned(),
        place: array.storage().place(),
        source: error.into(),
    })?;
    let n = n_elements::<T>(&shape).ok_or_else(|| too_large(path, "a chunk"))?;
    Ok((n * size_of::<T>()) as u64)
}

/// Joins adjacent ranges, because their rows may share a chunk of the array.
fn joined(rows: &[Range<u64>]) -> impl Iterator<Item = Range<u64>> {
    let runs = rows.chunk_by(|one, next| one.end == next.start);
    runs.filter_map(|run| Some(run.first()?.start..run.last()?.end))
}

fn too_large(path: &str, what: &'static str) -> Error {
    Error::TooLarge { array: path.to_owned(), what }
}

/// State of one reading thread: its own reader of the array.
#[derive(Debug, Default)]
pub struct RowScratch(Option<ChunkReader>);

impl<T: Element> Source for ArrayRows<T> {
    type Block = RowBlock<T>;
    type Batch = RowBatch<T>;
    type Error = Error;
    type Scratch = RowScratch;
    type Assembler = RowAssembler<T>;

    fn n_rows(&self) -> u64 {
        self.array.shape().first().copied().unwrap_or_default()
    }

    fn fingerprint(&self) -> String {
        let element = element_name(&self.array);
        format!("zarr {} {:?} {element}", self.path, self.array.shape())
    }

    fn need(&self, block_rows: u64, batch_rows: u64) -> Result<Need, Error> {
        let block = self.bytes_of(block_rows);
        Ok(Need {
            block,
            largest: block,
            batch: self.bytes_of(batch_rows),
            // A chunk as stored, and decoded if only a part of it is read.
            reading: self.chunk_bytes.saturating_mul(2),
            other: 0,
        })
    }

    fn block_bytes(&self, block: &RowBlock<T>) -> BlockBytes {
        let now = (block.values.capacity() * size_of::<T>()) as u64;
        BlockBytes { now, most: now }
    }

    fn read(
        &self,
        place: BlockPlace,
        rows: &[Range<u64>],
        into: &mut RowBlock<T>,
        scratch: &mut RowScratch,
        stop: &Stop,
    ) -> Result<ReadStats, Error> {
        let n_rows: u64 = rows.iter().map(|range| range.end - range.start).sum();
        let n_values = usize::try_from(self.bytes_of(n_rows))
            .ok()
            .map(|bytes| bytes / size_of::<T>())
            .ok_or_else(|| too_large(&self.path, "a block"))?;
        if into.values.len() < n_values {
            into.values.resize(n_values, T::zeroed());
        }
        let reader = match &mut scratch.0 {
            Some(reader) => reader,
            none => none.insert(self.reader()?),
        };
        let start = worktime::now();
        let mut rest = into.values.as_mut_slice();
        for rows in joined(rows) {
            if stop.is_set() {
                return Err(Error::Stopped { array: self.path.clone() });
            }
            let Range { start, end } = rows;
            let (these, others) = rest.split_at_mut((end - start) as usize * self.row_len);
            self.read_rows(reader, rows, these).map_err(|source| {
                let BlockPlace { epoch, block_idx } = place;
                Error::Read { array: self.path.clone(), start, end, epoch, block_idx, source }
            })?;
            rest = others;
        }
        let reads = reader.store().take_reads();
        let decode: ThreadTime = (worktime::now() - start) - reads.time;
        Ok(ReadStats {
            values: n_values as u64,
            bytes_read: Some(reads.bytes),
            bytes_needed: Some(self.bytes_of(n_rows)),
            times: Some(ReadTimes { fetch: reads.time, decode }),
            ..ReadStats::default()
        })
    }

    fn assembler(&self, _batch_rows: u64) -> Result<RowAssembler<T>, Error> {
        Ok(RowAssembler::new(Arc::clone(&self.row_shape), Arc::clone(&self.buffers)))
    }
}
