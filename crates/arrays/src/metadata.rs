//! The metadata of arrays as programs write it, in the form that zarrs takes.
//!
//! zarrs (0.23.14) takes what the specification says. Python writes numbers that JSON lacks,
//! members that are null, levels that mean "default", and names of codecs and types that zarrs does
//! not know. All of them are put into zarrs' form here, and Zarr v2 becomes v3.

use std::collections::BTreeSet;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use base64::alphabet;
use base64::engine::{DecodePaddingMode, Engine as _, GeneralPurpose, GeneralPurposeConfig};
use serde_json::{Map, Value, json};
use storage::Storage;
use zarrs::array::data_type::{FixedLengthUTF32DataType, StringDataType};
use zarrs::array::{Array, ArrayMetadata, ArrayMetadataV2, ArrayMetadataV3};
use zarrs::convert::{array_metadata_v2_to_v3, codec_metadata_v2_to_v3};
use zarrs::metadata::v2::{ArrayMetadataV2Order, MetadataV2, data_type_metadata_v2_to_endianness};
use zarrs::metadata::v3::MetadataV3;

use crate::decoder::panic_message;
use crate::error::{Cause, Error};
use crate::numcodecs;
use crate::store::{ROOT, Store};

/// An array whose metadata was read.
pub(crate) struct Opened {
    pub(crate) array: Array<Store>,
    pub(crate) version: Version,
    /// The form of elements that are texts.
    pub(crate) texts: Option<Texts>,
}

/// How texts are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Texts {
    /// With any length.
    AnyLength,
    /// As many code points for each, padded with zeros.
    CodePoints,
    /// As many bytes of UTF-8 for each, padded with zeros.
    Bytes,
}

/// The most bytes of a text of fixed length.
const MAX_TEXT_BYTES: usize = 1 << 20;

/// The version of Zarr that an array is stored in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    /// `.zarray` and `.zattrs`.
    V2 {
        /// Whether the metadata has a fill value.
        has_fill: bool,
    },
    /// `zarr.json`.
    V3,
}

/// The reason why an array was not opened.
#[derive(Debug)]
pub(crate) enum Unopened {
    /// There is no metadata.
    Missing,
    /// The metadata is that of a group.
    IsGroup,
    /// The metadata cannot be read, or is no JSON.
    Unread(Cause),
    /// The metadata is not supported.
    Unsupported(Cause),
}

impl From<Unopened> for Cause {
    fn from(unopened: Unopened) -> Self {
        match unopened {
            Unopened::Missing => {
                let text = "there is no zarr.json and no .zarray";
                io::Error::new(io::ErrorKind::NotFound, text).into()
            }
            Unopened::IsGroup => "it is a group, not an array".into(),
            Unopened::Unread(cause) | Unopened::Unsupported(cause) => cause,
        }
    }
}

impl Unopened {
    /// The error of the array at `path`.
    pub(crate) fn error(self, path: &str, storage: &dyn Storage) -> Error {
        Error::Open { array: path.to_owned(), place: storage.place(), source: self.into() }
    }
}

/// Parses the JSON of metadata. `NaN`, `Infinity` and `-Infinity`, which Python writes as bare
/// words, become the texts that Zarr has for them.
///
/// # Errors
/// If it is no JSON.
pub fn parse_metadata(bytes: &[u8]) -> serde_json::Result<Value> {
    serde_json::from_slice(bytes)
        .or_else(|error| serde_json::from_slice(&with_quoted_numbers(bytes)).map_err(|_| error))
}

