//! Floating point numbers in a smaller type.

use arrays::ElementType;
use half::f16;
use half::slice::HalfFloatSliceExt as _;

/// Numbers that are cast together.
const PIECE: usize = 1024;

/// Casts numbers; those that mean "missing" become NaN.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Cast {
    pub(crate) from: ElementType,
    pub(crate) to: ElementType,
    pub(crate) missing: Vec<f64>,
}

/// A finite number that is infinite in the smaller type.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Overflow(pub(crate) f64);

impl Cast {
    /// Whether numbers of the first type can be cast to the second one.
    pub(crate) fn is_possible(from: ElementType, to: ElementType) -> bool {
        use ElementType::{F16, F32, F64};
        matches!((from, to), (F64, F32 | F16) | (F32, F16))
    }

    /// Casts numbers in the machine's order of bytes. Both slices have as many. Returns how many
    /// others than 0 became 0.
    pub(crate) fn run(&self, from: &[u8], into: &mut [u8]) -> Result<u64, Overflow> {
        use ElementType::{F16, F32};
        match (self.from, self.to) {
            (F32, _) => self.pieces(from, into, f32::from_ne_bytes, f64::from, halves_of_floats),
            (_, F16) => self.pieces(from, into, f64::from_ne_bytes, |x| x, halves_of_doubles),
            (_, _) => self.pieces(from, into, f64::from_ne_bytes, |x| x, floats_of_doubles),
        }
    }

    fn pieces<A: Copy + Default, B: Smaller, const N: usize>(
        &self,
        from: &[u8],
        into: &mut [u8],
        number: impl Fn([u8; N]) -> A,
        exact: impl Fn(A) -> f64,
        convert: impl Fn(&[A], &mut [B]),
    ) -> Result<u64, Overflow> {
        let (from, _) = from.as_chunks::<N>();
        let into_bytes = size_of::<B>();
        let mut n_zeros = 0;
        let (mut exacts, mut casts) = ([A::default(); PIECE], [B::default(); PIECE]);
        for (from, into) in from.chunks(PIECE).zip(into.chunks_mut(PIECE * into_bytes)) {
            let (exacts, casts) = (&mut exacts[..from.len()], &mut casts[..from.len()]);
            for (into, from) in exacts.iter_mut().zip(from) {
                *into = number(*from);
            }
            convert(exacts, casts);
            for (from, cast) in exacts.iter().zip(&mut *casts) {
                let value = exact(*from);
                if !self.missing.is_empty() && self.missing.contains(&value) {
                    *cast = B::NAN;
                } else if cast.is_infinite() && value.is_finite() {
                    return Err(Overflow(value));
                } else if cast.is_zero() && value != 0.0 {
                    n_zeros += 1;
                }
            }
            for (slot, cast) in into.chunks_exact_mut(into_bytes).zip(&*casts) {
                cast.put(slot);
            }
        }
        Ok(n_zeros)
    }
}

fn halves_of_floats(from: &[f32], into: &mut [f16]) {
    into.convert_from_f32_slice(from);
}

fn halves_of_doubles(from: &[f64], into: &mut [f16]) {
    into.convert_from_f64_slice(from);
}

fn floats_of_doubles(from: &[f64], into: &mut [f32]) {
    for (from, into) in from.iter().zip(into) {
        *into = *from as f32;
    }
}

/// A type that numbers are cast to.
trait Smaller: Copy + Default {
    const NAN: Self;
    fn is_infinite(self) -> bool;
    fn is_zero(self) -> bool;
    fn put(self, into: &mut [u8]);
}

impl Smaller for f16 {
    const NAN: Self = Self::NAN;

    fn is_infinite(self) -> bool {
        Self::is_infinite(self)
    }

    fn is_zero(self) -> bool {
        self.to_bits() << 1 == 0
    }

    fn put(self, into: &mut [u8]) {
        into.copy_from_slice(&self.to_ne_bytes());
    }
}

impl Smaller for f32 {
    const NAN: Self = Self::NAN;

    fn is_infinite(self) -> bool {
        Self::is_infinite(self)
    }

    fn is_zero(self) -> bool {
        self == 0.0
    }

    fn put(self, into: &mut [u8]) {
        into.copy_from_slice(&self.to_ne_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn halves_of(numbers: &[f32], missing: &[f64]) -> Result<(Vec<f16>, u64), Overflow> {
        let cast = Cast { from: ElementType::F32, to: ElementType::F16, missing: missing.to_vec() };
        let from: Vec<u8> = numbers.iter().flat_map(|number| number.to_ne_bytes()).collect();
        let mut into = vec![0; 2 * numbers.len()];
        let n_zeros = cast.run(&from, &mut into)?;
        let (pairs, _) = into.as_chunks::<2>();
        Ok((pairs.iter().map(|pair| f16::from_ne_bytes(*pair)).collect(), n_zeros))
    }

    #[test]
    fn numbers_are_rounded_and_those_that_do_not_fit_are_refused() {
        let many: Vec<f32> = (0..3000_u16).map(|n| f32::from(n) / 7.0).collect();
        let (halves, n_zeros) = halves_of(&many, &[]).unwrap();
        assert!(many.iter().zip(&halves).all(|(one, half)| f16::from_f32(*one) == *half));
        assert_eq!(n_zeros, 0);
        let (halves, n_zeros) = halves_of(&[1e-9, 0.0, -0.0, f32::INFINITY], &[]).unwrap();
        assert_eq!((n_zeros, halves[3]), (1, f16::INFINITY));
        assert_eq!(halves_of(&[1.0, 65_520.0], &[]), Err(Overflow(65_520.0)));
        // The largest number that rounds to one of 16 bits.
        assert_eq!(halves_of(&[65_519.0], &[]).unwrap().0, [f16::MAX]);
        let (halves, _) = halves_of(&[9.96921e36, f32::NAN], &[f64::from(9.96921e36_f32)]).unwrap();
        assert!(halves.iter().all(|half| half.is_nan()));
    }

    #[test]
    fn doubles_are_cast() {
        let from: Vec<u8> = [1e-50, 0.1, f64::MAX].iter().flat_map(|x| x.to_ne_bytes()).collect();
        let cast = Cast { from: ElementType::F64, to: ElementType::F32, missing: Vec::new() };
        let mut into = [0; 12];
        assert_eq!(cast.run(&from, &mut into), Err(Overflow(f64::MAX)));
        assert_eq!(cast.run(&from[..16], &mut into[..8]), Ok(1));
        assert_eq!(into[4..8], 0.1_f32.to_ne_bytes());
        let cast = Cast { to: ElementType::F16, ..cast };
        assert_eq!(cast.run(&from[8..16], &mut into[..2]), Ok(0));
        assert_eq!(into[..2], f16::from_f64(0.1).to_ne_bytes());
    }
}
