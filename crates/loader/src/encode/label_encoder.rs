//! The encoder of one column.

use std::path::Path;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch};

use super::classes::Classes;
use super::error::{EncodeError, FitError, InverseError, SavedError};
use super::keys::Keys;
use super::label::Label;
use super::mapping::Mapping;
use super::saved::{self, SavedAs};
use super::{Encoder, Nulls, Rules, Unseen};

/// Encodes the labels of one column.
///
/// ```
/// use std::sync::Arc;
///
/// use arrow_array::cast::AsArray;
/// use arrow_array::{ArrayRef, Int64Array, StringArray};
/// use loader::encode::{Encoder, LabelEncoder, Rules};
///
/// let labels: ArrayRef = Arc::new(StringArray::from(vec!["T cell", "B cell", "T cell"]));
/// let encoder = LabelEncoder::fit("cell_type", &labels, Rules::default())?;
/// let codes = encoder.encode_labels(&labels)?;
/// assert_eq!(codes, Int64Array::from(vec![1, 0, 1]));
/// assert_eq!(encoder.inverse(&codes)?.as_string::<i64>().value(0), "T cell");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelEncoder {
    mapping: Mapping,
}

impl LabelEncoder {
    /// Fits an encoder of obs column `column` on the labels in `labels`.
    ///
    /// A label's code is its index among the sorted labels. Values of a dictionary that no row has
    /// get no code.
    ///
    /// # Errors
    /// The array's type has no labels; an integer does not fit into a signed 64-bit integer.
    pub fn fit(column: &str, labels: &ArrayRef, rules: Rules) -> Result<Self, FitError> {
        let mapping = Mapping::fit(column.to_owned(), vec![column.to_owned()], &[labels], rules)?;
        Ok(Self { mapping })
    }

    /// Makes an encoder whose codes are those of the column's enumeration, including values that no
    /// row has.
    ///
    /// The encoders of two releases of the data agree if the later release only appends to the
    /// enumeration. With [`Nulls::Class`], null gets the code after the enumeration if a row is
    /// null.
    ///
    /// # Errors
    /// The column is not a dictionary; one of its values is null, or comes twice.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use arrow_array::types::Int8Type;
    /// use arrow_array::{ArrayRef, DictionaryArray, Int64Array};
    /// use loader::encode::{LabelEncoder, Rules};
    ///
    /// let labels = DictionaryArray::<Int8Type>::from_iter(["T cell", "B cell", "T cell"]);
    /// let labels: ArrayRef = Arc::new(labels);
    /// let encoder = LabelEncoder::from_enumeration("cell_type", &labels, Rules::default())?;
    /// assert_eq!(encoder.encode_labels(&labels)?, Int64Array::from(vec![0, 1, 0]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn from_enumeration(
        column: &str,
        labels: &ArrayRef,
        rules: Rules,
    ) -> Result<Self, FitError> {
        let Some(dictionary) = labels.as_any_dictionary_opt() else {
            return Err(FitError::NoEnumeration {
                column: column.to_owned(),
                found: labels.data_type().clone(),
            });
        };
        let values = Keys::new(&[(column, dictionary.values())], dictionary.values().len())?;
        // All values in the order of their codes, not the distinct ones: a repetition is an error.
        let keys = values.rows.iter().map(|value| values.distinct[*value as usize].clone());
        let mut keys: Vec<Vec<Label<String>>> =
            keys.map(|key| key.into_iter().map(Label::owned).collect()).collect();
        if let Some(code) = keys.iter().position(|key| key.contains(&Label::Null)) {
            return Err(FitError::NullInEnumeration { column: column.to_owned(), code });
        }
        if rules.nulls == Nulls::Class && labels.null_count() > 0 {
            keys.push(vec![Label::Null]);
        }
        let classes = Classes::new(column, values.kinds, keys)?;
        let (name, columns) = (column.to_owned(), vec![column.to_owned()]);
        Ok(Self { mapping: Mapping { name, columns, rules, classes } })
    }

    /// Renames the encoder, and with it the column of codes.
    #[must_use]
    pub fn with_name(mut self, name: impl Into<String>) -> Self {
        self.mapping.name = name.into();
        self
    }

    /// Changes the rule for unknown labels, for example for inference.
    #[must_use]
    pub fn with_unseen(mut self, unseen: Unseen) -> Self {
        self.mapping.rules.unseen = unseen;
        self
    }

    /// Adds the new labels in `labels`, in sorted order, with codes after the existing ones.
    ///
    /// # Errors
    /// The labels have another kind than the encoder was fitted on.
    pub fn extend(&self, labels: &ArrayRef) -> Result<Self, FitError> {
        Ok(Self { mapping: self.mapping.extend(&[labels])? })
    }

    /// The code of each label.
    ///
    /// # Errors
    /// A label is unknown, with [`Unseen::Error`]; the labels have another kind than the encoder
    /// was fitted on.
    pub fn encode_labels(&self, labels: &ArrayRef) -> Result<Int64Array, EncodeError> {
        self.mapping.encode(&[labels])
    }

    /// The labels in the order of their codes: booleans, 64-bit integers, or texts with 64-bit
    /// offsets.
    pub fn classes(&self) -> ArrayRef {
        self.mapping.classes.labels(0)
    }

    /// The rules for unknown labels and nulls.
    pub fn rules(&self) -> Rules {
        self.mapping.rules
    }

    /// The encoder as JSON, for [`from_json`](Self::from_json).
    pub fn to_json(&self) -> Result<String, SavedError> {
        saved::to_json(SavedAs::Label, &self.mapping)
    }

    /// Restores an encoder from its JSON.
    ///
    /// # Errors
    /// The text is not the JSON of a label encoder, or of a newer version; a label comes twice, or
    /// has another kind than the column.
    pub fn from_json(text: &str) -> Result<Self, SavedError> {
        Ok(Self { mapping: saved::from_json(SavedAs::Label, text)? })
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
}

impl Encoder for LabelEncoder {
    fn name(&self) -> &str {
        &self.mapping.name
    }

    fn columns(&self) -> &[String] {
        &self.mapping.columns
    }

    fn encode(&self, obs: &RecordBatch) -> Result<Int64Array, EncodeError> {
        self.mapping.encode(&self.mapping.columns_of(obs)?)
    }

    /// The labels of the codes, with the type of [`classes`](Self::classes). The label of a null
    /// code, and of [`UNSEEN_CODE`](super::UNSEEN_CODE) with [`Unseen::Code`], is null.
    fn inverse(&self, codes: &Int64Array) -> Result<ArrayRef, InverseError> {
        Ok(self.mapping.inverse(codes)?.remove(0))
    }

    fn n_classes(&self) -> Option<usize> {
        Some(self.mapping.classes.len())
    }
}
