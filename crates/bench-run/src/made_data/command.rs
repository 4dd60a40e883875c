//! The beginning and the end of a command that makes data.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use storage::{Destination, Existing};

use super::DataError;
use crate::display::Display;
use crate::interrupt::EXIT_CODE;
use crate::usage_error::UsageError;

/// Claims a local folder for `what`, which appears there whole or not at all.
pub fn claim(path: &Path, what: &'static str) -> Result<Destination, DataError> {
    let refused = |problem| DataError::Place { path: path.to_owned(), what, problem };
    let text = path.to_str().ok_or_else(|| refused("its name is not valid UTF-8"))?;
    if path.file_name().is_none() {
        return Err(refused("it does not end with a name"));
    }
    if storage::local_path(text).is_none() {
        return Err(refused("it is written to a local folder; copy it from there"));
    }
    Ok(Destination::claim(text, Existing::Keep, &[])?)
}

/// Returns the report of what was made. Breaks with the exit code if the user interrupted it, and
/// prints what that left.
///
/// # Errors
/// An error of making, as a [`UsageError`] if the arguments were wrong.
pub fn finished<T>(
    made: Result<T, DataError>,
    if_interrupted: &str,
) -> anyhow::Result<ControlFlow<ExitCode, T>> {
    match made {
        Err(DataError::Interrupted) => {
            crate::print_message!("interrupted: {if_interrupted}");
            Ok(ControlFlow::Break(ExitCode::from(EXIT_CODE)))
        }
        Err(error) if error.is_usage() => Err(UsageError::new(error.to_string()).into()),
        made => Ok(ControlFlow::Continue(made?)),
    }
}

/// Prints what was removed before.
pub fn show_leftover<'a>(display: &Display, leftovers: impl IntoIterator<Item = &'a PathBuf>) {
    for leftover in leftovers {
        let leftover = leftover.display();
        display.line(&format!("{leftover}: removed what a killed run had left there"));
    }
}
