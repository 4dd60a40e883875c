//! Single arrays as they are stored, for readers of formats that are built of arrays.

use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;
use serde_json::{Map, Value};
use storage::Storage;
use zarrs::array::{Array, ArraySubset};
use zarrs::plugin::ExtensionName as _;

use crate::chunk_files::ChunkFiles;
use crate::chunks::Chunks;
use crate::element::ElementType;
use crate::error::{Cause, Error};
use crate::memory::most_bytes;
use crate::metadata::{self, Opened, Texts};
use crate::open_array::element_type;
use crate::selection::Indices;
use crate::store::Store;
use crate::texts;

/// The most bytes of a decoded chunk.
const MAX_CHUNK_BYTES: u64 = 1 << 34;

/// An opened array of one or two dimensions.
///
/// Rows are indices of the first dimension. [`request`](Self::request) asks for ranges of rows, and
/// [`read_requests`](crate::read_requests) reads those of several arrays together.
#[derive(Debug)]
pub struct StoredArray {
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) path: String,
    content: Content,
    /// `None` for numbers.
    texts: Option<Texts>,
    /// The name of the elements' type in the metadata.
    type_name: String,
}

/// The elements of an array.
#[derive(Debug)]
enum Content {
    Numbers(Box<Chunks>),
    /// Strings, and what is not read.
    Others(Box<ChunkFiles>),
}

impl StoredArray {
    /// Opens the array at `path`.
    ///
    /// # Errors
    /// [`Error::Open`] if there is none, or its metadata is not supported.
    pub fn open(storage: &Arc<dyn Storage>, path: &str) -> Result<Self, Error> {
        let path = path.trim_matches('/');
        let opened = metadata::open(storage, path)
            .map_err(|unopened| open_error(storage, path, unopened.into()))?;
        Self::new(storage, path, opened)
    }

    /// Opens the array at `path`, whose metadata is known: `zarr.json`, or `.zarray` of Zarr v2.
    ///
    /// # Errors
    /// [`Error::Open`] if the metadata is not supported.
    pub fn from_metadata(
        storage: &Arc<dyn Storage>,
        path: &str,
        metadata: &Map<String, Value>,
    ) -> Result<Self, Error> {
        let path = path.trim_matches('/');
        let opened = metadata::with_metadata(storage, path, (metadata.clone(), Map::new()))
            .map_err(|source| open_error(storage, path, source))?;
        Self::new(storage, path, opened)
    }

    fn new(storage: &Arc<dyn Storage>, path: &str, opened: Opened) -> Result<Self, Error> {
        let Opened { array, texts, .. } = opened;
        let failed = |source: Cause| open_error(storage, path, source);
        if !(1..=2).contains(&array.dimensionality()) {
            let text = format!("it has {} dimensions; 1 and 2 are read", array.dimensionality());
            return Err(failed(text.into()));
        }
        let type_name = array.data_type().name_v3();
        let type_name =
            type_name.map_or_else(|| format!("{:?}", array.data_type()), |name| name.to_string());
        let content = if texts.is_some() || element_type(&array, path).is_err() {
            Content::Others(Box::new(ChunkFiles::new(array, path).map_err(failed)?.0))
        } else {
            let selected: Vec<Indices> =
                array.shape().iter().skip(1).map(|len| Indices::Range(0..*len)).collect();
            let chunks = Chunks::new(array, path, &**storage, (0, &selected))?;
            if MAX_CHUNK_BYTES < chunks.chunk_bytes() as u64 {
                return Err(Error::TooLarge { array: path.to_owned(), what: "a chunk" });
            }
            Content::Numbers(Box::new(chunks))
        };
        let (storage, path) = (Arc::clone(storage), path.to_owned());
        Ok(Self { storage, path, content, texts, type_name })
    }

    /// Its chunks, if it has numbers.
    pub(crate) fn chunks(&self) -> Option<&Chunks> {
        match &self.content {
            Content::Numbers(chunks) => Some(chunks),
            Content::Others(_) => None,
        }
    }

    fn array(&self) -> &Array<Store> {
        match &self.content {
            Content::Numbers(chunks) => chunks.files.array(),
            Content::Others(files) => files.array(),
        }
    }

