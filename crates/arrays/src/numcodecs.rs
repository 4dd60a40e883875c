//! Codecs of numcodecs that zarrs lacks (0.23.14): lz4, checksums, delta.
//!
//! Source: numcodecs 0.16, modules `lz4`, `checksum32`, `fletcher32` and `delta`.

use std::any::Any;
use std::borrow::Cow;
use std::num::NonZeroU64;
use std::sync::{Arc, Once};

use serde_json::Value;
use zarrs::array::codec::api::{
    ArrayBytesRaw, ArrayCodecTraits, ArrayToArrayCodecTraits, BytesRepresentation,
    BytesToBytesCodecTraits, Codec, CodecError, CodecRuntimePluginV3, CodecTraits,
    PartialDecoderCapability, PartialEncoderCapability, RecommendedConcurrency, register_codec_v3,
};
use zarrs::array::{ArrayBytes, CodecMetadataOptions, CodecOptions, DataType, FillValue};
use zarrs::metadata::Configuration;
use zarrs::metadata::v3::MetadataV3;
use zarrs::plugin::{ExtensionName, PluginCreateError, ZarrVersion};

use crate::convert::number_of;
use crate::element::ElementType;

/// What the names of these codecs begin with in Zarr v3. Their ids in v2 follow it.
pub(crate) const PREFIX: &str = "numcodecs.";

const CHECKSUM_BYTES: usize = size_of::<u32>();

/// Whether the codec whose id in Zarr v2 is `id` is decoded here.
pub(crate) fn decodes(id: &str) -> bool {
    id == "lz4" || id == "delta" || Checksum::of_id(id).is_some()
}

/// Makes these codecs known to zarrs.
pub(crate) fn register() {
    static REGISTERED: Once = Once::new();
    REGISTERED.call_once(|| {
        register_codec_v3(CodecRuntimePluginV3::new(
            |name| name.strip_prefix(PREFIX).is_some_and(decodes),
            of_metadata,
        ));
    });
}

fn of_metadata(metadata: &MetadataV3) -> Result<Codec, PluginCreateError> {
    let configuration = metadata.configuration().cloned().unwrap_or_default();
    let id = metadata.name().trim_start_matches(PREFIX).to_owned();
    let text = |name: &str| configuration.get(name).and_then(Value::as_str);
    let transform = match Checksum::of_id(&id) {
        Some(kind) => {
            let is_at_end = match text("location") {
                Some("end") => true,
                Some("start") => false,
                Some(other) => return Err(format!("the checksum is at its {other}").into()),
                None => kind.is_at_end(),
            };
            Transform::Checksum { kind, is_at_end }
        }
        None if id == "lz4" => Transform::Lz4,
        None => {
            let element = |name: &str| text(name).map(element_of_numpy).transpose();
            let decoded = element("dtype")?;
            let encoded = element("astype")?.or(decoded);
            let delta = Delta { decoded, encoded, configuration };
            return Ok(Codec::ArrayToArray(Arc::new(delta)));
        }
    };
    Ok(Codec::BytesToBytes(Arc::new(BytesCodec { id, transform, configuration })))
}

/// The type that numpy calls `name`: `<i4`, `|u1`, `f8`.
fn element_of_numpy(name: &str) -> Result<ElementType, PluginCreateError> {
    let short = name.trim_start_matches(['<', '>', '|', '=']);
    let known = ElementType::from_numpy_code(short).or_else(|| ElementType::from_zarr_name(short));
    known
        .filter(|element| !matches!(element, ElementType::Bool | ElementType::BF16))
        .ok_or_else(|| format!("it is for elements {name}").into())
}

fn unencoded() -> CodecError {
    CodecError::Other("it is decoded only".to_owned())
}

/// What zarrs asks of any codec. These decode whole chunks, with their configuration.
macro_rules! decodes_whole_chunks {
    ($codec:ty) => {
        impl CodecTraits for $codec {
            fn as_any(&self) -> &dyn Any {
                self
            }

            fn configuration(
                &self,
                _version: ZarrVersion,
                _options: &CodecMetadataOptions,
            ) -> Option<Configuration> {
                Some(self.configuration.clone())
            }

            fn partial_decoder_capability(&self) -> PartialDecoderCapability {
                PartialDecoderCapability { partial_read: false, partial_decode: false }
            }

            fn partial_encoder_capability(&self) -> PartialEncoderCapability {
                PartialEncoderCapability { partial_encode: false }
            }
        }
    };
}

