//! Files in the packed format, which is not implemented yet.

use super::{DecodeScratch, FileError, StoredArray};

/// A parsed packed file over borrowed bytes.
#[derive(Debug)]
pub(super) struct Packed<'a> {
    #[expect(dead_code, reason = "nothing is decoded yet")]
    bytes: &'a [u8],
}

/// Parses a packed file: its arrays and where their values are.
pub(super) fn parse(_bytes: &[u8]) -> Result<(Vec<StoredArray>, Packed<'_>), FileError> {
    Err(FileError::unsupported(0, "packed files cannot be read yet"))
}

#[expect(clippy::unused_self, reason = "not implemented yet")]
impl Packed<'_> {
    /// Bytes of each piece of array `idx` but the last, which may be shorter; at least 1.
    pub(super) fn piece_bytes(&self, _idx: usize) -> usize {
        1
    }

    /// Decodes a piece of array `idx` into `into`, whose length is that of the piece.
    pub(super) fn decode_piece(
        &self,
        _idx: usize,
        _piece: usize,
        _into: &mut [u8],
        _scratch: &mut DecodeScratch,
    ) -> Result<(), FileError> {
        Err(FileError::unsupported(0, "packed files cannot be read yet"))
    }
}