/// The JSON with quotes around numbers that are bare words.
fn with_quoted_numbers(bytes: &[u8]) -> Vec<u8> {
    const WORDS: [&[u8]; 3] = [b"NaN", b"Infinity", b"-Infinity"];
    let mut out = Vec::with_capacity(bytes.len() + 16);
    let (mut rest, mut in_text) = (bytes, false);
    while let [first, after @ ..] = rest {
        let word = WORDS.into_iter().find(|word| !in_text && rest.starts_with(word));
        if let Some(word) = word {
            out.extend([b"\"", word, b"\""].concat());
            rest = &rest[word.len()..];
            continue;
        }
        out.push(*first);
        rest = after;
        match (first, after) {
            (b'"', _) => in_text = !in_text,
            (b'\\', [escaped, after @ ..]) => {
                out.push(*escaped);
                rest = after;
            }
            _ => {}
        }
    }
    out
}

/// The path of a file of the array or group at `path`.
fn file_of(path: &str) -> impl Fn(&str) -> String {
    move |file| if path.is_empty() { file.to_owned() } else { format!("{path}/{file}") }
}

/// Opens the array at `path`.
pub(crate) fn open(storage: &Arc<dyn Storage>, path: &str) -> Result<Opened, Unopened> {
    let [v3, v2, attributes] = ["zarr.json", ".zarray", ".zattrs"].map(file_of(path));
    let (metadata, attributes) = match objects(&**storage, &[&v3])?.pop().flatten() {
        Some(v3) => (v3, Map::new()),
        None => match &mut objects(&**storage, &[&v2, &attributes])?[..] {
            [Some(v2), attributes] => (std::mem::take(v2), attributes.take().unwrap_or_default()),
            _ => return Err(Unopened::Missing),
        },
    };
    if metadata.get("node_type").and_then(Value::as_str) == Some("group") {
        return Err(Unopened::IsGroup);
    }
    with_metadata(storage, path, (metadata, attributes)).map_err(Unopened::Unsupported)
}

/// The attributes of the group at `path`; none if there is no group.
pub(crate) fn group_attributes(
    storage: &dyn Storage,
    path: &str,
) -> Result<Map<String, Value>, Unopened> {
    let [v3, v2] = ["zarr.json", ".zattrs"].map(file_of(path));
    let mut found = objects(storage, &[&v3, &v2])?.into_iter();
    let (v3, v2) = (found.next().flatten(), found.next().flatten());
    let of_v3 = v3.map(|mut metadata| metadata.remove("attributes"));
    Ok(match of_v3 {
        Some(Some(Value::Object(attributes))) => attributes,
        Some(_) => Map::new(),
        None => v2.unwrap_or_default(),
    })
}

/// The names of arrays and groups at the root by its consolidated metadata; `None` if it has none.
pub(crate) fn consolidated_names(
    storage: &dyn Storage,
) -> Result<Option<BTreeSet<String>>, Unopened> {
    let [v3, v2] = &objects(storage, &["zarr.json", ".zmetadata"])?[..] else { return Ok(None) };
    let of_v3 = v3.as_ref().and_then(|of| of.get("consolidated_metadata")?.get("metadata"));
    let nodes = of_v3.or_else(|| v2.as_ref()?.get("metadata")).and_then(Value::as_object);
    let names = |nodes: &Map<String, Value>| {
        let first =
            |path: &String| path.split_once('/').map_or(path.as_str(), |(name, _)| name).to_owned();
        nodes.keys().map(first).filter(|name| !name.starts_with('.')).collect()
    };
    Ok(nodes.map(names))
}

/// The JSON objects in files; `None` for files that do not exist.
fn objects(
    storage: &dyn Storage,
    files: &[&str],
) -> Result<Vec<Option<Map<String, Value>>>, Unopened> {
    let read = storage.read_files(files).into_iter().zip(files);
    let parsed = read.map(|(bytes, file)| {
        let damaged = |why: String| Unopened::Unread(format!("{file}: {why}").into());
        match bytes {
            Ok(bytes) => match parse_metadata(&bytes) {
                Ok(Value::Object(object)) => Ok(Some(object)),
                Ok(_) => Err(damaged("it is not a JSON object".to_owned())),
                Err(error) => Err(damaged(error.to_string())),
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Unopened::Unread(error.into())),
        }
    });
    parsed.collect()
}

