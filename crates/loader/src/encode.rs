//! Encodes obs columns as integer codes, for a model's labels and batch keys.
//!
//! Fit an encoder once, on the obs rows of all training data; it then encodes each data set, one
//! code per row. Save it as JSON and restore it, so that codes mean the same in training, at
//! inference, and for the next release of the data.
//!
//! | encoder | columns | code |
//! |---|---|---|
//! | [`LabelEncoder`] | one | the label's index among the sorted labels, or in the column's enumeration |
//! | [`BatchKeyEncoder`] | several | the index of the row's tuple of labels among the sorted tuples |
//! | your own [`Encoder`] | any | any |
//!
//! [`Encoders`] combines several encoders, each with its own name: it turns a record batch of obs
//! into a record batch of codes.
//!
//! Labels are texts, booleans and integers of any width, in plain columns or dictionaries. A value
//! of a dictionary is inspected once, not once per row. Labels are sorted as false before true,
//! numbers by value, texts by Unicode code points, null last. For columns without null these are
//! the codes of scikit-learn's `LabelEncoder`, and so of the Census's `ExperimentDataPipe`.
//!
//! ```
//! use std::sync::Arc;
//!
//! use arrow_array::{ArrayRef, RecordBatch, StringArray};
//! use loader::encode::{BatchKeyEncoder, Encoder, Encoders, LabelEncoder, Rules};
//!
//! let types: ArrayRef = Arc::new(StringArray::from(vec!["T cell", "B cell", "T cell"]));
//! let donors: ArrayRef = Arc::new(StringArray::from(vec!["d1", "d2", "d2"]));
//! let assays: ArrayRef = Arc::new(StringArray::from(vec!["10x", "10x", "10x"]));
//! let columns = [("cell_type", types), ("donor", donors), ("assay", assays)];
//! let obs = RecordBatch::try_from_iter(columns)?;
//!
//! let label = LabelEncoder::fit("cell_type", obs.column(0), Rules::default())?;
//! let batch = BatchKeyEncoder::fit("batch", &["donor", "assay"], &obs, Rules::default())?;
//! let encoders = Encoders::new(vec![Arc::new(label), Arc::new(batch)])?;
//! let codes = encoders.encode(&obs)?;
//! assert_eq!(codes.schema().field(1).name(), "batch");
//! assert_eq!(codes.column(0).as_ref(), &arrow_array::Int64Array::from(vec![1, 0, 1]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod batch_key;
mod classes;
mod error;
mod keys;
mod label;
mod label_encoder;
mod mapping;
mod narrow;
mod saved;
mod set;

use std::fmt::Debug;

use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use serde::{Deserialize, Serialize};

pub use batch_key::BatchKeyEncoder;
pub use error::{
    DuplicateName, EncodeError, FitError, InverseError, KeyError, LabelsError, NoEncoder,
    SavedError,
};
pub use label_encoder::LabelEncoder;
pub(crate) use narrow::{code_at, unified, widened};
pub use set::Encoders;

/// The code of a label that an encoder does not know, with [`Unseen::Code`].
pub const UNSEEN_CODE: i64 = -1;

/// Turns obs columns into a code for each row, and codes back into labels.
///
/// A row's code depends on its own labels only. An encoder of your own wraps its errors in
/// [`EncodeError::Custom`] and [`InverseError::Custom`].
///
/// ```
/// use arrow_array::cast::AsArray;
/// use arrow_array::types::Float64Type;
/// use arrow_array::{ArrayRef, Int64Array, RecordBatch};
/// use loader::encode::{EncodeError, Encoder, InverseError};
///
/// /// 1 if a cell has many reads.
/// #[derive(Debug)]
/// struct ManyReads {
///     columns: [String; 1],
/// }
///
/// impl Encoder for ManyReads {
///     fn name(&self) -> &str {
///         "many_reads"
///     }
///     fn columns(&self) -> &[String] {
///         &self.columns
///     }
///     fn encode(&self, obs: &RecordBatch) -> Result<Int64Array, EncodeError> {
///         let custom = |text: &str| EncodeError::Custom {
///             encoder: self.name().into(),
///             source: text.into(),
///         };
///         let sums = obs
///             .column_by_name(&self.columns[0])
///             .and_then(|column| column.as_primitive_opt::<Float64Type>())
///             .ok_or_else(|| custom("obs has no float64 column raw_sum"))?;
///         Ok(sums.values().iter().map(|sum| i64::from(*sum > 5000.0)).collect::<Vec<_>>().into())
///     }
///     fn inverse(&self, codes: &Int64Array) -> Result<ArrayRef, InverseError> {
///         Ok(std::sync::Arc::new(codes.clone()))
///     }
/// }
///
/// let encoder = ManyReads { columns: ["raw_sum".into()] };
/// let sums: ArrayRef = std::sync::Arc::new(arrow_array::Float64Array::from(vec![4000.0, 6000.0]));
/// let obs = RecordBatch::try_from_iter([("raw_sum", sums)])?;
/// assert_eq!(encoder.encode(&obs)?, Int64Array::from(vec![0, 1]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Encoder: Send + Sync + Debug {
    /// The name of the encoder and of its column of codes; unique in [`Encoders`].
    fn name(&self) -> &str;

    /// The obs columns that it needs.
    fn columns(&self) -> &[String];

    /// The code of each row of `obs`, which has at least the needed columns. No code may be null.
    fn encode(&self, obs: &RecordBatch) -> Result<Int64Array, EncodeError>;

    /// The label of each code, as an array of any type with the length of `codes`.
    ///
    /// # Errors
    /// A code has no label.
    fn inverse(&self, codes: &Int64Array) -> Result<ArrayRef, InverseError>;

    /// Number of codes, if it is fixed: codes are then `0..n_classes`, and a model's output layer
    /// has this size.
    fn n_classes(&self) -> Option<usize> {
        None
    }
}

/// The treatment of labels that an encoder does not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Unseen {
    /// Encoding fails. The error names the label, its row, and a few known labels.
    #[default]
    Error,
    /// The code is [`UNSEEN_CODE`].
    Code,
}

/// The treatment of nulls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Nulls {
    /// Null is not a label: fitting skips it, and encoding treats it as an unknown label. The same
    /// holds for a key that contains a null.
    #[default]
    Unseen,
    /// Null is a label like any other, sorted last. It is an unknown label if fitting met no null.
    Class,
}

/// The rules of an encoder; saved with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rules {
    /// The rule for unknown labels.
    pub unseen: Unseen,
    /// The rule for nulls.
    pub nulls: Nulls,
}
