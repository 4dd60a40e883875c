//! Finds and reads the arrays that hold coordinates.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use bytemuck::AnyBitPattern;
use half::{bf16, f16};
use pipeline::Stop;
use serde_json::Value;
use storage::{Piece, Storage};
use zarrs::array::data_type::{FixedLengthUTF32DataType, StringDataType};
use zarrs::array::{
    Array, ArrayCreateError, ArrayError, ArrayMetadata, ArrayMetadataV2, CodecOptions,
};

use crate::chunk_task::tasks;
use crate::convert::Packing;
use crate::coordinates::{CoordinateValues, Coordinates, SkippedCoordinates};
use crate::decoder::panic_message;
use crate::element::ElementType;
use crate::error::{Cause, Error};
use crate::read;
use crate::store::{ROOT, Store};
use crate::variable::{OpenVariable, dimension_names, fill_value_v2};

/// The most coordinates of one dimension that are read.
const MAX_VALUES: u64 = 1 << 20;
/// The most bytes of a decoded chunk of coordinates, and of all strings of fixed length.
const MAX_BYTES: u64 = 64 << 20;

/// Reads coordinates, each array of them once.
#[derive(Debug)]
pub(crate) struct CoordinateArrays<'a> {
    storage: &'a Arc<dyn Storage>,
    threads: usize,
    /// By the path of their array; `None` if there is none, or it was skipped.
    known: HashMap<String, Option<Arc<Coordinates>>>,
    skipped: Vec<SkippedCoordinates>,
}

/// The result of looking for the array of a dimension's coordinates.
#[derive(Debug)]
enum Found {
    Nothing,
    /// There is an array that is not read, for this reason.
    Skipped(String),
    Coordinates(Coordinates),
}

impl<'a> CoordinateArrays<'a> {
    /// Reads from `storage` on up to `threads` threads.
    pub(crate) fn new(storage: &'a Arc<dyn Storage>, threads: usize) -> Self {
        Self { storage, threads, known: HashMap::new(), skipped: Vec::new() }
    }

    /// The arrays that have a dimension's name and were not read.
    pub(crate) fn into_skipped(self) -> Vec<SkippedCoordinates> {
        self.skipped
    }

    /// The coordinates of each dimension of `array`. `dimensions` are its names.
    pub(crate) fn of_array(
        &mut self,
        array: &str,
        dimensions: &[String],
        shape: &[u64],
    ) -> Result<Vec<Option<Arc<Coordinates>>>, Error> {
        let pairs = dimensions.iter().zip(shape);
        pairs.map(|(dimension, len)| self.find(array, dimension, *len)).collect()
    }

    /// The reason why the coordinates of a dimension of `array` were not read, if they exist.
    pub(crate) fn problem(&self, array: &str, dimension: &str) -> Option<&str> {
        let path = coordinate_path(array, dimension)?;
        let skipped = self.skipped.iter().find(|skipped| skipped.array == path)?;
        Some(&skipped.reason)
    }

    fn find(
        &mut self,
        array: &str,
        dimension: &str,
        len: u64,
    ) -> Result<Option<Arc<Coordinates>>, Error> {
        let Some(path) = coordinate_path(array, dimension) else { return Ok(None) };
        if !self.known.contains_key(&path) {
            let read = match self.read(&path, dimension)? {
                Found::Coordinates(read) => Some(Arc::new(read)),
                Found::Nothing => None,
                Found::Skipped(reason) => {
                    self.skipped.push(SkippedCoordinates { array: path.clone(), reason });
                    None
                }
            };
            self.known.insert(path.clone(), read);
        }
        let found = self.known.get(&path).cloned().flatten();
        match found {
            Some(found) if found.len() as u64 != len => {
                let text = format!("it has {} values, and {array} has {len}", found.len());
                Err(self.failed(&path, dimension, text.into()))
            }
            found => Ok(found),
        }
    }

    fn failed(&self, path: &str, dimension: &str, source: Cause) -> Error {
        Error::Coordinates {
            array: path.to_owned(),
            dimension: dimension.to_owned(),
            place: self.storage.place(),
            source,
        }
    }

