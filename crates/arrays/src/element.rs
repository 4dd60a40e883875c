//! Types of an array's elements.

use bytemuck::Pod;
use half::{bf16, f16};

/// The type of an array's elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ElementType {
    /// One byte, 0 or 1; read as `u8`.
    Bool,
    /// 8 bits, signed.
    I8,
    /// 16 bits, signed.
    I16,
    /// 32 bits, signed.
    I32,
    /// 64 bits, signed.
    I64,
    /// 8 bits.
    U8,
    /// 16 bits.
    U16,
    /// 32 bits.
    U32,
    /// 64 bits.
    U64,
    /// Floating point of 16 bits (IEEE 754).
    F16,
    /// Floating point of 16 bits with the exponent of 32.
    BF16,
    /// Floating point of 32 bits.
    F32,
    /// Floating point of 64 bits.
    F64,
}

impl ElementType {
    /// All types, with their names in Zarr's metadata, and their codes in numpy.
    const NAMES: [(&'static str, Option<&'static str>, Self); 13] = [
        ("bool", Some("b1"), Self::Bool),
        ("int8", Some("i1"), Self::I8),
        ("int16", Some("i2"), Self::I16),
        ("int32", Some("i4"), Self::I32),
        ("int64", Some("i8"), Self::I64),
        ("uint8", Some("u1"), Self::U8),
        ("uint16", Some("u2"), Self::U16),
        ("uint32", Some("u4"), Self::U32),
        ("uint64", Some("u8"), Self::U64),
        ("float16", Some("f2"), Self::F16),
        ("bfloat16", None, Self::BF16),
        ("float32", Some("f4"), Self::F32),
        ("float64", Some("f8"), Self::F64),
    ];

    /// The type that Zarr's metadata calls `name`; `None` if it is not supported.
    pub fn from_zarr_name(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(known, ..)| *known == name).map(|(_, _, element)| *element)
    }

    /// The name in Zarr's metadata, `float32` for example.
    pub fn zarr_name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, _, element)| *element == self).map_or("", |(name, ..)| name)
    }

    /// The type with this code in numpy, which has no order of bytes; `None` if there is none.
    pub fn from_numpy_code(code: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(_, known, _)| *known == Some(code)).map(|(.., element)| *element)
    }

    /// The code in numpy, `f4` for example; `None` if numpy has no such type.
    pub fn numpy_code(self) -> Option<&'static str> {
        Self::NAMES.iter().find(|(.., element)| *element == self)?.1
    }

    /// Bytes of an element.
    pub fn n_bytes(self) -> usize {
        match self {
            Self::Bool | Self::I8 | Self::U8 => 1,
            Self::I16 | Self::U16 | Self::F16 | Self::BF16 => 2,
            Self::I32 | Self::U32 | Self::F32 => 4,
            Self::I64 | Self::U64 | Self::F64 => 8,
        }
    }

    /// The floating point type of what is computed of such elements: the smallest that holds each
    /// of them, and at least `f32`.
    pub(crate) fn computed(self) -> Self {
        match self {
            Self::F64 | Self::I32 | Self::I64 | Self::U32 | Self::U64 => Self::F64,
            _ => Self::F32,
        }
    }

    /// Whether elements are floating point numbers.
    pub(crate) fn is_float(self) -> bool {
        matches!(self, Self::F16 | Self::BF16 | Self::F32 | Self::F64)
    }
}

impl std::fmt::Display for ElementType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.zarr_name())
    }
}

/// A Rust type of elements: integers, and floating point numbers of 16, 32 and 64 bits.
pub trait Element: Pod + Send + Sync + 'static + sealed::Sealed {
    /// Whether values of this type may be viewed as elements of `element`.
    fn is(element: ElementType) -> bool;
}

mod sealed {
    /// Prevents other implementations of [`Element`](super::Element), so that types can be added.
    pub trait Sealed {}
}

macro_rules! elements {
    ($($element:ty: $($stored:pat_param)|+),* $(,)?) => {
        $(
            impl sealed::Sealed for $element {}
            impl Element for $element {
                fn is(element: ElementType) -> bool {
                    matches!(element, $($stored)|+)
                }
            }
        )*
    };
}

elements!(
    i8: ElementType::I8,
    i16: ElementType::I16,
    i32: ElementType::I32,
    i64: ElementType::I64,
    u8: ElementType::U8 | ElementType::Bool,
    u16: ElementType::U16,
    u32: ElementType::U32,
    u64: ElementType::U64,
    f16: ElementType::F16,
    bf16: ElementType::BF16,
    f32: ElementType::F32,
    f64: ElementType::F64,
);
