//! The command `import`: a file of sequences becomes a store.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use bench_run::{Display, grouped};
use clap::Args;
use sequences::{RecordReader, SequenceFilesWriter, WriteReport};

/// Flags of `import`.
#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// File of lines, FASTA or FASTQ, plain or compressed by gzip, bgzip, bzip2 or zstd
    file: PathBuf,
    /// Folder of the new store; must not exist
    store: PathBuf,
    /// Leave out records without letters, and count them
    #[arg(long)]
    skip_empty: bool,
    /// Leave out all but the first of several records with the same name, and count them
    #[arg(long)]
    skip_doubled: bool,
    /// Show no progress
    #[arg(short = 'q', long)]
    quiet: bool,
}

/// Writes a store.
pub(crate) fn run(args: &ImportArgs) -> anyhow::Result<ExitCode> {
    let display = Display::counting("sequences", args.quiet);
    let started = Instant::now();
    let mut reader = RecordReader::open(&args.file)?;
    if args.skip_empty {
        reader = reader.skipping_empty();
    }
    let mut writer = SequenceFilesWriter::create(&args.store, &[&args.file.to_string_lossy()])?;
    if args.skip_doubled {
        writer = writer.skipping_doubled();
    }
    reader.copy_to(&mut writer, &mut |n| display.position(n))?;
    let report = writer.finish()?;
    let seconds = started.elapsed().as_secs_f64();
    display.finish();
    let store = args.store.display();
    display.line(&format!("{store}: {}", format_report(&report, seconds)));
    for (n, what) in
        [(reader.n_skipped(), "without letters"), (report.n_doubled, "with a name that is there")]
    {
        if 0 < n {
            display.line(&format!("{store}: {} records {what} were left out", grouped(n)));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Formats number, rates and the bytes that are kept for each byte of letters and names.
fn format_report(report: &WriteReport, seconds: f64) -> String {
    let summary = &report.summary;
    let n_stored = summary.n_letters + summary.n_name_bytes;
    let seconds = seconds.max(f64::MIN_POSITIVE);
    format!(
        "{} sequences in {seconds:.2} s ({} sequences/s, {:.0} MB/s of letters and names), \
         {:.1} MB kept, {:.3} x the letters and names",
        grouped(summary.n_sequences),
        grouped((summary.n_sequences as f64 / seconds) as u64),
        n_stored as f64 / 1e6 / seconds,
        report.n_bytes as f64 / 1e6,
        report.n_bytes as f64 / n_stored.max(1) as f64,
    )
}
