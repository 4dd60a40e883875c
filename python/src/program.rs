//! The program of the command line: that of crate `sweep`, and behind a word of their own those of
//! other kinds of samples.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use bench_run::Program;
use pyo3::prelude::*;

use crate::libtiledb;
use crate::waiting::detached;

/// How users call the program.
const CALLED: &str = "somafeed";

/// The programs for other kinds of samples than cells, each with its word and what its help says.
const OTHERS: [(&str, &str); 1] =
    [("cubes", "Write image cubes, convert a camera's, and measure feeding them to a device")];

/// A program: how users call it, and what runs a command line.
type Named = (&'static str, fn(Vec<OsString>) -> ExitCode);

/// The program that users call by the first of these words; that of cells has none.
fn program(first: Option<&OsString>) -> Named {
    match first.and_then(|first| first.to_str()) {
        Some("cubes") => ("somafeed cubes", |words| cubes::run(words)),
        _ => (CALLED, |words| sweep::run(words)),
    }
}

/// Runs a command and returns its exit code.
#[pyfunction]
pub(crate) fn run_program(
    py: Python<'_>,
    arguments: Vec<OsString>,
    start: Vec<OsString>,
    code: PathBuf,
) -> PyResult<u8> {
    libtiledb::export(py)?;
    let (called, run) = program(arguments.first());
    // A program with a word of its own begins after it, also when it starts itself again.
    let (word, arguments) = arguments.split_at(usize::from(called != CALLED));
    let start = [&start, word].concat();
    let arguments = arguments.to_vec();
    Program { called, start, arguments: arguments.clone(), code, others: &OTHERS }.name();
    let words = std::iter::once(OsString::from(called)).chain(arguments).collect();
    let ended = detached(py, || run(words))?;
    // An exit code has no other way to its number.
    let number = (0..=u8::MAX).find(|number| ExitCode::from(*number) == ended);
    Ok(number.unwrap_or(1))
}
