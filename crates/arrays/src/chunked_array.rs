//! Arrays chunk by chunk, as they are stored, for programs that copy them.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use storage::{Piece, Storage};
use zarrs::array::{ArrayMetadata, ArraySubset};

use crate::chunk_files::{ChunkFile, ChunkFiles, PlaceInShard, check_version};
use crate::decoder::{Contexts, Decoder};
use crate::dimensions::dimension_names;
use crate::element::ElementType;
use crate::error::{Cause, Error};
use crate::memory::{check_chunk, zeroed};
use crate::metadata::{self, Opened, Texts, Version};
use crate::open_array::{element_type, packing};
use crate::packing::Packing;
use crate::stored::open_error;
use crate::texts;

/// An opened array with any number of dimensions, also none, and elements of any type that has a
/// fixed size, or strings.
///
/// Its chunks are those that are decoded as a whole: of a sharded array those within the shards.
#[derive(Debug)]
pub struct ChunkedArray {
    storage: Arc<dyn Storage>,
    path: String,
    files: ChunkFiles,
    decoder: Decoder,
    chunk_shape: Vec<u64>,
    /// `None` for strings of any length.
    element_bytes: Option<usize>,
    version: Version,
    texts: Option<Texts>,
    element: Option<ElementType>,
    meaning: Result<Meaning, Error>,
}

/// What the numbers of an array stand for.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Meaning {
    /// Whether the numbers are packed: `scale_factor`, `add_offset` or `_Unsigned`.
    pub is_packed: bool,
    /// Stored numbers that mean "missing", apart from NaN.
    pub missing: Vec<f64>,
}

impl ChunkedArray {
    /// Opens the array at `path`.
    ///
    /// # Errors
    /// [`Error::Open`] if there is none, or its metadata is not supported.
    pub fn open(storage: &Arc<dyn Storage>, path: &str) -> Result<Self, Error> {
        let path = path.trim_matches('/');
        let opened =
            metadata::open(storage, path).map_err(|unopened| unopened.error(path, &**storage))?;
        Self::new(storage, path, opened)
    }

    pub(crate) fn new(
        storage: &Arc<dyn Storage>,
        path: &str,
        opened: Opened,
    ) -> Result<Self, Error> {
        let meaning = match packing(&opened, path) {
            Ok((stored, of)) => Ok(Meaning {
                is_packed: of.as_ref().is_some_and(Packing::is_scaled)
                    || element_type(&opened.array, path).ok() != Some(stored),
                missing: of.map(|of| of.missing).unwrap_or_default(),
            }),
            // Other elements than numbers stand for themselves.
            Err(Error::Element { .. }) => Ok(Meaning::default()),
            Err(error) => Err(error),
        };
        let Opened { array, version, texts } = opened;
        let element = match texts {
            Some(_) => None,
            None => element_type(&array, path).ok(),
        };
        let (data_type, fill) = (array.data_type().clone(), array.fill_value().clone());
        let element_bytes = data_type.fixed_size();
        if element_bytes.is_none() && texts.is_none() {
            let text = format!("its elements of type {data_type:?} have no fixed size");
            return Err(open_error(storage, path, text.into()));
        }
        let (files, (shape, codecs)) =
            ChunkFiles::new(array, path).map_err(|source| open_error(storage, path, source))?;
        let chunk_shape: Vec<u64> = shape.iter().map(|len| len.get()).collect();
        let decoder = Decoder::new(codecs, shape, data_type, fill);
        let (storage, path) = (Arc::clone(storage), path.to_owned());
        Ok(Self {
            storage,
            path,
            files,
            decoder,
            chunk_shape,
            element_bytes,
            version,
            texts,
            element,
            meaning,
        })
    }

    /// The path within the storage.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The length of each dimension.
    pub fn shape(&self) -> &[u64] {
        self.files.array().shape()
    }

    /// The length of a chunk in each dimension.
    pub fn chunk_shape(&self) -> &[u64] {
        &self.chunk_shape
    }

    /// The names of the dimensions; empty where they have none.
    pub fn dimension_names(&self) -> Vec<String> {
        dimension_names(self.files.array())
    }

    /// The version of Zarr that it is stored in: 2 or 3.
    pub fn zarr_version(&self) -> u8 {
        if self.version == Version::V3 { 3 } else { 2 }
    }

    /// The attributes, without those that Zarr v2 needs for the names of dimensions.
    pub fn attributes(&self) -> Map<String, Value> {
        let mut attributes = self.files.array().attributes().clone();
        if let Version::V2 { .. } = self.version {
            attributes.remove("_ARRAY_DIMENSIONS");
        }
        attributes
    }

    /// The type of the numbers; `None` for strings and other elements.
    pub fn element(&self) -> Option<ElementType> {
        self.element
    }

    /// Bytes of an element; `None` for strings of any length.
    pub fn element_bytes(&self) -> Option<usize> {
        self.element_bytes
    }

