//! Writing packed files.

use arrays::ElementType;
use zstd::bulk::Compressor;
use zstd::zstd_safe::CParameter;

use super::super::FileError;
use super::fit::{Planes, filled_row, fit};
use super::header::{self, Layout};
use super::predict::Channel;
use super::tile::{PIXELS, ordered, split};
use super::{PLAIN, PREDICTED};

/// Zstd's level for the lower halves of `f32`, most of which are noise.
const LOWER_LEVEL: i32 = 3;

/// The file of an array of `f16` or `f32`: `values` in native byte order and C order.
///
/// A cube should have its channels in the last dimension: they are predicted from one another. The
/// file exceeds the values by at most 9 bytes for each 2 MiB, and its header.
///
/// # Errors
/// If the element is another one, `values` has another number of bytes than the shape, or the
/// shape has more than 8 dimensions.
pub fn write(values: &[u8], shape: &[usize], element: ElementType) -> Result<Vec<u8>, FileError> {
    if header::code(element).is_none() {
        let reason = format!("elements of type {element:?}: packed files have f16 or f32");
        return Err(FileError::write(reason));
    }
    if shape.len() > header::MAX_DIMENSIONS {
        let (n, most) = (shape.len(), header::MAX_DIMENSIONS);
        let reason = format!("shape {shape:?} has {n} dimensions: at most {most}");
        return Err(FileError::write(reason));
    }
    let too_large = || FileError::write(format!("an array of shape {shape:?} is too large"));
    let layout = Layout::new(shape, element).ok_or_else(too_large)?;
    let n_bytes = layout.n_pixels * layout.n_channels * layout.value_bytes;
    if values.len() != n_bytes {
        let reason = format!("{} bytes of shape {shape:?}, which has {n_bytes}", values.len());
        return Err(FileError::write(reason));
    }
    let blocks = values.chunks(layout.block_bytes()).map(|block| encode(block, &layout));
    let blocks = blocks.collect::<Result<Vec<_>, _>>()?;
    let mut file = header::write(shape, &layout, &blocks).ok_or_else(too_large)?;
    file.reserve_exact(blocks.iter().map(Vec::len).sum());
    for block in blocks {
        file.extend(block);
    }
    Ok(file)
}

/// The stored bytes of a block.
fn encode(values: &[u8], layout: &Layout) -> Result<Vec<u8>, FileError> {
    let mut block = vec![PREDICTED];
    if layout.value_bytes == 2 {
        let (values, _) = values.as_chunks();
        let bits: Vec<_> = values.iter().map(|value| i16::from_ne_bytes(*value)).collect();
        encode_section(&bits, layout.n_channels, &mut block)?;
    } else {
        let (values, _) = values.as_chunks();
        let values = values.iter().map(|value| u32::from_ne_bytes(*value));
        let upper: Vec<_> = values.clone().map(|value| (value >> 16) as i16).collect();
        encode_section(&upper, layout.n_channels, &mut block)?;
        encode_lower(values.map(|value| value as u16), &mut block)?;
    }
    if block.len() <= values.len() {
        return Ok(block);
    }
    let mut plain = values.to_vec();
    if cfg!(target_endian = "big") {
        plain.chunks_exact_mut(layout.value_bytes).for_each(<[u8]>::reverse);
    }
    plain.insert(0, PLAIN);
    Ok(plain)
}

/// Appends the section of 16-bit values.
fn encode_section(bits: &[i16], n_channels: usize, block: &mut Vec<u8>) -> Result<(), FileError> {
    let ordered: Vec<_> = bits.iter().map(|&bits| ordered(bits)).collect();
    let reference = mean(&ordered);
    let fitted = fit(&planes(&ordered, n_channels, reference));
    let n_tiles = bits.len().div_ceil(n_channels * PIXELS);
    let mut high = vec![[0; PIXELS]; n_channels * n_tiles];
    let (mut low, mut patches) = (Vec::new(), Vec::new());
    for tile in 0..n_tiles {
        for (at, (channel, residuals)) in fitted.iter().enumerate() {
            let residuals = &residuals[tile];
            let kept = split(channel.low_bits, residuals, &mut low);
            let first = (tile * n_channels + at) * PIXELS;
            for (index, (kept, residual)) in (first..).zip(kept.iter().zip(residuals)) {
                append_patch(index, *kept, *residual, channel.low_bits, &mut patches);
            }
            high[at * n_tiles + tile] = kept;
        }
    }
    let high = entropy_coded(high.as_flattened())?;
    block.extend(reference.to_le_bytes());
    for length in [patches.len(), high.len()] {
        block.extend((length as u32).to_le_bytes());
    }
    for (Channel { weights, bias, low_bits }, _) in &fitted {
        block.extend(weights.iter().chain([bias]).flat_map(|number| number.to_le_bytes()));
        block.push(*low_bits);
    }
    block.extend(patches.as_flattened());
    block.extend(high);
    block.extend(low);
    Ok(())
}

/// Appends the patch of a residual whose high bits do not fit their byte.
fn append_patch(index: usize, high: u8, residual: i16, low_bits: u8, patches: &mut Vec<[u8; 6]>) {
    let kept = i16::from(high.cast_signed());
    let added = (residual >> low_bits).wrapping_sub(kept) << low_bits;
    if added != 0 {
        let [i0, i1, i2, i3] = (index as u32).to_le_bytes();
        let [a0, a1] = added.to_le_bytes();
        patches.push([i0, i1, i2, i3, a0, a1]);
    }
}

/// The mean; 0 of nothing.
fn mean(values: &[i16]) -> i16 {
    let sum: i64 = values.iter().map(|&value| i64::from(value)).sum();
    sum.checked_div(values.len() as i64).unwrap_or(0) as i16
}

/// Tiles of each channel, less the reference.
fn planes(ordered: &[i16], n_channels: usize, reference: i16) -> Planes {
    let plane = |channel: usize| {
        let tiles = ordered.chunks(n_channels * PIXELS);
        let row = |tile: &[i16]| {
            let values = tile[channel..].iter().step_by(n_channels);
            filled_row(values.map(|value| value.wrapping_sub(reference)))
        };
        tiles.map(row).collect()
    };
    (0..n_channels).map(plane).collect()
}

/// High bits of residuals as a zstd frame of Huffman codes: matches in noise are chance, and cost
/// more time and bytes than they save, so that few are looked for.
fn entropy_coded(high: &[u8]) -> Result<Vec<u8>, FileError> {
    let failed = |source: std::io::Error| FileError::write(format!("zstd: {source}"));
    let mut compressor = Compressor::new(1).map_err(failed)?;
    for parameter in [CParameter::HashLog(6), CParameter::MinMatch(7)] {
        compressor.set_parameter(parameter).map_err(failed)?;
    }
    compressor.compress(high).map_err(failed)
}

/// Appends the lower halves of `f32` values.
fn encode_lower(
    lower: impl Iterator<Item = u16> + Clone,
    block: &mut Vec<u8>,
) -> Result<(), FileError> {
    let failed = |source: std::io::Error| FileError::write(format!("zstd: {source}"));
    let low = lower.clone().map(|value| value as u8);
    let planes: Vec<_> = low.chain(lower.clone().map(|value| (value >> 8) as u8)).collect();
    let frame = zstd::bulk::compress(&planes, LOWER_LEVEL).map_err(failed)?;
    // Decompression costs time: a thirtieth must be gained by it.
    if frame.len() < planes.len() - planes.len() / 32 {
        block.push(1);
        block.extend(frame);
    } else {
        block.push(0);
        block.extend(lower.flat_map(u16::to_le_bytes));
    }
    Ok(())
}
