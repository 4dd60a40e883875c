//! Decodes chunks into memory that is used again.
//!
//! zarrs decodes any chain of codecs into memory of its own. The common chains (elements as they
//! are in memory, not compressed or compressed by zstd, gzip or Blosc) are decoded here instead,
//! straight into the caller's memory, which saves a copy and fresh pages. A chunk that is wanted in
//! part is decoded only as far as needed, if zstd compressed it.

use std::borrow::Cow;
use std::io::Read as _;
use std::num::NonZeroU64;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use zarrs::array::codec::CodecChain;
use zarrs::array::{
    ArrayToBytesCodecTraits as _, BytesRepresentation, CodecMetadataOptions, CodecOptions,
    DataType, FillValue,
};
use zarrs::metadata::v3::MetadataV3;
use zstd::stream::raw::{InBuffer, Operation as _, OutBuffer};

use crate::blosc;
use crate::error::Cause;
use crate::memory::{check_chunk, zeroed};

/// How the chunks of an array are encoded.
#[derive(Debug)]
pub(crate) enum Decoder {
    /// As in memory.
    Raw,
    /// One or more zstd frames (RFC 8878) of elements as in memory.
    Zstd {
        /// Whether a checksum of all elements may follow them.
        has_checksum: bool,
    },
    /// One or more gzip members (RFC 1952) of elements as in memory.
    Gzip,
    /// A zlib stream (RFC 1950) of elements as in memory.
    Zlib,
    /// A buffer of c-blosc of elements as in memory, of which parts can be decoded. The chain is
    /// for snappy, which only zarrs decodes.
    Blosc(Box<Chain>),
    /// Any other chain of codecs.
    Chain(Box<Chain>),
}

/// A chain that zarrs decodes.
#[derive(Debug)]
pub(crate) struct Chain {
    /// The compression around the chain, if it is a common one, and the bytes that it compresses.
    /// zarrs would decode as many as come, which may be a million times those of the chunk.
    compression: Option<(Decoder, usize)>,
    codecs: Arc<CodecChain>,
    shape: Vec<NonZeroU64>,
    element: DataType,
    fill: FillValue,
}

/// State of decoding that a thread uses again.
#[derive(Default)]
pub(crate) struct Contexts {
    zstd: Option<zstd::bulk::Decompressor<'static>>,
    zstd_start: Option<zstd::stream::raw::Decoder<'static>>,
    pub(crate) blosc: blosc::DecodeScratch,
}

impl std::fmt::Debug for Contexts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Contexts")
    }
}

impl Decoder {
    /// The decoder of chunks of shape `shape` that `codecs` encoded.
    pub(crate) fn new(
        codecs: Arc<CodecChain>,
        shape: Vec<NonZeroU64>,
        element: DataType,
        fill: FillValue,
    ) -> Self {
        let metadata = codecs.create_metadatas(&CodecMetadataOptions::default());
        if let Some(decoder) = common(&metadata, &element) {
            return decoder;
        }
        let is_blosc = is_as_in_memory(&metadata, &element)
            && matches!(&metadata[1..], [codec] if codec.name() == "blosc");
        let whole = Chain { compression: None, codecs, shape, element, fill };
        let chain = Box::new(whole.split(&metadata));
        if is_blosc { Self::Blosc(chain) } else { Self::Chain(chain) }
    }

    /// Whether chunks are stored as they are in memory.
    pub(crate) fn is_raw(&self) -> bool {
        matches!(self, Self::Raw)
    }

    /// How many bytes of a chunk of `n_bytes` are to be decoded for its first `n_wanted`.
    pub(crate) fn bytes_to_decode(&self, n_wanted: usize, n_bytes: usize) -> usize {
        match self {
            // Whoever asked for checksums has them compared, which takes all elements.
            Self::Zstd { has_checksum: false } if n_wanted < n_bytes / 8 * 7 => n_wanted,
            _ => n_bytes,
        }
    }

    /// Decodes the first bytes of a chunk of `n_bytes` into `into`, which is as long as
    /// [`Self::bytes_to_decode`] said. After an error, `into` is partly overwritten.
    pub(crate) fn decode_first(
        &self,
        encoded: &[u8],
        (into, n_bytes): (&mut [u8], usize),
        contexts: &mut Contexts,
    ) -> Result<(), Cause> {
        if into.len() == n_bytes {
            return self.decode(encoded, into, contexts);
        }
        let zstd = match &mut contexts.zstd_start {
            Some(zstd) => zstd,
            none => none.insert(zstd::stream::raw::Decoder::new()?),
        };
        decode_start(encoded, into, zstd)
    }

