//! The command `sweep`: one read for a batch, one for each sample, and the floor beside them.

use std::ffi::OsString;
use std::process::ExitCode;

use bench_report::{EPOCHS_FILE, EpochRecord, Spread, write_text};
use bench_run::grouped;
use clap::Args;

use crate::bench::{BenchFlags, Point, Strategy, megabytes_per_second, sentence};

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
}

impl SweepArgs {
    fn points(&self) -> Vec<Point> {
        let mut points = Vec::new();
        for batch in &self.batch {
            for threads in &self.threads {
                points.extend(self.strategies.iter().map(|strategy| Point {
                    strategy: *strategy,
                    batch: (*batch).max(1),
                    threads: (*threads).max(1),
                    workers: self.workers,
                    queue: self.queue,
                    consumer_millis: 0.0,
                    fill_secs: 0.0,
                    max_batches: (self.bench.max_batches > 0).then_some(self.bench.max_batches),
                    epochs: self.epochs.max(1),
                    together: false,
                    seed: self.bench.data.seed,
                }));
            }
        }
        points
    }
}

/// Measures the grid and prints a table.
pub(crate) fn run(args: &SweepArgs, arguments: &[OsString]) -> anyhow::Result<ExitCode> {
    let points = args.points();
    let mut measuring = args.bench.begin(&points, arguments)?;
    measuring.measure_all(&points, args.bench.repeat)?;
    let table = table(&measuring.records, measuring.sample_bytes());
    println!("{table}");
    let text = format!(
        "# Reading fields\n\n```sh\n{}\n```\n\nMB are 10^6 bytes of samples as delivered (of a plain \
         read, of files), the first batch included; medians, with the range. The page cache was \
         {}.{}\n\n{table}\n",
        measuring.records.first().map(|record| record.run.command.as_str()).unwrap_or_default(),
        measuring.records.first().map(|record| record.point.cache.as_str()).unwrap_or_default(),
        measuring.records.first().map(|record| sentence(&record.point)).unwrap_or_default(),
    );
    let readme = write_text(measuring.folder(), "README.md", &text)?;
    println!("{}\n{}", measuring.folder().join(EPOCHS_FILE).display(), readme.display());
    Ok(measuring.verdict())
}

/// The table in Markdown: a row for each point.
fn table(records: &[EpochRecord], sample_bytes: u64) -> String {
    let head = "| batch | threads | how | MB/s | s a batch | CPU s | peak GB |\n\
                    | ---: | ---: | --- | ---: | ---: | ---: | ---: |\n";
    let mut rows = vec![head.to_owned()];
    let mut ids: Vec<String> = Vec::new();
    for record in records {
        let id = record.point.id();
        if ids.contains(&id) {
            continue;
        }
        let same: Vec<&EpochRecord> =
            records.iter().filter(|other| other.point.id() == id).collect();
        ids.push(id);
        let median = |of: &dyn Fn(&EpochRecord) -> Option<f64>| {
            let values: Vec<f64> = same.iter().filter_map(|record| of(record)).collect();
            Spread::of(values)
        };
        let rate = median(&|record| megabytes_per_second(record, sample_bytes));
        let rate = rate.map_or_else(
            || "failed".to_owned(),
            |spread| {
                format!("{} ({} to {})", whole(spread.median), whole(spread.min), whole(spread.max))
            },
        );
        let secs = median(&|record| {
            Some(record.measured.elapsed? / record.measured.n_batches.filter(|n| *n > 0)? as f64)
        });
        let cpu = median(&|record| record.measured.cpu_secs);
        let peak = median(&|record| Some(record.measured.max_mem? as f64 / 1e9));
        let number = |spread: Option<Spread>, digits: usize| {
            spread.map_or_else(String::new, |spread| format!("{:.digits$}", spread.median))
        };
        let point = &record.point;
        rows.push(format!(
            "| {} | {} | {} | {rate} | {} | {} | {} |\n",
            point.batch_size,
            point.n_threads.unwrap_or(1),
            point.chunk_method,
            number(secs, 3),
            number(cpu, 2),
            number(peak, 2),
        ));
    }
    rows.concat()
}

fn whole(number: f64) -> String {
    grouped(number.round() as u64)
}
