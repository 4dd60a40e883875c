//! What is known of the data without measuring: how random each candidate would be, and how many values a row has. Looked at in a process
//! of its own, as everything that opens data is.

use anyhow::Context as _;
use loader::Dataset;
use serde::{Deserialize, Serialize};

use super::candidates;
use crate::grid::BlockSpec;
use crate::label_entropy::{Curve, Labels};

/// What to look at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SurveyJob {
    pub(crate) batch_rows: u64,
    /// Of the goal, in bytes: settings that need many times as much are not looked at.
    pub(crate) memory_bytes: u64,
    pub(crate) seed: u64,
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Surveyed {
    /// Values of a row of X in the mean.
    pub(crate) row_nnz: f64,
    /// Whether these are all that X has, so that the mean is one of what is read.
    pub(crate) is_all: bool,
    /// Block specifications that may be proposed, each with its entropy in bits; 0 where there is no label.
    pub(crate) candidates: Vec<(BlockSpec, f64)>,
    pub(crate) label: Option<LabelFound>,
}

/// The label by which randomness is measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct LabelFound {
    pub(crate) column: String,
    /// Mean entropy of the batches of a perfect shuffle, in bits.
    pub(crate) perfect_bits: f64,
}

/// Bytes that a value of a block takes at least: packed rows.
pub(super) const LEAST_VALUE_BYTES: f64 = 4.0;
/// Of a row of a block besides.
pub(super) const ROW_BYTES: f64 = 20.0;
/// So many times the wanted memory is looked at, to say what would do where it is too little.
const BEYOND: f64 = 4.0;

/// Looks at a data set.
pub(crate) fn look(
    dataset: &Dataset,
    labels: &Labels,
    job: &SurveyJob,
) -> anyhow::Result<Surveyed> {
    let (row_nnz, is_all) = row_nnz(dataset)?;
    let most = BEYOND * job.memory_bytes as f64 / (row_nnz * LEAST_VALUE_BYTES + ROW_BYTES);
    let specs = candidates::specs(dataset.n_rows(), job.batch_rows, most as u64);
    let curve = labels.curve(dataset, &specs, job.batch_rows, job.seed)?;
    let (label, bits) = match curve {
        Some(Curve { column, perfect_bits, bits }) => {
            (Some(LabelFound { column, perfect_bits }), bits)
        }
        None => (None, vec![0.0; specs.len()]),
    };
    Ok(Surveyed { row_nnz, is_all, candidates: specs.into_iter().zip(bits).collect(), label })
}

/// Of the genes that are read, as if all had as many values; and whether all of X is read.
fn row_nnz(dataset: &Dataset) -> anyhow::Result<(f64, bool)> {
    let reader = dataset.readers().next().context("there is no reader of X")?;
    let nnz = reader.nnz()?.unwrap_or(0) as f64;
    let n_columns = dataset.n_columns() as u64;
    let share = n_columns as f64 / reader.n_columns().max(1) as f64;
    let is_all = (dataset.n_rows(), n_columns) == (reader.n_rows(), reader.n_columns());
    Ok((nnz / reader.n_rows().max(1) as f64 * share, is_all))
}
