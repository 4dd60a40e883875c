//! Memory of decoding that is used again for the next array.

use std::fmt;

use super::Error;

/// Memory of decoding, kept from one array to the next: one per thread.
#[derive(Debug, Default)]
pub struct DecodeScratch {
    /// Decompressed bytes of a block before they get their order.
    pub(super) block: Vec<u8>,
    /// The decompressor of zstd.
    pub(super) zstd: Zstd,
    /// The decompressor of zlib.
    pub(super) zlib: Zlib,
}

impl DecodeScratch {
    /// Scratch memory that grows to what the arrays need.
    pub fn new() -> Self {
        Self::default()
    }
}

/// A decompressor of zstd whose context is made for the first frame and then kept.
#[derive(Default)]
pub(super) struct Zstd(Option<zstd::bulk::Decompressor<'static>>);

impl Zstd {
    /// Decompresses the frame `compressed`, which is at `offset` in the file, into `into`, and
    /// returns its number of bytes.
    pub(super) fn decompress(
        &mut self,
        compressed: &[u8],
        into: &mut [u8],
        offset: usize,
    ) -> Result<usize, Error> {
        let failed = |source: std::io::Error| Error::Decompress {
            offset,
            codec: "zstd",
            source: Box::new(source),
        };
        let context = match &mut self.0 {
            Some(context) => context,
            none => none.insert(zstd::bulk::Decompressor::new().map_err(failed)?),
        };
        context.decompress_to_buffer(compressed, into).map_err(failed)
    }
}

impl fmt::Debug for Zstd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Zstd").field(&self.0.is_some()).finish()
    }
}

/// A decompressor of zlib whose state is made for the first stream and then kept.
#[derive(Debug, Default)]
pub(super) struct Zlib(Option<flate2::Decompress>);

impl Zlib {
    /// Like [`Zstd::decompress`], for a stream of zlib.
    pub(super) fn decompress(
        &mut self,
        compressed: &[u8],
        into: &mut [u8],
        offset: usize,
    ) -> Result<usize, Error> {
        let failed = |source: Box<dyn std::error::Error + Send + Sync>| Error::Decompress {
            offset,
            codec: "zlib",
            source,
        };
        let state = self.0.get_or_insert_with(|| flate2::Decompress::new(true));
        state.reset(true);
        let status = state
            .decompress(compressed, into, flate2::FlushDecompress::Finish)
            .map_err(|error| failed(Box::new(error)))?;
        if status != flate2::Status::StreamEnd {
            return Err(failed("the stream does not end within its block".into()));
        }
        Ok(state.total_out() as usize)
    }
}