/// The array with this metadata. `attributes` are those of Zarr v2, which has them in another file.
pub(crate) fn with_metadata(
    storage: &Arc<dyn Storage>,
    path: &str,
    (mut metadata, attributes): (Map<String, Value>, Map<String, Value>),
) -> Result<Opened, Cause> {
    numcodecs::register();
    metadata.retain(|name, member| !(member.is_null() && may_be_null(name)));
    let is_bytes = adapt_bytes(&mut metadata)?;
    let (version, metadata) = if metadata.get("zarr_format") == Some(&json!(2)) {
        let has_fill = metadata.get("fill_value").is_some_and(|fill| !fill.is_null());
        (Version::V2 { has_fill }, of_v2(metadata, attributes)?)
    } else {
        (Version::V3, of_v3(metadata)?)
    };
    let metadata = ArrayMetadata::V3(metadata);
    // zarrs multiplies lengths that it does not compare with anything.
    let array = catch_unwind(AssertUnwindSafe(|| {
        Array::new_with_metadata(Store::of_array(storage, path), ROOT, metadata)
    }));
    let array = array.map_err(|panic| panic_message(panic.as_ref()))??;
    let texts = if is_bytes {
        Some(Texts::Bytes)
    } else if array.data_type().is::<StringDataType>() {
        Some(Texts::AnyLength)
    } else {
        let is_utf32 = array.data_type().is::<FixedLengthUTF32DataType>();
        is_utf32.then_some(Texts::CodePoints)
    };
    Ok(Opened { array, version, texts })
}

/// Whether a member that is null means the same as one that is left out.
fn may_be_null(name: &str) -> bool {
    ["attributes", "storage_transformers", "dimension_names", "dimension_separator"].contains(&name)
}

/// Makes raw bytes of texts of fixed length in bytes, `|S5` of Zarr v2 and `null_terminated_bytes`
/// of v3, which zarrs does not know. Returns whether the array has them.
fn adapt_bytes(metadata: &mut Map<String, Value>) -> Result<bool, Cause> {
    let of_v2 = metadata.get("dtype").and_then(Value::as_str).and_then(|dtype| {
        dtype.trim_start_matches(['|', '<', '>']).strip_prefix('S')?.parse::<u64>().ok()
    });
    let of_v3 = metadata.get("data_type").and_then(|of| {
        let is_it = of.get("name")?.as_str()? == "null_terminated_bytes";
        of.get("configuration")?.get("length_bytes")?.as_u64().filter(|_| is_it)
    });
    let Some(n_bytes) = of_v2.or(of_v3) else { return Ok(false) };
    let fits = usize::try_from(n_bytes).ok().filter(|n_bytes| *n_bytes <= MAX_TEXT_BYTES);
    let n_bytes = fits.ok_or_else(|| format!("its texts have {n_bytes} bytes each"))?;
    // Both keep it in base64.
    let fill = metadata.get("fill_value").and_then(Value::as_str).unwrap_or_default();
    let mut fill = base64(fill).ok_or_else(|| format!("its fill value is {fill:?}"))?;
    fill.resize(n_bytes, 0);
    metadata.insert("fill_value".to_owned(), fill.into());
    if of_v2.is_some() {
        metadata.insert("dtype".to_owned(), format!("|V{n_bytes}").into());
    } else {
        metadata.insert("data_type".to_owned(), format!("r{}", n_bytes * 8).into());
    }
    Ok(true)
}

fn of_v3(mut metadata: Map<String, Value>) -> Result<ArrayMetadataV3, Cause> {
    if let Some(codecs) = metadata.get_mut("codecs") {
        adapt_codecs(codecs);
    }
    Ok(serde_json::from_value(Value::Object(metadata))?)
}

