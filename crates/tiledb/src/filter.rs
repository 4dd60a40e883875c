//! Filters: how the cells of a dimension or an attribute are compressed and checked.

use crate::Datatype;

/// One filter of a pipeline, with its options.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Filter {
    /// Does nothing.
    None,
    /// Gzip at a level; -1 is the default level, here and below.
    Gzip(i32),
    /// Zstandard at a level.
    Zstd(i32),
    /// LZ4 at a level.
    Lz4(i32),
    /// Run lengths.
    Rle,
    /// Bzip2 at a level.
    Bzip2(i32),
    /// Differences of differences. The type, if set, overrides how the bytes are read.
    DoubleDelta(Option<Datatype>),
    /// Fewer bits for small integers, in windows of 256 bytes.
    BitWidthReduction,
    /// Fewer bits for small integers, in windows of this many bytes.
    BitWidthReductionWithin(u32),
    /// Groups the bits of the values by their significance.
    BitShuffle,
    /// Groups the bytes of the values by their significance.
    ByteShuffle,
    /// Differences, none of which may be negative.
    PositiveDelta,
    /// Appends an MD5 sum.
    ChecksumMd5,
    /// Appends a SHA-256 sum.
    ChecksumSha256,
    /// Replaces strings by their index in a dictionary.
    Dictionary,
    /// Floats as integers: `round((value - offset) / factor)` in `byte_width` bytes.
    ScaleFloat {
        /// Bytes of the integer.
        byte_width: u64,
        /// The factor.
        factor: f64,
        /// The offset.
        offset: f64,
    },
    /// Exclusive or with the previous value.
    Xor,
    /// Differences. The type, if set, overrides how the bytes are read.
    Delta(Option<Datatype>),
    /// A filter without a name in this crate, by its number in `tiledb_filter_type_t`.
    Other(i32),
}

impl Filter {
    /// Its number in `tiledb_filter_type_t`.
    pub fn number(self) -> i32 {
        match self {
            Self::None => 0,
            Self::Gzip(_) => 1,
            Self::Zstd(_) => 2,
            Self::Lz4(_) => 3,
            Self::Rle => 4,
            Self::Bzip2(_) => 5,
            Self::DoubleDelta(_) => 6,
            Self::BitWidthReduction | Self::BitWidthReductionWithin(_) => 7,
            Self::BitShuffle => 8,
            Self::ByteShuffle => 9,
            Self::PositiveDelta => 10,
            Self::ChecksumMd5 => 12,
            Self::ChecksumSha256 => 13,
            Self::Dictionary => 14,
            Self::ScaleFloat { .. } => 15,
            Self::Xor => 16,
            Self::Delta(_) => 19,
            Self::Other(number) => number,
        }
    }
}
