//! Cubes as Tivita cameras write them.

use super::{FileError, StoredArray};

/// A parsed cube over borrowed bytes.
#[derive(Debug)]
pub(super) struct Cube<'a>(#[expect(dead_code, reason = "not read yet")] &'a [u8]);

pub(super) fn parse(_bytes: &[u8]) -> Result<(StoredArray, Cube<'_>), FileError> {
    Err(FileError::unsupported(0, "not written yet"))
}

#[expect(clippy::unused_self, reason = "not implemented yet")]
impl Cube<'_> {
    pub(super) fn piece_bytes(&self) -> usize {
        1
    }

    pub(super) fn decode_piece(&self, _piece: usize, _into: &mut [u8]) -> Result<(), FileError> {
        Err(FileError::unsupported(0, "not written yet"))
    }
}
