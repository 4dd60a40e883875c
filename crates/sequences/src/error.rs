//! Errors of writing, opening and reading sequences.

use std::path::PathBuf;

/// An error of a store of sequences or of their tokens.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A record of an input file cannot be used.
    #[error("{path}, {place}: {reason}", path = path.display())]
    Input {
        /// The file.
        path: PathBuf,
        /// The line or the record.
        place: String,
        /// What is wrong with it, and what would be right.
        reason: String,
    },

    /// A file cannot be read or written.
    #[error("cannot {action} {path}", path = path.display())]
    File {
        /// What was tried: "read", "write".
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: std::io::Error,
    },

    /// Two sequences have the same name.
    #[error(
        "sequences {first} and {second} are both named {name}; names must differ, because a \
         sequence is found by its name: rename one, or leave out all but the first (--skip-doubled)"
    )]
    DuplicateName {
        /// The name.
        name: String,
        /// The first one's row.
        first: u64,
        /// The second one's row.
        second: u64,
    },

    /// The new store cannot be put where it was asked for.
    #[error(transparent)]
    Destination(#[from] storage::DestinationError),

    /// There is no store, or not one that this version reads.
    #[error("{place} is not a store of sequences: {reason}")]
    NotAStore {
        /// The place.
        place: String,
        /// What is missing or different.
        reason: String,
    },

    /// A store cannot be read.
    #[error("cannot read {what} in {place}")]
    Read {
        /// What was to be read.
        what: String,
        /// The store.
        place: String,
        /// The cause.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },

    /// A store has values that no complete writer leaves behind.
    #[error("{place} is damaged: {reason}; write it again")]
    Damaged {
        /// The store.
        place: String,
        /// What is wrong.
        reason: String,
    },

    /// Servers have other data where a store was to be filled.
    #[cfg(feature = "servers")]
    #[error("{place} has a store already: {reason}")]
    OtherData {
        /// The namespace.
        place: String,
        /// What it has, and what can be done.
        reason: String,
    },

    /// Servers cannot be reached, or refuse.
    #[cfg(feature = "servers")]
    #[error(transparent)]
    Servers(key_values::Error),

    /// A sequence has a letter that the alphabet lacks.
    #[error(
        "sequence {row} has the letter {letter:?} at position {position}, which is not in the \
         alphabet {alphabet}; add it, or skip such k-mers, or make them the unknown word"
    )]
    UnknownLetter {
        /// The sequence's row.
        row: u64,
        /// Position in the sequence, from 0.
        position: usize,
        /// The letter.
        letter: char,
        /// The letters that are known.
        alphabet: String,
    },

    /// A sequence has a k-mer that the vocabulary lacks.
    #[error(
        "sequence {row} has the word {word} at position {position}, which is not in the \
         vocabulary; count the words of this store, or skip such words, or make them the unknown \
         word"
    )]
    UnknownWord {
        /// The sequence's row.
        row: u64,
        /// Position in the sequence, from 0.
        position: usize,
        /// The word.
        word: String,
    },

    /// Settings do not fit together or do not fit the data.
    #[error("{reason}")]
    Settings {
        /// What does not fit, and what would.
        reason: String,
    },

    /// A thread cannot be started.
    #[error("cannot start a thread")]
    Thread {
        /// The cause.
        #[source]
        source: std::io::Error,
    },

    /// Reading was stopped, because nothing wants its result.
    #[error("reading was stopped")]
    Stopped,

    /// No noise can be drawn from the words' counts.
    #[error("the words' counts give no noise")]
    Noise(#[from] shuffle::AliasTableError),

    /// An error of the engine.
    #[error(transparent)]
    Engine(#[from] pipeline::Error),
}

impl Error {
    pub(crate) fn settings(reason: impl Into<String>) -> Self {
        Self::Settings { reason: reason.into() }
    }
}

/// A stop is the same whoever notices it.
#[cfg(feature = "servers")]
impl From<key_values::Error> for Error {
    fn from(error: key_values::Error) -> Self {
        match error {
            key_values::Error::Stopped => Self::Stopped,
            error => Self::Servers(error),
        }
    }
}
