//! Finds and reads the arrays that hold coordinates.

use std::collections::HashMap;
use std::sync::Arc;

use bytemuck::AnyBitPattern;
use half::{bf16, f16};
use pipeline::Stop;
use storage::Storage;
use zarrs::array::Array;

use crate::chunk_task::tasks;
use crate::chunks::Chunks;
use crate::convert::Convert;
use crate::coordinates::{CoordinateValues, Coordinates, SkippedCoordinates};
use crate::dimensions::dimension_names;
use crate::element::ElementType;
use crate::error::{Cause, Error};
use crate::kept::KeptChunks;
use crate::metadata::{self, Opened, Unopened};
use crate::open_array::packing;
use crate::read;
use crate::store::Store;
use crate::texts;

/// The most coordinates of one dimension that are read.
const MAX_VALUES: u64 = 1 << 22;
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
        let opened = match metadata::open(self.storage, path) {
            Ok(opened) => opened,
            Err(Unopened::Missing | Unopened::IsGroup) => return Ok(Found::Nothing),
            Err(Unopened::Unsupported(cause)) => {
                return Ok(Found::Skipped(format!("is not supported: {cause}")));
            }
            Err(unread) => return Err(self.failed(path, dimension, unread.into())),
        };
        let array = &opened.array;
        if let Some(reason) = not_coordinates(array, dimension) {
            return Ok(Found::Skipped(reason));
        }
        let attributes = array.attributes().clone();
        let values = if let Some(form) = opened.texts {
            texts::read(array, form, &array.subset_all()).map(CoordinateValues::Strings)
        } else {
            match self.unpacked(opened, path) {
                Ok(Some(values)) => Ok(values),
                Ok(None) => return Ok(Found::Skipped("has numbers beyond 2^63".to_owned())),
                Err(Error::Element { stored, .. }) => {
                    return Ok(Found::Skipped(format!("has elements of type {stored}")));
                }
                Err(Error::Attribute { source, .. } | Error::ReadInto { source, .. }) => {
                    Err(source)
                }
                // Its metadata was read: the rest is about what is supported.
                Err(error) => return Ok(Found::Skipped(format!("is not supported: {error}"))),
            }
        };
        let values = values.map_err(|source| self.failed(path, dimension, source))?;
        Ok(Found::Coordinates(Coordinates::new(dimension, values, attributes)))
    }

    /// What the numbers of an array stand for; `None` if one is larger than an `i64`.
    fn unpacked(&self, opened: Opened, path: &str) -> Result<Option<CoordinateValues>, Error> {
        let (element, packing) = packing(&opened, path)?;
        let n = opened.array.shape().first().copied().unwrap_or(0);
        let chunks = Chunks::new(opened.array, path, &**self.storage, (0, &[]))?;
        let values = self.numbers(&Chunks { stored: element, ..chunks }, n);
        let values = values.map_err(|source| Error::ReadInto { array: path.to_owned(), source })?;
        Ok(values.map(|values| match &packing {
            Some(packing) => values.unpacked(packing),
            None => values,
        }))
    }

    /// The numbers of an array; `None` if one is larger than an `i64`.
    fn numbers(&self, chunks: &Chunks, n: u64) -> Result<Option<CoordinateValues>, Cause> {
        let n_bytes = n as usize * chunks.stored.n_bytes();
        let mut words = vec![0_u64; n_bytes.div_ceil(size_of::<u64>())];
        let bytes: &mut [u8] = &mut bytemuck::cast_slice_mut(&mut words)[..n_bytes];
        let convert = Convert::Copy;
        let rows = (0..n).zip(bytes.chunks_exact_mut(chunks.stored.n_bytes())).collect();
        let all = tasks((chunks, &convert), rows);
        let with = (&mut Vec::new(), self.threads);
        read::run((&**self.storage, &KeptChunks::default()), all, with, &Stop::default())
            .map_err(|failure| failure.source)?;
        Ok(typed(chunks.stored, bytes))
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
