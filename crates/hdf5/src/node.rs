//! A group or a dataset, as Zarr describes it.

use std::collections::HashMap;
use std::sync::OnceLock;

use hdf5_reader::error::Error;
use hdf5_reader::messages::HdfMessage;
use hdf5_reader::messages::filter_pipeline::FilterDescription;
use hdf5_reader::messages::layout::{ChunkIndexing, DataLayout};
use hdf5_reader::{ByteOrder, Dataset, Datatype, Hdf5File};
use serde_json::{Map, Value, json};

use crate::chunks::StoredChunk;
use crate::numbers::{number_type, other_type};
use crate::{attributes, chunks, filters, strings};

/// Bytes of a chunk of a contiguous dataset, if a row is not longer.
const CONTIGUOUS_CHUNK_BYTES: u64 = 128 << 10;

/// A group or a dataset.
#[derive(Debug)]
pub(crate) enum Node {
    Group {
        /// Its `zarr.json`.
        metadata: Vec<u8>,
        /// The names of the groups and datasets in it.
        children: Vec<String>,
    },
    Array(Box<ArrayNode>),
}

/// A dataset.
#[derive(Debug)]
pub(crate) struct ArrayNode {
    /// Its `zarr.json`.
    pub(crate) metadata: Vec<u8>,
    dataset: DatasetHandle,
    filters: Vec<FilterDescription>,
    has_checksum: bool,
    chunks: Chunks,
}

/// A dataset of the parser, which has no `Debug`.
struct DatasetHandle(Dataset);

impl std::fmt::Debug for DatasetHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0.name())
    }
}

/// Where chunks are.
#[derive(Debug)]
enum Chunks {
    /// One chunk, in the header.
    Compact(Vec<u8>),
    /// Whole rows, which follow each other.
    Contiguous { address: u64, n_bytes: u64, chunk_bytes: u64 },
    /// In an index.
    Indexed {
        shape: Vec<u32>,
        address: u64,
        indexing: Option<ChunkIndexing>,
        /// Bytes of each, if no filter changes it.
        n_bytes: Option<u64>,
        found: OnceLock<HashMap<Vec<u64>, StoredChunk>>,
    },
    /// Encoded from the strings, which are read together.
    Strings(OnceLock<Vec<Vec<u8>>>),
    /// None can be read.
    Unreadable,
}

/// The bytes of one chunk.
#[derive(Debug)]
pub(crate) enum ChunkBytes<'a> {
    /// In memory.
    Inline(&'a [u8]),
    /// In the file, followed by zeros up to `padded` bytes.
    At { address: u64, n_bytes: u64, padded: u64 },
    /// In the file, without the compression that other chunks have.
    NotDeflated { address: u64, n_bytes: u64 },
}

impl Node {
    /// Describes the group at `path`.
    pub(crate) fn group(file: &Hdf5File, path: &str) -> Result<Self, Error> {
        let group = file.group(path)?;
        let (groups, datasets) = group.member_names()?;
        let attributes = attributes::json(file, path, &group.attributes()?)?;
        let metadata = json!({ "zarr_format": 3, "node_type": "group", "attributes": attributes });
        let children = groups.into_iter().chain(datasets).collect();
        Ok(Self::Group { metadata: metadata.to_string().into_bytes(), children })
    }

    /// Describes the dataset at `path`.
    pub(crate) fn array(file: &Hdf5File, path: &str) -> Result<Self, Error> {
        let dataset = file.dataset(path)?;
        let header = file.get_or_parse_header(dataset.address())?;
        let filters = header.messages.iter().find_map(|message| match message {
            HdfMessage::FilterPipeline(pipeline) => Some(pipeline.filters.clone()),
            _ => None,
        });
        let layout = header.messages.iter().find_map(|message| match message {
            HdfMessage::DataLayout(message) => Some(message.layout.clone()),
            _ => None,
        });
        let layout = layout.ok_or_else(|| Error::InvalidData("it has no data layout".into()))?;
        let attributes = attributes::json(file, path, &dataset.attributes())?;
        let filters = filters.unwrap_or_default();
        let (filters, has_checksum) = filters::without_checksum(&filters);
        let array = Described::new(&dataset, filters, has_checksum, layout)?;
        let metadata = array.metadata(&dataset, &attributes).to_string().into_bytes();
        let (dataset, chunks) = (DatasetHandle(dataset), array.chunks);
        let filters = filters.to_vec();
        Ok(Self::Array(Box::new(ArrayNode { metadata, dataset, filters, has_checksum, chunks })))
    }

