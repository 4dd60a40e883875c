//! Encodes the values of a chunk with a pipeline, as a writer does.
//!
//! libtiledb uses windows of a fixed length for bit-width reduction; here they are as long as their
//! values allow.

mod windows;

use super::{Codec, Pipeline, Step, double_delta};
use crate::datatype::Number;

/// Buffers and compression contexts of one thread, reused from chunk to chunk.
#[derive(Default)]
pub(crate) struct Encoder {
    zstd: Option<(i32, zstd::bulk::Compressor<'static>)>,
    current: Filtered,
    next: Filtered,
}

/// The output of a filter for a chunk.
#[derive(Debug, Default)]
struct Filtered {
    metadata: Vec<u8>,
    data: Vec<u8>,
}

impl std::fmt::Debug for Encoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Encoder").finish_non_exhaustive()
    }
}

impl Pipeline {
    /// The name of a filter that is decoded but not encoded here; `None` if all are encoded.
    pub(crate) fn not_written(&self) -> Option<&'static str> {
        let splits = |step: &Step| {
            matches!(step, Step::Compress(..) | Step::DoubleDelta(_) | Step::BitWidthReduction(_))
        };
        self.steps().iter().enumerate().find_map(|(idx, step)| match step {
            // Their input need not be a whole number of values; libtiledb rejects most of these,
            // too.
            Step::Compress(Codec::Rle, _) if idx > 0 => Some("run lengths after another filter"),
            // Bytes that are not whole values stay as they are in bit-width reduction.
            Step::BitWidthReduction(_) if matches!(self.steps()[..idx], [Step::DoubleDelta(_)]) => {
                None
            }
            Step::Delta(_)
            | Step::DoubleDelta(_)
            | Step::BitWidthReduction(_)
            | Step::Byteshuffle { .. }
            | Step::FloatScale { .. }
                if self.steps()[..idx].iter().any(splits) =>
            {
                Some("a filter of numbers after one that packs them")
            }
            Step::Compress(Codec::Zstd | Codec::Lz4 | Codec::Rle, _)
            | Step::Delta(_)
            | Step::DoubleDelta(_)
            | Step::BitWidthReduction(_)
            | Step::Byteshuffle { .. }
            | Step::FloatScale { value_bytes: 4, .. } => None,
            Step::FloatScale { .. } => Some("float scaling of float64"),
            Step::Compress(Codec::Gzip, _) => Some("gzip"),
            Step::Compress(Codec::Bzip2, _) => Some("bzip2"),
            Step::Bitshuffle { .. } => Some("bitshuffle"),
            Step::PositiveDelta(_) => Some("positive delta"),
            Step::Md5 => Some("MD5"),
            Step::Sha256 => Some("SHA-256"),
            Step::Xor { .. } => Some("XOR"),
        })
    }

    /// Whether the output is compressed bytes, which get shorter with longer chunks.
    pub(crate) fn compresses(&self) -> bool {
        let is_general =
            |step: &Step| matches!(step, Step::Compress(codec, _) if *codec != Codec::Rle);
        self.steps().iter().any(is_general)
    }

    /// Appends the chunk of `values`, of `value_bytes` bytes each, to `out`: its header, the
    /// filters' metadata, the filtered data.
    ///
    /// # Errors
    /// A compressor's message.
    pub(crate) fn encode(
        &self,
        values: &[u8],
        value_bytes: usize,
        encoder: &mut Encoder,
        out: &mut Vec<u8>,
    ) -> Result<(), String> {
        let Encoder { zstd, current, next } = encoder;
        let mut is_first = true;
        current.metadata.clear();
        for step in self.steps() {
            next.metadata.clear();
            next.data.clear();
            let data = if is_first { values } else { current.data.as_slice() };
            apply(step, (&current.metadata, data), value_bytes, zstd, next)?;
            std::mem::swap(current, next);
            is_first = false;
        }
        let data = if is_first { values } else { current.data.as_slice() };
        for len in [values.len(), data.len(), current.metadata.len()] {
            put_u32(len, &mut *out);
        }
        out.extend_from_slice(&current.metadata);
        out.extend_from_slice(data);
        Ok(())
    }
}

