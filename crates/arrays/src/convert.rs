//! Conversion of stored elements on their way to the reader.

use std::sync::Arc;

use bytemuck::{AnyBitPattern, Pod};
use half::slice::HalfFloatSliceExt as _;
use half::{bf16, f16};

use crate::element::ElementType;
use crate::memory::{COPIED_BYTES, copy};
use crate::packing::Packing;
use crate::part::Part;
use crate::selection::Run;

/// How elements become those that are delivered.
#[derive(Debug, Clone)]
pub(crate) enum Convert {
    /// As they are stored.
    Copy,
    /// To floating point numbers of type `to`, unpacked if they are packed.
    Floats { to: ElementType, packing: Option<Packing> },
    /// To floating point numbers of type `to`, by another packing for each plane of a row:
    /// `plane_len` consecutive elements.
    Planes { to: ElementType, plane_len: usize, packings: Arc<[Packing]> },
    /// To numbers of `n_bytes` each, by a function.
    Numbers { n_bytes: usize, convert: fn(ElementType, &[u8], &mut [u8]) },
}

impl Convert {
    /// Whether elements are delivered as they are stored.
    pub(crate) fn is_copy(&self) -> bool {
        matches!(self, Self::Copy)
    }

    /// Whether elements are delivered as they are stored, but for missing ones
    /// ([`mask`](Self::mask)).
    pub(crate) fn is_in_place(&self, stored: ElementType) -> bool {
        match self {
            Self::Copy => true,
            Self::Floats { to, packing } => {
                matches!(stored, ElementType::F32 | ElementType::F64)
                    && *to == stored
                    && packing.as_ref().is_none_or(|packing| packing.masked().is_some())
            }
            Self::Planes { .. } | Self::Numbers { .. } => false,
        }
    }

    /// Converts stored elements where they lie, if [that is possible](Self::is_in_place).
    pub(crate) fn mask(&self, stored: ElementType, elements: &mut [u8]) {
        if let Self::Floats { packing: Some(packing), .. } = self
            && let Some(missing) = packing.masked()
        {
            mask(stored, missing, elements);
        }
    }

    /// Bytes of an element as delivered.
    pub(crate) fn n_bytes(&self, stored: ElementType) -> usize {
        match self {
            Self::Copy => stored.n_bytes(),
            Self::Floats { to, .. } | Self::Planes { to, .. } => to.n_bytes(),
            Self::Numbers { n_bytes, .. } => *n_bytes,
        }
    }

    /// Elements of a plane, which are converted alike, and the number of planes of a row.
    pub(crate) fn planes(&self) -> (usize, usize) {
        match self {
            Self::Planes { plane_len, packings, .. } => (*plane_len, packings.len()),
            Self::Copy | Self::Floats { .. } | Self::Numbers { .. } => (usize::MAX, 1),
        }
    }

    /// The places from `at` on, of `n` elements, split where planes end; with the number of the
    /// plane. Rows may follow each other.
    pub(crate) fn split(&self, at: usize, n: usize) -> impl Iterator<Item = (usize, usize)> {
        let (plane_len, n_planes) = self.planes();
        let (mut at, end) = (at, at + n);
        std::iter::from_fn(move || {
            let len = (plane_len - at % plane_len).min(end - at);
            let plane = at / plane_len % n_planes;
            at += len;
            (0 < len).then_some((plane, len))
        })
    }

    /// An element as delivered, by the conversion of each plane; in words, so that it is aligned.
    pub(crate) fn of_each_plane(&self, element: ElementType, stored: &[u8]) -> Vec<[u64; 1]> {
        let (plane_len, n_planes) = self.planes();
        let converted = |plane: usize| {
            let mut word = [0];
            let into = &mut bytemuck::bytes_of_mut(&mut word)[..self.n_bytes(element)];
            self.run(element, stored, (into, plane * plane_len));
            word
        };
        (0..n_planes).map(converted).collect()
    }