decodes_whole_chunks!(BytesCodec);
decodes_whole_chunks!(Delta);

/// A codec of bytes.
#[derive(Debug)]
struct BytesCodec {
    id: String,
    transform: Transform,
    configuration: Configuration,
}

#[derive(Debug, Clone, Copy)]
enum Transform {
    /// The decoded length as u32, then one block.
    Lz4,
    /// The bytes, with four of a checksum.
    Checksum { kind: Checksum, is_at_end: bool },
}

#[derive(Debug, Clone, Copy)]
enum Checksum {
    Crc32,
    Adler32,
    Fletcher32,
}

impl Checksum {
    fn of_id(id: &str) -> Option<Self> {
        match id {
            "crc32" => Some(Self::Crc32),
            "adler32" => Some(Self::Adler32),
            "fletcher32" => Some(Self::Fletcher32),
            _ => None,
        }
    }

    /// Whether it follows the bytes if the metadata does not say.
    fn is_at_end(self) -> bool {
        matches!(self, Self::Fletcher32)
    }

    fn compute(self, bytes: &[u8]) -> u32 {
        match self {
            Self::Crc32 => crc32fast::hash(bytes),
            Self::Adler32 => adler32(bytes),
            Self::Fletcher32 => fletcher32(bytes),
        }
    }
}

/// Adler-32 (RFC 1950, section 8).
fn adler32(bytes: &[u8]) -> u32 {
    const MODULUS: u32 = 65_521;
    // As many sums as fit into 32 bits.
    const RUN: usize = 5552;
    let (mut low, mut high) = (1_u32, 0_u32);
    for run in bytes.chunks(RUN) {
        for byte in run {
            low += u32::from(*byte);
            high += low;
        }
        (low, high) = (low % MODULUS, high % MODULUS);
    }
    (high << 16) | low
}

/// The checksum that HDF5 calls Fletcher-32 (H5checksum.c): of big-endian words of 16 bits, an odd
/// byte at the end counting as the upper half of one. zarrs forgets that byte.
fn fletcher32(bytes: &[u8]) -> u32 {
    const RUN: usize = 360;
    let fold = |sum: u32| (sum & 0xffff) + (sum >> 16);
    let (mut low, mut high) = (0_u32, 0_u32);
    for run in bytes.chunks(2 * RUN) {
        for word in run.chunks(2) {
            let word = [word[0], word.get(1).copied().unwrap_or(0)];
            low += u32::from(u16::from_be_bytes(word));
            high += low;
        }
        (low, high) = (fold(low), fold(high));
    }
    (fold(high) << 16) | fold(low)
}

impl BytesCodec {
    fn decoded(&self, encoded: &[u8], most: Option<u64>) -> Result<Vec<u8>, CodecError> {
        let short = || CodecError::Other(format!("{} bytes are too few", encoded.len()));
        match self.transform {
            Transform::Lz4 => {
                let (n_bytes, block) = encoded.split_first_chunk().ok_or_else(short)?;
                let n_bytes = u32::from_le_bytes(*n_bytes) as usize;
                // A byte of a block stands for 255 at most.
                let most = most.unwrap_or(u64::MAX).min(block.len() as u64 * 255);
                if most < n_bytes as u64 {
                    let text = format!("it declares {n_bytes} bytes, {most} are expected at most");
                    return Err(CodecError::Other(text));
                }
                let most = i32::try_from(n_bytes)
                    .map_err(|_| CodecError::Other(format!("{n_bytes} bytes are too many")))?;
                lz4::block::decompress(block, Some(most))
                    .map_err(|error| CodecError::Other(error.to_string()))
            }
            Transform::Checksum { kind, is_at_end } => {
                let (bytes, checksum) = if is_at_end {
                    encoded.split_last_chunk::<CHECKSUM_BYTES>().ok_or_else(short)?
                } else {
                    let split = encoded.split_first_chunk::<CHECKSUM_BYTES>();
                    split.map(|(checksum, bytes)| (bytes, checksum)).ok_or_else(short)?
                };
                if kind.compute(bytes) != u32::from_le_bytes(*checksum) {
                    return Err(CodecError::InvalidChecksum);
                }
                Ok(bytes.to_vec())
            }
        }
    }
}

impl ExtensionName for BytesCodec {
    fn name(&self, _version: ZarrVersion) -> Option<Cow<'static, str>> {
        Some(format!("{PREFIX}{}", self.id).into())
    }
}

