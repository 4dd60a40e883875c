//! The distinct keys in the rows of some columns, and the key of each row.

use std::collections::HashMap;
use std::hash::Hash;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, downcast_integer_array};
use arrow_schema::DataType;
use shuffle::stop;

use super::error::LabelsError;
use super::label::{Kind, Label};

/// Largest number of possible pairs that are numbered in a table; more are numbered by hash.
const MAX_TABLE_LEN: usize = 1 << 20;

/// The keys of the rows: labels of one column, or tuples of several.
#[derive(Debug)]
pub(super) struct Keys<'a> {
    /// The kind of each column.
    pub(super) kinds: Vec<Kind>,
    /// The distinct keys in the order of their first rows; one label per column.
    pub(super) distinct: Vec<Vec<Label<&'a str>>>,
    /// The index of each row's key in `distinct`.
    pub(super) rows: Vec<u32>,
}

impl<'a> Keys<'a> {
    /// The keys of columns that all have `n_rows` rows.
    pub(super) fn new(
        columns: &[(&str, &'a ArrayRef)],
        n_rows: usize,
    ) -> Result<Self, LabelsError> {
        // Indices of distinct keys have 32 bits.
        if u32::try_from(n_rows).is_err() {
            return Err(LabelsError::TooManyRows { n_rows });
        }
        let mut kinds = Vec::with_capacity(columns.len());
        let mut distinct = vec![Vec::new()];
        let mut rows = vec![0; n_rows];
        for &(name, array) in columns {
            let column = Column::new(name, array.as_ref())?;
            kinds.push(column.kind);
            let pairs = pair(&mut rows, &column.rows, (distinct.len(), column.labels.len()))?;
            distinct = pairs
                .into_iter()
                .map(|(key, label)| {
                    let mut key = distinct[key as usize].clone();
                    key.push(column.labels[label as usize]);
                    key
                })
                .collect();
        }
        Ok(Self { kinds, distinct, rows })
    }
}

/// Numbers the distinct pairs of `rows` and `others`, and replaces each element of `rows` by the
/// number of its pair. Returns the pairs in the order of their numbers.
fn pair(
    rows: &mut [u32],
    others: &[u32],
    (n_rows, n_others): (usize, usize),
) -> Result<Vec<(u32, u32)>, LabelsError> {
    const NONE: u32 = u32::MAX;
    let n_tabled = n_rows.checked_mul(n_others).filter(|n| *n <= MAX_TABLE_LEN);
    let mut table = vec![NONE; n_tabled.unwrap_or(0)];
    let mut hashed = Interner::default();
    let mut pairs = Vec::new();
    stop::each(rows.iter_mut().zip(others), |(row, other)| {
        let found = (*row, *other);
        *row = if n_tabled.is_some() {
            let number = &mut table[*row as usize * n_others + *other as usize];
            if *number == NONE {
                *number = pairs.len() as u32;
                pairs.push(found);
            }
            *number
        } else {
            hashed.number(found)
        };
        Ok::<_, LabelsError>(())
    })?;
    Ok(if n_tabled.is_some() { pairs } else { hashed.values })
}

/// The labels of one column and the label of each row. Includes a dictionary's unused labels.
#[derive(Debug)]
struct Column<'a> {
    kind: Kind,
    labels: Vec<Label<&'a str>>,
    rows: Vec<u32>,
}

impl<'a> Column<'a> {
    fn new(name: &str, array: &'a dyn Array) -> Result<Self, LabelsError> {
        let kind = Kind::for_data_type(array.data_type()).ok_or_else(|| LabelsError::Type {
            column: name.to_owned(),
            found: array.data_type().clone(),
        })?;
        let mut labels = Interner::default();
        let mut rows = Vec::with_capacity(array.len());
        if let Some(dictionary) = array.as_any_dictionary_opt() {
            let values = dictionary.values().as_ref();
            let mut of_values = Vec::with_capacity(values.len());
            each_label(name, values, |label| of_values.push(labels.number(label)))?;
            each_label(name, dictionary.keys(), |key| {
                rows.push(match key {
                    Label::Integer(key) => of_values[key as usize],
                    _ => labels.number(Label::Null),
                });
            })?;
        } else {
            each_label(name, array, |label| rows.push(labels.number(label)))?;
        }
        Ok(Self { kind, labels: labels.values, rows })
    }
}

/// Numbers values by their first occurrence.
#[derive(Debug)]
struct Interner<Value> {
    values: Vec<Value>,
    numbers: HashMap<Value, u32>,
    last: Option<(Value, u32)>,
}

impl<Value> Default for Interner<Value> {
    fn default() -> Self {
        Self { values: Vec::new(), numbers: HashMap::new(), last: None }
    }
}

impl<Value: Copy + Eq + Hash> Interner<Value> {
    fn number(&mut self, value: Value) -> u32 {
        // Neighboring rows are often equal, and then need no look-up.
        if let Some((last, number)) = self.last
            && last == value
        {
            return number;
        }
        let next = self.values.len() as u32;
        let number = *self.numbers.entry(value).or_insert(next);
        if number == next {
            self.values.push(value);
        }
        self.last = Some((value, number));
        number
    }
}

/// Calls `each` with the label of every row of an array that is not a dictionary.
fn each_label<'a>(
    name: &str,
    array: &'a dyn Array,
    mut each: impl FnMut(Label<&'a str>),
) -> Result<(), LabelsError> {
    let text = |value: Option<&'a str>| value.map_or(Label::Null, Label::Text);
    let mut handle = |label| {
        each(label);
        Ok(())
    };
    match array.data_type() {
        DataType::Boolean => stop::each(array.as_boolean().iter(), |value| {
            handle(value.map_or(Label::Null, Label::Boolean))
        }),
        DataType::Utf8 => stop::each(array.as_string::<i32>().iter(), |value| handle(text(value))),
        DataType::LargeUtf8 => {
            stop::each(array.as_string::<i64>().iter(), |value| handle(text(value)))
        }
        DataType::Utf8View => {
            stop::each(array.as_string_view().iter(), |value| handle(text(value)))
        }
        _ => downcast_integer_array!(
            array => stop::each(array.iter().enumerate(), |(row_idx, value)| {
                handle(match value.map(i64::try_from) {
                    None => Label::Null,
                    Some(Ok(value)) => Label::Integer(value),
                    // Only an unsigned 64-bit integer does not fit.
                    Some(Err(_)) => return Err(LabelsError::LargeInteger {
                        column: name.to_owned(),
                        value: array.value(row_idx).to_string(),
                    }),
                })
            }),
            other => Err(LabelsError::Type { column: name.to_owned(), found: other.clone() })
        ),
    }
}
