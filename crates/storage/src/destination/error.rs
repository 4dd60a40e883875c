//! Errors of claiming a destination and of publishing what was written to it.

use std::io;
use std::path::{Path, PathBuf};

/// A place cannot be claimed, or the data written there cannot get its name.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DestinationError {
    /// Something exists at the destination.
    #[error("{uri} exists already: choose another place, or remove it first")]
    Exists {
        /// The destination.
        uri: String,
    },
    /// Something at the destination cannot be replaced.
    #[error("{place} cannot be replaced: {problem}; choose another place, or remove it first")]
    Irreplaceable {
        /// The destination.
        place: String,
        /// The reason.
        problem: String,
    },
    /// An earlier run moved data away to replace it and did not finish; its destination now has
    /// something that may or may not be the complete new data.
    #[error(
        "{} is the data that was at {} until a run that did not end well moved it away; if what is at {} now is what you want, remove {}; otherwise move that away, and the next run puts the old one back",
        .replaced.display(), .target.display(), .target.display(), .replaced.display()
    )]
    SetAside {
        /// The original path of the data.
        target: PathBuf,
        /// The path that it was moved to.
        replaced: PathBuf,
    },
    /// Writing would overwrite, remove or extend the data that is being read.
    #[error(
        "cannot write to {place}: it {relation} {read}, which is read meanwhile; choose another place"
    )]
    SourceAtRisk {
        /// The destination of the write.
        place: String,
        /// Relation of the destination to the data that is read: `is`, `holds` or `lies in`.
        relation: &'static str,
        /// The data that is read.
        read: String,
    },
    /// The path does not end with a name.
    #[error(
        "{} cannot be written to: it does not end with a name for the new data; add one",
        .path.display()
    )]
    NoName {
        /// The path.
        path: PathBuf,
    },
    /// The temporary folder of the new data exists and was not made by this crate.
    #[error(
        "cannot write to {}: it would be written in {} first, which is there already and has no marker of an unfinished run; move or remove that, or choose another place",
        .target.display(), .path.display()
    )]
    NotOurs {
        /// The destination.
        target: PathBuf,
        /// The folder.
        path: PathBuf,
    },
    /// What another task has begun to write there is unfinished.
    #[error(
        "{} holds what a run with another source or other settings has begun to write to {}: run the same command again to go on with that, choose another place, or remove the folder to begin anew",
        .folder.display(), .target.display()
    )]
    OtherTask {
        /// The destination.
        target: PathBuf,
        /// The folder of the unfinished data set.
        folder: PathBuf,
    },
    /// Another process is writing to the same place.
    #[error(
        "{} is being written by another process, which holds the lock {}: wait for it, or choose another place",
        .path.display(), .lock.display()
    )]
    Busy {
        /// The destination.
        path: PathBuf,
        /// The lock file.
        lock: PathBuf,
    },
    /// The operating system reported an error.
    #[error("cannot {action} {}: {source}", .path.display())]
    File {
        /// The action that failed.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
}

/// Returns a function that wraps an error of the operating system in [`DestinationError::File`].
pub(super) fn file_error<'a>(
    action: &'static str,
    path: &'a Path,
) -> impl FnOnce(io::Error) -> DestinationError + 'a {
    move |source| DestinationError::File { action, path: path.to_owned(), source }
}
