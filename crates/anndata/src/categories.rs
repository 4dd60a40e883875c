//! The categories of a column, compared by their values.

use std::borrow::Cow;
use std::collections::HashMap;

use arrow_array::cast::AsArray as _;
use arrow_array::types::{Float64Type, Int64Type, UInt64Type};
use arrow_array::{Array as _, ArrayRef};
use arrow_schema::{ArrowError, DataType};

/// A list of categories; numbers have 64 bits each.
pub(crate) struct Categories(ArrayRef);

impl Categories {
    pub(crate) fn new(list: &ArrayRef) -> Result<Self, ArrowError> {
        let wide = match list.data_type() {
            of if of.is_floating() => DataType::Float64,
            of if of.is_signed_integer() => DataType::Int64,
            of if of.is_unsigned_integer() => DataType::UInt64,
            of => of.clone(),
        };
        arrow_cast::cast(list, &wide).map(Self)
    }

    /// Bytes that only equal categories have in common; `None` for a missing one. Like in Python, 0
    /// and -0 are equal, and NaN is missing.
    pub(crate) fn key(&self, row: usize) -> Option<Cow<'_, [u8]>> {
        let list = &self.0;
        if list.is_null(row) {
            return None;
        }
        if let Some(texts) = list.as_string_opt::<i64>() {
            return Some(texts.value(row).as_bytes().into());
        }
        let key = if let Some(numbers) = list.as_primitive_opt::<Int64Type>() {
            numbers.value(row).to_le_bytes().into()
        } else if let Some(numbers) = list.as_primitive_opt::<UInt64Type>() {
            numbers.value(row).to_le_bytes().into()
        } else if let Some(numbers) = list.as_primitive_opt::<Float64Type>() {
            let number = Some(numbers.value(row)).filter(|number| !number.is_nan())?;
            // Without the sign of 0.
            (number + 0.0).to_le_bytes().into()
        } else {
            vec![u8::from(list.as_boolean_opt()?.value(row))]
        };
        Some(Cow::Owned(key))
    }

    /// A category as in an error.
    fn named(&self, row: usize) -> String {
        match self.0.as_string_opt::<i64>() {
            Some(texts) => format!("category {:?}", texts.value(row)),
            None => "same category".to_owned(),
        }
    }
}

/// Says what is wrong if a category is missing or there twice: of rows that look alike, codes would
/// select some alone.
pub(crate) fn check_categories(list: &ArrayRef) -> Result<(), String> {
    let categories = Categories::new(list).map_err(|error| error.to_string())?;
    let mut known = HashMap::with_capacity(list.len());
    for row in 0..list.len() {
        let Some(key) = categories.key(row) else {
            return Err(format!("the category at place {row} is a missing value"));
        };
        if let Some(first) = known.insert(key, row) {
            let category = categories.named(row);
            return Err(format!(
                "places {first} and {row} have the {category}, which anndata refuses, too: write \
                 the column anew, with each category once"
            ));
        }
    }
    Ok(())
}
