//! The encoder of several columns as one key.

use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StructArray};
use arrow_schema::{Field, Fields};

use super::error::{EncodeError, FitError, InverseError, SavedError};
use super::label::Label;
use super::mapping::{Mapping, columns_of};
use super::narrow::windows;
use super::saved::{self, SavedAs};
use super::{Encoder, Nulls, Rules, Unseen};

/// Encodes the tuple of labels in several columns, for example scVI's batch from dataset, assay and
/// donor.
///
/// A key is the tuple, not a joined text, so `("a", "b/c")` and `("a/b", "c")` have different
/// codes.
///
/// ```
/// use std::sync::Arc;
///
/// use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
/// use loader::encode::{BatchKeyEncoder, Encoder, Rules};
///
/// let donors: ArrayRef = Arc::new(StringArray::from(vec!["a", "a/b", "a"]));
/// let assays: ArrayRef = Arc::new(StringArray::from(vec!["b/c", "c", "b/c"]));
/// let obs = RecordBatch::try_from_iter([("donor", donors), ("assay", assays)])?;
/// let encoder = BatchKeyEncoder::fit("batch", &["donor", "assay"], &obs, Rules::default())?;
/// assert_eq!(encoder.encode(&obs)?, Int64Array::from(vec![0, 1, 0]));
/// assert_eq!(encoder.joined_keys(), [r"a/b\/c", r"a\/b/c"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchKeyEncoder {
    mapping: Mapping,
}

impl BatchKeyEncoder {
    /// Fits an encoder named `name` on the keys in these columns of obs. A key's code is its index
    /// among the sorted keys.
    ///
    /// # Errors
    /// `columns` is empty or repeats a column; obs lacks a column; a column's type has no labels.
    pub fn fit(
        name: &str,
        columns: &[&str],
        obs: &RecordBatch,
        rules: Rules,
    ) -> Result<Self, FitError> {
        let columns: Vec<String> = columns.iter().map(|column| (*column).to_owned()).collect();
        saved::check_columns(name, &columns)?;
        let arrays = columns_of(name, &columns, obs)?;
        Ok(Self { mapping: Mapping::fit(name.to_owned(), columns, &arrays, rules)? })
    }

    /// The number of each row's key among the sorted keys, with null as a label.
    pub(crate) fn groups(columns: &[&str], obs: &RecordBatch) -> Result<Vec<u32>, FitError> {
        let rules = Rules { nulls: Nulls::Class, ..Rules::default() };
        let mapping = Self::fit("groups", columns, obs, rules)?.mapping;
        let mut groups = Vec::with_capacity(obs.num_rows());
        for (_, obs) in windows(obs) {
            let (keys, codes) = mapping.codes(&mapping.columns_of(&obs)?)?;
            // Every key has a row, and `fit` fails from 2^32 rows on.
            groups.extend(keys.rows.iter().map(|key| codes[*key as usize] as u32));
        }
        Ok(groups)
    }

    /// Renames the encoder, and with it the column of codes.
    #[must_use]
    pub fn with_name(mut self, name: impl Into<String>) -> Self {
        self.mapping.name = name.into();
        self
    }

    /// Changes the rule for unknown keys, for example for inference.
    #[must_use]
    pub fn with_unseen(mut self, unseen: Unseen) -> Self {
        self.mapping.rules.unseen = unseen;
        self
    }

    /// Adds the new keys of obs, in sorted order, with codes after the existing ones.
    ///
    /// # Errors
    /// obs lacks a column; a column has labels of another kind than the encoder was fitted on.
    pub fn extend(&self, obs: &RecordBatch) -> Result<Self, FitError> {
        Ok(Self { mapping: self.mapping.extend(&self.mapping.columns_of(obs)?)? })
    }

    /// The keys in the order of their codes, with one field per column.
    pub fn classes(&self) -> StructArray {
        let columns =
            (0..self.mapping.columns.len()).map(|idx| self.mapping.classes.labels(idx)).collect();
        StructArray::new(self.fields(), columns, None)
    }

    /// The keys in the order of their codes as texts, for people and plots: labels joined by `/`.
    ///
    /// Different keys have different texts: `/` and `\` in a label are escaped by `\`, and null is
    /// `\N`.
    pub fn joined_keys(&self) -> Vec<String> {
        let text = |label: &Label<String>| match label {
            Label::Boolean(value) => value.to_string(),
            Label::Integer(value) => value.to_string(),
            Label::Text(value) => value.replace('\\', r"\\").replace('/', r"\/"),
            Label::Null => r"\N".to_owned(),
        };
        let keys = self.mapping.classes.keys().iter();
        keys.map(|key| key.iter().map(text).collect::<Vec<_>>().join("/")).collect()
    }

    /// The rules for unknown labels and nulls.
    pub fn rules(&self) -> Rules {
        self.mapping.rules
    }

    /// The encoder as JSON, for [`from_json`](Self::from_json).
    pub fn to_json(&self) -> Result<String, SavedError> {
        saved::to_json(SavedAs::BatchKey, &self.mapping)
    }

    /// Restores an encoder from its JSON.
    ///
    /// # Errors
    /// The text is not the JSON of a batch key encoder, or of a newer version; a key comes twice,
    /// or does not have one label of each column's kind.
    pub fn from_json(text: &str) -> Result<Self, SavedError> {
        Ok(Self { mapping: saved::from_json(SavedAs::BatchKey, text)? })
    }

    /// Writes the JSON to a file, replacing it atomically.
    pub fn save(&self, path: &Path) -> Result<(), SavedError> {
        saved::write(path, &self.to_json()?)
    }

    /// Restores an encoder from a file that [`save`](Self::save) wrote.
    ///
    /// # Errors
    /// Like [`from_json`](Self::from_json), or the file cannot be read.
    pub fn restore(path: &Path) -> Result<Self, SavedError> {
        Self::from_json(&saved::read(path)?)
    }

    fn fields(&self) -> Fields {
        let names = self.mapping.columns.iter().enumerate();
        names
            .map(|(idx, name)| Field::new(name, self.mapping.classes.data_type(idx), true))
            .collect()
    }
}

impl Encoder for BatchKeyEncoder {
    fn name(&self) -> &str {
        &self.mapping.name
    }

    fn columns(&self) -> &[String] {
        &self.mapping.columns
    }

    fn encode(&self, obs: &RecordBatch) -> Result<Int64Array, EncodeError> {
        self.mapping.encode(&self.mapping.columns_of(obs)?)
    }

    /// The keys of the codes, as a struct array with one field per column. For a null code, and for
    /// [`UNSEEN_CODE`](super::UNSEEN_CODE) with [`Unseen::Code`], all fields are null.
    fn inverse(&self, codes: &Int64Array) -> Result<ArrayRef, InverseError> {
        let columns = self.mapping.inverse(codes)?;
        let keys = StructArray::try_new(self.fields(), columns, None).map_err(|source| {
            InverseError::Arrow { encoder: self.mapping.name.clone(), what: "the keys", source }
        })?;
        Ok(Arc::new(keys))
    }

    fn n_classes(&self) -> Option<usize> {
        Some(self.mapping.classes.len())
    }
}
