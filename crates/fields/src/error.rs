//! Errors of writing fields.

use std::path::PathBuf;

/// An error of this crate: the failed step, its place, and the remedy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A size is out of range.
    #[error("{what} is {value}; it must be between {least} and {most}")]
    Size {
        /// Name of the size.
        what: &'static str,
        /// The given value.
        value: u64,
        /// Smallest valid value.
        least: u64,
        /// Largest valid value.
        most: u64,
    },

    /// The settings of a layout contradict each other, or its format does not know them.
    #[error("the layout cannot be written: {problem}")]
    Layout {
        /// The problem, and how to avoid it.
        problem: String,
    },

    /// The path cannot be the place of a store.
    #[error("{} cannot be the place of a store: {problem}", .path.display())]
    Place {
        /// The path.
        path: PathBuf,
        /// The problem.
        problem: &'static str,
    },

    /// The folder of the store cannot be claimed, or the finished store cannot get its name.
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

    /// A part of the store cannot be written.
    #[error("cannot write {what} in {}", .folder.display())]
    Write {
        /// The part.
        what: String,
        /// The folder in which the store is written.
        folder: PathBuf,
        /// The cause.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },

    /// A thread did not start.
    #[error("cannot start a thread to make samples")]
    Thread {
        /// The system's error.
        #[source]
        source: std::io::Error,
    },

    /// The caller interrupted the run.
    #[error("interrupted: no store was written")]
    Interrupted,
}

impl Error {
    /// Whether the arguments were wrong, so that the same call can never succeed.
    pub fn is_usage(&self) -> bool {
        matches!(self, Self::Size { .. } | Self::Layout { .. } | Self::Place { .. })
    }
}
