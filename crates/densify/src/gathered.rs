//! The types of columns and values in gathered rows.

use csr::{PackedCsr, pack_counts};

/// The type of a column in gathered rows: `u32`, or `u16` if there are at most 65,536.
pub trait Column: Copy + From<u16> + Send + Sync {
    /// The most columns that the type can number.
    const MOST: usize;

    /// The column as this type, which must have it.
    fn from_column(column: u32) -> Self;
}

impl Column for u16 {
    const MOST: usize = PackedCsr::MAX_COLUMNS;

    #[inline]
    fn from_column(column: u32) -> Self {
        column as Self
    }
}

impl Column for u32 {
    const MOST: usize = usize::MAX;

    #[inline]
    fn from_column(column: u32) -> Self {
        column
    }
}

/// The type of a value in gathered rows: `f32`, or `u16` or `u8` for counts.
pub trait GatheredValue: Copy + Send + Sync {
    /// Copies floats into a slice of the same length. Returns whether the type has each of them.
    fn copy_floats(floats: &[f32], out: &mut [Self]) -> bool;

    /// Copies counts into a slice of the same length. Returns whether the type has each of them.
    fn copy_counts(counts: &[u16], out: &mut [Self]) -> bool;
}

impl GatheredValue for f32 {
    fn copy_floats(floats: &[f32], out: &mut [Self]) -> bool {
        out.copy_from_slice(floats);
        true
    }

    fn copy_counts(counts: &[u16], out: &mut [Self]) -> bool {
        out.iter_mut().zip(counts).for_each(|(to, count)| *to = Self::from(*count));
        true
    }
}

impl GatheredValue for u16 {
    fn copy_floats(floats: &[f32], out: &mut [Self]) -> bool {
        pack_counts(floats.iter().copied(), out)
    }

    fn copy_counts(counts: &[u16], out: &mut [Self]) -> bool {
        out.copy_from_slice(counts);
        true
    }
}

impl GatheredValue for u8 {
    fn copy_floats(floats: &[f32], out: &mut [Self]) -> bool {
        pack_counts(floats.iter().copied(), out)
    }

    fn copy_counts(counts: &[u16], out: &mut [Self]) -> bool {
        let mut all = 0;
        for (to, count) in out.iter_mut().zip(counts) {
            *to = *count as Self;
            all |= *count;
        }
        all <= u16::from(Self::MAX)
    }
}