    /// Reads the coordinates in the array at `path`.
    fn read(&self, path: &str, dimension: &str) -> Result<Found, Error> {
        let array = match Array::open(Store::of_array(self.storage, path), ROOT) {
            Ok(array) => array,
            Err(ArrayCreateError::MissingMetadata) => return Ok(Found::Nothing),
            Err(ArrayCreateError::StorageError(_)) if self.is_group(path) => {
                return Ok(Found::Nothing);
            }
            Err(error @ ArrayCreateError::StorageError(_)) => {
                return Err(self.failed(path, dimension, error.into()));
            }
            Err(error) => match self.strings_without_fill(path) {
                Some(array) => array,
                None => return Ok(Found::Skipped(format!("is not supported: {error}"))),
            },
        };
        if let Some(reason) = not_coordinates(&array, dimension) {
            return Ok(Found::Skipped(reason));
        }
        let attributes = array.attributes().clone();
        let values = if array.data_type().is::<StringDataType>() {
            decode_strings(|| {
                array.retrieve_array_subset_opt::<Vec<String>>(&array.subset_all(), &alone())
            })
        } else if array.data_type().is::<FixedLengthUTF32DataType>() {
            decode_strings(|| {
                array.retrieve_array_subset_opt::<Vec<Vec<char>>>(&array.subset_all(), &alone())
            })
        } else {
            let packing = Packing::of(&attributes, fill_value_v2(&array));
            match OpenVariable::whole(array, path, &self.storage.place()) {
                Ok(variable) => match self.numbers(&variable) {
                    Ok(Some(values)) => Ok(match packing {
                        Some(packing) => values.unpacked(packing),
                        None => values,
                    }),
                    Ok(None) => return Ok(Found::Skipped("has numbers beyond 2^63".to_owned())),
                    Err(error) => Err(error),
                },
                Err(Error::Element { stored, .. }) => {
                    return Ok(Found::Skipped(format!("has elements of type {stored}")));
                }
                // Its metadata was read: the rest is about what is supported.
                Err(error) => return Ok(Found::Skipped(format!("is not supported: {error}"))),
            }
        };
        let values = values.map_err(|source| self.failed(path, dimension, source))?;
        Ok(Found::Coordinates(Coordinates::new(dimension, values, attributes)))
    }

    /// Whether the metadata at `path` is that of a group.
    fn is_group(&self, path: &str) -> bool {
        let metadata = self.json(&format!("{path}/zarr.json"));
        metadata.is_some_and(|metadata| metadata.get("node_type") == Some(&"group".into()))
    }

    /// Opens an array of Zarr v2 with strings of fixed length and without a fill value, as xarray
    /// writes them. zarrs demands a fill value (0.23.14).
    fn strings_without_fill(&self, path: &str) -> Option<Array<Store>> {
        let mut metadata = self.json(&format!("{path}/.zarray"))?;
        let is_string = metadata.get("dtype")?.as_str()?.starts_with("<U");
        let fill = metadata.get_mut("fill_value").filter(|fill| is_string && fill.is_null())?;
        *fill = Value::String(String::new());
        let mut metadata: ArrayMetadataV2 = serde_json::from_value(metadata).ok()?;
        if let Some(Value::Object(attributes)) = self.json(&format!("{path}/.zattrs")) {
            metadata.attributes = attributes;
        }
        let store = Store::of_array(self.storage, path);
        Array::new_with_metadata(store, ROOT, ArrayMetadata::V2(metadata)).ok()
    }

    fn json(&self, file: &str) -> Option<Value> {
        let range = 0..self.storage.size(file).ok().filter(|size| *size <= MAX_BYTES)?;
        let mut bytes = vec![0; range.end as usize];
        self.storage.read(&[Piece { file, range }], &mut bytes).ok()?;
        serde_json::from_slice(&bytes).ok()
    }

    /// The numbers of an array; `None` if one is larger than an `i64`.
    fn numbers(&self, variable: &OpenVariable) -> Result<Option<CoordinateValues>, Cause> {
        let steps: Vec<u64> = (0..variable.n_steps).collect();
        let n_bytes = steps.len() * variable.row_bytes();
        let mut words = vec![0_u64; n_bytes.div_ceil(size_of::<u64>())];
        let bytes: &mut [u8] = &mut bytemuck::cast_slice_mut(&mut words)[..n_bytes];
        let all = tasks(variable, &steps, bytes);
        let with = (&mut Vec::new(), self.threads);
        read::run(&**self.storage, all, with, &Stop::default())
            .map_err(|failure| failure.source)?;
        Ok(typed(variable.stored, bytes))
    }
}