    /// Decodes a chunk into `into`, which is as long as the decoded chunk. After an error, `into`
    /// is partly overwritten.
    pub(crate) fn decode(
        &self,
        encoded: &[u8],
        into: &mut [u8],
        contexts: &mut Contexts,
    ) -> Result<(), Cause> {
        match self {
            Self::Raw => {
                check_len(encoded.len(), into.len())?;
                into.copy_from_slice(encoded);
            }
            Self::Zstd { .. } => {
                let zstd = match &mut contexts.zstd {
                    Some(zstd) => zstd,
                    none => none.insert(zstd::bulk::Decompressor::new()?),
                };
                check_len(zstd.decompress_to_buffer(encoded, into)?, into.len())?;
            }
            Self::Gzip => inflate(flate2::bufread::MultiGzDecoder::new(encoded), into)?,
            Self::Zlib => inflate(flate2::bufread::ZlibDecoder::new(encoded), into)?,
            Self::Blosc(chain) => match blosc::Buffer::parse(encoded, 0, into.len()) {
                Ok(buffer) => buffer.decode(0, into, &mut contexts.blosc)?,
                Err(error @ blosc::Error::Unsupported { .. }) => {
                    let decoded = chain.decode(encoded, into, contexts);
                    decoded.map_err(|other| format!("{error}; zarrs: {other}"))?;
                }
                Err(error) => return Err(error.into()),
            },
            Self::Chain(chain) => chain.decode(encoded, into, contexts)?,
        }
        Ok(())
    }
}

impl Chain {
    /// The same chain with its last codec, if that is a common compression of bytes whose number is
    /// known, taken apart.
    fn split(self, metadata: &[MetadataV3]) -> Self {
        let Some((last, rest)) = metadata.split_last() else { return self };
        let n_others = self.codecs.array_to_array_codecs().len();
        if metadata.len() != n_others + 1 + self.codecs.bytes_to_bytes_codecs().len() {
            // A codec that has no metadata would be forgotten.
            return self;
        }
        let inner = compression(last).zip(CodecChain::from_metadata(rest).ok());
        let Some((decoder, inner)) = inner else { return self };
        let Self { shape, element, fill, .. } = &self;
        match inner.encoded_representation(shape, element, fill) {
            Ok(BytesRepresentation::FixedSize(n_bytes)) => Self {
                compression: usize::try_from(n_bytes).ok().map(|n_bytes| (decoder, n_bytes)),
                codecs: Arc::new(inner),
                ..self
            },
            _ => self,
        }
    }

    /// Decodes a chunk into `into`, which is as long as the decoded chunk.
    fn decode(
        &self,
        encoded: &[u8],
        into: &mut [u8],
        contexts: &mut Contexts,
    ) -> Result<(), Cause> {
        let decode = AssertUnwindSafe(|| self.decode_or_panic(encoded, into, contexts));
        let decoded = catch_unwind(decode);
        decoded.unwrap_or_else(|panic| Err(panic_message(panic.as_ref()).into()))
    }

    fn decode_or_panic(
        &self,
        encoded: &[u8],
        into: &mut [u8],
        contexts: &mut Contexts,
    ) -> Result<(), Cause> {
        // Decodes on this thread alone, because chunks are decoded on several threads already.
        let options = CodecOptions::default().with_concurrent_target(1);
        let Self { compression, codecs, shape, element, fill } = self;
        let encoded = match compression {
            None => Cow::Borrowed(encoded),
            Some((decoder, n_bytes)) => {
                check_chunk(*n_bytes)?;
                let mut inner = zeroed(*n_bytes)?;
                decoder.decode(encoded, &mut inner, contexts)?;
                Cow::Owned(inner)
            }
        };
        let decoded = codecs.decode(encoded, shape, element, fill, &options)?;
        let bytes = decoded.into_fixed()?;
        check_len(bytes.len(), into.len())?;
        into.copy_from_slice(&bytes);
        Ok(())
    }
}

/// The decoder of a common chain: the elements' bytes, little-endian, and at most one compression.
fn common(metadata: &[MetadataV3], element: &DataType) -> Option<Decoder> {
    if !is_as_in_memory(metadata, element) {
        return None;
    }
    match &metadata[1..] {
        [] => Some(Decoder::Raw),
        [one] => compression(one),
        _ => None,
    }
}

