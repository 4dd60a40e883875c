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
    /// Rows of an element as rows of `f32`.
    pub trait Rows: Sized {
        /// Values as `f32`, in `scratch` (of the same length) if they must be converted.
        fn widened<'a>(values: &'a [Self], scratch: &'a mut [f32]) -> &'a [f32];

        /// Fills `into` by what `fill` writes, through `scratch` (of the same length) if they must
        /// be converted.
        fn fill(into: &mut [Self], scratch: &mut [f32], fill: impl FnOnce(&mut [f32]));
    }
}
pub(super) use sealed::Rows;

impl Rows for f32 {
    fn widened<'a>(values: &'a [Self], _scratch: &'a mut [Self]) -> &'a [Self] {
        values
    }

    fn fill(into: &mut [Self], _scratch: &mut [Self], fill: impl FnOnce(&mut [Self])) {
        fill(into);
    }
}

impl Rows for f16 {
    fn widened<'a>(values: &'a [Self], scratch: &'a mut [f32]) -> &'a [f32] {
        values.convert_to_f32_slice(scratch);
        scratch
    }

    fn fill(into: &mut [Self], scratch: &mut [f32], fill: impl FnOnce(&mut [f32])) {
        fill(scratch);
        into.convert_from_f32_slice(scratch);
    }
}

/// Copies values of equal number, converted if the types differ.
pub(super) fn copy<S: ImageElement, T: ImageElement>(
    from: &[S],
    into: &mut [T],
    scratch: &mut [f32],
) {
    if TypeId::of::<S>() == TypeId::of::<T>() {
        into.copy_from_slice(bytemuck::cast_slice(from));
        return;
    }
    // One of the two is f32, which needs no conversion of its own.
    T::fill(into, scratch, |wide| {
        let mut none = [];
        if TypeId::of::<S>() == TypeId::of::<f32>() {
            wide.copy_from_slice(S::widened(from, &mut none));
        } else {
            S::widened(from, wide);
        }
    });
}
