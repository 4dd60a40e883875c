//! Elements of images, converted by rows of channels.

use std::any::TypeId;

use bytemuck::Pod;
use half::f16;
use half::slice::HalfFloatSliceExt;

/// An element of images: `f16` or `f32`.
pub trait ImageElement: Pod + Rows {}

impl ImageElement for f16 {}
impl ImageElement for f32 {}

mod sealed {
    use super::WidePixel;

    /// Rows of an element as rows of `f32`.
    pub trait Rows: Sized {
        /// Makes `wide` the pixel with this number, unless it is that one already or `values`
        /// need no conversion.
        fn widen(number: usize, values: &[Self], wide: &mut WidePixel);

        /// The values of the pixel that `wide` was made.
        fn widened<'a>(values: &'a [Self], wide: &'a WidePixel) -> &'a [f32];

        /// Converts values.
        fn to_f32(values: &[Self], into: &mut [f32]);

        /// Converts values; to `f16`, rounded to nearest.
        fn from_f32(values: &[f32], into: &mut [Self]);

        /// Fills `into` by what `fill` writes, through `scratch` (of the same length) if that must
        /// be converted.
        fn fill(into: &mut [Self], scratch: &mut [f32], fill: impl FnOnce(&mut [f32]));
    }
}
pub(super) use sealed::Rows;

/// A pixel of the source that is kept as `f32`: the next pixel of the result often needs it, too.
#[derive(Debug)]
pub struct WidePixel {
    number: usize,
    values: Vec<f32>,
}

impl WidePixel {
    /// No pixel yet.
    pub(super) fn new(n_channels: usize) -> Self {
        Self { number: usize::MAX, values: vec![0.0; n_channels] }
    }
}

impl Rows for f32 {
    fn widen(_number: usize, _values: &[Self], _wide: &mut WidePixel) {}

    fn widened<'a>(values: &'a [Self], _wide: &'a WidePixel) -> &'a [Self] {
        values
    }

    fn to_f32(values: &[Self], into: &mut [Self]) {
        into.copy_from_slice(values);
    }

    fn from_f32(values: &[Self], into: &mut [Self]) {
        into.copy_from_slice(values);
    }

    fn fill(into: &mut [Self], _scratch: &mut [Self], fill: impl FnOnce(&mut [Self])) {
        fill(into);
    }
}

impl Rows for f16 {
    fn widen(number: usize, values: &[Self], wide: &mut WidePixel) {
        if wide.number != number {
            values.convert_to_f32_slice(&mut wide.values);
            wide.number = number;
        }
    }

    fn widened<'a>(_values: &'a [Self], wide: &'a WidePixel) -> &'a [f32] {
        &wide.values
    }

    fn to_f32(values: &[Self], into: &mut [f32]) {
        values.convert_to_f32_slice(into);
    }

    fn from_f32(values: &[f32], into: &mut [Self]) {
        into.convert_from_f32_slice(values);
    }

    fn fill(into: &mut [Self], scratch: &mut [f32], fill: impl FnOnce(&mut [f32])) {
        fill(scratch);
        into.convert_from_f32_slice(scratch);
    }
}

/// Copies values of equal number, converted if the types differ.
pub(super) fn copy<S: ImageElement, T: ImageElement>(from: &[S], into: &mut [T]) {
    if TypeId::of::<S>() == TypeId::of::<T>() {
        into.copy_from_slice(bytemuck::cast_slice(from));
    } else if TypeId::of::<T>() == TypeId::of::<f32>() {
        S::to_f32(from, bytemuck::cast_slice_mut(into));
    } else {
        T::from_f32(bytemuck::cast_slice(from), into);
    }
}
