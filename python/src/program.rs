//! The programs of the command line: that of crate `sweep`, whose commands follow the name, and
//! those of other kinds of samples, which have a command of their own.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use bench_run::{Program, print_line};
use pyo3::prelude::*;

use crate::libtiledb;
use crate::waiting::detached;

/// How users call the program of `sweep`.
const CALLED: &str = "somafeed";

/// A program for one kind of samples: its command, how users call it, and what runs it.
type OfKind = (&'static str, &'static str, fn(Vec<OsString>) -> ExitCode);

/// The programs for kinds of samples besides cells.
const KINDS: [OfKind; 3] = [
    ("cubes", "somafeed cubes", cubes::run),
    ("fields", "somafeed fields", fields::run),
    ("sequences", "somafeed sequences", sequence_bench::run),
];

/// Runs a command and returns its exit code.
#[pyfunction]
pub(crate) fn run_program(
    py: Python<'_>,
    arguments: Vec<OsString>,
    start: Vec<OsString>,
    code: PathBuf,
) -> PyResult<u8> {
    libtiledb::export(py)?;
    let kind =
        KINDS.into_iter().find(|(name, ..)| arguments.first().is_some_and(|one| one == name));
    let ended = match kind {
        None => {
            Program { called: CALLED, start, arguments: arguments.clone(), code }.name();
            let asks_for_help = arguments.iter().all(|one| one == "--help" || one == "-h");
            let words = std::iter::once(OsString::from(CALLED)).chain(arguments);
            let ended = detached(py, || sweep::run(words))?;
            if asks_for_help && ended == ExitCode::SUCCESS {
                let others = KINDS.map(|(_, called, _)| called).join(", ");
                print_line!("\nOther kinds of samples: {others}");
            }
            ended
        }
        Some((name, called, run)) => {
            // A measured process is started with the name of its program, too.
            let start = start.into_iter().chain([OsString::from(name)]).collect();
            let arguments: Vec<OsString> = arguments.into_iter().skip(1).collect();
            Program { called, start, arguments: arguments.clone(), code }.name();
            let words = std::iter::once(OsString::from(called)).chain(arguments);
            detached(py, || run(words.collect()))?
        }
    };
    // An exit code has no other way to its number.
    let number = (0..=u8::MAX).find(|number| ExitCode::from(*number) == ended);
    Ok(number.unwrap_or(1))
}