/// Puts the codecs of Zarr v3 into zarrs' form, also those within shards.
fn adapt_codecs(codecs: &mut Value) {
    let Some(codecs) = codecs.as_array_mut() else { return };
    codecs.retain(|codec| !decodes_to_itself(text(codec, "name")));
    for codec in codecs {
        let name = text(codec, "name").to_owned();
        match name.strip_prefix(numcodecs::PREFIX) {
            Some("blosc") => *codec = blosc(codec.get("configuration")),
            Some(short @ ("gzip" | "zstd" | "crc32c")) => codec["name"] = short.into(),
            _ => {}
        }
        let Some(configuration) = codec.get_mut("configuration") else { continue };
        adapt_level(&name, configuration);
        match name.as_str() {
            // zarrs wants to know whether there are checksums; frames of zstd say it themselves.
            "numcodecs.zstd" => {
                if let Some(configuration) = configuration.as_object_mut() {
                    configuration.entry("checksum").or_insert(json!(false));
                }
            }
            "numcodecs.crc32c" if text(configuration, "location") == "end" => {
                *configuration = json!({});
            }
            _ => {}
        }
        for within in ["codecs", "index_codecs"] {
            if let Some(codecs) = configuration.get_mut(within) {
                adapt_codecs(codecs);
            }
        }
    }
}

/// Replaces the level -1 of gzip and zlib, "the default", which decoding does not need.
fn adapt_level(codec: &str, configuration: &mut Value) {
    let is_deflate = ["gzip", "zlib"].contains(&codec.trim_start_matches(numcodecs::PREFIX));
    if let Some(level) = configuration.get_mut("level").filter(|level| **level == json!(-1))
        && is_deflate
    {
        *level = json!(6);
    }
}

/// Zarr v2 as v3.
fn of_v2(
    mut metadata: Map<String, Value>,
    attributes: Map<String, Value>,
) -> Result<ArrayMetadataV3, Cause> {
    // Python writes chunks of length 0 for arrays of length 0; no chunk of them is ever read.
    for len in metadata.get_mut("chunks").and_then(Value::as_array_mut).into_iter().flatten() {
        if *len == json!(0) {
            *len = json!(1);
        }
    }
    let is_utf32 = metadata
        .get("dtype")
        .and_then(Value::as_str)
        .is_some_and(|dtype| dtype.starts_with("<U") || dtype.starts_with(">U"));
    if let Some(fill) = metadata.get_mut("fill_value").filter(|_| is_utf32)
        && (fill.is_null() || *fill == json!(0))
    {
        *fill = json!("");
    }
    let codecs = take_codecs(&mut metadata);
    let mut plain: ArrayMetadataV2 = serde_json::from_value(Value::Object(metadata))?;
    plain.attributes = attributes;
    let mut v3 = array_metadata_v2_to_v3(&plain)?;
    let endianness = data_type_metadata_v2_to_endianness(&plain.dtype).ok().flatten();
    for mut codec in codecs {
        let id = text(&codec, "id").to_owned();
        if numcodecs::decodes(&id) {
            check_byte_order(&codec, &plain.dtype.to_string())?;
            let configuration = codec.as_object_mut().map(std::mem::take).unwrap_or_default();
            let name = format!("{}{id}", numcodecs::PREFIX);
            v3.codecs.push(MetadataV3::new_with_configuration(name, configuration));
            continue;
        }
        if id == "blosc" {
            v3.codecs.push(serde_json::from_value(blosc(Some(&codec)))?);
            continue;
        }
        let codec: MetadataV2 = serde_json::from_value(codec)?;
        // One alone follows the codec `bytes`, which the array has already. zarrs forgets the
        // compression of strings if it converts both together.
        let (order, bytes) = (ArrayMetadataV2Order::C, &v3.data_type);
        let alone: Vec<MetadataV3> =
            codec_metadata_v2_to_v3(order, 1, bytes, endianness, &None, &Some(codec))?;
        v3.codecs.extend(alone.into_iter().skip(1));
    }
    Ok(v3)
}

