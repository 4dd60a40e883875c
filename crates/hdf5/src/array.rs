//! A dataset, as an array of Zarr.

use hdf5_reader::error::Error;
use hdf5_reader::io::Cursor;
use hdf5_reader::messages::dataspace::{DataspaceMessage, DataspaceType};
use hdf5_reader::messages::filter_pipeline::{self, FilterDescription};
use hdf5_reader::messages::{
    MSG_DATASPACE, MSG_DATATYPE, MSG_FILL_VALUE, MSG_FILL_VALUE_OLD, MSG_FILTER_PIPELINE,
    fill_value,
};
use serde_json::{Map, Value, json};

use crate::attributes::{n_elements, parse_dataspace};
use crate::chunks::{StoredChunk, product};
use crate::datatype::{Datatype, Element};
use crate::file::{File, Widths};
use crate::filters::{self, ChunkSize};
use crate::header::{Header, invalid};
use crate::layout::{Elements, Layout, Stored};
use crate::strings::{self, ReadStrings, Strings};
use crate::unreadable::Unreadable;

/// Most bytes of a chunk that is decoded here rather than by the reader of Zarr.
const MAX_DECODED_BYTES: u64 = 256 << 20;

/// A dataset.
#[derive(Debug)]
pub(crate) struct ArrayNode {
    /// Its `zarr.json`.
    pub(crate) metadata: Vec<u8>,
    layout: Layout,
    datatype: Datatype,
    filters: Vec<FilterDescription>,
    form: Form,
    /// Bytes of a chunk without filters.
    chunk_bytes: u64,
}

/// How a chunk of Zarr comes from a stored one.
#[derive(Debug)]
enum Form {
    /// It is the same.
    Same,
    /// The filters are undone, and the numbers converted.
    Numbers,
    /// The filters are undone, and the strings encoded.
    Strings(ReadStrings),
}

/// The bytes of one chunk.
#[derive(Debug)]
pub(crate) enum ChunkBytes<'a> {
    /// In memory.
    Inline(&'a [u8]),
    /// In the file, followed by zeros up to `padded` bytes.
    At { address: u64, n_bytes: u64, padded: u64 },
    /// Made from a stored chunk, by [`ArrayNode::made`]; their number, if it is known before.
    Made { stored: Stored<'a>, n_bytes: Option<u64> },
}

/// What a dataset's header says.
struct Described {
    datatype: Datatype,
    dataspace: DataspaceMessage,
    filters: Vec<FilterDescription>,
    fill: Option<Vec<u8>>,
}

impl Described {
    fn read(file: &File, header: &Header) -> Result<Self, Error> {
        let Widths { offsets, lengths } = file.widths();
        let needed = |kind, what| header.first(file, kind)?.ok_or_else(|| invalid(what));
        let dataspace = needed(MSG_DATASPACE, "it has no dataspace")?;
        let datatype = needed(MSG_DATATYPE, "it has no datatype")?;
        let filters = header.first(file, MSG_FILTER_PIPELINE)?.map(|bytes| {
            filter_pipeline::parse(&mut Cursor::new(&bytes), offsets, lengths, bytes.len())
        });
        let new = header.first(file, MSG_FILL_VALUE)?.map(|bytes| {
            fill_value::parse_new(&mut Cursor::new(&bytes), offsets, lengths, bytes.len())
        });
        let old = header.first(file, MSG_FILL_VALUE_OLD)?.map(|bytes| {
            fill_value::parse_old(&mut Cursor::new(&bytes), offsets, lengths, bytes.len())
        });
        let fills = [new.transpose()?, old.transpose()?];
        Ok(Self {
            datatype: Datatype::parse(&datatype)?,
            dataspace: parse_dataspace(file, &dataspace)?,
            filters: filters.transpose()?.map(|pipeline| pipeline.filters).unwrap_or_default(),
            fill: fills.into_iter().flatten().find_map(|fill| fill.value),
        })
    }

    /// Why it is not read whatever its layout, if so.
    fn unreadable(&self, file: &File) -> Option<Unreadable> {
        if self.dataspace.dataspace_type == DataspaceType::Null {
            return Some(Unreadable::new("null dataspace", "it has no elements, not even none"));
        }
        if let Element::Other(unreadable) = &self.datatype.element {
            return Some(unreadable.clone());
        }
        let n_strings = n_elements(&self.dataspace).unwrap_or(u64::MAX);
        if self.has_strings() && !strings::may_have(file.n_bytes(), n_strings, &self.datatype) {
            let what = format!(
                "it declares {n_strings} strings, more than a file of {} bytes may have",
                file.n_bytes()
            );
            return Some(Unreadable::new("shape", &what));
        }
        filters::unreadable(&self.filters)
    }

    fn has_strings(&self) -> bool {
        matches!(self.datatype.element, Element::Text | Element::FixedText(_))
    }

    fn elements(&self) -> Elements<'_> {
        Elements {
            shape: &self.dataspace.dims,
            most: self.dataspace.max_dims.as_deref(),
            n_bytes: self.datatype.n_bytes,
            are_strings: self.has_strings(),
            are_filtered: !self.filters.is_empty(),
        }
    }

    /// The name of the type, the codecs and the fill value in Zarr.
    fn in_zarr(&self, file: &File, codecs: Option<Vec<Value>>) -> Result<[Value; 3], Error> {
        if let Element::Number(number) = &self.datatype.element {
            let is_big_endian = number.is_plain() && number.is_big_endian();
            let endian = if is_big_endian { "big" } else { "little" };
            let mut all = vec![json!({ "name": "bytes", "configuration": { "endian": endian } })];
            all.extend(codecs.into_iter().flatten());
            let fill = self.fill.as_ref().and_then(|fill| number.value(fill));
            return Ok([json!(number.name), json!(all), fill.unwrap_or_else(|| number.zero())]);
        }
        let fill = self.fill.as_deref().unwrap_or_default();
        let fill =
            Strings::new(file).read(&self.datatype, fill)?.and_then(|all| all.into_iter().next());
        Ok([json!("string"), json!([{ "name": "vlen-utf8" }]), json!(fill.unwrap_or_default())])
    }
}

