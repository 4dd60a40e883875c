//! The command `queue`: how a queue of batches drains under a consumer, by its size and the number
//! of workers.

use std::ffi::OsString;
use std::process::ExitCode;

use bench_report::{EPOCHS_FILE, EpochRecord, Measured, Spread, write_text};
use bench_run::print_line;
use clap::Args;

use crate::bench::{BenchFlags, Point, sentence};
use crate::drain::{Queue, first_empty, first_empty_measured};
use crate::published::{NOTE, PublishedQueue, QUEUES};
use crate::queue_picture::{QueueLine, draw};

/// What the columns of the table are.
const LEGEND: &str = "workers: batches read at the same time; queue: places for finished batches; s a batch: \
    seconds of the epoch for each; batches when it begins: finished at the first request; batches/s when empty: made \
    in a second from then on; first empty: the first request, counted from 0, that found no batch";

/// Flags of `queue`.
#[derive(Debug, Args)]
pub(crate) struct QueueArgs {
    #[command(flatten)]
    bench: BenchFlags,
    /// Places in the queue for finished batches
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "0,1,2,3,4,8")]
    depth: Vec<usize>,
    /// Batches that are read at the same time; 0 lets the consumer read each itself
    #[arg(short = 'w', long, value_name = "N", value_delimiter = ',', default_value = "0,1,2,4,8")]
    workers: Vec<usize>,
    /// Samples of a batch
    #[arg(short = 'B', long, value_name = "N", default_value_t = 16)]
    batch: u64,
    /// Threads of one read
    #[arg(short = 't', long, value_name = "N", default_value_t = 1)]
    threads: usize,
    /// Milliseconds that the consumer spends on a batch
    #[arg(long, value_name = "MS", default_value_t = 1000.0)]
    consumer: f64,
    /// Seconds before the first batch is asked for, so that the queue is full
    #[arg(long, value_name = "S", default_value_t = 5.0)]
    fill: f64,
}

impl QueueArgs {
    /// A queue needs workers, and none of it is used without them.
    fn points(&self) -> Vec<Point> {
        let pairs = self.workers.iter().flat_map(|workers| {
            self.depth
                .iter()
                .filter(move |depth| 0 < *workers || **depth == 0)
                .map(move |depth| (*workers, *depth))
        });
        let point = |(workers, queue): (usize, usize)| Point {
            batch: self.batch.max(1),
            threads: self.threads.max(1),
            workers,
            queue,
            consumer_millis: self.consumer,
            fill_secs: if workers == 0 { 0.0 } else { self.fill },
            max_batches: (self.bench.max_batches > 0).then_some(self.bench.max_batches),
            seed: self.bench.data.seed,
            ..Point::default()
        };
        pairs.map(point).collect()
    }
}

/// What a measurement says about its queue.
struct Drain {
    workers: u64,
    queue: u64,
    secs_per_batch: f64,
    /// Finished batches at the first request.
    stock: f64,
    /// Batches made in a second once the queue is empty.
    rate: Option<f64>,
    /// The first empty request by the formula, with this measurement's own rate.
    by_formula: Option<f64>,
    /// The first empty request if the loads are followed one by one.
    predicted: Option<usize>,
    measured: Option<usize>,
}

impl Drain {
    /// Reads a record; `predicted` follows when all are read.
    fn from_record(record: &EpochRecord, consumer_secs: f64) -> Option<Self> {
        let Measured { elapsed, n_batches, batch_ready_blocks: ready, .. } = &record.measured;
        let workers = record.point.settings.number("read_threads").unwrap_or(1);
        let ahead = record.point.settings.number("prefetch_blocks").unwrap_or(0);
        let queue = (ahead + 1).saturating_sub(workers.max(1));
        let stock = ready.first().copied().unwrap_or_default();
        let measured = first_empty_measured(ready);
        let rate = measured.and_then(|empty| rate_when_empty(&record.measured, empty));
        Some(Self {
            workers,
            queue,
            secs_per_batch: (*elapsed)? / (*n_batches)? as f64,
            stock,
            rate,
            by_formula: rate.and_then(|rate| first_empty(stock, rate, consumer_secs)),
            predicted: None,
            measured,
        })
    }

    /// Follows the loads of a queue of `n_requests`, with the rates of one worker and of all.
    fn predict(&mut self, (alone, together): (f64, f64), consumer_secs: f64, n_requests: usize) {
        let (workers, queue) = (self.workers as usize, self.queue as usize);
        let stock = self.stock as usize;
        let queue = Queue { places: queue + workers, workers, stock, alone, together };
        self.predicted = queue.first_empty(consumer_secs, n_requests);
    }
}

/// The drains of all records, with the predictions that follow from them together: the rate of one
/// worker, and of each number of workers, where their queues were empty.
fn drains(records: &[&EpochRecord], consumer_secs: f64) -> Vec<Drain> {
    let all = records.iter().filter_map(|record| Drain::from_record(record, consumer_secs));
    let mut all: Vec<Drain> = all.collect();
    let rate_of = |all: &[Drain], workers: Option<u64>| {
        let these = all.iter().filter(|drain| workers.is_none_or(|n| drain.workers == n));
        Spread::from_values(these.filter_map(|drain| drain.rate))
            .map(|rates| (rates.median, rates.max))
    };
    let alone = rate_of(&all, Some(1));
    let most = rate_of(&all, None);
    let n_requests = records.iter().filter_map(|record| record.measured.n_batches).max();
    for at in 0..all.len() {
        let together = rate_of(&all, Some(all[at].workers));
        let together = together.map(|(median, _)| median).or_else(|| most.map(|(_, most)| most));
        if let (Some((alone, _)), Some(together)) = (alone, together) {
            let rates = (alone, together);
            all[at].predict(rates, consumer_secs, n_requests.unwrap_or(0) as usize);
        }
    }
    all
}