/// Takes the compressor and all filters out of the metadata of Zarr v2, in the order of encoding.
/// Filters that make bytes of strings stay.
fn take_codecs(metadata: &mut Map<String, Value>) -> Vec<Value> {
    let filters = metadata.insert("filters".to_owned(), Value::Null).unwrap_or_default();
    let filters = filters.as_array().cloned().unwrap_or_default();
    let (of_strings, mut codecs): (Vec<Value>, Vec<Value>) =
        filters.into_iter().partition(|filter| text(filter, "id").starts_with("vlen-"));
    if !of_strings.is_empty() {
        metadata.insert("filters".to_owned(), Value::Array(of_strings));
    }
    let compressor = metadata.insert("compressor".to_owned(), Value::Null);
    codecs.extend(compressor.filter(|compressor| !compressor.is_null()));
    codecs.retain(|codec| !decodes_to_itself(text(codec, "id")));
    for codec in &mut codecs {
        let id = text(codec, "id").to_owned();
        adapt_level(&id, codec);
    }
    codecs
}

/// A text member; empty if there is none.
fn text<'a>(object: &'a Value, name: &str) -> &'a str {
    object.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// Whether a codec changes numbers when it encodes, and nothing when it decodes.
fn decodes_to_itself(codec: &str) -> bool {
    codec.rsplit(['.', '/']).next() == Some("bitround")
}

/// The codec Blosc of Zarr v3 for what numcodecs wrote. Its buffers say how they are shuffled.
fn blosc(configuration: Option<&Value>) -> Value {
    let compressor = configuration.and_then(|of| of.get("cname")).cloned();
    json!({"name": "blosc", "configuration": {
        "cname": compressor.unwrap_or_else(|| "lz4".into()),
        "clevel": 5,
        "shuffle": "noshuffle",
        "blocksize": 0,
    }})
}

/// Fails if a codec has elements of another byte order than the array: zarrs knows one of each.
fn check_byte_order(codec: &Value, dtype: &str) -> Result<(), Cause> {
    let order = |name: &str| name.chars().next().filter(|first| ['<', '>'].contains(first));
    for of_codec in [text(codec, "dtype"), text(codec, "astype")] {
        if let (Some(one), Some(other)) = (order(of_codec), order(dtype))
            && one != other
        {
            let id = text(codec, "id");
            return Err(format!("its filter {id} has elements {of_codec}, it has {dtype}").into());
        }
    }
    Ok(())
}

/// Decodes base64 as xarray and zarr-python write it, also without its padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The bytes of a text in base64.
pub(crate) fn base64(text: &str) -> Option<Vec<u8>> {
    BASE64.decode(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bare_numbers_of_python_are_read() {
        let text = br#"{"NaN": NaN, "a": [-Infinity, Infinity], "b": "NaN \" NaN", "c": -1}"#;
        let found = parse_metadata(text).unwrap();
        let expected = json!({
            "NaN": "NaN", "a": ["-Infinity", "Infinity"], "b": "NaN \" NaN", "c": -1
        });
        assert_eq!(found, expected);
        for damaged in ["{", "{\"a\": Nan}", "{\"a\": NaNNaN}", "\"NaN"] {
            let error = parse_metadata(damaged.as_bytes()).unwrap_err();
            let strict = serde_json::from_str::<Value>(damaged).unwrap_err();
            assert_eq!(error.to_string(), strict.to_string());
        }
    }

    #[test]
    fn base64_is_decoded() {
        let fill = base64("AAAAAICHw8A=").unwrap();
        assert_eq!(f64::from_le_bytes(fill.try_into().unwrap()), -9999.0);
        assert_eq!(base64("Zm9vYg").unwrap(), b"foob");
        assert_eq!(base64("-999"), None);
    }
}