    pub(crate) fn metadata(&self) -> &[u8] {
        match self {
            Self::Group { metadata, .. } => metadata,
            Self::Array(array) => &array.metadata,
        }
    }
}

/// What `zarr.json` says of a dataset.
struct Described {
    data_type: String,
    fill_value: Value,
    codecs: Vec<Value>,
    chunk_shape: Vec<u64>,
    chunks: Chunks,
}

impl Described {
    fn new(
        dataset: &Dataset,
        filters: &[FilterDescription],
        has_checksum: bool,
        layout: DataLayout,
    ) -> Result<Self, Error> {
        if is_strings(dataset.dtype()) {
            return Ok(Self::strings(dataset));
        }
        let Some(numbers) = number_type(dataset.dtype()) else {
            return Ok(Self::unreadable(dataset, other_type(dataset.dtype())));
        };
        let element_bytes = numbers.n_bytes as u64;
        let (chunk_shape, chunks) = match layout {
            DataLayout::Compact { data } => (dataset.shape().to_vec(), Chunks::Compact(data)),
            DataLayout::Contiguous { address, size } => {
                contiguous(dataset.shape(), element_bytes, address, size)?
            }
            DataLayout::Chunked { address, chunk_indexing, .. } => {
                let shape = dataset.chunks().unwrap_or_default();
                let n_bytes = product(element_bytes, shape.iter().map(|len| u64::from(*len)))?;
                let lens = shape.iter().map(|len| u64::from(*len)).collect();
                let chunks = Chunks::Indexed {
                    shape,
                    address,
                    indexing: chunk_indexing,
                    n_bytes: (filters.is_empty() && !has_checksum).then_some(n_bytes),
                    found: OnceLock::new(),
                };
                (lens, chunks)
            }
        };
        let endian = match numbers.order {
            ByteOrder::LittleEndian => "little",
            ByteOrder::BigEndian => "big",
        };
        let mut codecs = vec![json!({ "name": "bytes", "configuration": { "endian": endian } })];
        codecs.extend(filters::codecs(filters, numbers.n_bytes));
        let fill_value = dataset.fill_value().filter(|fill| fill.defined);
        let fill_value = fill_value.and_then(|fill| numbers.value(fill.value.as_deref()?));
        Ok(Self {
            fill_value: fill_value.unwrap_or_else(|| numbers.zero()),
            data_type: numbers.name,
            codecs,
            chunk_shape,
            chunks,
        })
    }

    fn strings(dataset: &Dataset) -> Self {
        let shape = dataset.shape();
        // Of a matrix of strings nobody knows how to cut it; one chunk it is.
        let chunk_shape = match shape {
            [n_strings] => vec![strings::chunk_rows(*n_strings)],
            other => other.to_vec(),
        };
        Self {
            data_type: "string".to_owned(),
            fill_value: json!(""),
            codecs: vec![json!({ "name": "vlen-utf8" })],
            chunk_shape,
            chunks: Chunks::Strings(OnceLock::new()),
        }
    }

    fn unreadable(dataset: &Dataset, data_type: &str) -> Self {
        Self {
            data_type: data_type.to_owned(),
            fill_value: json!(0),
            codecs: vec![json!({ "name": "bytes" })],
            chunk_shape: dataset.shape().to_vec(),
            chunks: Chunks::Unreadable,
        }
    }

    fn metadata(&self, dataset: &Dataset, attributes: &Map<String, Value>) -> Value {
        // Zarr has no chunks of length 0, but arrays of length 0.
        let chunk_shape: Vec<u64> = self.chunk_shape.iter().map(|len| (*len).max(1)).collect();
        json!({
            "zarr_format": 3,
            "node_type": "array",
            "shape": dataset.shape(),
            "data_type": self.data_type,
            "chunk_grid": { "name": "regular", "configuration": { "chunk_shape": chunk_shape } },
            "chunk_key_encoding": { "name": "default", "configuration": { "separator": "/" } },
            "fill_value": self.fill_value,
            "codecs": self.codecs,
            "attributes": attributes,
        })
    }
}

