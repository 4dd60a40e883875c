//! Metadata of arrays and of their group, in both versions of Zarr.
//!
//! Both name the dimensions where xarray looks for them: version 2 in the attribute
//! `_ARRAY_DIMENSIONS`, version 3 in its own field. In version 2, xarray takes the fill value as a
//! mark of missing values, so there is none; version 3 must have one, and xarray ignores it.

use serde_json::{Map, Value, json};

use super::layout::{Codec, StoredElement, ZarrVersion};

/// A type of elements, and its name in each version.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ElementType {
    v2: &'static str,
    v3: &'static str,
    pub(crate) n_bytes: u64,
}

pub(crate) const F64: ElementType = ElementType { v2: "<f8", v3: "float64", n_bytes: 8 };
pub(crate) const I64: ElementType = ElementType { v2: "<i8", v3: "int64", n_bytes: 8 };
/// Strings of any length.
pub(crate) const STRING: ElementType = ElementType { v2: "|O", v3: "string", n_bytes: 1 };

impl ElementType {
    /// The type of the values of inputs and targets.
    pub(crate) fn for_element(element: StoredElement) -> Self {
        match element {
            StoredElement::F32 => Self { v2: "<f4", v3: "float32", n_bytes: 4 },
            StoredElement::F16 => Self { v2: "<f2", v3: "float16", n_bytes: 2 },
            StoredElement::I16 => Self { v2: "<i2", v3: "int16", n_bytes: 2 },
        }
    }

    fn zero(self) -> Value {
        match self.v3 {
            "string" => json!(""),
            name if name.starts_with("float") => json!(0.0),
            _ => json!(0),
        }
    }

    fn is_string(self) -> bool {
        self.v3 == STRING.v3
    }
}

/// An array: everything that its metadata contains.
#[derive(Debug)]
pub(crate) struct Variable {
    pub(crate) name: &'static str,
    pub(crate) dimensions: Vec<&'static str>,
    pub(crate) shape: Vec<u64>,
    pub(crate) chunk: Vec<u64>,
    /// The shape of a shard, if chunks are stored in shards.
    pub(crate) shard: Option<Vec<u64>>,
    pub(crate) element: ElementType,
    pub(crate) codec: Codec,
    pub(crate) attributes: Map<String, Value>,
}

impl Variable {
    /// The array's metadata: `.zarray` of version 2, `zarr.json` of version 3.
    pub(crate) fn metadata(&self, zarr: ZarrVersion) -> Value {
        match zarr {
            ZarrVersion::V2 => json!({
                "zarr_format": 2,
                "shape": self.shape,
                "chunks": self.chunk,
                "dtype": self.element.v2,
                "compressor": self.compressor(),
                "fill_value": null,
                "order": "C",
                "filters": self.element.is_string().then(|| json!([{ "id": "vlen-utf8" }])),
                "dimension_separator": ".",
            }),
            ZarrVersion::V3 => json!({
                "zarr_format": 3,
                "node_type": "array",
                "shape": self.shape,
                "data_type": self.element.v3,
                "chunk_grid": {
                    "name": "regular",
                    "configuration": { "chunk_shape": self.file_shape() },
                },
                "chunk_key_encoding": { "name": "default", "configuration": { "separator": "/" } },
                "fill_value": self.element.zero(),
                "codecs": self.codecs(),
                "attributes": self.attributes,
                "dimension_names": self.dimensions,
            }),
        }
    }

    /// The attributes in version 2, which has a file for them.
    pub(crate) fn v2_attributes(&self) -> Value {
        let mut attributes = self.attributes.clone();
        attributes.insert("_ARRAY_DIMENSIONS".to_owned(), json!(self.dimensions));
        Value::Object(attributes)
    }

    /// The shape of what a file contains: a shard or a chunk.
    pub(crate) fn file_shape(&self) -> &[u64] {
        self.shard.as_ref().unwrap_or(&self.chunk)
    }

    fn compressor(&self) -> Value {
        match self.codec {
            Codec::None => Value::Null,
            Codec::Zstd(level) => json!({ "id": "zstd", "level": level }),
            Codec::Gzip(level) => json!({ "id": "gzip", "level": level }),
            Codec::Blosc(level) => json!({
                "id": "blosc", "cname": "lz4", "clevel": level, "shuffle": 1, "blocksize": 0,
            }),
        }
    }

    fn codecs(&self) -> Value {
        let to_bytes = if self.element.is_string() { strings() } else { little_endian() };
        let codecs = chunk_codecs(to_bytes, self.codec, self.element.n_bytes);
        if self.shard.is_none() { Value::Array(codecs) } else { in_shards(&self.chunk, &codecs) }
    }
}

/// The codec of numbers.
pub(crate) fn little_endian() -> Value {
    json!({ "name": "bytes", "configuration": { "endian": "little" } })
}

/// The codec of strings of any length.
pub(crate) fn strings() -> Value {
    json!({ "name": "vlen-utf8", "configuration": {} })
}

/// The codecs of a chunk in version 3: `to_bytes`, then the compression of elements of
/// `element_bytes`.
pub(crate) fn chunk_codecs(to_bytes: Value, codec: Codec, element_bytes: u64) -> Vec<Value> {
    let compression = match codec {
        Codec::None => None,
        Codec::Zstd(level) => Some(json!({
            "name": "zstd", "configuration": { "level": level, "checksum": false },
        })),
        Codec::Gzip(level) => Some(json!({
            "name": "gzip", "configuration": { "level": level },
        })),
        Codec::Blosc(level) => Some(json!({
            "name": "blosc",
            "configuration": {
                "cname": "lz4",
                "clevel": level,
                "shuffle": "shuffle",
                "typesize": element_bytes,
                "blocksize": 0,
            },
        })),
    };
    std::iter::once(to_bytes).chain(compression).collect()
}

/// The codecs of the index of a shard.
pub(crate) fn index_codecs() -> [Value; 2] {
    [little_endian(), json!({ "name": "crc32c" })]
}

/// The codecs of shards whose chunks have a shape and codecs.
pub(crate) fn in_shards(chunk: &[u64], codecs: &[Value]) -> Value {
    json!([{
        "name": "sharding_indexed",
        "configuration": {
            "chunk_shape": chunk,
            "codecs": codecs,
            "index_codecs": index_codecs(),
            "index_location": "end",
        },
    }])
}

/// The files of metadata of a group with these arrays: their names and contents.
pub(crate) fn files(
    zarr: ZarrVersion,
    attributes: Map<String, Value>,
    variables: &[Variable],
) -> Vec<(String, Value)> {
    let attributes = Value::Object(attributes);
    match zarr {
        ZarrVersion::V2 => {
            let mut files = vec![
                (".zgroup".to_owned(), json!({ "zarr_format": 2 })),
                (".zattrs".to_owned(), attributes),
            ];
            for variable in variables {
                files.push((format!("{}/.zarray", variable.name), variable.metadata(zarr)));
                files.push((format!("{}/.zattrs", variable.name), variable.v2_attributes()));
            }
            let all: Map<String, Value> = files.iter().cloned().collect();
            let consolidated = json!({ "zarr_consolidated_format": 1, "metadata": all });
            files.push((".zmetadata".to_owned(), consolidated));
            files
        }
        ZarrVersion::V3 => {
            let group = json!({
                "zarr_format": 3, "node_type": "group", "attributes": attributes,
            });
            let arrays = variables
                .iter()
                .map(|variable| (format!("{}/zarr.json", variable.name), variable.metadata(zarr)));
            std::iter::once(("zarr.json".to_owned(), group)).chain(arrays).collect()
        }
    }
}
