//! Arrays compressed by c-blosc after a pickle of their shapes and types.

use super::{DecodeScratch, FileError, StoredArray};

/// A compressed array over borrowed bytes.
#[derive(Debug)]
pub(super) struct Stored<'a>(#[expect(dead_code, reason = "not read yet")] &'a [u8]);

pub(super) fn parse(_bytes: &[u8]) -> Result<(Vec<StoredArray>, Vec<Stored<'_>>), FileError> {
    Err(FileError::unsupported(0, "not written yet"))
}

#[expect(clippy::unused_self, reason = "not implemented yet")]
impl Stored<'_> {
    pub(super) fn piece_bytes(&self) -> usize {
        1
    }

    pub(super) fn decode_piece(
        &self,
        _piece: usize,
        _into: &mut [u8],
        _scratch: &mut DecodeScratch,
    ) -> Result<(), FileError> {
        Err(FileError::unsupported(0, "not written yet"))
    }
}
