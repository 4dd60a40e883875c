//! Stored numbers in the type that a reader computes with.

use bytemuck::{AnyBitPattern, Pod};
use half::{bf16, f16};

use crate::element::ElementType;

/// A type in which the numbers of an array are delivered, whatever their stored type.
///
/// | type | delivers |
/// |---|---|
/// | `f32` | the nearest number of any type; 0 and 1 for bool |
/// | `u32`, `u64` | integers; one that does not fit becomes a number above `i32::MAX` or `i64::MAX` |
pub trait Number: Pod + Send + Sync + sealed::Sealed {
    /// Whether elements of this type are delivered at all.
    fn takes(element: ElementType) -> bool;

    /// Whether elements of this type are delivered as they are stored, bit for bit.
    fn is_as_stored(element: ElementType) -> bool;

    /// Converts stored elements.
    #[doc(hidden)]
    fn convert(element: ElementType, from: &[u8], into: &mut [Self]);
}

mod sealed {
    /// Prevents other implementations of [`Number`](super::Number).
    pub trait Sealed {}
}

/// Converts each element of type `S`.
fn each<S: AnyBitPattern, T>(from: &[u8], into: &mut [T], convert: impl Fn(S) -> T) {
    let from = bytemuck::cast_slice::<u8, S>(from);
    into.iter_mut().zip(from).for_each(|(to, number)| *to = convert(*number));
}

impl sealed::Sealed for f32 {}
impl Number for f32 {
    fn takes(_: ElementType) -> bool {
        true
    }

    fn is_as_stored(element: ElementType) -> bool {
        element == ElementType::F32
    }

    fn convert(element: ElementType, from: &[u8], into: &mut [Self]) {
        match element {
            ElementType::Bool => each(from, into, |n: u8| if n == 0 { 0.0 } else { 1.0 }),
            ElementType::I8 => each(from, into, <Self as From<i8>>::from),
            ElementType::I16 => each(from, into, <Self as From<i16>>::from),
            ElementType::I32 => each(from, into, |n: i32| n as Self),
            ElementType::I64 => each(from, into, |n: i64| n as Self),
            ElementType::U8 => each(from, into, <Self as From<u8>>::from),
            ElementType::U16 => each(from, into, <Self as From<u16>>::from),
            ElementType::U32 => each(from, into, |n: u32| n as Self),
            ElementType::U64 => each(from, into, |n: u64| n as Self),
            ElementType::F16 => each(from, into, f16::to_f32),
            ElementType::BF16 => each(from, into, bf16::to_f32),
            ElementType::F32 => each(from, into, |n: Self| n),
            ElementType::F64 => each(from, into, |n: f64| n as Self),
        }
    }
}

macro_rules! unsigned {
    ($($unsigned:ty: $signed:ident, $same:ident);* $(;)?) => {$(
        impl sealed::Sealed for $unsigned {}
        impl Number for $unsigned {
            fn takes(element: ElementType) -> bool {
                use ElementType::{BF16, Bool, F16, F32, F64};
                !matches!(element, Bool | F16 | BF16 | F32 | F64)
            }

            fn is_as_stored(element: ElementType) -> bool {
                matches!(element, ElementType::$signed | ElementType::$same)
            }

            fn convert(element: ElementType, from: &[u8], into: &mut [Self]) {
                fn fit<N: TryInto<$unsigned>>(number: N) -> $unsigned {
                    number.try_into().unwrap_or(<$unsigned>::MAX)
                }
                match element {
                    ElementType::I8 => each(from, into, fit::<i8>),
                    ElementType::I16 => each(from, into, fit::<i16>),
                    ElementType::I32 => each(from, into, fit::<i32>),
                    ElementType::I64 => each(from, into, fit::<i64>),
                    ElementType::U8 => each(from, into, fit::<u8>),
                    ElementType::U16 => each(from, into, fit::<u16>),
                    ElementType::U32 => each(from, into, fit::<u32>),
                    ElementType::U64 => each(from, into, fit::<u64>),
                    // Not taken.
                    _ => into.fill(Self::MAX),
                }
            }
        }
    )*};
}

unsigned!(u32: I32, U32; u64: I64, U64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_that_do_not_fit_become_too_large() {
        let mut columns = [0_u32; 3];
        let stored: [i64; 3] = [7, -1, 1 << 40];
        u32::convert(ElementType::I64, bytemuck::cast_slice(&stored), &mut columns);
        assert_eq!(columns, [7, u32::MAX, u32::MAX]);
        assert!(u32::is_as_stored(ElementType::I32) && (-1_i32).cast_unsigned() > 1 << 31);
        assert!(!u64::takes(ElementType::F32));
    }

    #[test]
    fn numbers_become_the_nearest_f32() {
        let mut values = [0.0; 2];
        // Halfway between two f32 and a little above: a detour through f64 would round twice.
        let stored: [u64; 2] = [(1 << 60) + (1 << 36) + 1, u64::MAX];
        f32::convert(ElementType::U64, bytemuck::cast_slice(&stored), &mut values);
        assert_eq!(values, [stored[0] as f32, 18_446_744_073_709_551_615.0]);
    }
}