impl ArrayNode {
    /// Describes the dataset with this header; or says why it is not read, and its shape.
    pub(crate) fn read(
        file: &File,
        header: &Header,
        attributes: &Map<String, Value>,
    ) -> Result<Result<Self, (Unreadable, Vec<u64>)>, Error> {
        let described = Described::read(file, header)?;
        let shape = described.dataspace.dims.clone();
        if let Some(unreadable) = described.unreadable(file) {
            return Ok(Err((unreadable, shape)));
        }
        let (layout, chunk_shape) = match Layout::read(file, header, described.elements())? {
            Ok(found) => found,
            Err(unreadable) => return Ok(Err((unreadable, shape))),
        };
        let chunk_bytes = product(described.datatype.n_bytes as u64, chunk_shape.iter().copied())?;
        let (form, codecs) = described.form();
        if !matches!(form, Form::Same) && MAX_DECODED_BYTES < chunk_bytes {
            let what =
                format!("its chunks have {chunk_bytes} bytes each, {MAX_DECODED_BYTES} are read");
            return Ok(Err((Unreadable::new("chunk shape", &what), shape)));
        }
        let in_zarr = described.in_zarr(file, codecs)?;
        let metadata = metadata(&shape, &chunk_shape, in_zarr, attributes);
        let Described { datatype, filters, .. } = described;
        Ok(Ok(Self { metadata, layout, datatype, filters, form, chunk_bytes }))
    }