fn put_u32(number: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(&(number as u32).to_le_bytes());
}

/// Applies one filter. Filters other than compressors put their own metadata in front of that of
/// the earlier filters.
fn apply(
    step: &Step,
    (metadata, data): (&[u8], &[u8]),
    value_bytes: usize,
    zstd: &mut Option<(i32, zstd::bulk::Compressor<'static>)>,
    out: &mut Filtered,
) -> Result<(), String> {
    match *step {
        Step::Byteshuffle { value_bytes } => {
            put_u32(1, &mut out.metadata);
            put_u32(data.len(), &mut out.metadata);
            super::shuffle::values_to_planes(data, value_bytes, &mut out.data);
        }
        Step::FloatScale { scale, offset, stored_bytes, .. } => {
            if !scale_floats(data, (scale as f32, offset as f32), stored_bytes, &mut out.data) {
                let bits = 8 * stored_bytes;
                return Err(format!("a value does not fit float scaling to {bits} bits"));
            }
            put_u32(1, &mut out.metadata);
            put_u32(out.data.len(), &mut out.metadata);
        }
        Step::BitWidthReduction(number) => windows::reduce(data, number, out),
        Step::Delta(number) => {
            return compress((metadata, data), out, |from, to| {
                differences(from, number, to);
                Ok(())
            });
        }
        Step::DoubleDelta(number) => {
            return compress((metadata, data), out, |from, to| {
                double_delta::apply(from, number, to)
            });
        }
        Step::Compress(Codec::Rle, _) => {
            return compress((metadata, data), out, |from, to| {
                run_lengths(from, value_bytes, to);
                Ok(())
            });
        }
        Step::Compress(Codec::Lz4, _) => {
            return compress((metadata, data), out, |from, to| {
                let start = to.len();
                let failed = |error: std::io::Error| error.to_string();
                let most = lz4::block::compress_bound(from.len()).map_err(failed)?;
                to.resize(start + most, 0);
                let len = lz4::block::compress_to_buffer(from, None, false, &mut to[start..])
                    .map_err(failed)?;
                to.truncate(start + len);
                Ok(())
            });
        }
        Step::Compress(Codec::Zstd, level) => {
            let zstd = compressor(zstd, level)?;
            return compress((metadata, data), out, |from, to| {
                let start = to.len();
                to.resize(start + zstd::zstd_safe::compress_bound(from.len()), 0);
                let len = zstd
                    .compress_to_buffer(from, &mut to[start..])
                    .map_err(|error| error.to_string())?;
                to.truncate(start + len);
                Ok(())
            });
        }
        _ => return Err("a filter that is not written".to_owned()),
    }
    out.metadata.extend_from_slice(metadata);
    Ok(())
}

/// The context for a level, created when first needed.
fn compressor<'a>(
    zstd: &'a mut Option<(i32, zstd::bulk::Compressor<'static>)>,
    level: i32,
) -> Result<&'a mut zstd::bulk::Compressor<'static>, String> {
    let failed = |error: std::io::Error| error.to_string();
    if zstd.is_none() {
        *zstd = Some((level, zstd::bulk::Compressor::new(level).map_err(failed)?));
    }
    let Some((of, zstd)) = zstd else { return Err("no zstd".to_owned()) };
    if *of != level {
        zstd.set_compression_level(level).map_err(failed)?;
        *of = level;
    }
    Ok(zstd)
}

