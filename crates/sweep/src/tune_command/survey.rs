//! The survey of cells: their number, the values of a row, and the entropy of each candidate.
//!
//! It has its own process, like everything that opens data.

use anyhow::{Context as _, anyhow, bail};
use bench_run::{Ended, Interrupted, LabelCodes, Order, ProcessSpec, Reporter, Session};
use grid_point::{DEFAULT_COLUMNS, Data, OpenData, Opened};
use loader::{BatchForm, Dataset};
use serde::{Deserialize, Serialize};
use tune::{Facts, KnownMemory, Surveyed};

use super::args::TuneArgs;
use super::cells::PREFETCH_BATCHES;

/// The subcommand of the program that runs [`serve`].
pub(crate) const SUBCOMMAND: &str = "tune-task";

/// The task of a survey.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct SurveyTask {
    data: Data,
    batch_rows: u64,
    /// Bytes of an element of a dense batch; 0 for sparse batches.
    element_bytes: u64,
    memory_bytes: u64,
    seed: u64,
}

type Answer = (Opened, Surveyed);

/// Least bytes of a value in a block: those of packed rows.
const LEAST_VALUE_BYTES: f64 = 4.0;
/// Most bytes of a value in a block.
const MOST_VALUE_BYTES: f64 = 8.0;
/// Bytes of a row in a block, besides its values.
const ROW_BYTES: f64 = 20.0;

/// What to do without the label.
const OTHER_LABEL: &str = ": --label names another, --entropy none does without";

/// Reads the order of a survey from stdin, performs it and writes the result to stdout.
pub(crate) fn serve() -> anyhow::Result<()> {
    bench_run::serve(|task: &SurveyTask| task.data.secrets(), perform)
}

fn perform(order: &Order<SurveyTask>, reporter: &mut Reporter<Answer>) -> anyhow::Result<()> {
    let task = &order.task;
    let OpenData { dataset, labels, opened, .. } = OpenData::open(&task.data, None)?;
    let facts = facts(&dataset, task)?;
    let survey =
        |label: Option<&LabelCodes>| Surveyed::new(facts, label, task.memory_bytes, task.seed);
    let of_labels = labels.codes(&dataset)?;
    let surveys = of_labels.iter().map(|label| survey(Some(label)));
    let surveys = surveys.collect::<anyhow::Result<Vec<Surveyed>>>()?;
    let hardest = surveys.into_iter().min_by(|a, b| mixing(a).total_cmp(&mixing(b)));
    let surveyed = hardest.map_or_else(|| survey(None), Ok)?;
    reporter.answer((opened, surveyed))
}

/// The entropy of all candidates as a share of a perfect shuffle's. A label of one class is mixed.
fn mixing(surveyed: &Surveyed) -> f64 {
    let perfect = surveyed.label.as_ref().map_or(0.0, |label| label.perfect_bits);
    let shares = surveyed.candidates.iter().map(|(_, bits)| bits / perfect);
    if 0.0 < perfect { shares.sum::<f64>() } else { f64::INFINITY }
}

/// Surveys the data in a process of its own.
pub(super) fn run(session: &Session, args: &TuneArgs, data: &Data) -> anyhow::Result<Answer> {
    let element = BatchForm::from(args.batch_form).dense_type();
    let task = SurveyTask {
        data: data.clone(),
        batch_rows: args.batch_size,
        element_bytes: element.map_or(0, |element| element.bytes() as u64),
        memory_bytes: args.tune.memory.as_u64(),
        seed: args.seed,
    };
    let order = Order { cache: String::new(), task };
    let process = ProcessSpec::new(session.command(SUBCOMMAND), &order, data.secrets())?;
    let mut result: Option<Answer> = None;
    let ended = session.run("opening", process.over(data.link.clone()), &mut |answer| {
        result = Some(answer);
        Ok(())
    })?;
    match ended {
        Ended::Done { .. } => {
            let answer = result.with_context(|| format!("{} could not be surveyed", data.uri))?;
            if args.wants_label() && answer.1.label.is_none() {
                let names = DEFAULT_COLUMNS.concat().join(", ");
                bail!("obs of {} has none of {names} as texts{OTHER_LABEL}", data.uri);
            }
            Ok(answer)
        }
        Ended::Failed(failure) => {
            let message = failure.message;
            let label = args.label.as_deref().unwrap_or_default();
            let is_label = message.contains(&format!("has no column {label:?}"));
            Err(anyhow!("{message}{}", if is_label { OTHER_LABEL } else { "" }))
        }
        Ended::Interrupted => Err(Interrupted.into()),
    }
}

fn facts(dataset: &Dataset, task: &SurveyTask) -> anyhow::Result<Facts> {
    let (row_nnz, is_all) = row_nnz(dataset)?;
    let (n_rows, batch_rows) = (dataset.n_rows(), task.batch_rows);
    let row_bytes = row_nnz * LEAST_VALUE_BYTES + ROW_BYTES;
    let elements = batch_rows.min(n_rows) as f64 * dataset.n_columns() as f64;
    let memory = KnownMemory {
        row_bytes,
        least_row_bytes: if is_all { row_bytes } else { ROW_BYTES },
        batch_bytes: elements * task.element_bytes as f64,
        // Counts the batch being made, those that wait, and the consumer's.
        n_batches: n_rows.div_ceil(batch_rows).min(PREFETCH_BATCHES as u64 + 2),
    };
    let most_row_bytes = row_nnz * MOST_VALUE_BYTES + ROW_BYTES;
    Ok(Facts { n_rows, batch_rows, whole_batches: false, most_row_bytes, memory })
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