    /// Whether the elements are strings, of any length or all of the same.
    pub fn is_strings(&self) -> bool {
        self.texts.is_some()
    }

    /// Whether the elements are strings of UTF-8 in a fixed number of bytes each, which Zarr v3
    /// calls `null_terminated_bytes`.
    pub fn is_fixed_bytes(&self) -> bool {
        self.texts == Some(Texts::Bytes)
    }

    /// What the numbers stand for.
    ///
    /// # Errors
    /// [`Error::Attribute`] if an attribute is not understood.
    pub fn meaning(&self) -> Result<&Meaning, &Error> {
        self.meaning.as_ref()
    }

    /// The type of the elements in the form of Zarr v3.
    pub fn data_type(&self) -> Value {
        match self.files.array().metadata() {
            ArrayMetadata::V3(metadata) => json!(metadata.data_type),
            ArrayMetadata::V2(metadata) => json!(metadata.dtype),
        }
    }

    /// The element of chunks that are not stored, in the form of Zarr v3.
    pub fn fill_value(&self) -> Value {
        match self.files.array().metadata() {
            ArrayMetadata::V3(metadata) => json!(metadata.fill_value),
            ArrayMetadata::V2(metadata) => json!(metadata.fill_value),
        }
    }

    /// The element of chunks that are not stored, in the machine's order of bytes.
    pub fn fill_bytes(&self) -> &[u8] {
        self.files.array().fill_value().as_ne_bytes()
    }

    /// Whether xarray takes the fill value for the attribute `_FillValue`, as it does in Zarr v2.
    pub fn fill_is_missing(&self) -> bool {
        let has = |name: &str| self.files.array().attributes().contains_key(name);
        self.version == Version::V2 { has_fill: true }
            && self.element != Some(ElementType::Bool)
            && (has("_ARRAY_DIMENSIONS") || has("scale_factor") || has("add_offset"))
    }

    /// Bytes of a decoded chunk; `None` for strings of any length, and for more bytes than memory
    /// has addresses.
    pub fn chunk_bytes(&self) -> Option<usize> {
        self.chunk_shape
            .iter()
            .try_fold(self.element_bytes?, |n, len| n.checked_mul(usize::try_from(*len).ok()?))
    }

    /// Decodes the chunk with these indices into `into`, which has
    /// [`chunk_bytes`](Self::chunk_bytes), as elements in the machine's order of bytes. Returns
    /// whether the chunk is stored; if it is not, `into` stays as it is.
    ///
    /// # Errors
    /// [`Error::ReadElements`].
    pub fn read_chunk(&self, chunk: &[u64], into: &mut [u8]) -> Result<bool, Error> {
        self.try_read(chunk, into)
            .map_err(|source| self.failed(format!("chunk {chunk:?}: {source}").into()))
    }

    fn try_read(&self, chunk: &[u64], into: &mut [u8]) -> Result<bool, Cause> {
        check_chunk(into.len())?;
        let storage = &*self.storage;
        let Some(ChunkFile { file, in_shard }) = self.files.find(storage, chunk)? else {
            return Ok(false);
        };
        let encoded = match in_shard {
            None => match storage.read_files(&[&file]).pop() {
                Some(Err(error)) if error.kind() == std::io::ErrorKind::NotFound => {
                    return Ok(false);
                }
                Some(read) => read?,
                None => return Ok(false),
            },
            Some(PlaceInShard { range, version }) => {
                let n_bytes = range.end - range.start;
                if version.size < range.end {
                    return Err("the shard's index is damaged".into());
                }
                let mut encoded = zeroed(usize::try_from(n_bytes)?)?;
                storage.read(&[Piece { file: &file, range }], &mut encoded)?;
                check_version(storage, &file, &version)?;
                encoded
            }
        };
        self.decoder.decode(&encoded, into, &mut Contexts::default())?;
        Ok(true)
    }

    /// Reads the strings of the chunk with these indices, without those beyond the array's ends.
    ///
    /// # Errors
    /// [`Error::ReadElements`], also if the elements are no strings.
    pub fn read_strings(&self, chunk: &[u64]) -> Result<Vec<String>, Error> {
        let Some(form) = self.texts else {
            return Err(self.failed("its elements are no strings".into()));
        };
        let lens = chunk.iter().zip(&self.chunk_shape).zip(self.shape());
        let part = lens.map(|((at, of_chunk), len)| {
            let start = at.saturating_mul(*of_chunk).min(*len);
            start..start.saturating_add(*of_chunk).min(*len)
        });
        let part = ArraySubset::new_with_ranges(&part.collect::<Vec<_>>());
        texts::read(self.files.array(), form, &part)
            .map_err(|source| self.failed(format!("chunk {chunk:?}: {source}").into()))
    }

    fn failed(&self, source: Cause) -> Error {
        let (array, place) = (self.path.clone(), self.storage.place());
        Error::ReadElements { array, place, source }
    }
}
