//! Single values: arrays without dimensions.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use serde_json::{Map, Value};
use storage::Storage;
use zarrs::array::{Array, ArraySubset, CodecOptions, ElementOwned};

use crate::decoder::panic_message;
use crate::element::ElementType;
use crate::error::{Cause, Error};
use crate::metadata::{self, Opened};
use crate::open_array::element_type;
use crate::store::Store;
use crate::stored::open_error;
use crate::texts;

/// The value of an array without dimensions.
#[derive(Debug, Clone, PartialEq)]
pub enum Scalar {
    /// A Boolean.
    Bool(bool),
    /// A signed integer of any width.
    Integer(i64),
    /// An unsigned integer of any width.
    Unsigned(u64),
    /// A 32-bit or 64-bit float.
    Float(f64),
    /// A string.
    Text(String),
}

impl Scalar {
    /// Reads the array without dimensions at `path`, whose metadata is known: `zarr.json`, or
    /// `.zarray` of Zarr v2.
    ///
    /// # Errors
    /// [`Error::Open`] if it has dimensions or its metadata is not supported;
    /// [`Error::ReadElements`].
    pub fn read(
        storage: &Arc<dyn Storage>,
        path: &str,
        metadata: &Map<String, Value>,
    ) -> Result<Self, Error> {
        let path = path.trim_matches('/');
        let unopened = |source: Cause| open_error(storage, path, source);
        let opened = metadata::with_metadata(storage, path, (metadata.clone(), Map::new()));
        let Opened { array, texts: form, .. } = opened.map_err(unopened)?;
        if array.dimensionality() != 0 {
            let text = format!("it has {} dimensions", array.dimensionality());
            return Err(unopened(text.into()));
        }
        let unread = |source: Cause| {
            let (array, place) = (path.to_owned(), storage.place());
            Error::ReadElements { array, place, source }
        };
        if let Some(form) = form {
            let text = texts::read(&array, form, &ArraySubset::new_with_ranges(&[]));
            let text = text.map(|mut texts| texts.pop().unwrap_or_default());
            return text.map(Self::Text).map_err(unread);
        }
        let value = match element_type(&array, path)? {
            ElementType::Bool => only(&array).map(Self::Bool),
            ElementType::I8 => only::<i8>(&array).map(|value| Self::Integer(value.into())),
            ElementType::I16 => only::<i16>(&array).map(|value| Self::Integer(value.into())),
            ElementType::I32 => only::<i32>(&array).map(|value| Self::Integer(value.into())),
            ElementType::I64 => only(&array).map(Self::Integer),
            ElementType::U8 => only::<u8>(&array).map(|value| Self::Unsigned(value.into())),
            ElementType::U16 => only::<u16>(&array).map(|value| Self::Unsigned(value.into())),
            ElementType::U32 => only::<u32>(&array).map(|value| Self::Unsigned(value.into())),
            ElementType::U64 => only(&array).map(Self::Unsigned),
            ElementType::F32 => only::<f32>(&array).map(|value| Self::Float(value.into())),
            ElementType::F64 => only(&array).map(Self::Float),
            other => Err(format!("a single value of type {other:?} is not read").into()),
        };
        value.map_err(unread)
    }
}

/// The only element of an array. Codecs may panic at damaged bytes.
fn only<T: ElementOwned>(array: &Array<Store>) -> Result<T, Cause> {
    let whole = ArraySubset::new_with_ranges(&[]);
    let alone = CodecOptions::default().with_concurrent_target(1);
    let read = AssertUnwindSafe(|| array.retrieve_array_subset_opt::<Vec<T>>(&whole, &alone));
    let values = catch_unwind(read).map_err(|panic| panic_message(panic.as_ref()))??;
    let [value] = <[T; 1]>::try_from(values)
        .map_err(|values| format!("{} values are stored, one is expected", values.len()))?;
    Ok(value)
}