    /// The bytes of the chunk at a place in the grid; `None` if it is not stored.
    pub(crate) fn chunk(
        &self,
        file: &File,
        place: &[u64],
    ) -> Result<Option<ChunkBytes<'_>>, Error> {
        let Some(stored) = self.layout.stored(file, place)? else { return Ok(None) };
        let n_bytes = stored.n_bytes();
        if self.is_indexed() && filters::most_decoded(&self.filters, n_bytes) < self.chunk_bytes {
            let what = format!("a chunk of {} bytes is stored in {n_bytes}", self.chunk_bytes);
            return Err(Error::InvalidData(what));
        }
        if !matches!(self.form, Form::Same) {
            let n_bytes = self.converted_bytes();
            return Ok(Some(ChunkBytes::Made { stored, n_bytes }));
        }
        let StoredChunk { address, n_bytes, .. } = match stored {
            Stored::Inline(bytes) => return Ok(Some(ChunkBytes::Inline(bytes))),
            Stored::At(chunk) if chunk.skipped & self.mask() == 0 => chunk,
            stored @ Stored::At(_) => return Ok(Some(ChunkBytes::Made { stored, n_bytes: None })),
        };
        let padded = if self.is_indexed() { n_bytes } else { self.chunk_bytes };
        Ok(Some(ChunkBytes::At { address, n_bytes, padded }))
    }

    /// Whether its elements are strings.
    pub(crate) fn has_strings(&self) -> bool {
        matches!(self.form, Form::Strings(_))
    }

    fn is_indexed(&self) -> bool {
        matches!(self.layout, Layout::Indexed { .. })
    }

    /// A bit for each filter.
    fn mask(&self) -> u32 {
        u32::MAX.checked_shl(self.filters.len() as u32).map_or(u32::MAX, |above| !above)
    }

    /// Bytes of a chunk of converted numbers.
    fn converted_bytes(&self) -> Option<u64> {
        let Element::Number(number) = &self.datatype.element else { return None };
        Some(self.chunk_bytes / number.stored_bytes as u64 * number.n_bytes as u64)
    }

    /// Makes the chunk at a place from the stored bytes, of which some filters were skipped.
    pub(crate) fn made(
        &self,
        file: &File,
        place: &[u64],
        mut stored: Vec<u8>,
        skipped: u32,
    ) -> Result<Vec<u8>, Error> {
        let n_bytes = self.chunk_bytes as usize;
        let size = ChunkSize { element_bytes: self.datatype.n_bytes, n_bytes };
        if !self.is_indexed() {
            stored.resize(n_bytes, 0);
        }
        match &self.form {
            Form::Same => filters::with_all(&self.filters, stored, skipped, size),
            Form::Numbers => {
                let decoded = filters::decoded(&self.filters, stored, skipped, size)?;
                match &self.datatype.element {
                    Element::Number(number) if !number.is_plain() => Ok(number.convert(&decoded)),
                    _ => Ok(decoded),
                }
            }
            Form::Strings(read) => {
                let decoded = filters::decoded(&self.filters, stored, skipped, size)?;
                let strings =
                    Strings::new(file).read(&self.datatype, &decoded)?.unwrap_or_default();
                if let Element::Text = self.datatype.element {
                    let n_bytes = strings.iter().map(|text| text.len() as u64).sum();
                    read.count(file, place, n_bytes)?;
                }
                strings::encoded(&strings).ok_or_else(|| invalid("a string is too long"))
            }
        }
    }
}

impl Described {
    /// How chunks of Zarr come from stored ones, and the codecs that their filters are.
    fn form(&self) -> (Form, Option<Vec<Value>>) {
        if self.has_strings() {
            return (Form::Strings(ReadStrings::default()), None);
        }
        let is_plain = match &self.datatype.element {
            Element::Number(number) => number.is_plain(),
            _ => false,
        };
        match filters::codecs(&self.filters, self.datatype.n_bytes) {
            Some(codecs) if is_plain => (Form::Same, Some(codecs)),
            _ => (Form::Numbers, None),
        }
    }
}

/// The `zarr.json` of an array. `in_zarr` are the name of its type, its codecs and its fill value.
fn metadata(
    shape: &[u64],
    chunk_shape: &[u64],
    [data_type, codecs, fill_value]: [Value; 3],
    attributes: &Map<String, Value>,
) -> Vec<u8> {
    // Zarr has no chunks of length 0, but arrays of length 0.
    let chunk_shape: Vec<u64> = chunk_shape.iter().map(|len| (*len).max(1)).collect();
    let json = json!({
        "zarr_format": 3,
        "node_type": "array",
        "shape": shape,
        "data_type": data_type,
        "chunk_grid": { "name": "regular", "configuration": { "chunk_shape": chunk_shape } },
        "chunk_key_encoding": { "name": "default", "configuration": { "separator": "/" } },
        "fill_value": fill_value,
        "codecs": codecs,
        "attributes": attributes,
    });
    json.to_string().into_bytes()
}

/// The `zarr.json` of an object that is not read: an array of a type that no reader of Zarr knows.
pub(crate) fn unreadable_metadata(
    unreadable: &Unreadable,
    shape: &[u64],
    attributes: &Map<String, Value>,
) -> Vec<u8> {
    let mut attributes = attributes.clone();
    attributes.insert(crate::UNREADABLE.to_owned(), json!(unreadable.reason));
    let in_zarr = [json!(unreadable.data_type), json!([{ "name": "bytes" }]), json!(0)];
    metadata(shape, shape, in_zarr, &attributes)
}