impl BytesToBytesCodecTraits for BytesCodec {
    fn into_dyn(self: Arc<Self>) -> Arc<dyn BytesToBytesCodecTraits> {
        self
    }

    fn recommended_concurrency(
        &self,
        _decoded: &BytesRepresentation,
    ) -> Result<RecommendedConcurrency, CodecError> {
        Ok(RecommendedConcurrency::new_maximum(1))
    }

    fn encoded_representation(&self, decoded: &BytesRepresentation) -> BytesRepresentation {
        use BytesRepresentation::{BoundedSize, FixedSize, UnboundedSize};
        let more = CHECKSUM_BYTES as u64;
        match (self.transform, *decoded) {
            (_, UnboundedSize) => UnboundedSize,
            (Transform::Checksum { .. }, FixedSize(n)) => FixedSize(n.saturating_add(more)),
            (Transform::Checksum { .. }, BoundedSize(n)) => BoundedSize(n.saturating_add(more)),
            (Transform::Lz4, FixedSize(n) | BoundedSize(n)) => {
                BoundedSize(n.saturating_add(n / 255 + 16 + more))
            }
        }
    }

    fn encode<'a>(
        &self,
        _decoded: ArrayBytesRaw<'a>,
        _options: &CodecOptions,
    ) -> Result<ArrayBytesRaw<'a>, CodecError> {
        Err(unencoded())
    }

    fn decode<'a>(
        &self,
        encoded: ArrayBytesRaw<'a>,
        decoded: &BytesRepresentation,
        _options: &CodecOptions,
    ) -> Result<ArrayBytesRaw<'a>, CodecError> {
        let named = |error| CodecError::Other(format!("{}: {error}", self.id));
        Ok(self.decoded(&encoded, decoded.size()).map_err(named)?.into())
    }
}

/// The differences of neighbours, in the order of the chunk. The first element is itself.
#[derive(Debug)]
struct Delta {
    /// The type of the array's elements, if the metadata has it.
    decoded: Option<ElementType>,
    /// The type of the differences; the array's if the metadata has none.
    encoded: Option<ElementType>,
    configuration: Configuration,
}

impl Delta {
    /// The types of the elements and of the differences, for an array of this type.
    fn types(&self, array: &DataType) -> Result<(ElementType, ElementType), CodecError> {
        let refused = |what: &str| CodecError::Other(format!("delta: {what}"));
        let name = array.name(ZarrVersion::V3).unwrap_or_default();
        let decoded = ElementType::from_zarr_name(&name)
            .filter(|element| ![ElementType::Bool, ElementType::BF16].contains(element))
            .ok_or_else(|| refused(&format!("there are no differences of {name}")))?;
        if self.decoded.is_some_and(|of| of != decoded) {
            return Err(refused("its dtype is not that of the array"));
        }
        let encoded = self.encoded.unwrap_or(decoded);
        if !decoded.is_float() && encoded.is_float() {
            return Err(refused("differences of integers are no integers"));
        }
        Ok((decoded, encoded))
    }
}

impl ExtensionName for Delta {
    fn name(&self, _version: ZarrVersion) -> Option<Cow<'static, str>> {
        Some(format!("{PREFIX}delta").into())
    }
}

impl ArrayCodecTraits for Delta {
    fn recommended_concurrency(
        &self,
        _shape: &[NonZeroU64],
        _element: &DataType,
    ) -> Result<RecommendedConcurrency, CodecError> {
        Ok(RecommendedConcurrency::new_maximum(1))
    }
}

impl ArrayToArrayCodecTraits for Delta {
    fn into_dyn(self: Arc<Self>) -> Arc<dyn ArrayToArrayCodecTraits> {
        self
    }

    fn encoded_data_type(&self, decoded: &DataType) -> Result<DataType, CodecError> {
        let (_, encoded) = self.types(decoded)?;
        DataType::from_metadata(&MetadataV3::new(encoded.zarr_name()))
            .map_err(|error| CodecError::Other(error.to_string()))
    }

    fn encoded_fill_value(
        &self,
        decoded: &DataType,
        _fill: &FillValue,
    ) -> Result<FillValue, CodecError> {
        let (_, encoded) = self.types(decoded)?;
        // Chunks are decoded as a whole, so nothing of them is filled.
        Ok(FillValue::new(vec![0; encoded.n_bytes()]))
    }

