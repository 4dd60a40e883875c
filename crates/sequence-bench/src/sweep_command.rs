//! The command `sweep`: feeding sequences over a grid of workers, batch sizes, forms and stores.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use bench_report::{EpochRecord, HostInfo};
use bench_run::{Measuring, print_line};
use clap::Args;

use crate::bench::{Consumer, FeedFlags, Form, Point, StoreData};
use crate::sweep_report::{LEGEND, Report};

/// Flags of `sweep`.
#[derive(Debug, Args)]
pub(crate) struct SweepArgs {
    /// The stores, as `import` writes them
    #[arg(required = true, value_name = "STORE")]
    stores: Vec<PathBuf>,
    /// What batches have of each sequence: letters, tokens (its words), windows (each word with
    /// its context and noise)
    #[arg(
        long,
        value_name = "FORMS",
        value_delimiter = ',',
        hide_possible_values = true,
        default_value = "tokens,windows"
    )]
    form: Vec<Form>,
    /// Threads that read and tokenise; 0 lets the consumer read
    #[arg(short = 'w', long, value_name = "N", value_delimiter = ',', default_value = "1,2")]
    workers: Vec<usize>,
    /// Sequences of a batch
    #[arg(short = 'B', long, value_name = "N", value_delimiter = ',', default_value = "4,256", value_parser = clap::value_parser!(u64).range(1..))]
    batch: Vec<u64>,
    /// What takes the batches: none drops them at once
    #[arg(long, value_name = "KIND", default_value = "none")]
    consumer: Consumer,
    #[command(flatten)]
    feed: FeedFlags,
    /// Print the table that Dragon published for its example, too
    #[arg(long)]
    published: bool,
}

/// A point over one of the stores.
#[derive(Debug)]
pub(crate) struct StorePoint {
    pub(crate) store: usize,
    pub(crate) point: Point,
}

impl SweepArgs {
    /// All points, store by store.
    fn points(&self) -> Vec<StorePoint> {
        let mut points = Vec::new();
        for store in 0..self.stores.len() {
            for form in &self.form {
                for workers in &self.workers {
                    points.extend(self.batch.iter().map(|batch| StorePoint {
                        store,
                        point: Point {
                            consumer: self.consumer,
                            ..self.feed.point(*form, *workers, *batch)
                        },
                    }));
                }
            }
        }
        points
    }
}

/// Measures the grid, prints a table and draws a picture for each store and form.
pub(crate) fn run(args: &SweepArgs, arguments: &[OsString]) -> anyhow::Result<ExitCode> {
    args.feed.check()?;
    let stores = args.stores.iter().map(|folder| StoreData::open(folder));
    let stores = stores.collect::<anyhow::Result<Vec<StoreData>>>()?;
    let points = args.points();
    let n_runs = points.len() as u64 * args.feed.repetitions;
    let first = stores.first().context("there is no store")?.uri();
    let mut measuring = Measuring::begin(
        &args.feed.output,
        (n_runs, "runs"),
        &first,
        HostInfo::gather(),
        arguments,
    )?;
    let folders: Vec<PathBuf> = stores.iter().map(|store| store.folder.clone()).collect();
    measuring.session.warm(Some(&folders));
    measuring.measure_rounds(
        &points,
        args.feed.repetitions,
        |StorePoint { store, point }, round| {
            (&stores[*store], Point { seed: point.seed.wrapping_add(round), ..point.clone() })
        },
    )?;
    measuring.session.display.finish();
    let is_timed = |record: &EpochRecord| args.feed.is_timed(record);
    let report = Report::new(&measuring, (&stores, &points), &is_timed, args.published);
    print_line!("{}\n{LEGEND}.", report.text());
    for path in report.write().context("cannot write the report")? {
        print_line!("{}", path.display());
    }
    Ok(measuring.verdict_unless(false))
}
