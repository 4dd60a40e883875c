//! The encoder of one column.

use std::path::Path;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch};

use super::classes::Classes;
use super::error::Error;
use super::keys::Keys;
use super::label::Label;
use super::mapping::Mapping;
use super::saved::{self, SavedAs};
use super::{Encoder, Nulls, Rules, Unseen};

/// A code for each label of one column.
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
/// # Ok::<(), loader::encode::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelEncoder {
    mapping: Mapping,
}

impl LabelEncoder {
    /// An encoder of the labels that occur in `labels`, called as the obs column that they are of.
    ///
    /// Codes are positions among the sorted labels. Values of a dictionary that no row has get no code.
    ///
    /// # Errors
    /// The type has no labels; an integer is beyond 64 bits with sign.
    pub fn fit(column: &str, labels: &ArrayRef, rules: Rules) -> Result<Self, Error> {
        let mapping = Mapping::fit(column.to_owned(), vec![column.to_owned()], &[labels], rules)?;
        Ok(Self { mapping })
    }

    /// An encoder whose codes are the codes of the column's enumeration, values that no row has included.
    ///
    /// As long as a later release of the data only adds to its enumeration, the encoder made of that one agrees with this. Under
    /// [`Nulls::Class`] null, where rows have it, is the code behind the enumeration.
    ///
    /// # Errors
    /// The column is no dictionary; a value of it is null, or comes twice.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use arrow_array::types::Int8Type;
    /// use arrow_array::{ArrayRef, DictionaryArray, Int64Array};
    /// use loader::encode::{LabelEncoder, Rules};
    ///
    /// let labels: ArrayRef = Arc::new(DictionaryArray::<Int8Type>::from_iter(["T cell", "B cell", "T cell"]));
    /// let encoder = LabelEncoder::from_enumeration("cell_type", &labels, Rules::default())?;
    /// assert_eq!(encoder.encode_labels(&labels)?, Int64Array::from(vec![0, 1, 0]));
    /// # Ok::<(), loader::encode::Error>(())
    /// ```
    pub fn from_enumeration(column: &str, labels: &ArrayRef, rules: Rules) -> Result<Self, Error> {
        let Some(dictionary) = labels.as_any_dictionary_opt() else {
            return Err(Error::NoEnumeration {
                column: column.to_owned(),
                found: labels.data_type().clone(),
            });
        };
        let values = Keys::new(&[(column, dictionary.values())], dictionary.values().len())?;
        // By their codes and not only the distinct ones, so that a value that comes twice is found.
        let keys = values.rows.iter().map(|value| values.distinct[*value as usize].clone());
        let mut keys: Vec<Vec<Label<String>>> =
            keys.map(|key| key.into_iter().map(Label::owned).collect()).collect();
        if let Some(code) = keys.iter().position(|key| key.contains(&Label::Null)) {
            return Err(Error::NullInEnumeration { column: column.to_owned(), code });
        }
        if rules.nulls == Nulls::Class && labels.null_count() > 0 {
            keys.push(vec![Label::Null]);
        }
        let classes = Classes::new(column, values.kinds, keys)?;
        let (name, columns) = (column.to_owned(), vec![column.to_owned()]);
        Ok(Self { mapping: Mapping { name, columns, rules, classes } })
    }

    /// The encoder under another name, which is that of the column of codes.
    #[must_use]
    pub fn with_name(mut self, name: impl Into<String>) -> Self {
        self.mapping.name = name.into();
        self
    }

    /// The encoder with another rule for labels that it does not know, as for inference.
    #[must_use]
    pub fn with_unseen(mut self, unseen: Unseen) -> Self {
        self.mapping.rules.unseen = unseen;
        self
    }

    /// An encoder that also knows what is new in `labels`, with codes behind those that there are, in sorted order.
    ///
    /// # Errors
    /// The labels are of another kind than those fitted.
    pub fn extend(&self, labels: &ArrayRef) -> Result<Self, Error> {
        Ok(Self { mapping: self.mapping.extend(&[labels])? })
    }

    /// The code of each label.
    ///
    /// # Errors
    /// A label is not known, under [`Unseen::Error`]; the labels are of another kind than those fitted.
    pub fn encode_labels(&self, labels: &ArrayRef) -> Result<Int64Array, Error> {
        self.mapping.encode(&[labels])
    }

    /// The labels by their codes: booleans, 64-bit integers, or texts with 64-bit offsets.
    pub fn classes(&self) -> ArrayRef {
        self.mapping.classes.labels(0)
    }

    /// The rules for what has no code.
    pub fn rules(&self) -> Rules {
        self.mapping.rules
    }

    /// The encoder as JSON; [`from_json`](Self::from_json) gives it back.
    pub fn to_json(&self) -> Result<String, Error> {
        saved::to_json(SavedAs::Label, &self.mapping)
    }

    /// The encoder that was made into JSON.
    ///
    /// # Errors
    /// The text is not JSON of a label encoder, or of a version of it that is not known; a label comes twice, or is of another kind
    /// than the column.
    pub fn from_json(text: &str) -> Result<Self, Error> {
        Ok(Self { mapping: saved::from_json(SavedAs::Label, text)? })
    }

    /// Writes the JSON to a file, which it replaces as a whole.
    pub fn save(&self, path: &Path) -> Result<(), Error> {
        saved::write(path, &self.to_json()?)
    }

    /// Reads the encoder from a file that [`save`](Self::save) wrote.
    ///
    /// # Errors
    /// As [`from_json`](Self::from_json); the file cannot be read.
    pub fn restore(path: &Path) -> Result<Self, Error> {
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

    fn encode(&self, obs: &RecordBatch) -> Result<Int64Array, Error> {
        self.mapping.encode(&self.mapping.columns_of(obs)?)
    }

    /// The labels of the codes, of the type of [`classes`](Self::classes). A null gives null, and so does
    /// [`UNSEEN_CODE`](super::UNSEEN_CODE) under [`Unseen::Code`].
    fn inverse(&self, codes: &Int64Array) -> Result<ArrayRef, Error> {
        Ok(self.mapping.inverse(codes)?.remove(0))
    }

    fn n_classes(&self) -> Option<usize> {
        Some(self.mapping.classes.len())
    }
}
