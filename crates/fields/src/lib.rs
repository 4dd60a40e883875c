//! The `fields` program: commands on weather-like data in Zarr arrays.
//!
//! - `generate` writes such data from a seed, as a library ([`generate::generate`]) and as a
//!   command (`generate_command`);
//! - `sweep` measures how fast batches of it are read, `queue` how a queue of batches drains, and
//!   `peers` how fast other readers are (`peers`); each point is measured in a process of its own
//!   (`bench`).
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
#![expect(
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "the library of a command line tool: printing is its job"
)]

mod bench;
mod cli;
mod drain;
mod error;
pub mod generate;
mod generate_command;
mod peers;
mod peers_command;
mod queue_command;
mod queue_picture;
mod sweep_command;

use std::ffi::OsString;
use std::process::ExitCode;

use bench_run::UsageError;
use clap::Parser as _;

use cli::{Cli, Command};
pub use error::Error;

/// Runs the program on a command line (program name first) and returns its exit code.
///
/// The code is 0 for success, 1 for a failure, 2 for an invalid command line, and 130 after Ctrl-C.
/// Errors are one line on stderr.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let cli = match Cli::try_parse_from(&arguments) {
        Ok(cli) => cli,
        Err(error) => return print_clap_error(&error),
    };
    let outcome = match cli.command {
        Command::Generate(args) => generate_command::run(&args),
        Command::Sweep(args) => sweep_command::run(&args, &arguments),
        Command::Queue(args) => queue_command::run(&args, &arguments),
        Command::Peers(args) => peers_command::run(&args, &arguments),
        Command::Point => bench::serve().map(|()| ExitCode::SUCCESS),
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("error: {}", one_line(&with_causes(&error)));
        if error.is::<UsageError>() { ExitCode::from(2) } else { ExitCode::FAILURE }
    })
}

/// Prints help to stdout unchanged, or the first paragraph of an error to stderr in one line.
fn print_clap_error(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        // Clap uses color on a terminal only.
        return error.print().map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS);
    }
    let text = error.render().to_string();
    if text.starts_with("error:") {
        eprintln!("{}; see --help", one_line(text.split("\n\n").next().unwrap_or_default()));
    } else {
        // The subcommand is missing: clap shows the help instead of an error.
        eprint!("{text}");
    }
    ExitCode::from(2)
}

/// Joins an error and its causes, leaving out repeated text.
fn with_causes(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for part in error.chain().map(ToString::to_string) {
        if !text.contains(&part) {
            text.push_str(if text.is_empty() { "" } else { ": " });
            text.push_str(&part);
        }
    }
    text
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
