//! One column of the tables of all data sets.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use arrow_array::cast::AsArray as _;
use arrow_array::types::Int32Type;
use arrow_array::{Array, ArrayRef, DictionaryArray, Int32Array};
use arrow_schema::{ArrowError, DataType, Field};
use arrow_select::concat::concat;
use arrow_select::interleave::interleave;

use crate::categories::Categories;
use crate::column::{Column, Stored};
use crate::frame::NOT_IN_ALL;

/// A column of a table, in each of its data sets.
#[derive(Debug)]
pub(crate) struct FrameColumn {
    parts: Vec<Column>,
    /// Whether a data set has no such column.
    is_missing: bool,
    united: OnceLock<United>,
}

/// The categories of all data sets.
#[derive(Debug)]
struct United {
    categories: ArrayRef,
    /// The places of each data set's categories among all.
    places: Vec<Vec<i32>>,
}

impl FrameColumn {
    pub(crate) fn new(first: Column) -> Self {
        Self { parts: vec![first], is_missing: false, united: OnceLock::new() }
    }

    /// A column that the first data set does not have.
    pub(crate) fn of_later(column: Column) -> Self {
        Self { is_missing: true, ..Self::new(column) }
    }

    /// Adds the column of the next data set.
    pub(crate) fn add(&mut self, next: Option<Column>) {
        match next {
            Some(next) => self.parts.push(next),
            None => self.is_missing = true,
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.parts[0].name
    }

    /// The column of a data set that has it.
    pub(crate) fn part(&self, part: usize) -> &Column {
        &self.parts[part]
    }

    pub(crate) fn parts(&self) -> &[Column] {
        &self.parts
    }

    /// The Arrow field; otherwise the reason why the column is not read.
    pub(crate) fn field(&self) -> Result<Field, String> {
        let first = self.parts[0].field()?;
        if self.is_missing {
            return Err(NOT_IN_ALL.to_owned());
        }
        let mut is_nullable = first.is_nullable();
        for part in &self.parts[1..] {
            let field = part.field()?;
            let (one, other) = (values_of(first.data_type()), values_of(field.data_type()));
            if one != other {
                let types = (first.data_type(), field.data_type());
                return Err(format!("it is {} and {} in two data sets", types.0, types.1));
            }
            is_nullable |= field.is_nullable();
        }
        let first = first.with_nullable(is_nullable);
        match first.data_type().clone() {
            // All categories together may be more than the codes of one data set can say, and the
            // order of those that no data set has together is not known.
            DataType::Dictionary(_, values) if self.parts.len() > 1 => {
                let data_type = DataType::Dictionary(Box::new(DataType::Int32), values);
                Ok(first.with_data_type(data_type).with_dict_is_ordered(false))
            }
            _ => Ok(first),
        }
    }

    /// The rows of several data sets, one after another, as one array of the field's type.
    /// Categories were read before.
    pub(crate) fn joined(&self, read: Vec<(usize, &ArrayRef)>) -> Result<ArrayRef, ArrowError> {
        let is_categorical = matches!(self.parts[0].stored, Stored::Categorical(_));
        if self.parts.len() == 1 || !is_categorical {
            return match &read[..] {
                [(_, one)] => Ok(Arc::clone(one)),
                some => concat(&some.iter().map(|(_, array)| array.as_ref()).collect::<Vec<_>>()),
            };
        }
        let united = if let Some(united) = self.united.get() {
            united
        } else {
            let made = self.unite()?;
            self.united.get_or_init(|| made)
        };
        let mut codes: Vec<Option<i32>> = Vec::new();
        for (part, array) in read {
            let keys = arrow_cast::cast(array.as_any_dictionary().keys(), &DataType::Int32)?;
            let places = &united.places[part];
            let place = |key: i32| places.get(usize::try_from(key).ok()?).copied();
            codes.extend(keys.as_primitive::<Int32Type>().iter().map(|key| place(key?)));
        }
        let keys = Int32Array::from(codes);
        Ok(Arc::new(DictionaryArray::try_new(keys, Arc::clone(&united.categories))?))
    }

    /// Unites the categories: those of the first data set, and of each further one those that are
    /// new.
    fn unite(&self) -> Result<United, ArrowError> {
        let lists: Vec<ArrayRef> = self
            .parts
            .iter()
            .filter_map(|part| match &part.stored {
                Stored::Categorical(of) => of.known.get().cloned(),
                _ => None,
            })
            .collect();
        let mut known: HashMap<Vec<u8>, i32> = HashMap::new();
        let (mut all, mut places) = (Vec::new(), Vec::new());
        for (list_idx, list) in lists.iter().enumerate() {
            let (mut of_list, categories) =
                (Vec::with_capacity(list.len()), Categories::new(list)?);
            for row in 0..list.len() {
                let next = known.len() as i32;
                let key = categories.key(row).unwrap_or_default().into_owned();
                let place = *known.entry(key).or_insert_with(|| {
                    all.push((list_idx, row));
                    next
                });
                of_list.push(place);
            }
            places.push(of_list);
        }
        let lists: Vec<&dyn Array> = lists.iter().map(AsRef::as_ref).collect();
        Ok(United { categories: interleave(&lists, &all)?, places })
    }
}

/// The type of a column's values, or of its categories.
fn values_of(data_type: &DataType) -> (bool, &DataType) {
    match data_type {
        DataType::Dictionary(_, values) => (true, values),
        other => (false, other),
    }
}
