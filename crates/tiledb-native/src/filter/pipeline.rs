//! Undoing a pipeline, chunk by chunk.
//!
//! Each filter turned (metadata, data) into (metadata, data) when the tile was written. Undoing
//! goes through the steps backwards: each reads its own metadata from the front, and what is left
//! is the metadata of the step before it. Two things are done for speed. The commonest pipelines
//! end in one decompression straight from the bytes of the file into a reused buffer. And a
//! byteshuffle that was the first filter is not undone: its planes are handed out as they are, so
//! that whoever needs only some values, or only the low bytes of each, takes just those.

use super::filtered::Filtered;
use super::integers::is_signed;
use super::{Codec, Step, checksum, compression, double_delta, floats, integers, shuffle};
use crate::cursor::Cursor;
use crate::error::Fault;

/// A bound pipeline.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Pipeline {
    steps: Vec<Step>,
}

/// A chunk's values.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Decoded<'a> {
    /// Value after value.
    Plain(&'a [u8]),
    /// All lowest bytes, then all second bytes, and so on.
    Planes(&'a [u8]),
    /// The low four bytes of each value, all of whose others are 0.
    LowFour(&'a [u8]),
}

/// Buffers and a decompression context, for one thread and reused from chunk to chunk.
#[derive(Default)]
pub(crate) struct Decoder {
    zstd: Option<zstd::bulk::Decompressor<'static>>,
    data: Vec<u8>,
    spare: Vec<u8>,
    metadata: Vec<u8>,
    spare_metadata: Vec<u8>,
}

impl std::fmt::Debug for Decoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Decoder").finish_non_exhaustive()
    }
}

impl Pipeline {
    pub(super) fn new(steps: Vec<Step>) -> Self {
        Self { steps }
    }

    /// The filters in the order in which they are applied.
    pub(super) fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Calls `each` with the runs of `chunk`, a value's bytes and how many there are, where run
    /// lengths are all that was made of it. Returns whether they are.
    pub(crate) fn runs(
        &self,
        chunk: Filtered<'_>,
        value_bytes: usize,
        mut each: impl FnMut(&[u8], u16) -> Result<(), Fault>,
    ) -> Result<bool, Fault> {
        if !matches!(self.steps.as_slice(), [Step::Compress(Codec::Rle, _)]) {
            return Ok(false);
        }
        let mut metadata = Cursor::new(chunk.metadata);
        let (mut none, mut nor_here) = (Vec::new(), Vec::new());
        let out = (&mut none, &mut nor_here);
        let mut n_bytes = 0;
        compression::undo(&mut metadata, chunk.data, chunk.original_len, out, |from, _, len| {
            n_bytes += len;
            compression::runs(value_bytes, from, len, &mut each)
        })?;
        if n_bytes != chunk.original_len {
            let len = chunk.original_len;
            return Err(Fault::new(format!("a chunk of {len} bytes came out as {n_bytes}")));
        }
        Ok(true)
    }

    /// Undoes the filters of `chunk`, whose values are of `value_bytes` each.
    pub(crate) fn decode<'a>(
        &self,
        chunk: Filtered<'a>,
        value_bytes: usize,
        decoder: &'a mut Decoder,
    ) -> Result<Decoded<'a>, Fault> {
        if let [Step::Delta(of), Step::BitWidthReduction(number)] = self.steps.as_slice()
            && of == number
            && number.size() == 8
            && integers::sum_windows(chunk, is_signed(*number), &mut decoder.data)?
        {
            return Ok(Decoded::LowFour(&decoder.data));
        }
        let keep_planes = matches!(self.steps.first(), Some(Step::Byteshuffle { value_bytes: bytes }) if *bytes == value_bytes);
        let Some((last, before)) = self.steps.split_last() else {
            return whole(chunk.data, chunk.original_len).map(Decoded::Plain);
        };
        if before.is_empty()
            && keep_planes
            && shuffle::is_one_part(chunk.metadata, chunk.data, value_bytes)
        {
            return whole(chunk.data, chunk.original_len).map(Decoded::Planes);
        }
        let limit = chunk.original_len.saturating_mul(2).saturating_add(1 << 16);
        decoder.undo(
            last,
            chunk.metadata,
            chunk.data,
            (limit, value_bytes),
            keep_planes && before.is_empty(),
        )?;
        for (idx, step) in before.iter().enumerate().rev() {
            let keep_planes = keep_planes && idx == 0;
            if keep_planes && shuffle::is_one_part(&decoder.metadata, &decoder.data, value_bytes) {
                // The planes are there: nothing to undo.
                break;
            }
            decoder.undo_next(step, (limit, value_bytes), keep_planes)?;
        }
        let bytes = whole(&decoder.data, chunk.original_len)?;
        Ok(if keep_planes { Decoded::Planes(bytes) } else { Decoded::Plain(bytes) })
    }

    /// Undoes the filters of `chunk`, whose values are of one byte. Returns the metadata and the
    /// data that the first filter was given, at most `limit` bytes of each.
    pub(super) fn undo_all<'a>(
        &self,
        chunk: Filtered<'a>,
        limit: usize,
        decoder: &'a mut Decoder,
    ) -> Result<(&'a [u8], &'a [u8]), Fault> {
        let Some((last, before)) = self.steps.split_last() else {
            return Ok((chunk.metadata, chunk.data));
        };
        decoder.undo(last, chunk.metadata, chunk.data, (limit, 1), false)?;
        for step in before.iter().rev() {
            decoder.undo_next(step, (limit, 1), false)?;
        }
        Ok((&decoder.metadata, &decoder.data))
    }
}

