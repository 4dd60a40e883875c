//! A new array: its metadata, and how it is copied.

use arrays::{ElementType, Indices};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use half::f16;
use serde_json::{Map, Value, json};

use super::axis::Axis;
use super::cast::{Cast, Overflow};
use super::plan::{ElementBytes, Plan};
use super::source::{SourceArray, number};
use super::spec::{ArrayPlan, RelayoutSpec, StoredAs};
use crate::Error;
use crate::generate::{chunk_codecs, in_shards, little_endian, strings};

/// Arrays with one dimension become chunks of at most this many elements.
const LIST_CHUNK: u64 = 1 << 20;

/// An array, in both layouts.
#[derive(Debug)]
pub(crate) struct Variable {
    pub(crate) source: SourceArray,
    pub(crate) plan: Plan,
    memory_for_fewest: Option<u64>,
    /// `None` if numbers keep their type.
    pub(crate) cast: Option<Cast>,
    /// Bytes of an element of the target; 0 for strings.
    pub(crate) element_bytes: usize,
    pub(crate) has_shards: bool,
    pub(crate) data_type: Value,
    /// The fill value in Zarr's form, and its bytes.
    pub(crate) fill: (Value, Vec<u8>),
    pub(crate) codecs: Vec<Value>,
    attributes: Map<String, Value>,
}

impl Variable {
    /// Lays out an array as `spec` says.
    pub(crate) fn new(source: SourceArray, spec: &RelayoutSpec) -> Result<Self, Error> {
        let array = &source.array;
        let cast = cast(&source, spec)?;
        let is_text = array.element_bytes().is_none();
        let n_source = array.element_bytes().unwrap_or(0);
        let element_bytes = cast.as_ref().map_or(n_source, |cast| cast.to.n_bytes());
        // Strings of any length keep their chunks: a chunk of them is copied as it is.
        let (axes, has_shards) =
            if is_text { (text_axes(&source)?, false) } else { axes(&source, spec)? };
        let size = |n: usize| (n as u64).max(1);
        let element = ElementBytes { source: size(n_source), target: size(element_bytes) };
        let plan = Plan::new(axes.clone(), element, spec.memory_bytes).map_err(|least| {
            Error::settings(format!(
                "copying {} takes at least {least} bytes of memory: set --memory to that or more, \
                 or choose smaller chunks",
                source.name
            ))
        })?;
        // None decodes fewer chunks than are needed.
        let is_fewest = plan.n_decoded <= plan.n_source_chunks;
        let fewest = if is_fewest { None } else { Plan::new(axes, element, u64::MAX).ok() };
        let memory_for_fewest =
            fewest.filter(|fewest| fewest.n_decoded < plan.n_decoded).map(|of| of.region_bytes);
        let (data_type, fill) = match &cast {
            Some(cast) => (json!(cast.to.zarr_name()), cast_fill(&source, cast)?),
            None if array.is_fixed_bytes() => {
                let data_type = json!({
                    "name": "null_terminated_bytes",
                    "configuration": { "length_bytes": n_source },
                });
                let fill = array.fill_bytes();
                let len = fill.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
                (data_type, (json!(STANDARD.encode(&fill[..len])), fill.to_vec()))
            }
            None => (array.data_type(), (array.fill_value(), array.fill_bytes().to_vec())),
        };
        let to_bytes = match element_bytes {
            0 => strings(),
            1 => json!({ "name": "bytes" }),
            _ if array.is_fixed_bytes() => json!({ "name": "bytes" }),
            _ => little_endian(),
        };
        // A shuffle of bytes takes elements of at most 255.
        let shuffled = if array.element().is_some() { element_bytes.min(255) } else { 1 };
        let codecs = chunk_codecs(to_bytes, spec.codec, shuffled as u64);
        let attributes = attributes(&source, cast.as_ref());
        Ok(Self {
            source,
            plan,
            memory_for_fewest,
            cast,
            element_bytes,
            has_shards,
            data_type,
            fill,
            codecs,
            attributes,
        })
    }

    /// The type of the elements for the codecs: zarrs does not know texts of a fixed number of
    /// bytes.
    pub(crate) fn encoded_type(&self) -> Value {
        if self.source.array.is_fixed_bytes() {
            json!(format!("r{}", self.element_bytes * 8))
        } else {
            self.data_type.clone()
        }
    }

    fn lens(&self, of: impl Fn(&Axis) -> u64) -> Vec<u64> {
        self.plan.axes.iter().map(of).collect()
    }