/// Whether the first codec leaves the elements as they are in memory.
fn is_as_in_memory(metadata: &[MetadataV3], element: &DataType) -> bool {
    let Some(bytes) = metadata.first().filter(|codec| codec.name() == "bytes") else {
        return false;
    };
    let endian = bytes.configuration().and_then(|configuration| configuration.get("endian"));
    cfg!(target_endian = "little")
        && (element.fixed_size() == Some(1)
            || endian.is_some_and(|endian| endian.as_str() == Some("little")))
}

/// The decoder of a common compression.
fn compression(codec: &MetadataV3) -> Option<Decoder> {
    match codec.name() {
        "zstd" => {
            let checksum = codec.configuration().and_then(|of| of.get("checksum"));
            let has_checksum = checksum.and_then(serde_json::Value::as_bool) != Some(false);
            Some(Decoder::Zstd { has_checksum })
        }
        "gzip" => Some(Decoder::Gzip),
        "zlib" | "numcodecs.zlib" => Some(Decoder::Zlib),
        _ => None,
    }
}

/// Decodes the first bytes of zstd frames, as many as `into` has.
fn decode_start(
    encoded: &[u8],
    into: &mut [u8],
    zstd: &mut zstd::stream::raw::Decoder<'_>,
) -> Result<(), Cause> {
    zstd.reinit()?;
    let n_bytes = into.len();
    let mut from = InBuffer::around(encoded);
    let mut to = OutBuffer::around(into);
    while to.pos() < n_bytes {
        let before = (from.pos(), to.pos());
        let left_of_frame = zstd.run(&mut from, &mut to)?;
        if left_of_frame == 0 {
            // Another frame may follow.
            zstd.reinit()?;
        }
        if before == (from.pos(), to.pos()) {
            return Err(format!("ends after {} bytes, {n_bytes} are wanted", to.pos()).into());
        }
    }
    Ok(())
}

fn check_len(n_bytes: usize, wanted: usize) -> Result<(), Cause> {
    if n_bytes == wanted {
        return Ok(());
    }
    Err(format!("decodes to {n_bytes} bytes, {wanted} are expected").into())
}

/// Reads exactly as many bytes as `into` has; more or fewer are an error.
fn inflate(mut from: impl std::io::Read, into: &mut [u8]) -> Result<(), Cause> {
    from.read_exact(into)?;
    let n_more = from.take(1).read(&mut [0])?;
    check_len(into.len() + n_more, into.len())
}

/// Returns the message of a panic: zarrs panics on some damaged chunks, and readers return an
/// error.
pub(crate) fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    let message = panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_default();
    format!("the decoder panicked, as it may on damaged bytes: {message}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_of_zstd_is_that_of_the_whole() {
        let bytes: Vec<u8> = (0..400_000_u32).flat_map(|n| (n / 3 % 1000).to_le_bytes()).collect();
        let (first, second) = bytes.split_at(900_000);
        let frames = [first, second].map(|part| zstd::bulk::compress(part, 3).unwrap()).concat();
        let (decoder, mut contexts) = (Decoder::Zstd { has_checksum: false }, Contexts::default());
        for n_wanted in [1, 8, 131_072, 899_999, 900_000, 900_001, 1_300_000, 1_599_999, 1_600_000]
        {
            let n_bytes = decoder.bytes_to_decode(n_wanted, bytes.len());
            assert!(n_wanted == n_bytes || n_bytes == bytes.len());
            let mut into = vec![0; n_bytes];
            decoder.decode_first(&frames, (&mut into, bytes.len()), &mut contexts).unwrap();
            assert!(into == bytes[..n_bytes], "{n_wanted}");
        }
        let mut into = vec![0; 1_000_000];
        let ends = decoder.decode_first(&frames[..500], (&mut into, bytes.len()), &mut contexts);
        assert!(ends.unwrap_err().to_string().contains("1000000 are wanted"));
        let mut damaged = frames;
        damaged[..4].fill(0);
        assert!(decoder.decode_first(&damaged, (&mut into, bytes.len()), &mut contexts).is_err());
        let with_checksum = Decoder::Zstd { has_checksum: true };
        assert_eq!(with_checksum.bytes_to_decode(1, bytes.len()), bytes.len());
    }
}
