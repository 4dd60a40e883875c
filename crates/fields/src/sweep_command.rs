//! The command `sweep`: one read for a batch, one for each sample, and the floor beside them.

use std::ffi::OsString;
use std::process::ExitCode;

use bench_report::{EPOCHS_FILE, EpochRecord, GridPoint, Measured, Spread, write_text};
use bench_run::{grouped, print_line};
use clap::Args;

use crate::bench::{
    BenchFlags, FieldLabel, PART, Point, Strategy, THREADS, megabytes_per_second, sentence,
};
use crate::published::NOTE;
use crate::sweep_picture::{RateLine, draw};

/// What the columns of the table are.
const LEGEND: &str = "MB/s: 10^6 bytes of samples as delivered (of a plain read, of files) in a second, the first \
    batch included; s a batch: seconds for a batch; first batch s: seconds until the first; AU %: accelerator \
    utilisation, the share of the time after the first batch in which the consumer computed; CPU s: processor \
    seconds of an epoch; peak GB: most memory of the process, in 10^9 bytes. Medians, with the range";

/// Flags of `sweep`.
#[derive(Debug, Args)]
pub(crate) struct SweepArgs {
    #[command(flatten)]
    bench: BenchFlags,
    /// How batches are read: stacked (one read for a batch), per-sample (one for each sample),
    /// plain-read (the files into a buffer that is used again: the floor)
    #[arg(
        long,
        value_name = "STRATEGIES",
        value_delimiter = ',',
        default_value = "stacked,per-sample,plain-read"
    )]
    strategies: Vec<Strategy>,
    /// Samples of a batch
    #[arg(short = 'B', long, value_name = "N", value_delimiter = ',', default_value = "4,16")]
    batch: Vec<u64>,
    /// Neighbouring samples that are read together
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    chunk: u64,
    /// Chunks that are in memory, and shuffled, together [default: those of a batch]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    chunks_per_block: Option<u64>,
    /// Threads of one read
    #[arg(short = 't', long, value_name = "N", value_delimiter = ',', default_value = "1,2,4")]
    threads: Vec<usize>,
    /// Batches that are read at the same time; 0 lets the consumer read each itself
    #[arg(short = 'w', long, value_name = "N", default_value_t = 0)]
    workers: usize,
    /// Finished batches that may wait beside those of the workers
    #[arg(long, value_name = "N", default_value_t = 0)]
    queue: usize,
    /// Epochs of each point, in its process
    #[arg(short = 'E', long, value_name = "N", default_value_t = 1)]
    epochs: u64,
    /// Leave the last N samples to a second loader that reads them after each epoch; it is started,
    /// and its queue fills, while the last quarter of the epoch goes on
    #[arg(long, value_name = "N", default_value_t = 0)]
    validation: u64,
    /// Milliseconds that the consumer spends on a batch
    #[arg(long, value_name = "MS", default_value_t = 0.0)]
    consumer: f64,
    /// Measure the entropy of this label within batches: time (64 equal parts of the samples) or
    /// month
    #[arg(long, value_name = "LABEL", hide_possible_values = true)]
    entropy_of: Option<FieldLabel>,
}

impl SweepArgs {
    fn points(&self) -> Vec<Point> {
        let mut points = Vec::new();
        for batch in &self.batch {
            for threads in &self.threads {
                points.extend(self.strategies.iter().map(|strategy| Point {
                    strategy: *strategy,
                    batch: (*batch).max(1),
                    chunk: self.chunk,
                    chunks_per_block: self.chunks_per_block,
                    threads: (*threads).max(1),
                    workers: self.workers,
                    queue: self.queue,
                    consumer_millis: self.consumer,
                    max_batches: (self.bench.max_batches > 0).then_some(self.bench.max_batches),
                    epochs: self.epochs.max(1),
                    // The floor is that of all samples.
                    validation: match strategy {
                        Strategy::PlainRead => 0,
                        Strategy::Stacked | Strategy::PerSample => self.validation,
                    },
                    seed: self.bench.data.seed,
                    label: self.entropy_of,
                    ..Point::default()
                }));
            }
        }
        points
    }
}

/// Measures the grid and prints a table.
pub(crate) fn run(args: &SweepArgs, arguments: &[OsString]) -> anyhow::Result<ExitCode> {
    let points = args.points();
    let measuring = args.bench.measure(&points, arguments)?;
    let records: Vec<&EpochRecord> = measuring.records.iter().map(|of| &of.record).collect();
    let rows = rows(&records);
    let table = table(&rows);
    print_line!("{table}\n{LEGEND}.");
    let picture = write_text(measuring.folder(), "rates.svg", &draw(&lines(&rows))?)?;
    let first = measuring.first();
    let text = format!(
        "# Reading fields\n\n```sh\n{}\n```\n\n{LEGEND}. The page cache was \
         {}.{}\n\n{table}\n![MB/s over threads](rates.svg)\n\n{NOTE}.\n",
        first.run.command,
        first.point.cache,
        sentence(&first.point),
    );
    let readme = write_text(measuring.folder(), "README.md", &text)?;
    for path in [&measuring.folder().join(EPOCHS_FILE), &picture, &readme] {
        print_line!("{}", path.display());
    }
    Ok(measuring.verdict_unless(false))
}

