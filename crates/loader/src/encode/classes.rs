//! The keys that an encoder knows, and their codes.

use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Int64Array, LargeStringArray};
use arrow_schema::DataType;

use super::error::KeyError;
use super::label::{Kind, Label, format_key};

/// One label per column.
pub(super) type Key = Vec<Label<String>>;

/// Distinct keys; a key's index is its code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Classes {
    kinds: Vec<Kind>,
    keys: Vec<Key>,
    /// The codes, sorted by key.
    sorted: Vec<usize>,
}

impl Classes {
    /// Makes classes of keys in the order of their codes. Fails if a key comes twice; the error
    /// names `encoder`.
    pub(super) fn new(encoder: &str, kinds: Vec<Kind>, keys: Vec<Key>) -> Result<Self, KeyError> {
        let classes = Self { kinds, sorted: sorted(&keys), keys };
        let keys = &classes.keys;
        match classes.sorted.windows(2).find(|pair| keys[pair[0]] == keys[pair[1]]) {
            Some(pair) => Err(KeyError::Twice {
                encoder: encoder.to_owned(),
                label: format_key(keys[pair[0]].iter().map(Label::borrowed)),
                first: pair[0],
                second: pair[1],
            }),
            None => Ok(classes),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }

    /// The kind of each column.
    pub(super) fn kinds(&self) -> &[Kind] {
        &self.kinds
    }

    /// The keys in the order of their codes.
    pub(super) fn keys(&self) -> &[Key] {
        &self.keys
    }

    /// The first `n` keys in sorted order.
    pub(super) fn first_sorted(&self, n: usize) -> impl Iterator<Item = &Key> {
        self.sorted.iter().take(n).map(|code| &self.keys[*code])
    }

    pub(super) fn code_of(&self, key: &[Label<&str>]) -> Option<usize> {
        self.sorted
            .binary_search_by(|code| {
                self.keys[*code].iter().map(Label::borrowed).cmp(key.iter().copied())
            })
            .ok()
            .map(|position| self.sorted[position])
    }

    /// Adds those of the distinct `keys` that are new, in sorted order, after the existing classes.
    pub(super) fn with<'a>(&self, keys: impl Iterator<Item = &'a Vec<Label<&'a str>>>) -> Self {
        let mut unknown: Vec<_> = keys.filter(|key| self.code_of(key).is_none()).collect();
        unknown.sort_unstable();
        let mut all = self.keys.clone();
        all.extend(unknown.into_iter().map(|key| key.iter().map(|label| label.owned()).collect()));
        Self { kinds: self.kinds.clone(), sorted: sorted(&all), keys: all }
    }

    /// The labels of one column, in the order of the codes.
    pub(super) fn labels(&self, column_idx: usize) -> ArrayRef {
        let labels = self.keys.iter().map(|key| key[column_idx].borrowed());
        match self.kinds[column_idx] {
            Kind::Boolean => Arc::new(labels.map(Label::boolean).collect::<BooleanArray>()),
            Kind::Integer => Arc::new(labels.map(Label::integer).collect::<Int64Array>()),
            Kind::Text => Arc::new(labels.map(Label::text).collect::<LargeStringArray>()),
        }
    }

    /// The type of a column's [`labels`](Self::labels). Texts have 64-bit offsets, because the
    /// texts of a whole atlas exceed 2 GiB.
    pub(super) fn data_type(&self, column_idx: usize) -> DataType {
        match self.kinds[column_idx] {
            Kind::Boolean => DataType::Boolean,
            Kind::Integer => DataType::Int64,
            Kind::Text => DataType::LargeUtf8,
        }
    }
}

/// The indices of the keys, sorted by key; the sort is stable.
fn sorted(keys: &[Key]) -> Vec<usize> {
    let mut positions: Vec<usize> = (0..keys.len()).collect();
    positions.sort_by(|a, b| keys[*a].cmp(&keys[*b]));
    positions
}
