//! Errors of reading and writing files of cubes.

/// A file that cannot be read or written. The caller adds the file's name.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// The file ends too early.
    #[error(
        "the file has {length} bytes, but {part} would end at byte {end}: it was cut, or has another \
         format"
    )]
    Truncated {
        /// The part that is incomplete.
        part: &'static str,
        /// Bytes of the file.
        length: usize,
        /// Where the part would end.
        end: usize,
    },

    /// The file contradicts its format.
    #[error("damaged at byte {offset}: {reason}")]
    Damaged {
        /// Bytes from the start of the file.
        offset: usize,
        /// What was found and what would be valid.
        reason: String,
    },

    /// The file is valid, but uses a part of its format that is not supported.
    #[error("not supported, at byte {offset}: {reason}")]
    Unsupported {
        /// Bytes from the start of the file.
        offset: usize,
        /// What was found and what is supported.
        reason: String,
    },

    /// Compressed data cannot be decompressed.
    #[error("cannot decompress the {codec} data at byte {offset}")]
    Decompress {
        /// Bytes from the start of the file.
        offset: usize,
        /// The compression format.
        codec: &'static str,
        /// The reason.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },

    /// The destination of the decoded values is longer or shorter than they are.
    #[error("{expected} bytes are decoded, and the destination has {given}")]
    Destination {
        /// Bytes of the decoded values.
        expected: usize,
        /// Bytes of the destination.
        given: usize,
    },

    /// The array or the piece does not exist.
    #[error("there is no {what} {index}: the file has {count}")]
    Absent {
        /// `array` or `piece`.
        what: &'static str,
        /// The index.
        index: usize,
        /// How many there are.
        count: usize,
    },

    /// Values to be written do not fit the format or their own shape.
    #[error("cannot write: {reason}")]
    Write {
        /// What was given and what would be valid.
        reason: String,
    },
}

impl FileError {
    /// An error of a file that contradicts its format at `offset`.
    pub(super) fn damaged(offset: usize, reason: impl Into<String>) -> Self {
        Self::Damaged { offset, reason: reason.into() }
    }

    /// An error of a file with a part that is not supported at `offset`.
    pub(super) fn unsupported(offset: usize, reason: impl Into<String>) -> Self {
        Self::Unsupported { offset, reason: reason.into() }
    }

    /// An error of values that cannot be written.
    pub(super) fn write(reason: impl Into<String>) -> Self {
        Self::Write { reason: reason.into() }
    }
}

impl From<arrays::blosc::Error> for FileError {
    fn from(error: arrays::blosc::Error) -> Self {
        use arrays::blosc::Error;
        match error {
            Error::Truncated { part, length, end } => Self::Truncated { part, length, end },
            Error::Damaged { offset, reason } => Self::Damaged { offset, reason },
            Error::Unsupported { offset, reason } => Self::Unsupported { offset, reason },
            Error::Decompress { offset, codec, source } => {
                Self::Decompress { offset, codec, source }
            }
        }
    }
}
