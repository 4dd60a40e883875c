//! Conversion of stored elements on their way into a batch.

use bytemuck::AnyBitPattern;
use half::slice::HalfFloatSliceExt as _;
use half::{bf16, f16};

use crate::element::ElementType;

/// The linear packing of the CF conventions: a stored number `n` means `n * scale + offset`.
///
/// Source: CF Conventions 1.11, section 8.1, attributes `scale_factor` and `add_offset`; section
/// 2.5.1 for `_FillValue`, which xarray stores as the array's own fill value in Zarr v2.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Packing {
    /// The attribute `scale_factor`, 1 if absent.
    pub scale: f64,
    /// The attribute `add_offset`, 0 if absent.
    pub offset: f64,
    /// The attribute `_FillValue`: a stored number that means "missing" and is delivered as NaN.
    pub missing: Option<f64>,
}

impl Packing {
    /// The packing in an array's attributes, if there is one. `fill` is the fill value of an array
    /// in Zarr v2.
    pub(crate) fn of(
        attributes: &serde_json::Map<String, serde_json::Value>,
        fill: Option<f64>,
    ) -> Option<Self> {
        let number = |name: &str| attributes.get(name).and_then(serde_json::Value::as_f64);
        let (scale, offset) = (number("scale_factor"), number("add_offset"));
        (scale.is_some() || offset.is_some()).then(|| Self {
            scale: scale.unwrap_or(1.0),
            offset: offset.unwrap_or(0.0),
            missing: number("_FillValue").or(fill),
        })
    }
}

/// How elements become those of a batch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Convert {
    /// As they are stored.
    Copy,
    /// To `f32`, unpacked if they are packed.
    ToF32 { from: ElementType, packing: Option<Packing> },
}

impl Convert {
    /// Writes the elements of `from` to `into`. Both have the same number of elements, and begin at
    /// an address that their type may have.
    pub(crate) fn run(&self, from: &[u8], into: &mut [u8]) {
        match self {
            Self::Copy => into.copy_from_slice(from),
            Self::ToF32 { from: element, packing } => {
                let into: &mut [f32] = bytemuck::cast_slice_mut(into);
                to_f32(*element, *packing, from, into);
            }
        }
    }
}

fn to_f32(element: ElementType, packing: Option<Packing>, from: &[u8], into: &mut [f32]) {
    match element {
        ElementType::F16 if packing.is_none() => {
            bytemuck::cast_slice::<_, f16>(from).convert_to_f32_slice(into);
        }
        ElementType::BF16 if packing.is_none() => {
            bytemuck::cast_slice::<_, bf16>(from).convert_to_f32_slice(into);
        }
        ElementType::Bool | ElementType::U8 => {
            numbers(packing, from, into, <f64 as From<u8>>::from);
        }
        ElementType::I8 => numbers(packing, from, into, <f64 as From<i8>>::from),
        ElementType::I16 => numbers(packing, from, into, <f64 as From<i16>>::from),
        ElementType::U16 => numbers(packing, from, into, <f64 as From<u16>>::from),
        ElementType::I32 => numbers(packing, from, into, <f64 as From<i32>>::from),
        ElementType::U32 => numbers(packing, from, into, <f64 as From<u32>>::from),
        ElementType::I64 => numbers(packing, from, into, |n: i64| n as f64),
        ElementType::U64 => numbers(packing, from, into, |n: u64| n as f64),
        ElementType::F16 => numbers(packing, from, into, <f64 as From<f16>>::from),
        ElementType::BF16 => numbers(packing, from, into, <f64 as From<bf16>>::from),
        ElementType::F32 => numbers(packing, from, into, <f64 as From<f32>>::from),
        ElementType::F64 => numbers(packing, from, into, |x: f64| x),
    }
}

/// Converts numbers, in double precision until the end.
fn numbers<T: AnyBitPattern>(
    packing: Option<Packing>,
    from: &[u8],
    into: &mut [f32],
    number: impl Fn(T) -> f64,
) {
    let from = bytemuck::cast_slice::<u8, T>(from).iter().map(|n| number(*n));
    let pairs = into.iter_mut().zip(from);
    match packing {
        None => pairs.for_each(|(to, n)| *to = n as f32),
        Some(Packing { scale, offset, missing: None }) => {
            pairs.for_each(|(to, n)| *to = (n * scale + offset) as f32);
        }
        Some(Packing { scale, offset, missing: Some(missing) }) => pairs.for_each(|(to, n)| {
            *to = if n == missing { f32::NAN } else { (n * scale + offset) as f32 };
        }),
    }
}