/// The path of the array that would hold the coordinates of a dimension of `array`. An array at the
/// root of the storage has no group in it.
fn coordinate_path(array: &str, dimension: &str) -> Option<String> {
    if array.is_empty() || ["", ".", ".."].contains(&dimension) || dimension.contains('/') {
        return None;
    }
    Some(match array.rsplit_once('/') {
        Some((group, _)) => format!("{group}/{dimension}"),
        None => dimension.to_owned(),
    })
}

/// The reason why an array does not hold the coordinates of the dimension that it is named after.
fn not_coordinates(array: &Array<Store>, dimension: &str) -> Option<String> {
    let [len] = array.shape()[..] else {
        return Some(format!("has {} dimensions, not one", array.dimensionality()));
    };
    let names = dimension_names(array);
    if let Some(other) = names.first().filter(|name| !name.is_empty() && *name != dimension) {
        return Some(format!("has the dimension {other}, not its own name"));
    }
    if MAX_VALUES < len {
        return Some(format!("has {len} values, more than {MAX_VALUES}"));
    }
    let Ok(chunk) = array.chunk_shape(&[0]) else {
        return Some("has chunks without a shape".to_owned());
    };
    let chunk = chunk.first().map_or(len, |chunk| chunk.get());
    let element = array.data_type().fixed_size().unwrap_or(1) as u64;
    let n_bytes = chunk.max(len).saturating_mul(element);
    (MAX_BYTES < n_bytes).then(|| format!("takes {n_bytes} bytes, more than {MAX_BYTES}"))
}

/// Decodes on this thread alone.
fn alone() -> CodecOptions {
    CodecOptions::default().with_concurrent_target(1)
}

/// Strings in the forms that zarrs returns.
trait IntoStrings {
    fn into_strings(self) -> Vec<String>;
}

impl IntoStrings for Vec<String> {
    fn into_strings(self) -> Vec<String> {
        self
    }
}

impl IntoStrings for Vec<Vec<char>> {
    fn into_strings(self) -> Vec<String> {
        self.into_iter().map(|text| text.into_iter().collect()).collect()
    }
}

fn decode_strings<T: IntoStrings>(
    retrieve: impl FnOnce() -> Result<T, ArrayError>,
) -> Result<CoordinateValues, Cause> {
    let decoded = catch_unwind(AssertUnwindSafe(retrieve));
    let decoded = decoded.map_err(|panic| panic_message(panic.as_ref()))??;
    Ok(CoordinateValues::Strings(decoded.into_strings()))
}

/// Numbers in a type that holds each of them; `None` if one is larger than an `i64`.
fn typed(element: ElementType, bytes: &[u8]) -> Option<CoordinateValues> {
    fn integers<T: AnyBitPattern + TryInto<i64>>(bytes: &[u8]) -> Option<Vec<i64>> {
        let all = bytemuck::cast_slice::<u8, T>(bytes).iter();
        all.map(|n| (*n).try_into().ok()).collect()
    }
    fn floats<T: AnyBitPattern + Into<f64>>(bytes: &[u8]) -> CoordinateValues {
        let all = bytemuck::cast_slice::<u8, T>(bytes).iter();
        CoordinateValues::Floats(all.map(|x| (*x).into()).collect())
    }
    let integers = match element {
        ElementType::F16 => return Some(floats::<f16>(bytes)),
        ElementType::BF16 => return Some(floats::<bf16>(bytes)),
        ElementType::F32 => return Some(floats::<f32>(bytes)),
        ElementType::F64 => return Some(floats::<f64>(bytes)),
        ElementType::Bool | ElementType::U8 => integers::<u8>(bytes),
        ElementType::I8 => integers::<i8>(bytes),
        ElementType::I16 => integers::<i16>(bytes),
        ElementType::I32 => integers::<i32>(bytes),
        ElementType::I64 => integers::<i64>(bytes),
        ElementType::U16 => integers::<u16>(bytes),
        ElementType::U32 => integers::<u32>(bytes),
        ElementType::U64 => integers::<u64>(bytes),
    };
    integers.map(CoordinateValues::Integers)
}