    /// The shape of a chunk.
    pub(crate) fn chunk(&self) -> Vec<u64> {
        self.lens(|axis| axis.chunk)
    }

    /// The content of `zarr.json`.
    pub(crate) fn metadata(&self) -> Value {
        let codecs = if self.has_shards {
            in_shards(&self.chunk(), &self.codecs)
        } else {
            json!(self.codecs)
        };
        let mut metadata = json!({
            "zarr_format": 3,
            "node_type": "array",
            "shape": self.lens(Axis::len),
            "data_type": self.data_type,
            "chunk_grid": {
                "name": "regular",
                "configuration": { "chunk_shape": self.lens(|axis| axis.file) },
            },
            "chunk_key_encoding": { "name": "default", "configuration": { "separator": "/" } },
            "fill_value": self.fill.0,
            "codecs": codecs,
            "attributes": self.attributes,
        });
        if self.source.dimensions.iter().any(|name| !name.is_empty()) {
            let name = |name: &String| if name.is_empty() { Value::Null } else { json!(name) };
            metadata["dimension_names"] = self.source.dimensions.iter().map(name).collect();
        } else if self.source.dimensions.is_empty() {
            metadata["dimension_names"] = json!([]);
        }
        metadata
    }

    /// How it is copied by as many threads.
    pub(crate) fn described(&self, n_threads: usize) -> ArrayPlan {
        ArrayPlan {
            name: self.source.name.clone(),
            dimensions: self.source.dimensions.clone(),
            shape: self.lens(Axis::len),
            source_chunk: self.lens(|axis| axis.source_chunk),
            chunk: self.chunk(),
            shard: self.has_shards.then(|| self.lens(|axis| axis.file)),
            cast: self.cast.as_ref().map(|cast| (cast.from, cast.to)),
            n_decoded: self.plan.n_decoded,
            n_source_chunks: self.plan.n_source_chunks,
            memory_for_fewest: self.memory_for_fewest,
            n_threads,
        }
    }

    /// Bytes of all values in the target.
    pub(crate) fn n_bytes(&self) -> u64 {
        self.plan.axes.iter().map(Axis::len).product::<u64>() * self.element_bytes as u64
    }
}

/// The dimensions of an array, and whether it has shards.
fn axes(source: &SourceArray, spec: &RelayoutSpec) -> Result<(Vec<Axis>, bool), Error> {
    let SourceArray { name, array, dimensions, selected, .. } = source;
    let of = |pairs: &[(String, super::spec::Length)], dimension: &str, len| {
        let found = pairs.iter().find(|(name, _)| name == dimension && !name.is_empty());
        found.map(|(_, length)| length.of(len))
    };
    let is_list = selected.len() < 2;
    let mut has_shards = false;
    let mut axes = Vec::new();
    for ((dimension, selected), source_chunk) in
        dimensions.iter().zip(selected).zip(array.chunk_shape())
    {
        let len = selected.len();
        let most = len.max(1);
        let wanted = of(&spec.chunks, dimension, len);
        let chunk =
            if is_list { most.min(LIST_CHUNK) } else { wanted.unwrap_or(*source_chunk).min(most) };
        let mut file = chunk;
        if let Some(shard) = of(&spec.shards, dimension, len).filter(|_| !is_list) {
            has_shards = true;
            // Chunks and shards are cut to the array's length, so both are compared as typed.
            let whole = shard.is_multiple_of(wanted.unwrap_or(chunk)) || most <= shard;
            if !whole {
                return Err(Error::settings(format!(
                    "a shard of {shard} along {dimension} of {name} does not consist of whole \
                     chunks of {chunk}; choose a multiple"
                )));
            }
            file = shard.min(most).next_multiple_of(chunk);
        }
        axes.push(Axis { selected: selected.clone(), source_chunk: *source_chunk, chunk, file });
    }
    Ok((axes, has_shards))
}

/// The dimensions of an array of strings, whose chunks are copied as they are.
fn text_axes(source: &SourceArray) -> Result<Vec<Axis>, Error> {
    let mut axes = Vec::new();
    for ((selected, len), chunk) in
        source.selected.iter().zip(source.array.shape()).zip(source.array.chunk_shape())
    {
        let is_whole = *selected == Indices::Range(0..*len);
        if !is_whole && source.selected.len() != 1 {
            return Err(Error::settings(format!(
                "a part of {}, which has strings in several dimensions, cannot be copied: leave it \
                 out with --variables",
                source.name
            )));
        }
        let chunk = if is_whole { *chunk } else { selected.len().max(1) };
        let selected = selected.clone();
        axes.push(Axis { selected, source_chunk: chunk, chunk, file: chunk });
    }
    Ok(axes)
}

