//! Sets of encoders that are applied together.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch, RecordBatchOptions};
use arrow_schema::{Field, Schema};

use super::Encoder;
use super::error::{DuplicateName, EncodeError, InverseError, NoEncoder};
use super::mapping::columns_of;
use super::narrow::{NarrowCodes, windows};

/// A set of encoders with distinct names. Cheap to clone.
///
/// ```
/// use std::sync::Arc;
///
/// use arrow_array::{ArrayRef, BooleanArray, RecordBatch};
/// use loader::encode::{DuplicateName, Encoders, LabelEncoder, Rules};
///
/// let primary: ArrayRef = Arc::new(BooleanArray::from(vec![true, false]));
/// let encoder = Arc::new(LabelEncoder::fit("is_primary_data", &primary, Rules::default())?);
/// let twice = Encoders::new(vec![encoder.clone(), encoder.clone()]);
/// assert!(matches!(twice, Err(DuplicateName { .. })));
///
/// let encoders = Encoders::new(vec![encoder])?;
/// let obs = RecordBatch::try_from_iter([("is_primary_data", primary)])?;
/// assert_eq!(encoders.encode(&obs)?.num_rows(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Encoders {
    encoders: Arc<[Arc<dyn Encoder>]>,
}

impl Encoders {
    /// Makes a set of these encoders; their codes come in this order.
    ///
    /// # Errors
    /// Two encoders have the same name.
    pub fn new(encoders: Vec<Arc<dyn Encoder>>) -> Result<Self, DuplicateName> {
        let mut names = BTreeSet::new();
        match encoders.iter().find(|encoder| !names.insert(encoder.name())) {
            Some(encoder) => Err(DuplicateName { name: encoder.name().to_owned() }),
            None => Ok(Self { encoders: encoders.into() }),
        }
    }

    /// Iterates over the encoders in order.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<dyn Encoder>> {
        self.encoders.iter()
    }

    /// The encoder with this name.
    ///
    /// # Errors
    /// No encoder has it.
    pub fn get(&self, name: &str) -> Result<&Arc<dyn Encoder>, NoEncoder> {
        self.iter().find(|encoder| encoder.name() == name).ok_or_else(|| NoEncoder {
            name: name.to_owned(),
            existing: self.iter().map(|encoder| encoder.name().to_owned()).collect(),
        })
    }

    /// The obs columns that the encoders need, each once.
    pub fn columns(&self) -> Vec<&str> {
        let mut seen = BTreeSet::new();
        let columns = self.iter().flat_map(|encoder| encoder.columns()).map(String::as_str);
        columns.filter(|column| seen.insert(*column)).collect()
    }

    /// The codes of each row of obs: one Int64 column per encoder, with the encoder's name and
    /// without nulls.
    ///
    /// # Errors
    /// obs lacks a column that an encoder needs; an encoder fails, or does not return one code for
    /// each row.
    pub fn encode(&self, obs: &RecordBatch) -> Result<RecordBatch, EncodeError> {
        self.encode_each(obs, |encoder| Ok(Arc::new(codes_of(encoder, obs)?)))
    }

    /// The codes like [`encode`](Self::encode), in the narrowest integers that have all codes of an
    /// encoder. Takes the memory of these, and what the encoders need for one window of rows.
    pub(crate) fn encode_narrow(&self, obs: &RecordBatch) -> Result<RecordBatch, EncodeError> {
        self.encode_each(obs, |encoder| {
            let mut narrow = NarrowCodes::new(obs.num_rows());
            for (first, window) in windows(obs) {
                let codes = codes_of(encoder, &window).map_err(|error| error.in_window(first))?;
                narrow.append(codes.values());
            }
            Ok(narrow.finish())
        })
    }

    /// One column for each encoder.
    fn encode_each(
        &self,
        obs: &RecordBatch,
        codes_of: impl Fn(&dyn Encoder) -> Result<ArrayRef, EncodeError>,
    ) -> Result<RecordBatch, EncodeError> {
        // Checked first, so that no encoder works in vain.
        for encoder in self.iter() {
            columns_of(encoder.name(), encoder.columns(), obs)?;
        }
        let mut fields = Vec::with_capacity(self.encoders.len());
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(self.encoders.len());
        for encoder in self.iter() {
            let codes = codes_of(&**encoder)?;
            fields.push(Field::new(encoder.name(), codes.data_type().clone(), false));
            columns.push(codes);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(obs.num_rows()));
        RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options).map_err(
            |source| {
                let names: Vec<&str> = self.iter().map(|encoder| encoder.name()).collect();
                EncodeError::Arrow { encoder: names.join(", "), what: "the codes", source }
            },
        )
    }

    /// The labels of codes of the encoder with this name.
    ///
    /// # Errors
    /// No encoder has the name; a code has no label.
    pub fn inverse(&self, name: &str, codes: &Int64Array) -> Result<ArrayRef, InverseError> {
        self.get(name)?.inverse(codes)
    }
}

/// The codes of an encoder, after checking that there is one for each row.
fn codes_of(encoder: &dyn Encoder, obs: &RecordBatch) -> Result<Int64Array, EncodeError> {
    let codes = encoder.encode(obs)?;
    if codes.len() == obs.num_rows() && codes.null_count() == 0 {
        return Ok(codes);
    }
    Err(EncodeError::CodeCount {
        encoder: encoder.name().to_owned(),
        found: codes.len(),
        n_nulls: codes.null_count(),
        n_rows: obs.num_rows(),
    })
}
