//! Errors of laying out an experiment anew.

use std::path::PathBuf;

/// An error of this crate: what was tried, where, and what to do about it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A size is out of range.
    #[error("{what} is {value}; it must be between {least} and {most}")]
    Size {
        /// The size.
        what: &'static str,
        /// Its value.
        value: u64,
        /// The smallest allowed value.
        least: u64,
        /// The largest allowed value.
        most: u64,
    },
    /// No codec has this name.
    #[error("there is no codec {name:?} for {of}; there are {}", .existing.join(", "))]
    UnknownCodec {
        /// The name.
        name: String,
        /// What it should compress: genes or values.
        of: &'static str,
        /// The existing codecs.
        existing: Vec<&'static str>,
    },
    /// The source has no cells, genes or values.
    #[error("{uri} has no {what}: there is nothing to lay out anew")]
    Empty {
        /// The array or data frame.
        uri: String,
        /// What it lacks.
        what: &'static str,
    },
    /// A cell of X occurs twice.
    #[error(
        "cell {joinid} of {uri} has more than one value of one gene: such an X cannot be laid out anew"
    )]
    Repeated {
        /// X.
        uri: String,
        /// The cell.
        joinid: u64,
    },
    /// A codec for whole numbers was chosen, but the data have other values.
    #[error(
        "cell {joinid} of {uri} has values that are not whole numbers up to 16,777,216, and codec {codec} keeps only those: choose zstd"
    )]
    NotWhole {
        /// X.
        uri: String,
        /// The cell.
        joinid: u64,
        /// The codec.
        codec: &'static str,
    },
    /// The new X does not read back like the source.
    #[error(
        "cell {joinid} of {uri} reads back differently from the new X: nothing that was written is kept; this is a bug"
    )]
    Differs {
        /// The source's X.
        uri: String,
        /// The cell.
        joinid: u64,
    },
    /// The destination is not local, and no local folder for temporary files was named.
    #[error("{uri} is not a local path, so a local folder for temporary files must be named")]
    NoTemporary {
        /// The destination.
        uri: String,
    },
    /// A temporary file does not contain the rows that were written to it.
    #[error(
        "{} does not hold the rows that were written to it: {problem}; nothing that was written is kept. Make sure that nothing else writes there and that the disk is sound, or choose another folder for temporary files",
        .path.display()
    )]
    Temporary {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// A file operation failed.
    #[error("cannot {action} {}: {source}", .path.display())]
    File {
        /// The operation.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// A thread did not start.
    #[error("cannot start a thread to read X: {source}")]
    Thread {
        /// The reason.
        source: std::io::Error,
    },
    /// Arrow rejected rows of obs.
    #[error("the rows of {uri} do not make a record batch: {source}")]
    Arrow {
        /// The data frame.
        uri: String,
        /// The reason.
        source: arrow_schema::ArrowError,
    },
    /// The measured reads could not be planned.
    #[error("reads to measure cannot be planned: {0}")]
    Plan(#[from] shuffle::PlanError),
    /// The destination cannot be written to.
    #[error(transparent)]
    Destination(#[from] soma_io::DestinationError),
    /// The experiment could not be read or written.
    #[error(transparent)]
    Experiment(#[from] soma_io::Error),
    /// The event callback stopped the relayout.
    #[error("interrupted: nothing that was written is kept")]
    Interrupted,
}
