//! The `fields` program: commands on weather-like data in Zarr arrays.
//!
//! - `generate` writes such data from a seed, as a library ([`generate::generate`]) and as a
//!   command (`generate_command`);
//! - `relayout` copies any store of fields to one in another layout ([`relayout::relayout()`],
//!   `relayout_command`);
//! - `sweep` measures how fast batches of it are read, `queue` how a queue of batches drains,
//!   `tune` proposes settings, and `peers` how fast other readers are (`peers`); each point is
//!   measured in a process of its own (`bench`).
//!
//! ```
//! use fields::generate::{FieldSpec, GenerateSpec, Layout, generate};
//!
//! let folder = tempfile::tempdir()?;
//! let fields = FieldSpec { n_samples: 3, n_lat: 4, n_lon: 8, ..FieldSpec::default() };
//! let spec = GenerateSpec { fields, layout: Layout::default(), ..GenerateSpec::default() };
//! let path = folder.path().join("weather.zarr");
//! let report = generate(&path, &spec, &mut |n_samples| assert!(n_samples <= 3))?;
//! assert_eq!(report.n_bytes, 3 * 4 * 8 * (186 + 83) * 4);
//! assert!(path.join("inputs/zarr.json").is_file());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod bench;
mod cli;
mod drain;
pub mod generate;
mod generate_command;
mod peers;
mod peers_command;
mod published;
mod queue_command;
mod queue_picture;
pub mod relayout;
mod relayout_command;
mod sweep_command;
mod sweep_picture;
mod tune_command;

use std::ffi::OsString;
use std::process::ExitCode;

use bench_run::{run_program, serve_link};

pub use bench_run::DataError as Error;
use cli::{Cli, Command};

/// Runs the program on a command line ([`run_program`]).
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    run_program(arguments, |cli: Cli, arguments| match cli.command {
        Command::Generate(args) => generate_command::run(&args),
        Command::Relayout(args) => relayout_command::run(&args),
        Command::Sweep(args) => sweep_command::run(&args, arguments),
        Command::Queue(args) => queue_command::run(&args, arguments),
        Command::Tune(args) => tune_command::run(&args, arguments),
        Command::Peers(args) => peers_command::run(&args, arguments),
        Command::ServeLink(args) => serve_link(&args).map(|()| ExitCode::SUCCESS),
        Command::Point => bench::serve().map(|()| ExitCode::SUCCESS),
    })
}
