//! Errors of writing cubes.

use std::path::{Path, PathBuf};

/// The error of a library below.
pub(crate) type Cause = Box<dyn std::error::Error + Send + Sync>;

/// An error of this crate: the failed step, its place, and the remedy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
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

    /// The path cannot be the place of a data set.
    #[error("{} cannot be the place of a data set: {problem}", .path.display())]
    Place {
        /// The path.
        path: PathBuf,
        /// The problem.
        problem: &'static str,
    },

    /// A folder cannot be claimed, or the finished data set cannot get its name.
    #[error(transparent)]
    Destination(#[from] storage::DestinationError),

    /// There is not enough memory.
    #[error("cannot allocate {n_bytes} bytes for {what}: use fewer threads")]
    Memory {
        /// What the memory is for.
        what: &'static str,
        /// Number of bytes.
        n_bytes: usize,
    },

    /// A file cannot be written.
    #[error("cannot write {}", .path.display())]
    Write {
        /// The file or folder.
        path: PathBuf,
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

    /// The folder has no cubes to read, or they cannot be listed.
    #[error("cannot read cubes from {}", .path.display())]
    Source {
        /// The folder, or its list of images.
        path: PathBuf,
        /// The cause.
        #[source]
        source: Cause,
    },

    /// A thread did not start.
    #[error("cannot start a thread to write cubes")]
    Thread {
        /// The system's error.
        #[source]
        source: std::io::Error,
    },

    /// The caller interrupted the run.
    #[error("interrupted")]
    Interrupted,
}

impl Error {
    /// Whether the arguments were wrong, so that the same call can never succeed.
    pub fn is_usage(&self) -> bool {
        matches!(self, Self::Size { .. } | Self::Settings { .. } | Self::Place { .. })
    }

    /// An error of writing a file.
    pub(crate) fn write(path: &Path, source: impl Into<Cause>) -> Self {
        Self::Write { path: path.to_owned(), source: source.into() }
    }

    /// An error of a file of the data.
    pub(crate) fn bad_file(path: &Path, source: impl Into<Cause>) -> Self {
        Self::BadFile { path: path.to_owned(), source: source.into() }
    }
}