    /// Bytes of memory for stored and decoded chunks while one thread reads: those of a joined read
    /// and of one chunk. Ranges that a storage [prefetches](storage::Coalesce::prefetches) are
    /// extra, and shared by all threads.
    pub fn working_bytes(&self) -> u64 {
        let chunk = self.chunks().map_or(0, |chunks| chunks.chunk_bytes() as u64);
        // Codecs keep copies of their own, and a chunk may be stored in more bytes than it has.
        self.storage.coalesce().batch_bytes.saturating_add(chunk.saturating_mul(3))
    }

    /// The path within the storage.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The length of each dimension.
    pub fn shape(&self) -> &[u64] {
        self.array().shape()
    }

    /// Rows: the length of the first dimension.
    pub fn n_rows(&self) -> u64 {
        self.shape().first().copied().unwrap_or(0)
    }

    /// The type of the numbers; `None` for strings and other elements.
    pub fn element(&self) -> Option<ElementType> {
        self.chunks().map(|chunks| chunks.stored)
    }

    /// Whether the elements are strings, of any length or all of the same.
    pub fn is_strings(&self) -> bool {
        self.texts.is_some()
    }

    /// The name of the elements' type in Zarr's metadata.
    pub fn type_name(&self) -> &str {
        &self.type_name
    }

    /// Elements of a row in each chunk, and rows of a chunk that is decoded as a whole; `None` for
    /// strings.
    pub fn chunk_rows(&self) -> Option<u64> {
        self.chunks().map(|chunks| chunks.geometry.chunk_rows)
    }

    /// Bytes of all its chunks, decoded; 0 for strings.
    pub fn decoded_bytes(&self) -> u64 {
        self.chunks().map_or(0, |chunks| {
            let geometry = &chunks.geometry;
            let of_row: usize = geometry.segments().iter().map(|one| one.chunks.len()).sum();
            let n_chunks =
                self.n_rows().div_ceil(geometry.chunk_rows.max(1)).saturating_mul(of_row as u64);
            n_chunks.saturating_mul(chunks.chunk_bytes() as u64)
        })
    }

    /// Reads a range of an array of strings, on the current rayon pool.
    ///
    /// # Errors
    /// [`Error::ReadElements`], also if the elements are no strings.
    pub fn read_strings(&self, rows: Range<u64>) -> Result<Vec<String>, Error> {
        let array = self.array();
        let Some(form) = self.texts.filter(|_| self.shape().len() == 1) else {
            return Err(self.failed("it is not a list of strings".into()));
        };
        if rows.start > rows.end || self.n_rows() < rows.end {
            let text = format!("has {} rows, {rows:?} are wanted", self.n_rows());
            return Err(self.failed(text.into()));
        }
        let element = array.data_type().fixed_size().unwrap_or(0).max(size_of::<String>());
        let n_bytes = (rows.end - rows.start).saturating_mul(element as u64);
        if most_bytes() < n_bytes {
            let text = format!("{n_bytes} bytes for {rows:?} are more than memory allows");
            return Err(self.failed(text.into()));
        }
        let chunk = array.chunk_shape(&[0]).map_err(|error| self.failed(error.into()))?;
        let chunk_rows = chunk.first().map_or(1, |rows| rows.get());
        let n_parts = (rows.end - rows.start).div_ceil(chunk_rows).saturating_add(1);
        let first = rows.start / chunk_rows;
        let parts = (first..first.saturating_add(n_parts)).into_par_iter().map(|chunk| {
            let start = rows.start.max(chunk.saturating_mul(chunk_rows));
            let end = rows.end.min(chunk.saturating_add(1).saturating_mul(chunk_rows));
            if end <= start {
                return Ok(Vec::new());
            }
            let part = ArraySubset::new_with_ranges(&[start..end]);
            let read = texts::read(array, form, &part);
            read.map_err(|source| self.failed(format!("rows {start} to {end}: {source}").into()))
        });
        let parts: Vec<Vec<String>> = parts.collect::<Result<_, Error>>()?;
        Ok(parts.into_iter().flatten().collect())
    }

    pub(crate) fn failed(&self, source: Cause) -> Error {
        let (array, place) = (self.path.clone(), self.storage.place());
        Error::ReadElements { array, place, source }
    }
}

pub(crate) fn open_error(storage: &Arc<dyn Storage>, path: &str, source: Cause) -> Error {
    Error::Open { array: path.to_owned(), place: storage.place(), source }
}
