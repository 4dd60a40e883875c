//! Errors of making data.

use std::path::{Path, PathBuf};

/// The error of a library below.
pub type Cause = Box<dyn std::error::Error + Send + Sync>;

/// An error of making data: the failed step, its place, and the remedy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DataError {
    /// A number is out of range.
    #[error("{what} is {value}; it must be between {least} and {most}")]
    Size {
        /// Name of the number.
        what: &'static str,
        /// The given value.
        value: f64,
        /// Smallest valid value.
        least: f64,
        /// Largest valid value.
        most: f64,
    },

    /// Settings contradict each other, or what was written before.
    #[error("{problem}")]
    Settings {
        /// The problem, and how to avoid it.
        problem: String,
    },

    /// The path cannot be the place of the data.
    #[error("{} cannot be the place of a {what}: {problem}", .path.display())]
    Place {
        /// The path.
        path: PathBuf,
        /// What was to be written there.
        what: &'static str,
        /// The problem.
        problem: &'static str,
    },

    /// A place cannot be claimed, or the finished data cannot get its name.
    #[error(transparent)]
    Destination(#[from] storage::DestinationError),

    /// There is not enough memory.
    #[error("cannot allocate {n_bytes} bytes for {what}: make it smaller, or use fewer threads")]
    Memory {
        /// What the memory is for.
        what: &'static str,
        /// Number of bytes.
        n_bytes: usize,
    },

    /// A file, or a part of one, cannot be written.
    #[error("cannot write {what}")]
    Write {
        /// The file, the folder, or the part and its place.
        what: String,
        /// The cause.
        #[source]
        source: Cause,
    },

    /// A file of the data cannot be read, is damaged, or is not what the others are.
    #[error("cannot use {}", .path.display())]
    BadFile {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: Cause,
    },

    /// There is no data to read, or it cannot be listed.
    #[error("cannot read {what} from {}", .path.display())]
    Source {
        /// What was to be read.
        what: &'static str,
        /// The folder, or its list.
        path: PathBuf,
        /// The cause.
        #[source]
        source: Cause,
    },

    /// A thread did not start.
    #[error("cannot start a thread to make data")]
    Thread {
        /// The system's error.
        #[source]
        source: std::io::Error,
    },

    /// The caller interrupted the run.
    #[error("interrupted")]
    Interrupted,
}

impl DataError {
    /// Whether the arguments were wrong, so that the same call can never succeed.
    pub fn is_usage(&self) -> bool {
        matches!(self, Self::Size { .. } | Self::Settings { .. } | Self::Place { .. })
    }

    /// Invalid settings.
    pub fn settings(problem: impl Into<String>) -> Self {
        Self::Settings { problem: problem.into() }
    }

    /// An error of writing a file.
    pub fn write(path: &Path, source: impl Into<Cause>) -> Self {
        Self::Write { what: path.display().to_string(), source: source.into() }
    }

    /// An error of a file of the data.
    pub fn bad_file(path: &Path, source: impl Into<Cause>) -> Self {
        Self::BadFile { path: path.to_owned(), source: source.into() }
    }

    /// Fails if `value` is not between `least` and `most`.
    pub fn check_size(
        what: &'static str,
        value: f64,
        (least, most): (f64, f64),
    ) -> Result<(), Self> {
        if (least..=most).contains(&value) {
            return Ok(());
        }
        Err(Self::Size { what, value, least, most })
    }
}