/// The figures of a point in one epoch, over its repetitions.
struct Row<'a> {
    point: &'a GridPoint,
    /// The number of the epoch, if its process had several.
    epoch: Option<u64>,
    /// Megabytes of samples a second; `None` if it failed.
    rate: Option<Spread>,
    secs_per_batch: Option<f64>,
    first_wait_secs: Option<f64>,
    /// Accelerator utilisation, 0 to 1; `None` without a consumer.
    utilization: Option<f64>,
    cpu_secs: Option<f64>,
    peak_gb: Option<f64>,
}

/// A row for each point and each of its epochs, in the order of measurement.
fn rows<'a>(records: &[&'a EpochRecord]) -> Vec<Row<'a>> {
    let has_epochs = records.iter().any(|record| record.measured.epoch.is_some_and(|n| 0 < n));
    let key =
        |record: &EpochRecord| (record.point.id(), record.measured.epoch.filter(|_| has_epochs));
    let mut keys = Vec::new();
    let mut rows = Vec::new();
    for record in records {
        let of_record = key(record);
        if keys.contains(&of_record) {
            continue;
        }
        let same: Vec<&EpochRecord> =
            records.iter().copied().filter(|other| key(other) == of_record).collect();
        let spread = |of: &dyn Fn(&EpochRecord) -> Option<f64>| {
            Spread::from_values(same.iter().filter_map(|record| of(record)))
        };
        let median = |of: &dyn Fn(&EpochRecord) -> Option<f64>| spread(of).map(|of| of.median);
        rows.push(Row {
            point: &record.point,
            epoch: of_record.1,
            rate: spread(&megabytes_per_second),
            secs_per_batch: median(&|record| {
                let Measured { elapsed, n_batches, .. } = &record.measured;
                Some((*elapsed)? / n_batches.filter(|n| *n > 0)? as f64)
            }),
            first_wait_secs: median(&|record| record.measured.batch_wait_secs.first().copied()),
            utilization: median(&|record| record.measured.accelerator_utilization),
            cpu_secs: median(&|record| record.measured.cpu_secs),
            peak_gb: median(&|record| Some(record.measured.max_mem? as f64 / 1e9)),
        });
        keys.push(of_record);
    }
    rows
}

/// The table in Markdown. Parts and epochs have columns if there are several.
fn table(rows: &[Row<'_>]) -> String {
    let has_parts = rows.iter().any(|row| row.point.settings.get(PART).is_some());
    let has_epochs = rows.iter().any(|row| row.epoch.is_some());
    let head = ["batch", "threads", "how"];
    let varying = [(has_parts, "samples"), (has_epochs, "epoch")];
    let varying = varying.into_iter().filter_map(|(is_shown, name)| is_shown.then_some(name));
    let figures = ["MB/s", "s a batch", "first batch s", "AU %", "CPU s", "peak GB"];
    let head: Vec<&str> = head.into_iter().chain(varying).chain(figures).collect();
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let rule = head.iter().map(|name| match *name {
        "how" | "samples" => "---".to_owned(),
        _ => "---:".to_owned(),
    });
    let rule: Vec<String> = rule.collect();
    let head: Vec<String> = head.into_iter().map(str::to_owned).collect();
    let number = |number: Option<f64>, digits: usize| {
        number.map_or_else(String::new, |number| format!("{number:.digits$}"))
    };
    let body = rows.iter().map(|row| {
        let point = row.point;
        let rate = row.rate.map_or_else(|| "failed".to_owned(), |rate| rate.format_by(whole));
        let mut cells = vec![
            point.batch_size.to_string(),
            point.settings.get(THREADS).unwrap_or("1").to_owned(),
            point.chunk_method.clone(),
        ];
        if has_parts {
            cells.push(point.settings.get(PART).unwrap_or("all").to_owned());
        }
        if has_epochs {
            cells.push(row.epoch.map_or_else(String::new, |epoch| epoch.to_string()));
        }
        cells.extend([
            rate,
            number(row.secs_per_batch, 3),
            number(row.first_wait_secs, 4),
            number(row.utilization.map(|share| share * 100.0), 1),
            number(row.cpu_secs, 2),
            number(row.peak_gb, 2),
        ]);
        line(&cells)
    });
    [line(&head), line(&rule)].into_iter().chain(body).collect()
}

/// The lines of the picture: rates over threads, in the first epoch.
fn lines(rows: &[Row<'_>]) -> Vec<RateLine> {
    let mut lines: Vec<RateLine> = Vec::new();
    for row in rows.iter().filter(|row| row.epoch.is_none_or(|epoch| epoch == 0)) {
        let Some(rate) = row.rate else { continue };
        let GridPoint { chunk_method, batch_size, settings, .. } = row.point;
        let part = settings.get(PART);
        let name = part.iter().fold(chunk_method.clone(), |name, part| format!("{name}, {part}"));
        let rate = (settings.number(THREADS).unwrap_or(1), rate.median);
        match lines.iter_mut().find(|line| line.name == name && line.batch == *batch_size) {
            Some(line) => line.rates.push(rate),
            None => lines.push(RateLine { name, batch: *batch_size, rates: vec![rate] }),
        }
    }
    for line in &mut lines {
        line.rates.sort_by_key(|(threads, _)| *threads);
    }
    lines
}

fn whole(number: f64) -> String {
    grouped(number.round() as u64)
}
