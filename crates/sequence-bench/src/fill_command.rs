//! The command `fill`: copies a store to servers.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use anyhow::ensure;
use bench_run::{Display, grouped, print_line};
use clap::Args;
use pipeline::{Pipeline, PipelineSpec, Stop};
use sequences::{
    SequenceBatch, SequenceFiles, SequenceList, SequenceSamples, SequenceServers, SequenceSpec,
    SequenceStore as _, ServerFill,
};

use crate::bench::open;
use crate::server_flags::ServerFlags;
use crate::stats_command::format_stats;

/// Flags of `fill`.
#[derive(Debug, Args)]
pub(crate) struct FillArgs {
    /// The store
    store: PathBuf,
    #[command(flatten)]
    servers: ServerFlags,
    /// Sequences of one value
    #[arg(long, value_name = "N", default_value_t = 1)]
    per_key: u64,
    /// Read an epoch from the servers afterwards, and compare each sequence with the store
    #[arg(long)]
    check: bool,
    /// Show no progress
    #[arg(short = 'q', long)]
    quiet: bool,
}

/// Fills servers, and prints what they have then.
pub(crate) fn run(args: &FillArgs) -> anyhow::Result<ExitCode> {
    let files = open(&args.store)?;
    let servers = args.servers.start()?;
    let display = Display::counting("sequences", args.quiet);
    let stop = Stop::default();
    let (filled, report) = SequenceServers::fill(
        &servers.spec,
        &*files,
        args.per_key,
        &mut |n| display.position(n),
        &stop,
    )?;
    display.finish();
    print_line!("{}", format_report(&filled, &report));
    print_line!("{}", format_stats(&filled)?);
    if args.check {
        print_line!("{}", check(filled, &files)?);
    }
    Ok(ExitCode::SUCCESS)
}

/// Formats the number of values and bytes written, and the rate.
fn format_report(filled: &SequenceServers, report: &ServerFill) -> String {
    let summary = filled.summary();
    let n_stored = summary.n_letters + summary.n_name_bytes;
    let n_written: u64 = report.written.iter().map(|round| round.n_keys).sum();
    let n_bytes: u64 = report.written.iter().map(|round| round.n_bytes).sum();
    let seconds: f64 = report.written.iter().map(|round| round.duration.as_secs_f64()).sum();
    let written = match n_written {
        0 => "nothing to write".to_owned(),
        n => format!(
            "{} written: {:.1} MB in {seconds:.2} s, {:.0} MB/s, {} values/s",
            grouped(n),
            n_bytes as f64 / 1e6,
            n_bytes as f64 / 1e6 / seconds.max(f64::MIN_POSITIVE),
            grouped((n as f64 / seconds.max(f64::MIN_POSITIVE)) as u64),
        ),
    };
    format!(
        "{}: {} sequences, {:.1} MB of letters and names, {} in a value; {} values were there, {written}",
        filled.place(),
        grouped(summary.n_sequences),
        n_stored as f64 / 1e6,
        filled.sequences_per_key(),
        grouped(report.n_found),
    )
}

/// Reads an epoch in random order, and formats how fast it came; then reads it again and compares
/// each sequence. No more than the batches that are read ahead is in memory.
fn check(filled: SequenceServers, files: &Arc<SequenceFiles>) -> anyhow::Result<String> {
    let spec = SequenceSpec { letters: true, names: true, ..SequenceSpec::default() };
    let place = filled.place();
    let samples = Arc::new(SequenceSamples::new(Arc::new(filled), spec)?);
    let spec = PipelineSpec { read_threads: 2, prefetch_blocks: 2, ..PipelineSpec::default() };
    let pipeline = Pipeline::new(samples, spec, SequenceBatch::n_sequences)?;
    let started = Instant::now();
    for batch in pipeline.epoch(0)? {
        drop(batch?);
    }
    let seconds = started.elapsed().as_secs_f64().max(f64::MIN_POSITIVE);
    let (mut n_sequences, mut n_letters) = (0, 0);
    let mut expected = SequenceList::default();
    for batch in pipeline.epoch(0)? {
        let batch = batch?;
        for (idx, row) in batch.rows().iter().enumerate() {
            expected.clear();
            files.read(&[*row..*row + 1], true, &mut expected, &Stop::default())?;
            let is_same =
                batch.letters(idx) == expected.get(0) && batch.name(idx) == expected.name(0);
            ensure!(is_same, "sequence {row} in {place} is not that of {}", files.place());
            n_letters += expected.get(0).map_or(0, <[u8]>::len);
        }
        n_sequences += batch.n_sequences() as u64;
    }
    ensure!(n_sequences == files.summary().n_sequences, "{n_sequences} sequences came");
    Ok(format!(
        "an epoch in random order: {} sequences in {seconds:.2} s, {} sequences/s, {:.0} MB/s of \
         letters; all are those of the store",
        grouped(n_sequences),
        grouped((n_sequences as f64 / seconds) as u64),
        n_letters as f64 / 1e6 / seconds,
    ))
}
