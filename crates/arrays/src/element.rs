//! Types of an array's elements.

use bytemuck::Pod;
use half::{bf16, f16};

/// An element type for reading arrays: integers, and floating point numbers of 16, 32 and 64 bits.
/// It must equal the stored type; values are not converted.
pub trait Element: zarrs::array::Element + Pod + Send + Sync + 'static + sealed::Sealed {}

mod sealed {
    /// Prevents other implementations of [`Element`](super::Element), so that types can be added.
    pub trait Sealed {}
}

macro_rules! elements {
    ($($element:ty),*) => {
        $(
            impl sealed::Sealed for $element {}
            impl Element for $element {}
        )*
    };
}

elements!(i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64);