impl ArrayNode {
    /// The bytes of the chunk at a place in the grid; `None` if it is not stored.
    pub(crate) fn chunk(
        &self,
        file: &Hdf5File,
        place: &[u64],
    ) -> Result<Option<ChunkBytes<'_>>, Error> {
        match &self.chunks {
            Chunks::Compact(bytes) => {
                let is_first = place.iter().all(|index| *index == 0);
                Ok(is_first.then_some(ChunkBytes::Inline(bytes)))
            }
            Chunks::Contiguous { address, n_bytes, chunk_bytes } => {
                let first = place.first().copied().unwrap_or(0);
                let start = first.checked_mul(*chunk_bytes).filter(|start| start < n_bytes);
                Ok(start.map(|start| ChunkBytes::At {
                    address: address + start,
                    n_bytes: (n_bytes - start).min(*chunk_bytes),
                    padded: *chunk_bytes,
                }))
            }
            Chunks::Indexed { shape, address, indexing, n_bytes, found } => {
                let found = if let Some(found) = found.get() {
                    found
                } else {
                    let (dataset, indexing) = (&self.dataset.0, indexing.as_ref());
                    let read = chunks::read(file, dataset, shape, *address, indexing)?;
                    found.get_or_init(|| read)
                };
                let Some(chunk) = found.get(place) else { return Ok(None) };
                let StoredChunk { address, n_bytes: stored, skipped } = *chunk;
                let checksum = if self.has_checksum { filters::CHECKSUM_BYTES } else { 0 };
                let n_bytes = n_bytes.unwrap_or(stored.saturating_sub(checksum));
                if skipped == 0 {
                    return Ok(Some(ChunkBytes::At { address, n_bytes, padded: n_bytes }));
                }
                self.not_deflated(skipped, address, n_bytes).map(Some)
            }
            Chunks::Strings(found) => {
                let encoded = if let Some(encoded) = found.get() {
                    encoded
                } else {
                    let encoded = strings::encoded(&self.dataset.0.read_strings()?);
                    let too_long = || Error::InvalidData("a string is too long".into());
                    let encoded = encoded.ok_or_else(too_long)?;
                    found.get_or_init(|| encoded)
                };
                let place = usize::try_from(place.first().copied().unwrap_or(0)).ok();
                let chunk = place.and_then(|place| encoded.get(place));
                Ok(chunk.map(|bytes| ChunkBytes::Inline(bytes)))
            }
            Chunks::Unreadable => Ok(None),
        }
    }

    /// A chunk of which filters were skipped.
    fn not_deflated(
        &self,
        skipped: u32,
        address: u64,
        n_bytes: u64,
    ) -> Result<ChunkBytes<'static>, Error> {
        let last = self.filters.len().saturating_sub(1);
        let last_is_deflate = self.filters.last().is_some_and(filters::is_deflate);
        if last_is_deflate && last < 32 && skipped == 1 << last {
            return Ok(ChunkBytes::NotDeflated { address, n_bytes });
        }
        let what = format!("a chunk without the filters of the others (mask {skipped:#x})");
        Err(Error::UnsupportedFilter(what))
    }
}

/// The chunk shape and the chunks of a contiguous dataset.
fn contiguous(
    shape: &[u64],
    element_bytes: u64,
    address: u64,
    n_bytes: u64,
) -> Result<(Vec<u64>, Chunks), Error> {
    let mut chunk_shape = shape.to_vec();
    let row_bytes = product(element_bytes, shape.iter().skip(1).copied())?;
    if let Some(rows) = chunk_shape.first_mut() {
        *rows = (*rows).min(CONTIGUOUS_CHUNK_BYTES / row_bytes.max(1)).max(1);
    }
    let chunk_bytes = product(row_bytes, chunk_shape.first().copied())?;
    let needed = product(row_bytes, shape.first().copied())?;
    // Space that was never written has no address, and reads as the fill value.
    if address.checked_add(n_bytes).is_none() || n_bytes == 0 {
        return Ok((chunk_shape, Chunks::Unreadable));
    }
    if n_bytes < needed {
        let what = format!("it has {n_bytes} bytes, and needs {needed}");
        return Err(Error::InvalidData(what));
    }
    Ok((chunk_shape, Chunks::Contiguous { address, n_bytes: needed, chunk_bytes }))
}

fn product(first: u64, lens: impl IntoIterator<Item = u64>) -> Result<u64, Error> {
    let product = lens.into_iter().try_fold(first, u64::checked_mul);
    product.ok_or_else(|| Error::InvalidData("its size exceeds 64 bits".into()))
}

fn is_strings(datatype: &Datatype) -> bool {
    match datatype {
        Datatype::String { .. } => true,
        Datatype::VarLen { base, kind, .. } => {
            *kind == hdf5_reader::VarLenKind::String && base.is_vlen_string_base()
        }
        _ => false,
    }
}
