//! A page on disk: consecutive rows in CSR, encoded to be decoded fast.
//!
//! A page has up to 64 rows, or those of them that were read so far. Each value has a *key*, the
//! row's number in the page times the number of columns, plus the column. Keys ascend in the whole
//! page, so they are packed as differences, 128 at a time in as many bits as the largest needs.
//! Values are packed in the same groups: whole numbers below 65,536 as they are, others as places
//! in a table if the page has few different ones. Other values are stored as their bits. Nothing is
//! rounded.
//!
//! ```text
//! head        40 bytes (below) and the number of values of each row, 4 bytes each
//! first keys  the key before each group, 4 bytes each
//! key bits    1 byte for each group
//! value bits  1 byte for each group, and with a table the least place in each group, 4 bytes each
//! table       the different values, 4 bytes each
//! groups      keys, then values
//! values      4 bytes each, if they are not in the groups
//! ```
//!
//! All numbers are little-endian. The head has a checksum of its own, because it is read first and
//! alone; the store checks the whole.

mod encode;
mod head;
mod unpack;

use bitpacking::{BitPacker as _, BitPacker4x};

pub(crate) use encode::{Encoder, PageRows};
pub(crate) use head::{FORMAT, Head, Kind, MOST_HEAD_BYTES, bits};
pub(crate) use unpack::unpack;

/// Most rows of a page: as many as a mask has bits.
const MOST_ROWS: u64 = 64;
/// Values that are packed together.
const GROUP: usize = BitPacker4x::BLOCK_LEN;

/// Number of rows of a page of a matrix with `n_columns` columns: a power of two, for which keys
/// have 32 bits.
pub(crate) fn page_rows(n_columns: usize) -> u64 {
    let most = (1_u64 << u32::BITS) / (n_columns as u64).max(1);
    MOST_ROWS.min(1 << most.max(1).ilog2())
}

/// Bytes of a group of numbers of `bits` bits each.
fn group_bytes(bits: u8) -> usize {
    usize::from(bits) * GROUP / 8
}

/// A column in memory.
pub(crate) trait Column: Copy + Send + Sync {
    fn from_u32(column: u32) -> Self;
    fn get(self) -> u32;
}

/// A value in memory.
pub(crate) trait Value: Copy + Send + Sync {
    /// Whether it can be any value, not only a whole number below 65,536.
    const IS_FLOAT: bool;
    fn of_count(count: u32) -> Self;
    /// Only for types that can be any value.
    fn of_float(value: f32) -> Self;
    fn float(self) -> f32;
}

impl Column for u16 {
    fn from_u32(column: u32) -> Self {
        column as Self
    }

    fn get(self) -> u32 {
        u32::from(self)
    }
}

impl Column for u32 {
    fn from_u32(column: u32) -> Self {
        column
    }

    fn get(self) -> u32 {
        self
    }
}

impl Value for u16 {
    const IS_FLOAT: bool = false;

    fn of_count(count: u32) -> Self {
        count as Self
    }

    fn of_float(value: f32) -> Self {
        value as Self
    }

    fn float(self) -> f32 {
        f32::from(self)
    }
}

impl Value for f32 {
    const IS_FLOAT: bool = true;

    fn of_count(count: u32) -> Self {
        count as Self
    }

    fn of_float(value: f32) -> Self {
        value
    }

    fn float(self) -> f32 {
        self
    }
}

#[cfg(test)]
mod tests;
