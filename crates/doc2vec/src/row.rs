//! Vectors in memory: rows of a fixed number of lanes of eight numbers.
//!
//! The order of all additions is fixed, and no multiplication is fused with one. So a program's
//! results are the same on every processor that it runs on.

use bytemuck::{cast, cast_mut, cast_ref};
use rand_chacha::ChaCha8Rng;
use wide::{f32x4, f32x8};

use crate::random::centred;

/// Numbers in one element of a [`Row`].
pub(crate) const LANES: usize = 8;

/// A vector, padded with zeros to a multiple of 8 numbers. Training leaves the padding 0: it adds
/// nothing to a product, and gets nothing from one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Row<const N: usize>(pub(crate) [f32x8; N]);

impl<const N: usize> Row<N> {
    pub(crate) const ZERO: Self = Self([f32x8::ZERO; N]);

    /// Adds `other`.
    #[inline]
    pub(crate) fn add(&mut self, other: &Self) {
        for (numbers, other) in self.0.iter_mut().zip(other.0) {
            *numbers += other;
        }
    }

    /// Adds `factor` times `other`.
    #[inline]
    pub(crate) fn add_scaled(&mut self, factor: f32, other: &Self) {
        let factor = f32x8::splat(factor);
        for (numbers, other) in self.0.iter_mut().zip(other.0) {
            *numbers += factor * other;
        }
    }

    #[inline]
    pub(crate) fn scale(&mut self, factor: f32) {
        for numbers in &mut self.0 {
            *numbers *= f32x8::splat(factor);
        }
    }

    /// The scalar product in eight parts.
    #[inline]
    pub(crate) fn products(&self, other: &Self) -> f32x8 {
        let mut sums = f32x8::ZERO;
        for (numbers, other) in self.0.iter().zip(other.0) {
            sums += *numbers * other;
        }
        sums
    }

    fn from_values(values: impl Iterator<Item = f32>) -> Self {
        let mut row = Self::ZERO;
        for (number, value) in row.numbers_mut().zip(values) {
            *number = value;
        }
        row
    }

    pub(crate) fn numbers(&self) -> impl Iterator<Item = f32> + '_ {
        self.0.iter().flat_map(|numbers| *cast_ref::<_, [f32; LANES]>(numbers))
    }

    pub(crate) fn numbers_mut(&mut self) -> impl Iterator<Item = &mut f32> {
        self.0.iter_mut().flat_map(cast_mut::<_, [f32; LANES]>)
    }
}

/// The sums of eight times eight numbers.
#[inline]
pub(crate) fn sums(parts: &[f32x8; LANES]) -> f32x8 {
    let halves = parts.map(|numbers| {
        let [low, high]: [f32x4; 2] = cast(numbers);
        low + high
    });
    let of_four = |halves: [f32x4; 4]| {
        let [a, b, c, d] = f32x4::transpose(halves);
        (a + c) + (b + d)
    };
    let [first, second]: [[f32x4; 4]; 2] = cast(halves);
    cast([of_four(first), of_four(second)])
}

/// Rows of random numbers from `-0.5 / dimension` to less than `0.5 / dimension`, as word2vec's
/// program begins with.
pub(crate) fn random_rows<const N: usize>(
    n_rows: usize,
    dimension: usize,
    generator: &mut ChaCha8Rng,
) -> Vec<Row<N>> {
    let scale = 1.0 / dimension as f32;
    let mut row = || Row::from_values((0..dimension).map(|_| centred(generator) * scale));
    (0..n_rows).map(|_| row()).collect()
}

/// Rows of these numbers, which are given without padding.
pub(crate) fn padded<const N: usize>(values: &[f32], dimension: usize) -> Vec<Row<N>> {
    values.chunks(dimension).map(|row| Row::from_values(row.iter().copied())).collect()
}

/// What is made once the number of lanes is known.
pub(crate) trait OfLanes {
    type Made;
    fn make<const N: usize>(self) -> Self::Made;
}

/// Makes something with the narrowest compiled rows that are wide enough.
pub(crate) fn narrowest<M: OfLanes>(dimension: usize, make: M) -> M::Made {
    macro_rules! narrowest {
        ($($lanes:literal)*) => {
            match dimension.div_ceil(LANES) {
                $(..=$lanes => make.make::<$lanes>(),)*
                // `TrainSpec::check` allows no more.
                _ => make.make::<64>(),
            }
        };
    }
    narrowest!(1 2 3 4 6 8 13 16 25 32 38 48)
}

/// The numbers of all rows, one after another, without padding.
pub(crate) fn unpadded<const N: usize>(rows: &[Row<N>], dimension: usize) -> Vec<f32> {
    let mut values = Vec::with_capacity(rows.len() * dimension);
    for row in rows {
        values.extend(row.numbers().take(dimension));
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Decision, generator};

    #[test]
    fn products_and_sums_are_those_of_plain_loops() {
        let rows: Vec<Row<3>> = random_rows(2, 21, &mut generator(5, Decision::Words));
        let (a, b) = (unpadded(&rows[..1], 21), unpadded(&rows[1..], 21));
        let product: f64 = a.iter().zip(&b).map(|(a, b)| f64::from(a * b)).sum();
        let mut parts = [f32x8::ZERO; LANES];
        parts[5] = rows[0].products(&rows[1]);
        let sums = sums(&parts).to_array();
        assert!((f64::from(sums[5]) - product).abs() < 1e-9);
        assert_eq!((sums[4], sums[6]), (0.0, 0.0));
        let mut sum = rows[0];
        sum.add_scaled(2.0, &rows[1]);
        sum.add(&rows[1]);
        sum.scale(0.5);
        for (idx, value) in unpadded(&[sum], 21).into_iter().enumerate() {
            assert!((value - 0.5 * (a[idx] + 3.0 * b[idx])).abs() < 1e-7);
        }
        assert!(sum.numbers().skip(21).all(|padding| padding == 0.0));
    }

    #[test]
    fn first_vectors_are_small_and_different() {
        let rows: Vec<Row<1>> = random_rows(1000, 8, &mut generator(5, Decision::Words));
        let values = unpadded(&rows, 8);
        assert!(values.iter().all(|value| (-0.5 / 8.0..0.5 / 8.0).contains(value)));
        // The standard error of the mean of 8,000 such numbers is 0.0004.
        let mean = values.iter().sum::<f32>() / values.len() as f32;
        assert!(mean.abs() < 0.002, "{mean}");
    }
}