/// Applies a compressor, which compresses the metadata of the earlier filters, too. Its metadata
/// are the numbers of parts of both, and the lengths of each part before and after.
fn compress(
    (metadata, data): (&[u8], &[u8]),
    out: &mut Filtered,
    mut part: impl FnMut(&[u8], &mut Vec<u8>) -> Result<(), String>,
) -> Result<(), String> {
    let n_metadata_parts = usize::from(!metadata.is_empty());
    put_u32(n_metadata_parts, &mut out.metadata);
    put_u32(1, &mut out.metadata);
    for from in [metadata, data].into_iter().skip(1 - n_metadata_parts) {
        let start = out.data.len();
        part(from, &mut out.data)?;
        put_u32(from.len(), &mut out.metadata);
        put_u32(out.data.len() - start, &mut out.metadata);
    }
    Ok(())
}

/// Encodes differences: the number of values, the first one, then the differences.
fn differences(values: &[u8], number: Number, out: &mut Vec<u8>) {
    fn append<const N: usize>(
        values: &[u8],
        out: &mut Vec<u8>,
        difference: impl Fn([u8; N], [u8; N]) -> [u8; N],
    ) {
        let (values, _) = values.as_chunks::<N>();
        out.extend_from_slice(&(values.len() as u64).to_le_bytes());
        let start = out.len();
        out.resize(start + values.len() * N, 0);
        let (to, _) = out[start..].as_chunks_mut::<N>();
        let before = std::iter::once(&[0; N]).chain(values);
        for (to, (value, before)) in to.iter_mut().zip(values.iter().zip(before)) {
            *to = difference(*value, *before);
        }
    }
    macro_rules! append {
        ($number:ty) => {
            append(values, out, |value, before| {
                <$number>::from_le_bytes(value)
                    .wrapping_sub(<$number>::from_le_bytes(before))
                    .to_le_bytes()
            })
        };
    }
    match number.size() {
        1 => append!(u8),
        2 => append!(u16),
        4 => append!(u32),
        _ => append!(u64),
    }
}

/// Encodes runs: a value, then the length of its run in two bytes, the high one first.
fn run_lengths(values: &[u8], value_bytes: usize, out: &mut Vec<u8>) {
    let mut values = values.chunks_exact(value_bytes.max(1)).peekable();
    while let Some(value) = values.next() {
        let mut n = 1_u16;
        while n < u16::MAX && values.next_if_eq(&value).is_some() {
            n += 1;
        }
        out.extend_from_slice(value);
        out.extend_from_slice(&n.to_be_bytes());
    }
}

/// Stores floats as integers of `stored_bytes` bytes, with libtiledb's arithmetic. Returns false if
/// a scaled and rounded value does not fit.
fn scale_floats(
    values: &[u8],
    (scale, offset): (f32, f32),
    stored_bytes: usize,
    out: &mut Vec<u8>,
) -> bool {
    let (values, _) = values.as_chunks::<4>();
    let scaled = |value: &[u8; 4]| ((f32::from_le_bytes(*value) - offset) / scale).round();
    // One more than the largest integer, which f32 cannot represent for long integers.
    let end = 2.0_f32.powi(8 * stored_bytes as i32 - 1);
    let start = out.len();
    out.resize(start + values.len() * stored_bytes, 0);
    let to = &mut out[start..];
    let mut fit = true;
    macro_rules! store {
        ($integer:ty) => {{
            let (to, _) = to.as_chunks_mut();
            to.iter_mut().zip(values).for_each(|(to, value)| {
                let scaled = scaled(value);
                fit &= -end <= scaled && scaled < end;
                *to = (scaled as $integer).to_le_bytes();
            });
        }};
    }
    match stored_bytes {
        1 => store!(i8),
        2 => store!(i16),
        4 if (scale, offset) == (1.0, 0.0) => {
            // Rounding calls a function for each value; whole numbers below 2^24 do not need it.
            let (to, _) = to.as_chunks_mut();
            to.iter_mut().zip(values).for_each(|(to, value)| {
                let value = f32::from_le_bytes(*value);
                let whole = value as i32;
                let rounded = if whole as f32 == value { whole } else { value.round() as i32 };
                fit &= -end <= value && value < end;
                *to = rounded.to_le_bytes();
            });
        }
        4 => store!(i32),
        _ => store!(i64),
    }
    fit
}
