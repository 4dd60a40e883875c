//! The `sequences` program: commands on DNA, RNA and other sequences.
//!
//! - `generate` writes a file of sequences from a seed, as a library ([`generate::generate`]) and
//!   as a command;
//! - `import` writes a file of sequences to a store;
//! - `words` counts the words of a store;
//! - `fill` copies a store to servers, and `stats` shows what they have;
//! - `train` trains Doc2Vec on a store;
//! - `sweep` measures feeding sequences over a grid of settings, each point in a process of its own
//!   (`bench`);
//! - `tune` proposes settings;
//! - `peers` measures Python's ways to feed the same store beside ours.
//!
//! ```
//! use sequence_bench::generate::{DragonLines, GenerateSpec, Kind, generate};
//! use sequences::RecordReader;
//!
//! let folder = tempfile::tempdir()?;
//! let file = folder.path().join("sequences.txt");
//! let spec = GenerateSpec::new(Kind::Dragon(DragonLines::bytes(10_000)));
//! let report = generate(&file, &spec, &mut |n_sequences| assert!(n_sequences <= 10))?;
//! assert_eq!((report.n_sequences, report.n_letters), (10, 9_992));
//!
//! let mut reader = RecordReader::open(&file)?;
//! let first = reader.next_record()?.ok_or("a file without records")?;
//! assert_eq!((first.name, first.letters.len()), (&b"design_id_1"[..], 1024));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod bench;
mod cli;
mod fill_command;
pub mod generate;
mod generate_command;
mod import_command;
mod kmer_flags;
mod peers;
mod peers_command;
mod published;
mod server_flags;
mod stats_command;
mod sweep_command;
mod sweep_report;
mod train_command;
mod tune_command;
mod words_command;

use std::ffi::OsString;
use std::process::ExitCode;

use bench_run::run_program;

pub use bench_run::DataError as Error;
use cli::{Cli, Command};

/// Runs the program on a command line ([`run_program`]).
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    run_program(arguments, |cli: Cli, arguments| match cli.command {
        Command::Generate(args) => generate_command::run(&args),
        Command::Import(args) => import_command::run(&args),
        Command::Words(args) => words_command::run(&args),
        Command::Fill(args) => fill_command::run(&args),
        Command::Stats(args) => stats_command::run(&args),
        Command::Train(args) => train_command::run(&args),
        Command::Sweep(args) => sweep_command::run(&args, arguments),
        Command::Tune(args) => tune_command::run(&args, arguments),
        Command::Peers(args) => peers_command::run(&args, arguments),
        Command::Point => bench::serve().map(|()| ExitCode::SUCCESS),
    })
}
