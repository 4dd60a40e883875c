//! What can be wrong with a buffer.

/// A buffer cannot be decoded. Offsets count from the start of what the buffer lies in.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The buffer ends too early.
    #[error("there are {length} bytes, but {part} would end at byte {end}: it was cut")]
    Truncated {
        /// The part that is incomplete.
        part: &'static str,
        /// Bytes up to the end of the buffer.
        length: usize,
        /// Where the part would end.
        end: usize,
    },

    /// The buffer contradicts its format.
    #[error("damaged at byte {offset}: {reason}")]
    Damaged {
        /// The place.
        offset: usize,
        /// What was found and what would be valid.
        reason: String,
    },

    /// The buffer is valid, but uses a part of its format that is not supported.
    #[error("not supported, at byte {offset}: {reason}")]
    Unsupported {
        /// The place.
        offset: usize,
        /// What was found and what is supported.
        reason: String,
    },

    /// Compressed data cannot be decompressed.
    #[error("cannot decompress the {codec} data at byte {offset}: {source}")]
    Decompress {
        /// The place.
        offset: usize,
        /// The compression format.
        codec: &'static str,
        /// The reason.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl Error {
    pub(super) fn damaged(offset: usize, reason: impl Into<String>) -> Self {
        Self::Damaged { offset, reason: reason.into() }
    }

    pub(super) fn unsupported(offset: usize, reason: impl Into<String>) -> Self {
        Self::Unsupported { offset, reason: reason.into() }
    }
}
