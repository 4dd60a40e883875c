//! Errors of training, and of files with embeddings.

use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};

/// An error of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A setting is out of range.
    #[error("{name} is {value}, but {problem}")]
    Setting {
        /// The setting.
        name: &'static str,
        /// Its value.
        value: String,
        /// The values that it may have.
        problem: String,
    },

    /// No noise can be drawn from the words' counts.
    #[error("the words' counts give no noise: count the words of the documents first")]
    Noise(#[from] shuffle::AliasTableError),

    /// A batch has fewer or more ends than documents.
    #[error("a batch has {n_documents} documents, but {n_ends} document ends: give one for each")]
    Lengths {
        /// Number of documents.
        n_documents: usize,
        /// Number of their ends.
        n_ends: usize,
    },

    /// Ends of a batch are not in ascending order.
    #[error("{name}[{position}] is {end}, less than {previous} before it: ends must not descend")]
    Descending {
        /// `document_ends` or `frame_ends`.
        name: &'static str,
        /// Position of the end.
        position: usize,
        /// The end.
        end: usize,
        /// The end before it.
        previous: usize,
    },

    /// The last end of a batch is not the number of frames or tokens.
    #[error("{name} ends at {end}, but there are {total}: the last end must be that number")]
    LastEnd {
        /// `document_ends` or `frame_ends`.
        name: &'static str,
        /// The last end; 0 if there is none.
        end: usize,
        /// Number of frames or tokens.
        total: usize,
    },

    /// A document of a batch is unknown to the trainer.
    #[error(
        "document {document}, at position {position} of a batch, does not exist: the trainer was \
         made for {n_documents} documents"
    )]
    Document {
        /// The document's row.
        document: u64,
        /// Its position in the batch.
        position: usize,
        /// Number of documents.
        n_documents: usize,
    },

    /// A token of a batch is not a word.
    #[error(
        "token {token}, at position {position} of a batch, is no word: the trainer was made for \
         {n_words} words"
    )]
    Token {
        /// The token.
        token: u32,
        /// Its position in the batch's tokens.
        position: usize,
        /// Number of words.
        n_words: usize,
    },

    /// The system starts no thread.
    #[error("cannot start thread {name}: train with fewer threads")]
    StartThread {
        /// The thread.
        name: String,
        /// The system's error.
        source: io::Error,
    },

    /// A thread has ended by a panic, which it printed.
    #[error("thread {name} has ended before its work was done: make a new trainer")]
    ThreadEnded {
        /// The thread.
        name: String,
    },

    /// The learning rate was too large.
    #[error(
        "the loss is not a number any more, after {n_targets} targets: train with an alpha lower \
         than {alpha}"
    )]
    Diverged {
        /// Targets that were trained on so far.
        n_targets: u64,
        /// The learning rate at the beginning.
        alpha: f32,
    },

    /// There are fewer or more numbers or names than vectors.
    #[error("{n_names} names and {n_values} numbers do not fit vectors of dimension {dimension}")]
    Names {
        /// Number of names.
        n_names: usize,
        /// Number of numbers.
        n_values: usize,
        /// Length of a vector.
        dimension: usize,
    },

    /// A vector has a number that is infinite or not a number.
    #[error("vector {row} ({name}) has the number {value}: train with a lower alpha")]
    NotFinite {
        /// Row of the vector.
        row: usize,
        /// Its name.
        name: String,
        /// The number.
        value: f32,
    },

    /// A name cannot be written in word2vec's formats.
    #[error(
        "the name {name:?} of vector {row} cannot be written in word2vec's formats: it must not be \
         empty, nor contain white space; give another name or save as safetensors"
    )]
    Name {
        /// Row of the vector.
        row: usize,
        /// The name.
        name: String,
    },

    /// A file cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },

    /// A file cannot be written.
    #[error("cannot write {}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },

    /// A file is not in the expected format.
    #[error("{}, {place}: {problem}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// The line or the vector, in words.
        place: String,
        /// The difference.
        problem: String,
    },

    /// A file is not in the format safetensors, or lacks a tensor.
    #[error("{} is not a file of embeddings in the format safetensors: {problem}", path.display())]
    Safetensors {
        /// The file.
        path: PathBuf,
        /// The reason.
        problem: String,
    },
}

impl Error {
    pub(crate) fn setting(
        name: &'static str,
        value: impl Display,
        problem: impl Into<String>,
    ) -> Self {
        Self::Setting { name, value: value.to_string(), problem: problem.into() }
    }

    pub(crate) fn read(path: &Path) -> impl FnOnce(io::Error) -> Self + '_ {
        |source| Self::Read { path: path.to_owned(), source }
    }

    pub(crate) fn write(path: &Path) -> impl FnOnce(io::Error) -> Self + '_ {
        |source| Self::Write { path: path.to_owned(), source }
    }
}
