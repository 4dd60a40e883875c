//! What can go wrong when an experiment is laid out anew.

use std::path::PathBuf;

/// An error of this crate: what was tried, where, and what to do about it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A size is outside what can be.
    #[error("{what} is {value}; it must be between {least} and {most}")]
    Size {
        /// Which size.
        what: &'static str,
        /// What it was.
        value: u64,
        /// The least that is possible.
        least: u64,
        /// The most that is possible.
        most: u64,
    },
    /// There is no such codec.
    #[error("there is no codec {name:?} for {of}; there are {}", .existing.join(", "))]
    UnknownCodec {
        /// The name that was given.
        name: String,
        /// What it was to be for.
        of: &'static str,
        /// Those that there are.
        existing: Vec<&'static str>,
    },
    /// Nothing is there to be laid out.
    #[error("{uri} has no {what}: there is nothing to lay out anew")]
    Empty {
        /// Where.
        uri: String,
        /// What it lacks.
        what: &'static str,
    },
    /// Values of a type that 32-bit floats may not hold.
    #[error(
        "X {uri} holds values of type {data_type}, and the new one holds 32-bit floats, which cannot hold all of those"
    )]
    ValueType {
        /// X.
        uri: String,
        /// Their type.
        data_type: arrow_schema::DataType,
    },
    /// A cell stands twice in X.
    #[error(
        "cell {joinid} of {uri} has more than one value of one gene: such an X cannot be laid out anew"
    )]
    Repeated {
        /// X.
        uri: String,
        /// The cell.
        joinid: u64,
    },
    /// A codec for whole numbers, and values that are not.
    #[error(
        "cell {joinid} of {uri} has values that are no whole numbers up to 16,777,216, and codec {codec} keeps none but those: choose zstd"
    )]
    NotWhole {
        /// X.
        uri: String,
        /// The cell.
        joinid: u64,
        /// The codec.
        codec: &'static str,
    },
    /// What was written does not read back as it was read.
    #[error(
        "cell {joinid} of {uri} reads back from the new X otherwise than it was: nothing is kept of what was written; this is a bug"
    )]
    Differs {
        /// The X that was read.
        uri: String,
        /// The cell.
        joinid: u64,
    },
    /// There is no local place for what is needed for a while.
    #[error("{uri} is no local path, so a local folder for temporary files must be named")]
    NoTemporary {
        /// Where the experiment is to be written.
        uri: String,
    },
    /// A temporary file does not hold the rows that were written to it.
    #[error(
        "{} does not hold the rows that were written to it: {problem}; nothing is kept of what was written. Make sure that nothing else writes there and that the disk is sound, or choose another folder for temporary files",
        .path.display()
    )]
    Temporary {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// The operating system refused.
    #[error("cannot {action} {}: {source}", .path.display())]
    File {
        /// What was tried.
        action: &'static str,
        /// On which file or folder.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// A thread did not start.
    #[error("cannot start a thread to read X: {source}")]
    Thread {
        /// Why not.
        source: std::io::Error,
    },
    /// Arrow refused rows of obs.
    #[error("the rows of {uri} do not make a record batch: {source}")]
    Arrow {
        /// The data frame.
        uri: String,
        /// Why not.
        source: arrow_schema::ArrowError,
    },
    /// No plan of reads could be made.
    #[error("reads to measure cannot be planned: {0}")]
    Plan(#[from] shuffle::Error),
    /// The experiment could not be read or written.
    #[error(transparent)]
    Experiment(#[from] soma_io::Error),
    /// Whoever watches wanted an end.
    #[error("interrupted: nothing is kept of what was written")]
    Interrupted,
}
