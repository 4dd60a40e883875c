//! A whole buffer in memory.

use super::{DecodeScratch, Error, Header};

/// A parsed buffer over borrowed bytes.
#[derive(Debug)]
pub struct Buffer<'a> {
    bytes: &'a [u8],
    /// Where the buffer begins in the file.
    offset: usize,
    header: Header,
}

impl<'a> Buffer<'a> {
    /// Parses the header of a buffer that begins at `offset` of the file and must have `n_bytes`
    /// uncompressed.
    ///
    /// # Errors
    /// Those of [`Header::parse`].
    pub fn parse(bytes: &'a [u8], offset: usize, n_bytes: usize) -> Result<Self, Error> {
        let header = Header::parse(bytes, offset, (bytes.len(), n_bytes))?;
        Ok(Self { bytes, offset, header })
    }

    /// Its header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Decodes a block into `into`, which has its length.
    ///
    /// # Errors
    /// The block is damaged.
    pub fn decode_block(
        &self,
        block: usize,
        into: &mut [u8],
        scratch: &mut DecodeScratch,
    ) -> Result<(), Error> {
        let start = self.header.start(block, self.bytes, self.offset)?;
        let stored = self.bytes.get(start..).unwrap_or_default();
        self.header.decode((stored, self.offset + start), into, scratch)
    }
}
