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

    /// Decodes blocks from the block `first` on into `into`, which has their length.
    ///
    /// # Errors
    /// A block is damaged.
    pub fn decode(
        &self,
        first: usize,
        into: &mut [u8],
        scratch: &mut DecodeScratch,
    ) -> Result<(), Error> {
        for (idx, into) in into.chunks_mut(self.header.block_bytes()).enumerate() {
            let start = self.header.start(first + idx, self.bytes, self.offset)?;
            let stored = self.bytes.get(start..).unwrap_or_default();
            self.header.decode((stored, self.offset + start), into, scratch)?;
        }
        Ok(())
    }
}