/// The cast of an array's numbers that `spec` wants. Coordinates, integers and packed numbers keep
/// their type.
fn cast(source: &SourceArray, spec: &RelayoutSpec) -> Result<Option<Cast>, Error> {
    let SourceArray { name, array, .. } = source;
    let by_name = spec.dtype.iter().find(|(of, _)| of.as_ref() == Some(name));
    let of_all = spec.dtype.iter().find(|(of, _)| of.is_none());
    let is_named = by_name.is_some();
    let Some((_, StoredAs::Element(to))) = by_name.or(of_all) else { return Ok(None) };
    if !is_named && (source.belongs_to_others || source.dimensions.len() < 2) {
        return Ok(None);
    }
    let Some(from) = array.element().filter(|from| Cast::is_possible(*from, *to)) else {
        return Ok(None);
    };
    let meaning = array.meaning().map_err(|error| {
        let cause = std::error::Error::source(error).map(ToString::to_string).unwrap_or_default();
        Error::settings(format!("--dtype: {error}: {cause}"))
    })?;
    let missing = meaning.missing.clone();
    Ok((!meaning.is_packed).then_some(Cast { from, to: *to, missing }))
}

/// The fill value in another type.
fn cast_fill(source: &SourceArray, cast: &Cast) -> Result<(Value, Vec<u8>), Error> {
    let mut bytes = vec![0; cast.to.n_bytes()];
    cast.run(source.array.fill_bytes(), &mut bytes)
        .map_err(|overflow| overflow_error(&source.name, cast.to, "its fill value", overflow))?;
    let value = number(cast.to, &bytes);
    let text = match value {
        _ if value.is_nan() => json!("NaN"),
        _ if value == f64::INFINITY => json!("Infinity"),
        _ if value == f64::NEG_INFINITY => json!("-Infinity"),
        _ => json!(value),
    };
    // All NaN are the one that Zarr's form stands for.
    if value.is_nan() {
        let one = if cast.to == ElementType::F16 {
            f16::NAN.to_ne_bytes().to_vec()
        } else {
            f32::NAN.to_ne_bytes().to_vec()
        };
        return Ok((text, one));
    }
    Ok((text, bytes))
}

/// The error of a number that a smaller type cannot hold.
pub(crate) fn overflow_error(
    name: &str,
    to: ElementType,
    place: &str,
    Overflow(value): Overflow,
) -> Error {
    let most = if to == ElementType::F16 { f64::from(f16::MAX) } else { f64::from(f32::MAX) };
    Error::settings(format!(
        "{name}: {place} is {value}, and {to} holds numbers up to {most:?}: keep its type with \
         --dtype {to},{name}=source"
    ))
}

/// The attributes, such that xarray reads the same from Zarr v3 as it does from the source.
fn attributes(source: &SourceArray, cast: Option<&Cast>) -> Map<String, Value> {
    const FILL: &str = "_FillValue";
    let array = &source.array;
    let mut attributes = array.attributes();
    let is_float =
        |element| matches!(element, ElementType::F16 | ElementType::F32 | ElementType::F64);
    let element = array.element();
    if let Some(cast) = cast {
        let had = attributes.remove(FILL).is_some();
        attributes.remove("missing_value");
        if had || array.fill_is_missing() || !cast.missing.is_empty() {
            attributes.insert(FILL.to_owned(), float_fill(f64::NAN));
        }
        return attributes;
    }
    if array.fill_is_missing() {
        // xarray takes it from the array's metadata in v2 alone.
        let value = match element {
            Some(element) if is_float(element) => float_fill(number(element, array.fill_bytes())),
            _ => array.fill_value(),
        };
        attributes.insert(FILL.to_owned(), value);
    } else if array.zarr_version() == 2
        && let Some(value) = attributes.get_mut(FILL)
        && element.is_some_and(is_float)
    {
        let known = match value.as_str() {
            Some("NaN") => Some(f64::NAN),
            _ => value.as_f64(),
        };
        if let Some(known) = known {
            *value = float_fill(known);
        }
    }
    attributes
}

/// The attribute `_FillValue` of floating point numbers as xarray writes it in Zarr v3.
fn float_fill(value: f64) -> Value {
    json!(STANDARD.encode(value.to_le_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fill_values_are_those_that_xarray_writes() {
        assert_eq!(float_fill(-9999.0), "AAAAAICHw8A=");
        assert_eq!(float_fill(f64::NAN), "AAAAAAAA+H8=");
    }
}
