//! Encoders: obs columns as integer codes, as a model takes its labels and batch keys.
//!
//! Fitting is apart from encoding: an encoder is fitted once, on the obs rows of all that is to be trained on, and then encodes
//! each data set once, giving a code for every row. It is saved as JSON and restored, so that training, inference, and the next
//! release of the data mean the same by a code.
//!
//! | encoder | columns | code |
//! |---|---|---|
//! | [`LabelEncoder`] | one | the label's position among the sorted labels, or in the column's enumeration |
//! | [`BatchKeyEncoder`] | several | the position of the row's tuple of labels among the sorted tuples |
//! | your own | any | what your [`Encoder`] says |
//!
//! [`Encoders`] holds several, each with its own name, and makes a record batch of codes of a record batch of obs.
//!
//! Labels are texts, booleans and integers of any width, in plain columns or in dictionaries; of a dictionary, each value is looked
//! at once, and not each row's. Sorted means false before true, numbers by value, texts by Unicode code points, null last: for
//! columns without null these are the codes of scikit-learn's `LabelEncoder`, and so of Census's `ExperimentDataPipe`.
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
//! let obs = RecordBatch::try_from_iter([("cell_type", types), ("donor", donors), ("assay", assays)])?;
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
mod saved;
mod set;

use std::fmt::Debug;

use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use serde::{Deserialize, Serialize};

pub use batch_key::BatchKeyEncoder;
pub use error::Error;
pub use label_encoder::LabelEncoder;
pub use set::Encoders;

/// The code of a label that an encoder does not know, under [`Unseen::Code`].
pub const UNSEEN_CODE: i64 = -1;

/// Turns obs columns into a code for each row, and codes back into labels.
///
/// Encoding the same labels gives the same codes, whatever other rows there are. For an encoder of your own, errors that it has
/// not got from this crate go into [`Error::Custom`].
///
/// ```
/// use arrow_array::cast::AsArray;
/// use arrow_array::types::Float64Type;
/// use arrow_array::{ArrayRef, Int64Array, RecordBatch};
/// use loader::encode::{Encoder, Error};
///
/// /// 1 where a cell has many reads.
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
///     fn encode(&self, obs: &RecordBatch) -> Result<Int64Array, Error> {
///         let custom = |text: &str| Error::Custom { encoder: self.name().into(), source: text.into() };
///         let column = obs.column_by_name(&self.columns[0]).ok_or_else(|| custom("no column raw_sum"))?;
///         let sums = column.as_primitive_opt::<Float64Type>().ok_or_else(|| custom("not of float64"))?;
///         Ok(sums.values().iter().map(|sum| i64::from(*sum > 5000.0)).collect::<Vec<_>>().into())
///     }
///     fn inverse(&self, codes: &Int64Array) -> Result<ArrayRef, Error> {
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
    /// The name of the column of codes; unique in [`Encoders`].
    fn name(&self) -> &str;

    /// The obs columns that it needs.
    fn columns(&self) -> &[String];

    /// The code of each row of `obs`, which has the needed columns and may have others. No code is null.
    fn encode(&self, obs: &RecordBatch) -> Result<Int64Array, Error>;

    /// The label of each code; an array of any type, as long as `codes`. A code that stands for no label is an error.
    fn inverse(&self, codes: &Int64Array) -> Result<ArrayRef, Error>;

    /// How many codes there are, `0..n`, where that is a fixed number: the size of a model's output layer.
    fn n_classes(&self) -> Option<usize> {
        None
    }
}

/// What is done about a label that an encoder does not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unseen {
    /// It is an error, which names the label, its row, and some labels that are known.
    #[default]
    Error,
    /// Its code is [`UNSEEN_CODE`].
    Code,
}

/// What null is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Nulls {
    /// No label: fitting passes over it, and encoding treats it as a label that is not known. A key with a null in it is so too.
    #[default]
    Unseen,
    /// A label like others, which sorts behind them. Where fitting met none, it is one that is not known.
    Class,
}

/// The rules of an encoder; saved with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rules {
    /// For labels that it does not know.
    pub unseen: Unseen,
    /// For nulls.
    pub nulls: Nulls,
}
