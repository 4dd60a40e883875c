//! Converting values to their stored type.

use half::f16;
use half::slice::HalfFloatSliceExt as _;

use super::layout::StoredElement;
use super::pattern::bounds;

/// Largest stored integer for the largest value. The rest is for rounding.
const LARGEST: f64 = 32_700.0;

/// How 16-bit integers are decoded: value = stored * scale + offset, as CF and xarray do it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Packing {
    pub(crate) scale: f64,
    pub(crate) offset: f64,
}

impl Packing {
    /// The packing for an array of the first channels; `None` for floating point.
    pub(crate) fn for_element(element: StoredElement, n_channels: usize) -> Option<Self> {
        (element == StoredElement::I16).then(|| {
            let (low, high) = bounds(n_channels);
            let (offset, reach) = (f64::midpoint(low, high), (high - low) / 2.0);
            Self { scale: reach / LARGEST, offset }
        })
    }
}

/// A stored type of values.
pub(crate) trait Stored: zarrs::array::Element + Copy + Default + Send {
    /// Converts values. Both slices are equally long.
    fn store(values: &[f32], packing: Option<Packing>, into: &mut [Self]);
}

impl Stored for f32 {
    fn store(values: &[f32], _packing: Option<Packing>, into: &mut [Self]) {
        into.copy_from_slice(values);
    }
}

impl Stored for f16 {
    fn store(values: &[f32], _packing: Option<Packing>, into: &mut [Self]) {
        into.convert_from_f32_slice(values);
    }
}

impl Stored for i16 {
    fn store(values: &[f32], packing: Option<Packing>, into: &mut [Self]) {
        let Packing { scale, offset } = packing.unwrap_or(Packing { scale: 1.0, offset: 0.0 });
        let (per_step, offset) = (scale.recip() as f32, offset as f32);
        for (value, into) in values.iter().zip(into) {
            let steps = (value - offset) * per_step;
            // Rounds by cutting off, which the compiler does for several values at once.
            *into = (steps + 0.5_f32.copysign(steps)) as Self;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_rounded_and_stay_in_range() {
        let packing = Packing::for_element(StoredElement::I16, 100).unwrap();
        let (low, high) = bounds(100);
        let values = [low, packing.offset, packing.offset + 2.4 * packing.scale, high];
        let mut stored = [0_i16; 4];
        i16::store(&values.map(|value| value as f32), Some(packing), &mut stored);
        assert_eq!(stored, [-32_700, 0, 2, 32_700]);
        assert_eq!(Packing::for_element(StoredElement::F16, 100), None);
    }
}