    /// Whether both convert alike.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Planes { packings: these, .. }, Self::Planes { packings: others, .. }) => {
                these == others
            }
            (Self::Planes { .. }, _) | (_, Self::Planes { .. }) => false,
            (Self::Floats { packing: this, .. }, Self::Floats { packing: other, .. }) => {
                this == other
            }
            _ => self.is_copy() == other.is_copy(),
        }
    }

    /// Puts a part of a chunk's row into `into`. `from` are decoded elements; the first of them has
    /// this place in the chunk. The first element of `into` has the other place in the row.
    pub(crate) fn scatter(
        &self,
        element: ElementType,
        part: &Part,
        (from, first): (&[u8], usize),
        (into, at): (&mut [u8], usize),
    ) {
        let (n_from, n_to) = (element.n_bytes(), self.n_bytes(element));
        if part.is_tiled() {
            return self.scatter_tiles(element, part, (from, first), (into, at));
        }
        let from = |run: &Run| &from[(run.src - first) * n_from..][..run.len * n_from];
        // Runs may be short: what is asked for each of them counts.
        if self.is_copy() {
            part.for_each_run(|run| {
                copy(from(&run), &mut into[run.dst * n_to..][..run.len * n_to]);
            });
        } else {
            part.for_each_run(|run| {
                let into = &mut into[run.dst * n_to..][..run.len * n_to];
                self.run(element, from(&run), (into, at + run.dst));
            });
        }
    }

    /// Writes an element where a part of a chunk's row would go: that of each plane, as
    /// [`of_each_plane`](Self::of_each_plane) has it. The first element of `into` has this place in
    /// the row.
    pub(crate) fn fill(
        &self,
        (element, of_plane): (ElementType, &[[u64; 1]]),
        part: &Part,
        (into, at): (&mut [u8], usize),
    ) {
        let n_to = self.n_bytes(element);
        part.for_each_place(|run| {
            let mut to = &mut into[run.start * n_to..][..run.len() * n_to];
            for (plane, n) in self.split(at + run.start, run.len()) {
                let element = &bytemuck::bytes_of(&of_plane[plane])[..n_to];
                let (place, rest) = to.split_at_mut(n * n_to);
                place.chunks_exact_mut(n_to).for_each(|to| to.copy_from_slice(element));
                to = rest;
            }
        });
    }

    /// The same for rows of another length, each of whose planes has its share.
    pub(crate) fn of_rows(self, row_len: usize) -> Self {
        let Self::Planes { to, packings, .. } = self else { return self };
        let plane_len = (row_len / packings.len().max(1)).max(1);
        Self::Planes { to, plane_len, packings }
    }

    /// Writes the elements of `from` to `into`, the first of which has this place in its row. Both
    /// have the same number of elements, and begin at an address that their type may have.
    pub(crate) fn run(&self, element: ElementType, from: &[u8], (into, at): (&mut [u8], usize)) {
        match self {
            Self::Copy => copy(from, into),
            Self::Numbers { convert, .. } => convert(element, from, into),
            Self::Floats { to, packing } => to_floats(element, (*to, packing.as_ref()), from, into),
            Self::Planes { to, packings, .. } => {
                let (n_from, n_to) = (element.n_bytes(), to.n_bytes());
                let (mut from, mut into) = (from, into);
                for (plane, n) in self.split(at, into.len() / n_to) {
                    let (these, rest) = from.split_at(n * n_from);
                    let (place, others) = into.split_at_mut(n * n_to);
                    to_floats(element, (*to, packings.get(plane)), these, place);
                    (from, into) = (rest, others);
                }
            }
        }
    }
}

/// Makes the elements NaN that are one of these numbers, of which there is at most one.
fn mask(element: ElementType, missing: &[f64], elements: &mut [u8]) {
    let Some(missing) = missing.first().copied() else { return };
    let nearest = missing as f32;
    if element == ElementType::F64 {
        replace(bytemuck::cast_slice_mut(elements), missing, f64::NAN);
    } else if f64::from(nearest) == missing {
        replace(bytemuck::cast_slice_mut(elements), nearest, f32::NAN);
    }
}

fn replace<T: Copy + PartialEq>(elements: &mut [T], from: T, to: T) {
    for element in elements {
        // Without a branch, so that vector instructions do it.
        *element = if *element == from { to } else { *element };
    }
}

