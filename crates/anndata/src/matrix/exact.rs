//! Values of types that f32 does not have all numbers of, read without rounding.

use std::ops::Range;

use arrays::{ElementType, StoredArray};
use bytemuck::AnyBitPattern;
use csr::{Narrow, Narrowing};
use rayon::prelude::*;
use worktime::ReadStats;

use crate::elements::Elements;
use crate::error::Error;

/// Elements in memory at once, as they are stored.
const PIECE_ELEMENTS: u64 = 4 << 20;

/// Elements that a thread converts at once.
const TASK_ELEMENTS: usize = 64 << 10;

/// Whether an array has numbers that f32 may not have.
pub(super) fn may_round(array: &StoredArray) -> bool {
    use ElementType::{F64, I32, I64, U32, U64};
    matches!(array.element(), Some(F64 | I32 | I64 | U32 | U64))
}

/// Bytes of memory of [`read`].
pub(super) const WORKING_BYTES: u64 = PIECE_ELEMENTS * size_of::<u64>() as u64;

/// Reads ranges of a list of numbers. One that f32 does not have becomes [`csr::INEXACT`].
pub(super) fn read(
    elements: &Elements,
    array: &StoredArray,
    ranges: &[Range<u64>],
    into: &mut [f32],
) -> Result<ReadStats, Error> {
    let Some(element) = array.element() else {
        let reason = format!("its values are of type {}", array.type_name());
        return Err(elements.unsupported(array.path(), reason));
    };
    let mut stored: Vec<u64> = Vec::new();
    let mut stats = ReadStats::nothing();
    let mut rest = into;
    for piece in pieces(ranges) {
        let n_elements: u64 = piece.iter().map(|range| range.end - range.start).sum();
        // At most the elements of a piece.
        let n_bytes = n_elements as usize * element.n_bytes();
        stored.resize(n_bytes.div_ceil(size_of::<u64>()), 0);
        let bytes = &mut bytemuck::cast_slice_mut::<u64, u8>(&mut stored)[..n_bytes];
        let request = array.request_bytes(&piece, bytes)?.stored_only(true);
        stats += elements.read(vec![request])?;
        let (of_piece, after) = std::mem::take(&mut rest).split_at_mut(n_elements as usize);
        elements.pool().install(|| narrow(element, bytes, of_piece));
        rest = after;
    }
    Ok(stats)
}

/// Converts elements, in parallel. One that f32 does not have becomes [`csr::INEXACT`].
pub(super) fn narrow(element: ElementType, bytes: &[u8], into: &mut [f32]) {
    match element {
        ElementType::I32 => each::<i32>(bytes, into),
        ElementType::U32 => each::<u32>(bytes, into),
        ElementType::I64 => each::<i64>(bytes, into),
        ElementType::U64 => each::<u64>(bytes, into),
        ElementType::F64 => each::<f64>(bytes, into),
        // f32 has all numbers of the others, which are not read this way.
        _ => into.fill(csr::INEXACT),
    }
}

fn each<T: Narrow + AnyBitPattern + Send + Sync>(bytes: &[u8], into: &mut [f32]) {
    let stored: &[T] = bytemuck::cast_slice(bytes);
    let tasks = into.par_chunks_mut(TASK_ELEMENTS).zip(stored.par_chunks(TASK_ELEMENTS));
    tasks.for_each(|(into, stored)| {
        let narrowed = stored.iter().map(|number| number.narrow(Narrowing::Exact));
        into.iter_mut().zip(narrowed).for_each(|(to, value)| *to = value);
    });
}

/// Cuts ranges so that each piece has at most [`PIECE_ELEMENTS`].
fn pieces(ranges: &[Range<u64>]) -> Vec<Vec<Range<u64>>> {
    let mut pieces: Vec<Vec<Range<u64>>> = Vec::new();
    let mut room = 0;
    for range in ranges {
        let mut at = range.start;
        while at < range.end {
            if room == 0 {
                pieces.push(Vec::new());
                room = PIECE_ELEMENTS;
            }
            let end = range.end.min(at + room);
            room -= end - at;
            if let Some(piece) = pieces.last_mut() {
                piece.push(at..end);
            }
            at = end;
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_cut_within_ranges() {
        let ranges = [0..3, 5..5, 7..PIECE_ELEMENTS + 8];
        let pieces = pieces(&ranges);
        assert_eq!(
            pieces,
            [vec![0..3, 7..PIECE_ELEMENTS + 4], vec![PIECE_ELEMENTS + 4..PIECE_ELEMENTS + 8]]
        );
    }
}