    fn encode<'a>(
        &self,
        _bytes: ArrayBytes<'a>,
        _shape: &[NonZeroU64],
        _element: &DataType,
        _fill: &FillValue,
        _options: &CodecOptions,
    ) -> Result<ArrayBytes<'a>, CodecError> {
        Err(unencoded())
    }

    fn decode<'a>(
        &self,
        bytes: ArrayBytes<'a>,
        _shape: &[NonZeroU64],
        element: &DataType,
        _fill: &FillValue,
        _options: &CodecOptions,
    ) -> Result<ArrayBytes<'a>, CodecError> {
        let (decoded, encoded) = self.types(element)?;
        let bytes = bytes.into_fixed()?;
        let each = bytes.chunks_exact(encoded.n_bytes());
        Ok(ArrayBytes::from(match decoded {
            ElementType::F16 => {
                let numbers = each.map(|one| half::f16::from_f64(number_of(encoded, one)));
                let sum = |sum: half::f16, n| sum + n;
                running(numbers, half::f16::NEG_ZERO, sum, half::f16::to_ne_bytes)
            }
            ElementType::F32 => {
                let numbers = each.map(|one| number_of(encoded, one) as f32);
                running(numbers, -0.0, |sum, n| sum + n, f32::to_ne_bytes)
            }
            ElementType::F64 => {
                let numbers = each.map(|one| number_of(encoded, one));
                running(numbers, -0.0, |sum, n| sum + n, f64::to_ne_bytes)
            }
            integers => {
                let numbers = each.map(|one| integer_of(encoded, one));
                match integers.n_bytes() {
                    1 => running(numbers, 0, i64::wrapping_add, |n| (n as u8).to_ne_bytes()),
                    2 => running(numbers, 0, i64::wrapping_add, |n| (n as u16).to_ne_bytes()),
                    4 => running(numbers, 0, i64::wrapping_add, |n| (n as u32).to_ne_bytes()),
                    _ => running(numbers, 0, i64::wrapping_add, i64::to_ne_bytes),
                }
            }
        }))
    }
}

/// The sums of the first one, two and so on of `numbers`.
fn running<T: Copy, const N: usize>(
    numbers: impl Iterator<Item = T>,
    zero: T,
    add: impl Fn(T, T) -> T,
    bytes: impl Fn(T) -> [u8; N],
) -> Vec<u8> {
    let mut sum = zero;
    let sums = numbers.flat_map(|number| {
        sum = add(sum, number);
        bytes(sum)
    });
    sums.collect()
}

/// The integer in the bytes of an element, of which only the lowest 64 bits are kept.
fn integer_of(element: ElementType, bytes: &[u8]) -> i64 {
    fn read<T: bytemuck::AnyBitPattern + Into<i64>>(bytes: &[u8]) -> i64 {
        bytemuck::try_pod_read_unaligned::<T>(bytes).map_or(0, Into::into)
    }
    match element {
        ElementType::I8 => read::<i8>(bytes),
        ElementType::I16 => read::<i16>(bytes),
        ElementType::I32 => read::<i32>(bytes),
        ElementType::U8 => read::<u8>(bytes),
        ElementType::U16 => read::<u16>(bytes),
        ElementType::U32 => read::<u32>(bytes),
        _ => read::<i64>(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_those_of_their_makers() {
        // zlib.crc32, zlib.adler32 and numcodecs.Fletcher32 of Python.
        assert_eq!(Checksum::Crc32.compute(b"123456789"), 0xcbf4_3926);
        assert_eq!(Checksum::Adler32.compute(b"Wikipedia"), 0x11e6_0398);
        let odd = [0xff; 2001];
        assert_eq!([fletcher32(b"123456789"), fletcher32(&odd)], [0x09df_09d5, 0xff00_ff00]);
        assert_eq!(adler32(&[0xff; 10_000]), 0xb623_eb2b);
    }

    #[test]
    fn a_length_that_a_block_cannot_have_is_refused() {
        let lz4 = BytesCodec {
            id: "lz4".to_owned(),
            transform: Transform::Lz4,
            configuration: Configuration::default(),
        };
        let encoded = [0xff, 0xff, 0xff, 0x7f, 0x10, b'a'];
        for most in [None, Some(8)] {
            let error = lz4.decoded(&encoded, most).unwrap_err();
            assert!(error.to_string().contains("declares 2147483647"), "{error}");
        }
        assert_eq!(lz4.decoded(&[1, 0, 0, 0, 0x10, b'a'], Some(1)).unwrap(), b"a");
        assert!(lz4.decoded(&[1, 0], None).is_err());
    }
}
