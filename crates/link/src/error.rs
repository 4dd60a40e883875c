//! Errors of starting a server and of the text of a link.

use std::io;
use std::path::PathBuf;

/// A server could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The folder does not exist or cannot be opened.
    #[error("cannot serve the folder {}", .folder.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The threads of the server, or its port, are not available.
    #[error("cannot start a server on the loopback interface")]
    Start {
        /// The system's error.
        source: io::Error,
    },
    /// The faults of a server could not be started again.
    #[error(
        "the server of the link at {address} does not start its faults again: it may have ended"
    )]
    Faults {
        /// Host and port.
        address: String,
        /// The system's error, or what is wrong with the answer.
        source: io::Error,
    },
    /// A server's counts could not be had.
    #[error("the server of the link at {address} does not give its counts: it may have ended")]
    Counts {
        /// Host and port.
        address: String,
        /// The system's error, or what is wrong with the answer.
        source: io::Error,
    },
}

/// A text is not a list of faults.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{part}` is not a fault of a link; write some of refused=1/50, slow=1/20:2s, cut=1/40, storm=300:20, replaced=500, expired=1000 and seed=7, with commas between them"
)]
pub struct FaultsError {
    pub(crate) part: String,
}

/// A text is not a link.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is not a link: {problem}; write a latency, the rate of a connection and the rate of all, like 30ms,90MB/s,1GB/s"
)]
pub struct SpecError {
    pub(crate) text: String,
    pub(crate) problem: String,
}