/// Batches a second from the first request that found the queue empty on: then the workers alone
/// decide the pace.
fn rate_when_empty(measured: &Measured, empty: usize) -> Option<f64> {
    let waits = measured.batch_wait_secs.get(empty..)?;
    let consumes = measured.batch_consume_secs.get(empty..)?;
    let secs: f64 = waits.iter().chain(consumes).sum();
    (waits.len() > 2 && secs > 0.0).then(|| waits.len() as f64 / secs)
}

/// Measures all queues, and prints and draws how they drain.
pub(crate) fn run(args: &QueueArgs, arguments: &[OsString]) -> anyhow::Result<ExitCode> {
    let points = args.points();
    let measuring = args.bench.measure(&points, arguments)?;
    let records: Vec<&EpochRecord> = measuring.records.iter().map(|of| &of.record).collect();
    let consumer_secs = args.consumer / 1e3;
    let drains = drains(&records, consumer_secs);
    let table = table(&drains);
    print_line!("{table}\n{LEGEND}.");
    let lines: Vec<QueueLine> = records
        .iter()
        .filter(|record| !record.measured.batch_ready_blocks.is_empty())
        .zip(&drains)
        .filter(|(_, drain)| 0 < drain.workers)
        .map(|(record, drain)| QueueLine {
            workers: drain.workers,
            queue: drain.queue,
            ready: record.measured.batch_ready_blocks.clone(),
            predicted: drain.predicted.map(|at| at as f64),
            measured: drain.measured,
        })
        .collect();
    let picture = write_text(measuring.folder(), "queue.svg", &draw(&lines)?)?;
    let first = measuring.first();
    let text = format!(
        "# How a queue drains\n\n```sh\n{}\n```\n\nBatches of {} samples, a consumer that sleeps \
         {} ms on each, workers with {} threads each; {} s to fill the queue.{}\n\n\
         {LEGEND}.\n\n{table}\n\
         ![queue depth over iterations](queue.svg)\n\n{NOTE}; batches of 16, a consumer of 1 s, \
         30 requests:\n\n{}",
        first.run.command,
        args.batch,
        args.consumer,
        args.threads,
        args.fill,
        sentence(&first.point),
        published_table(),
    );
    let readme = write_text(measuring.folder(), "README.md", &text)?;
    for path in [&measuring.folder().join(EPOCHS_FILE), &picture, &readme] {
        print_line!("{}", path.display());
    }
    Ok(measuring.verdict_unless(false))
}

/// The table in Markdown.
fn table(drains: &[Drain]) -> String {
    let head = "| workers | queue | s a batch | batches when it begins | batches/s when empty | \
                    first empty, measured | predicted | by the formula |\n\
                    | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n";
    let mut rows = vec![head.to_owned()];
    for drain in drains {
        let or_never = |text: Option<String>| text.unwrap_or_else(|| "never".to_owned());
        rows.push(format!(
            "| {} | {} | {:.3} | {:.0} | {} | {} | {} | {} |\n",
            drain.workers,
            drain.queue,
            drain.secs_per_batch,
            drain.stock,
            drain.rate.map_or_else(|| "-".to_owned(), |rate| format!("{rate:.2}")),
            or_never(drain.measured.map(|n| n.to_string())),
            or_never(drain.predicted.map(|n| n.to_string())),
            or_never(drain.by_formula.map(|n| format!("{n:.1}"))),
        ));
    }
    rows.concat()
}

/// The published rows in Markdown.
fn published_table() -> String {
    let head =
        "| workers | queue | s an iteration | first empty |\n| ---: | ---: | ---: | ---: |\n";
    let rows = QUEUES.iter().map(|row| {
        let PublishedQueue { workers, queue, secs, first_empty } = row;
        let first_empty = first_empty.map_or_else(String::new, |n| n.to_string());
        format!("| {workers} | {queue} | {secs} | {first_empty} |\n")
    });
    std::iter::once(head.to_owned()).chain(rows).collect()
}

#[cfg(test)]
mod tests {
    use bench_report::{BatchSample, GridPoint, Settings};

    use super::*;

    #[test]
    fn a_drain_is_computed_from_what_was_measured() {
        // Four finished batches, a consumer of 1 s, and a batch every 2 s.
        let ready = [4.0, 3.0, 3.0, 2.0, 2.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0];
        let batches: Vec<BatchSample> = ready
            .iter()
            .map(|ready| BatchSample {
                wait_secs: if *ready < 1.0 { 1.0 } else { 0.0 },
                consume_secs: 1.0,
                n_rows: 16,
                nnz: 0,
            })
            .collect();
        let mut measured = Measured::from_batches(&batches, 0.0);
        measured.batch_ready_blocks = ready.to_vec();
        let point = GridPoint {
            settings: Settings::default().with("read_threads", 2).with("prefetch_blocks", 4),
            ..GridPoint::default()
        };
        let record = EpochRecord { point, measured, ..EpochRecord::default() };
        let drain = Drain::from_record(&record, 1.0).unwrap();
        assert_eq!((drain.workers, drain.queue, drain.measured), (2, 3, Some(7)));
        assert_eq!((drain.rate, drain.by_formula), (Some(0.5), Some(6.0)));
        let all = drains(&[&record], 1.0);
        assert!(table(&all).contains("| 2 | 3 | 1.364 | 4 | 0.50 | 7 | never | 6.0 |"));
    }
}
