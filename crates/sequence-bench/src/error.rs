//! Errors of writing sequences.

use std::path::PathBuf;

/// An error of this crate: the failed step, its place, and the remedy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A setting is invalid, or contradicts another.
    #[error("{problem}")]
    Settings {
        /// The problem, and what would be right.
        problem: String,
    },

    /// The file cannot be put where it was asked for.
    #[error(transparent)]
    Destination(#[from] storage::DestinationError),

    /// A file cannot be written.
    #[error("cannot write {}", .path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: std::io::Error,
    },

    /// A part of the file cannot be compressed.
    #[error("cannot compress sequences")]
    Compress {
        /// The cause.
        #[source]
        source: std::io::Error,
    },

    /// A thread did not start.
    #[error("cannot start a thread to make sequences")]
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
        matches!(self, Self::Settings { .. })
    }

    pub(crate) fn settings(problem: impl Into<String>) -> Self {
        Self::Settings { problem: problem.into() }
    }
}
