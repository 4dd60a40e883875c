//! Facts about the data that need no measurement: entropy of each candidate, and values per row.
//!
//! The survey has its own process, like everything that opens data.

use anyhow::{Context as _, anyhow};
use bench_run::{Ended, Order, ProcessSpec, Reporter, Session};
use grid_point::{BlockSpec, Curve, Data, Labels, OpenData, Opened};
use loader::Dataset;
use serde::{Deserialize, Serialize};

use crate::proposal;

/// The subcommand of the program that runs [`serve`].
pub const SUBCOMMAND: &str = "tune-task";

/// The task of a survey.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SurveyTask {
    pub(crate) data: Data,
    pub(crate) batch_rows: u64,
    /// Memory goal in bytes. Settings that need more than four times as much are not surveyed.
    pub(crate) memory_bytes: u64,
    pub(crate) seed: u64,
}

/// Result of a survey.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Surveyed {
    /// Mean number of values in a row of X.
    pub(crate) row_nnz: f64,
    /// Whether all of X is read, so that the mean is exact for the rows and genes read.
    pub(crate) is_all: bool,
    /// Block specifications that may be proposed, each with its entropy in bits; 0 without a label.
    pub(crate) candidates: Vec<(BlockSpec, f64)>,
    pub(crate) label: Option<SurveyedLabel>,
}

/// The label by which randomness is measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct SurveyedLabel {
    pub(crate) column: String,
    /// Mean entropy within a batch of a perfect shuffle, in bits.
    pub(crate) perfect_bits: f64,
}

/// Least bytes of a value in a block: those of packed rows.
pub(super) const LEAST_VALUE_BYTES: f64 = 4.0;
/// Bytes of a row in a block, besides its values.
pub(super) const ROW_BYTES: f64 = 20.0;
/// Multiple of the memory goal that is surveyed, so that an error can name how much would do.
const BEYOND: f64 = 4.0;

/// Reads the order of a survey from stdin, performs it and writes the result to stdout.
pub fn serve() -> anyhow::Result<()> {
    bench_run::serve(|task: &SurveyTask| task.data.secrets(), perform)
}

fn perform(
    order: &Order<SurveyTask>,
    reporter: &mut Reporter<(Opened, Surveyed)>,
) -> anyhow::Result<()> {
    let OpenData { dataset, labels, opened, .. } = OpenData::open(&order.task.data, None)?;
    let surveyed = survey(&dataset, &labels, &order.task)?;
    reporter.answer((opened, surveyed))
}

/// Surveys the data in a process of its own; `None` after Ctrl-C.
pub(crate) fn run(
    session: &Session,
    task: SurveyTask,
) -> anyhow::Result<Option<(Opened, Surveyed)>> {
    let (secrets, uri) = (task.data.secrets(), task.data.uri.to_string());
    let link = task.data.link.clone();
    let order = Order { cache: String::new(), task };
    let process = ProcessSpec::new(session.command(SUBCOMMAND), &order, secrets)?.over(link);
    let mut result = None;
    let ended = session.run("opening", process, &mut |answer| {
        result = Some(answer);
        Ok(())
    })?;
    match ended {
        Ended::Done { .. } => {
            result.map(Some).with_context(|| format!("{uri} could not be surveyed"))
        }
        Ended::Failed(failure) => Err(anyhow!(failure.message)),
        Ended::Interrupted => Ok(None),
    }
}

fn survey(dataset: &Dataset, labels: &Labels, job: &SurveyTask) -> anyhow::Result<Surveyed> {
    let (row_nnz, is_all) = row_nnz(dataset)?;
    let most = BEYOND * job.memory_bytes as f64 / (row_nnz * LEAST_VALUE_BYTES + ROW_BYTES);
    let specs = proposal::specs(dataset.n_rows(), job.batch_rows, most as u64);
    let curve = labels.curve(dataset, &specs, job.batch_rows, job.seed)?;
    let (label, bits) = match curve {
        Some(Curve { column, perfect_bits, bits }) => {
            (Some(SurveyedLabel { column, perfect_bits }), bits)
        }
        None => (None, vec![0.0; specs.len()]),
    };
    Ok(Surveyed { row_nnz, is_all, candidates: specs.into_iter().zip(bits).collect(), label })
}

/// Returns the mean values per row over the genes read, and whether all of X is read.
///
/// Assumes that all genes have equally many values.
fn row_nnz(dataset: &Dataset) -> anyhow::Result<(f64, bool)> {
    let reader = dataset.readers().next().context("there is no reader of X")?;
    let nnz = reader.nnz()?.unwrap_or(0) as f64;
    let n_columns = dataset.n_columns() as u64;
    let share = n_columns as f64 / reader.n_columns().max(1) as f64;
    let is_all = (dataset.n_rows(), n_columns) == (reader.n_rows(), reader.n_columns());
    Ok((nnz / reader.n_rows().max(1) as f64 * share, is_all))
}