/// Converts elements to floating point numbers of a type, unpacked if they are packed.
fn to_floats(
    element: ElementType,
    (to, packing): (ElementType, Option<&Packing>),
    from: &[u8],
    into: &mut [u8],
) {
    if let (ElementType::F32 | ElementType::F64, Some(packing)) = (element, packing)
        && let Some(missing) = packing.masked().filter(|_| element == to)
    {
        // Masked while the cache has them.
        for (from, into) in from.chunks(COPIED_BYTES).zip(into.chunks_mut(COPIED_BYTES)) {
            into.copy_from_slice(from);
            mask(element, missing, into);
        }
        return;
    }
    match (element, to, packing) {
        (ElementType::F16, ElementType::F32, None) => {
            let into = bytemuck::cast_slice_mut(into);
            bytemuck::cast_slice::<_, f16>(from).convert_to_f32_slice(into);
        }
        (ElementType::BF16, ElementType::F32, None) => {
            let into = bytemuck::cast_slice_mut(into);
            bytemuck::cast_slice::<_, bf16>(from).convert_to_f32_slice(into);
        }
        (ElementType::F32, ElementType::F16, None) => {
            let into = bytemuck::cast_slice_mut::<_, f16>(into);
            into.convert_from_f32_slice(bytemuck::cast_slice(from));
        }
        (ElementType::F32, ElementType::BF16, None) => {
            let into = bytemuck::cast_slice_mut::<_, bf16>(into);
            into.convert_from_f32_slice(bytemuck::cast_slice(from));
        }
        (_, ElementType::F16, _) => {
            floats::<f16>(element, packing, from, bytemuck::cast_slice_mut(into));
        }
        (_, ElementType::BF16, _) => {
            floats::<bf16>(element, packing, from, bytemuck::cast_slice_mut(into));
        }
        (_, ElementType::F64, _) => {
            floats::<f64>(element, packing, from, bytemuck::cast_slice_mut(into));
        }
        _ => floats::<f32>(element, packing, from, bytemuck::cast_slice_mut(into)),
    }
}

/// The number in the bytes of an element.
pub(crate) fn number_of(element: ElementType, bytes: &[u8]) -> f64 {
    // Words are aligned for every type.
    let (mut word, mut number) = ([0_u64], [f64::NAN]);
    let stored = bytemuck::bytes_of_mut(&mut word).get_mut(..bytes.len());
    if let Some(stored) = stored.filter(|stored| stored.len() == element.n_bytes()) {
        stored.copy_from_slice(bytes);
        floats(element, None, stored, &mut number);
    }
    number[0]
}

/// A type of floating point numbers, made of a number in double precision.
pub(crate) trait Float: Pod {
    fn nearest(number: f64) -> Self;
}

impl Float for f64 {
    fn nearest(number: f64) -> Self {
        number
    }
}

impl Float for f32 {
    fn nearest(number: f64) -> Self {
        number as Self
    }
}

impl Float for f16 {
    fn nearest(number: f64) -> Self {
        Self::from_f32(to_odd(number))
    }
}

impl Float for bf16 {
    fn nearest(number: f64) -> Self {
        Self::from_f32(to_odd(number))
    }
}

/// A number in single precision, whose last bit is 1 if it is not exact. Rounded to 16 bits it is
/// what the number is; rounded to the nearest twice, it might not be.
///
/// Source: "rounding to odd" of Boldo and Melquiond (2008), "Emulation of FMA and Correctly Rounded
/// Sums: Proved Algorithms Using Rounding to Odd", theorem 1.
fn to_odd(number: f64) -> f32 {
    let nearest = number as f32;
    let back = f64::from(nearest);
    if back == number || number.is_nan() {
        return nearest;
    }
    let toward_0 = nearest.to_bits() - u32::from(number.abs() < back.abs());
    f32::from_bits(toward_0 | 1)
}

pub(crate) fn floats<F: Float>(
    element: ElementType,
    packing: Option<&Packing>,
    from: &[u8],
    into: &mut [F],
) {
    match element {
        ElementType::Bool | ElementType::U8 => each(packing, from, into, <f64 as From<u8>>::from),
        ElementType::I8 => each(packing, from, into, <f64 as From<i8>>::from),
        ElementType::I16 => each(packing, from, into, <f64 as From<i16>>::from),
        ElementType::U16 => each(packing, from, into, <f64 as From<u16>>::from),
        ElementType::I32 => each(packing, from, into, <f64 as From<i32>>::from),
        ElementType::U32 => each(packing, from, into, <f64 as From<u32>>::from),
        ElementType::I64 => each(packing, from, into, |n: i64| n as f64),
        ElementType::U64 => each(packing, from, into, |n: u64| n as f64),
        ElementType::F16 => each(packing, from, into, f16::to_f64),
        ElementType::BF16 => each(packing, from, into, bf16::to_f64),
        ElementType::F32 => each(packing, from, into, <f64 as From<f32>>::from),
        ElementType::F64 => each(packing, from, into, |x: f64| x),
    }
}

