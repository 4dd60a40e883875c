//! The program of the command line, which is that of crate `sweep`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use bench_run::Program;
use pyo3::prelude::*;

use crate::libtiledb;
use crate::waiting::detached;

/// How users call the program.
const CALLED: &str = "somafeed";

/// Runs a command and returns its exit code.
#[pyfunction]
pub(crate) fn run_program(
    py: Python<'_>,
    arguments: Vec<OsString>,
    start: Vec<OsString>,
    code: PathBuf,
) -> PyResult<u8> {
    libtiledb::export(py)?;
    Program { called: CALLED, start, arguments: arguments.clone(), code }.name();
    let words = std::iter::once(OsString::from(CALLED)).chain(arguments);
    let ended = detached(py, || sweep::run(words))?;
    // An exit code has no other way to its number.
    let number = (0..=u8::MAX).find(|number| ExitCode::from(*number) == ended);
    Ok(number.unwrap_or(1))
}