fn whole(bytes: &[u8], original_len: usize) -> Result<&[u8], Fault> {
    if bytes.len() == original_len {
        Ok(bytes)
    } else {
        Err(Fault::new(format!("a chunk of {original_len} bytes came out as {}", bytes.len())))
    }
}

impl Decoder {
    /// Undoes one step from `metadata` and `data` into `self.metadata` and `self.data`; `sizes` are
    /// the most bytes that may come out and those of a value.
    fn undo(
        &mut self,
        step: &Step,
        metadata: &[u8],
        data: &[u8],
        sizes: (usize, usize),
        keep_planes: bool,
    ) -> Result<(), Fault> {
        let mut out = std::mem::take(&mut self.spare);
        let mut metadata_out = std::mem::take(&mut self.spare_metadata);
        out.clear();
        metadata_out.clear();
        let mut cursor = Cursor::new(metadata);
        let undone = match step {
            Step::Compress(..) | Step::Delta(_) | Step::DoubleDelta(_) => {
                self.decompress(step, (&mut cursor, data), sizes, (&mut metadata_out, &mut out))
            }
            step => {
                undo_in_place_of_metadata(step, (&mut cursor, data), sizes.0, keep_planes, &mut out)
                    // What this step left of the metadata belongs to the step before.
                    .map(|()| metadata_out.extend_from_slice(cursor.remaining()))
            }
        };
        self.data = out;
        self.metadata = metadata_out;
        undone
    }

    /// Undoes one step from what the step after it left.
    fn undo_next(
        &mut self,
        step: &Step,
        sizes: (usize, usize),
        keep_planes: bool,
    ) -> Result<(), Fault> {
        let metadata = std::mem::take(&mut self.metadata);
        let data = std::mem::take(&mut self.data);
        let undone = self.undo(step, &metadata, &data, sizes, keep_planes);
        // The old buffers serve the step after.
        self.spare = data;
        self.spare_metadata = metadata;
        undone
    }

    /// Undoes a compressor, which gives back metadata as well as data.
    fn decompress(
        &mut self,
        step: &Step,
        (metadata, data): (&mut Cursor<'_>, &[u8]),
        (limit, value_bytes): (usize, usize),
        (metadata_out, out): (&mut Vec<u8>, &mut Vec<u8>),
    ) -> Result<(), Fault> {
        match *step {
            Step::Compress(Codec::Zstd, _) => {
                let zstd = match &mut self.zstd {
                    Some(zstd) => zstd,
                    none => none.insert(
                        zstd::bulk::Decompressor::new()
                            .map_err(|error| Fault::new(error.to_string()))?,
                    ),
                };
                compression::undo(metadata, data, limit, (metadata_out, out), |from, to, len| {
                    compression::zstd(zstd, from, to, len)
                })
            }
            Step::Compress(codec, _) => {
                compression::undo(metadata, data, limit, (metadata_out, out), |from, to, len| {
                    compression::decompress(codec, value_bytes, from, to, len)
                })
            }
            Step::DoubleDelta(number) => {
                compression::undo(metadata, data, limit, (metadata_out, out), |from, to, len| {
                    double_delta::undo(number, from, to, len)
                })
            }
            Step::Delta(number) => {
                compression::undo(metadata, data, limit, (metadata_out, out), |from, to, len| {
                    integers::undo_delta(number, from, to, len)
                })
            }
            _ => Err(Fault::new("not a compressor")),
        }
    }
}

/// Undoes a step that put its own metadata in front of that of the steps before.
fn undo_in_place_of_metadata(
    step: &Step,
    (metadata, data): (&mut Cursor<'_>, &[u8]),
    limit: usize,
    keep_planes: bool,
    out: &mut Vec<u8>,
) -> Result<(), Fault> {
    match *step {
        Step::Byteshuffle { value_bytes } => {
            shuffle::undo_bytes(metadata, data, value_bytes, keep_planes, out)
        }
        Step::Bitshuffle { value_bytes } => shuffle::undo_bits(metadata, data, value_bytes, out),
        Step::BitWidthReduction(number) => {
            integers::undo_bit_width(metadata, data, number, limit, out)
        }
        Step::PositiveDelta(number) => integers::undo_positive_delta(metadata, data, number, out),
        Step::Md5 => checksum::verify::<md5::Md5>(metadata, data, out),
        Step::Sha256 => checksum::verify::<sha2::Sha256>(metadata, data, out),
        Step::FloatScale { scale, offset, stored_bytes, value_bytes } => floats::undo_scale(
            metadata,
            data,
            floats::Scaling { scale, offset },
            (stored_bytes, value_bytes),
            out,
        ),
        Step::Xor { value_bytes } => integers::undo_xor(metadata, data, value_bytes, out),
        Step::Compress(..) | Step::Delta(_) | Step::DoubleDelta(_) => {
            Err(Fault::new("a compressor"))
        }
    }
}
