//! Our loader's processes: one counts the cells and values of an epoch, one writes a copy of the
//! data by `relayout`.

use std::ops::ControlFlow;

use anyhow::Context as _;
use arrow_array::cast::AsArray as _;
use arrow_array::types::Int64Type;
use arrow_schema::DataType;
use bench_run::{Order, ProcessSpec, Reporter, Session};
use grid_point::{Data, DataSource, OpenData, Point, tensor_loader};
use relayout::{RelayoutEvent, RelayoutSpec};
use serde::{Deserialize, Serialize};
use soma_io::{Experiment, OpenOptions};
use torch_feed::TensorLoader;

use super::delivered::{Delivered, DeliveryCount};
use super::peer::{PeerAnswer, PeerConversion};

/// The subcommand of the program that runs [`serve`].
pub const SUBCOMMAND: &str = "peers-task";

/// A task and its data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct OwnTask {
    pub(crate) data: Data,
    pub(crate) work: OwnWork,
}

/// Work to do on the data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum OwnWork {
    /// Load an epoch without measuring, and count its cells and values.
    Tally {
        /// How it is loaded.
        point: Box<Point>,
        /// The obs column with each cell's joinid as a text, where joinids are not those of the
        /// experiment: in a copy.
        joinid_column: Option<String>,
    },
    /// Write a copy of the experiment in a layout for training.
    Relayout {
        /// Path of the copy.
        target: String,
    },
}

/// Returns a process that does `work` on the data.
pub(crate) fn own_process(
    session: &Session,
    data: &Data,
    work: OwnWork,
) -> anyhow::Result<ProcessSpec<'static>> {
    let task = OwnTask { data: data.clone(), work };
    let order = Order { cache: session.cache.to_owned(), task };
    let process = ProcessSpec::new(session.command(SUBCOMMAND), &order, data.secrets())?;
    Ok(process.over(data.link.clone()))
}

/// Reads an order from stdin, performs it and reports on stdout.
pub fn serve() -> anyhow::Result<()> {
    bench_run::serve(|task: &OwnTask| task.data.secrets(), perform)
}

fn perform(order: &Order<OwnTask>, reporter: &mut Reporter<PeerAnswer>) -> anyhow::Result<()> {
    let OwnTask { data, work } = &order.task;
    match work {
        OwnWork::Tally { point, joinid_column } => {
            let original = joinid_column.as_deref().map(|column| joinids(data, column));
            let dataset = OpenData::open(data, None)?.dataset;
            let loader = tensor_loader(dataset, point, reporter.grown_bytes()?)?;
            let delivered = count_epoch(&loader, original.transpose()?.as_deref(), reporter)?;
            reporter.answer(PeerAnswer::Delivered(delivered))
        }
        OwnWork::Relayout { target } => {
            let conversion = lay_out(data, target, reporter)?;
            reporter.answer(PeerAnswer::Conversion(conversion))
        }
    }
}

/// Reads which joinid each row of a copy had in the experiment.
fn joinids(data: &Data, column: &str) -> anyhow::Result<Vec<i64>> {
    let DataSource { uri, config } = data.source()?;
    let options = OpenOptions { config, ..OpenOptions::default() };
    let obs = Experiment::open(uri.full(), &options)?.obs()?.read(Some(&[column]), None)?;
    let texts = arrow_cast::cast(obs.column(0), &DataType::Int64)
        .with_context(|| format!("the column {column} of the copy holds no joinids"))?;
    Ok(texts.as_primitive::<Int64Type>().iter().flatten().collect())
}

/// Counts the cells and values of an epoch. `original` are the joinids that the rows of a copy had
/// in the experiment.
fn count_epoch(
    loader: &TensorLoader,
    original: Option<&[i64]>,
    reporter: &mut Reporter<PeerAnswer>,
) -> anyhow::Result<Delivered> {
    let dataset = loader.loader().dataset();
    let mut count = DeliveryCount::default();
    for batch in loader.epoch(0)? {
        let batch = batch?;
        let mut joinids =
            Vec::<i64>::try_from(batch.joinids()).context("cannot read the joinids")?;
        if let Some(original) = original {
            for joinid in &mut joinids {
                let place = usize::try_from(*joinid).ok().and_then(|row| original.get(row));
                *joinid = *place.with_context(|| format!("the copy has no row {joinid}"))?;
            }
        }
        count.add(&joinids, &batch.row_values()?);
        reporter.progress(count.n_cells(), dataset.n_rows())?;
    }
    Ok(count.finish(dataset.n_columns() as u64))
}

/// Writes a copy of the experiment by `relayout`. The time excludes its measurements of the
/// speed-up.
fn lay_out(
    data: &Data,
    target: &str,
    reporter: &mut Reporter<PeerAnswer>,
) -> anyhow::Result<PeerConversion> {
    let DataSource { uri, config } = data.source()?;
    let options = OpenOptions { config, ..OpenOptions::default() };
    let source = Experiment::open(uri.full(), &options)?;
    let spec = RelayoutSpec {
        measurement: data.measurement.clone(),
        layer: data.layer.clone(),
        config: data.config.clone(),
        ..RelayoutSpec::default()
    };
    let (mut of_rows, mut broken) = (0, None);
    let report = relayout::relayout(&source, target, &spec, &mut |event| {
        match event {
            RelayoutEvent::Opened { n_cells, .. } => of_rows = n_cells,
            RelayoutEvent::Written { n_rows } => broken = reporter.progress(n_rows, of_rows).err(),
            _ => {}
        }
        if broken.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    Ok(PeerConversion {
        secs: report.seconds - report.measuring_seconds,
        max_mem: bench_report::peak_bytes()?,
    })
}
