//! Cubes as Tivita cameras write them, `*_SpecCube.dat`.
//!
//! A file has three big-endian `i32`, which are its width, height and number of channels, and then
//! `width * height * channels` big-endian `f32`: for each column from left to right the pixels from
//! the bottom to the top, each with all its channels. Decoded is a cube in C order `[height, width,
//! channels]` with its first row on top. Source: `htc/tivita/DataPath.py` of IMSY-DKFZ/htc.

use std::ops::Range;

use arrays::ElementType;

use super::{FileError, StoredArray};

/// Bytes before the values.
const HEADER_BYTES: usize = 12;
const ELEMENT_BYTES: usize = 4;
/// Rows of a piece, and rows that are decoded column by column. A column of the file is contiguous,
/// so this many rows are read from one place; each of them is written to a place of its own.
const PIECE_ROWS: usize = 8;
/// Bytes of a line of the cache, which are read before any of them is written.
const LINE_BYTES: usize = 64;

/// A parsed cube over borrowed bytes.
#[derive(Debug)]
pub(super) struct Cube<'a> {
    height: usize,
    width: usize,
    /// Bytes of a pixel.
    pixel_bytes: usize,
    values: &'a [u8],
}

/// Parses a file: the shape of its cube, and that the file is exactly as long as that.
pub(super) fn parse(bytes: &[u8]) -> Result<(StoredArray, Cube<'_>), FileError> {
    let Some((header, values)) = bytes.split_first_chunk::<HEADER_BYTES>() else {
        let part = "the header with width, height and channels";
        return Err(FileError::Truncated { part, length: bytes.len(), end: HEADER_BYTES });
    };
    let (stored, _) = header.as_chunks::<4>();
    let stored = [0, 1, 2].map(|idx| i32::from_be_bytes(stored[idx]));
    let too_large = || {
        let [width, height, channels] = stored;
        let reason = format!(
            "{width} x {height} pixels of {channels} channels: each must be at least 1, and all \
             together fit the memory"
        );
        FileError::damaged(0, reason)
    };
    let [width, height, channels] =
        stored.map(|length| usize::try_from(length).ok().filter(|&length| length > 0));
    let (Some(width), Some(height), Some(channels)) = (width, height, channels) else {
        return Err(too_large());
    };
    let array =
        StoredArray::new("", &[height, width, channels], ElementType::F32).ok_or_else(too_large)?;
    let n_bytes = array.n_bytes().ok_or_else(too_large)?;
    let end = HEADER_BYTES.checked_add(n_bytes).ok_or_else(too_large)?;
    if bytes.len() < end {
        return Err(FileError::Truncated { part: "the values", length: bytes.len(), end });
    }
    if bytes.len() > end {
        let reason = format!("{} bytes follow the values", bytes.len() - end);
        return Err(FileError::damaged(end, reason));
    }
    Ok((array, Cube { height, width, pixel_bytes: channels * ELEMENT_BYTES, values }))
}

impl Cube<'_> {
    /// Bytes of a piece, which is some rows of the decoded cube.
    pub(super) fn piece_bytes(&self) -> usize {
        PIECE_ROWS.min(self.height) * self.width * self.pixel_bytes
    }

    /// Decodes a piece into `into`, which has its length.
    pub(super) fn decode_piece(&self, piece: usize, into: &mut [u8]) -> Result<(), FileError> {
        let row_bytes = self.width * self.pixel_bytes;
        let first = piece * PIECE_ROWS;
        let rows = first..first + into.len() / row_bytes;
        for (x, column) in self.values.chunks_exact(self.height * self.pixel_bytes).enumerate() {
            let Some(pixels) = column.get(self.of_rows(&rows)) else {
                let reason = format!("rows {rows:?} are not in a cube of {} rows", self.height);
                return Err(FileError::damaged(HEADER_BYTES, reason));
            };
            let at = x * self.pixel_bytes;
            // In the order of the file, so that the processor reads ahead: the other way takes two
            // to three times as long.
            let rows = into.chunks_exact_mut(row_bytes).rev();
            for (row, pixel) in rows.zip(pixels.chunks_exact(self.pixel_bytes)) {
                big_endian_to_native(pixel, &mut row[at..at + self.pixel_bytes]);
            }
        }
        Ok(())
    }

    /// Where a column has the pixels of rows of the decoded cube, from the last to the first.
    fn of_rows(&self, rows: &Range<usize>) -> Range<usize> {
        let [first, last] = [rows.end, rows.start].map(|row| self.height.saturating_sub(row));
        first * self.pixel_bytes..last * self.pixel_bytes
    }
}

/// Copies `f32` and makes them native.
fn big_endian_to_native(values: &[u8], into: &mut [u8]) {
    let (lines, rest) = values.as_chunks::<LINE_BYTES>();
    let (into_lines, into_rest) = into.as_chunks_mut::<LINE_BYTES>();
    for (into, line) in into_lines.iter_mut().zip(lines) {
        let mut line = *line;
        for value in line.as_chunks_mut::<ELEMENT_BYTES>().0 {
            *value = to_native(*value);
        }
        *into = line;
    }
    let rest = rest.as_chunks().0;
    for (into, value) in into_rest.as_chunks_mut().0.iter_mut().zip(rest) {
        *into = to_native(*value);
    }
}

fn to_native(value: [u8; ELEMENT_BYTES]) -> [u8; ELEMENT_BYTES] {
    u32::from_be_bytes(value).to_ne_bytes()
}

/// The file of a cube `[height, width, channels]` in C order.
///
/// # Errors
/// If a length is 0 or exceeds `i32`, or `cube` has another number of values than its shape.
pub fn write(cube: &[f32], shape: [usize; 3]) -> Result<Vec<u8>, FileError> {
    let [height, width, channels] = shape;
    let n_values = shape.iter().try_fold(1, |product: usize, &length| product.checked_mul(length));
    if n_values != Some(cube.len()) || cube.is_empty() {
        let reason = format!("{} values for a cube of shape {shape:?}", cube.len());
        return Err(FileError::write(reason));
    }
    let mut file = Vec::with_capacity(HEADER_BYTES + size_of_val(cube));
    for length in [width, height, channels] {
        let too_long = |_| FileError::write(format!("a cube of shape {shape:?} exceeds i32"));
        file.extend_from_slice(&i32::try_from(length).map_err(too_long)?.to_be_bytes());
    }
    for x in 0..width {
        for row in cube.chunks_exact(width * channels).rev() {
            let pixel = &row[x * channels..(x + 1) * channels];
            file.extend(pixel.iter().flat_map(|value| value.to_be_bytes()));
        }
    }
    debug_assert_eq!(height * width * channels * ELEMENT_BYTES + HEADER_BYTES, file.len());
    Ok(file)
}
