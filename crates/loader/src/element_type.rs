//! The types of elements that batches are made of.

use std::fmt;

use half::f16;

/// The type of a buffer's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ElementType {
    /// 32-bit floats, for values.
    F32,
    /// 16-bit floats, for values.
    F16,
    /// Unsigned 32-bit integers, for the rows and columns of sparse batches.
    U32,
    /// Unsigned 16-bit integers, for the columns and values of packed batches.
    U16,
    /// Unsigned 8-bit integers, for the values of packed batches.
    U8,
}

impl ElementType {
    /// Size of one element in bytes.
    pub fn bytes(self) -> usize {
        match self {
            Self::F32 => size_of::<f32>(),
            Self::F16 => size_of::<f16>(),
            Self::U32 => size_of::<u32>(),
            Self::U16 => size_of::<u16>(),
            Self::U8 => size_of::<u8>(),
        }
    }
}

impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::F32 => "f32",
            Self::F16 => "f16",
            Self::U32 => "u32",
            Self::U16 => "u16",
            Self::U8 => "u8",
        })
    }
}