/// Converts numbers, in double precision until the end.
fn each<T: AnyBitPattern, F: Float>(
    packing: Option<&Packing>,
    from: &[u8],
    into: &mut [F],
    number: impl Fn(T) -> f64,
) {
    let from = bytemuck::cast_slice::<u8, T>(from).iter().map(|n| number(*n));
    let pairs = into.iter_mut().zip(from);
    let Some(packing) = packing else {
        return pairs.for_each(|(to, n)| *to = F::nearest(n));
    };
    let Packing { scale, offset, .. } = *packing;
    match (&packing.missing[..], &packing.function) {
        ([], None) => pairs.for_each(|(to, n)| *to = F::nearest(n * scale + offset)),
        ([missing], None) => pairs.for_each(|(to, n)| {
            *to = F::nearest(if n == *missing { f64::NAN } else { n * scale + offset });
        }),
        _ => pairs.for_each(|(to, n)| *to = F::nearest(packing.unpack(n))),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::metadata::Version;
    use crate::packing::Attributes;

    /// What an array of floating point numbers makes of one missing number.
    fn masking<T: Pod>(missing: f64) -> (ElementType, Convert) {
        let element = if size_of::<T>() == 4 { ElementType::F32 } else { ElementType::F64 };
        let all = json!({"missing_value": missing});
        let all = all.as_object().unwrap();
        let attributes = Attributes { all, version: Version::V3, fill: &[0; 8], element };
        let (_, packing) = attributes.packing().unwrap();
        (element, Convert::Floats { to: element, packing })
    }

    /// Checks elements that are converted where they lie, and to another place.
    fn check<T: Pod + PartialEq + std::fmt::Debug>(elements: &[T], missing: f64, expected: &[T]) {
        let (element, convert) = masking::<T>(missing);
        assert!(convert.is_in_place(element));
        let mut in_place = elements.to_vec();
        convert.mask(element, bytemuck::cast_slice_mut(&mut in_place));
        let mut copied = elements.to_vec();
        let into = bytemuck::cast_slice_mut(&mut copied);
        convert.run(element, bytemuck::cast_slice(elements), (into, 0));
        for found in [in_place, copied] {
            let [found, expected] = [&found, expected].map(bytemuck::cast_slice::<T, u8>);
            assert_eq!(found, expected);
        }
    }

    proptest! {
        #[test]
        fn only_missing_elements_change(
            places in proptest::collection::vec(0..5_usize, 0..20_000), is_exact: bool,
        ) {
            let missing = if is_exact { -0.5 } else { 0.1 };
            let one = |place: usize| [missing, -0.0, f64::INFINITY, 1.0, f64::NAN][place];
            let masked = |place: usize| if place == 0 { f64::NAN } else { one(place) };
            let doubles: Vec<f64> = places.iter().map(|place| one(*place)).collect();
            let expected: Vec<f64> = places.iter().map(|place| masked(*place)).collect();
            check(&doubles, missing, &expected);
            // No number of single precision is 0.1.
            let single = |double: &f64| *double as f32;
            let singles: Vec<f32> = doubles.iter().map(single).collect();
            let expected = if is_exact { &expected } else { &doubles };
            check(&singles, missing, &expected.iter().map(single).collect::<Vec<_>>());
        }
    }

    #[test]
    fn other_conversions_need_another_place() {
        let (element, mut convert) = masking::<f32>(1.0);
        assert!(!convert.is_in_place(ElementType::F64));
        if let Convert::Floats { packing: Some(packing), .. } = &mut convert {
            packing.missing.push(2.0);
        }
        assert!(!convert.is_in_place(element));
        let to_double = Convert::Floats { to: ElementType::F64, packing: None };
        assert!(!to_double.is_in_place(element) && Convert::Copy.is_in_place(element));
    }
}
