//! The command `words`: the vocabulary of a store.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::Context as _;
use bench_run::{grouped, print_line};
use clap::Args;
use sequences::{SequenceStore as _, Vocabulary};

use crate::bench::open;
use crate::kmer_flags::KmerFlags;

/// Flags of `words`.
#[derive(Debug, Args)]
pub(crate) struct WordsArgs {
    /// The store
    store: PathBuf,
    #[command(flatten)]
    words: KmerFlags,
    /// Threads [default: one per processor]
    #[arg(short = 't', long, value_name = "N")]
    threads: Option<usize>,
    /// Write the words and their counts to a new file, a line each with a tab between them
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
}

/// Counts words and prints how many there are and how long it took.
pub(crate) fn run(args: &WordsArgs) -> anyhow::Result<ExitCode> {
    let threads =
        args.threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    let store = open(&args.store)?;
    let started = Instant::now();
    let words = args.words.words().count(&*store, threads)?;
    let seconds = started.elapsed().as_secs_f64().max(f64::MIN_POSITIVE);
    let n_letters = store.summary().n_letters;
    print_line!("{}", format_report(&words, n_letters, seconds, threads));
    if let Some(path) = &args.write {
        write(path, &words).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Formats the numbers of words, and the rates.
fn format_report(words: &Vocabulary, n_letters: u64, seconds: f64, threads: usize) -> String {
    let n_counted: u64 = words.counts().iter().sum();
    format!(
        "{} words of {} letters of {}: {} that occur, {} more with padding or for unknown letters\n\
         {} words counted in {seconds:.3} s with {threads} threads ({:.0} MB/s of letters, {:.0} \
         million words/s)",
        grouped(words.n_words() as u64),
        words.k(),
        words.alphabet(),
        grouped(words.n_counted() as u64),
        grouped((words.n_words() - words.n_counted()) as u64),
        grouped(n_counted),
        n_letters as f64 / 1e6 / seconds,
        n_counted as f64 / 1e6 / seconds,
    )
}

/// Writes each word with its count.
fn write(path: &Path, words: &Vocabulary) -> std::io::Result<()> {
    let mut file = BufWriter::new(File::create_new(path)?);
    for (number, count) in (0..).zip(words.counts()) {
        writeln!(file, "{}\t{count}", words.word(number).unwrap_or_default())?;
    }
    file.flush()
}
