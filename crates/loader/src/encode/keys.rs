//! Columns taken apart: the distinct keys that occur in the rows, and which of them each row has.

use std::collections::HashMap;
use std::hash::Hash;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, downcast_integer_array};
use arrow_schema::DataType;

use super::error::Error;
use super::label::{Kind, Label};

/// As large a table of pairs is kept for looking up by position; beyond it, by hash.
const MOST_TABLED: usize = 1 << 20;

/// The keys of some rows: of one column, or tuples of several.
#[derive(Debug)]
pub(super) struct Keys<'a> {
    /// The kind of each column.
    pub(super) kinds: Vec<Kind>,
    /// The distinct keys that some row has, by their first rows; each as long as there are columns.
    pub(super) distinct: Vec<Vec<Label<&'a str>>>,
    /// For each row, which of the distinct keys it has.
    pub(super) rows: Vec<u32>,
}

impl<'a> Keys<'a> {
    /// The keys of columns of `n_rows` rows, which the columns all have.
    pub(super) fn new(columns: &[(&str, &'a ArrayRef)], n_rows: usize) -> Result<Self, Error> {
        // Numbers of distinct keys are 32 bits wide.
        if u32::try_from(n_rows).is_err() {
            return Err(Error::TooManyRows { n_rows });
        }
        let mut kinds = Vec::with_capacity(columns.len());
        let mut distinct = vec![Vec::new()];
        let mut rows = vec![0; n_rows];
        for &(name, array) in columns {
            let column = Column::new(name, array.as_ref())?;
            kinds.push(column.kind);
            let pairs = pair(&mut rows, &column.rows, (distinct.len(), column.labels.len()));
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

/// Gives each pair of `rows` and `others` that occurs a number, which `rows` then holds; the pairs by their numbers.
fn pair(rows: &mut [u32], others: &[u32], (n_rows, n_others): (usize, usize)) -> Vec<(u32, u32)> {
    const NONE: u32 = u32::MAX;
    let n_tabled = n_rows.checked_mul(n_others).filter(|n| *n <= MOST_TABLED);
    let mut table = vec![NONE; n_tabled.unwrap_or(0)];
    let mut hashed = Interner::default();
    let mut pairs = Vec::new();
    for (row, other) in rows.iter_mut().zip(others) {
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
    }
    if n_tabled.is_some() { pairs } else { hashed.values }
}

/// One column taken apart. Of a dictionary, labels that no row has are among the labels.
#[derive(Debug)]
struct Column<'a> {
    kind: Kind,
    labels: Vec<Label<&'a str>>,
    rows: Vec<u32>,
}

impl<'a> Column<'a> {
    fn new(name: &str, array: &'a dyn Array) -> Result<Self, Error> {
        let kind = Kind::of(array.data_type()).ok_or_else(|| Error::Type {
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
        // Rows that are stored together are alike: most need no look-up.
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

/// Calls `each` with the label of every row of a plain array, in order.
fn each_label<'a>(
    name: &str,
    array: &'a dyn Array,
    mut each: impl FnMut(Label<&'a str>),
) -> Result<(), Error> {
    let text = |value: Option<&'a str>| value.map_or(Label::Null, Label::Text);
    match array.data_type() {
        DataType::Boolean => {
            array
                .as_boolean()
                .iter()
                .for_each(|value| each(value.map_or(Label::Null, Label::Boolean)));
        }
        DataType::Utf8 => array.as_string::<i32>().iter().for_each(|value| each(text(value))),
        DataType::LargeUtf8 => array.as_string::<i64>().iter().for_each(|value| each(text(value))),
        DataType::Utf8View => array.as_string_view().iter().for_each(|value| each(text(value))),
        _ => downcast_integer_array!(
            array => {
                for (row_idx, value) in array.iter().enumerate() {
                    each(match value.map(i64::try_from) {
                        None => Label::Null,
                        Some(Ok(value)) => Label::Integer(value),
                        // Only an unsigned 64-bit integer does not fit.
                        Some(Err(_)) => return Err(Error::LargeInteger {
                            column: name.to_owned(),
                            value: array.value(row_idx).to_string(),
                        }),
                    });
                }
            }
            other => return Err(Error::Type { column: name.to_owned(), found: other.clone() })
        ),
    }
    Ok(())
}
