//! Nearest neighbours by the cosine of the angle between vectors.

use crate::row::LANES;

/// Vectors scaled to length 1. A vector of zeros has no direction and stays zero: its cosine with
/// any other is 0.
#[derive(Debug, Clone)]
pub struct UnitVectors {
    values: Vec<f32>,
    /// Numbers from one vector to the next: the dimension, padded to a multiple of 8.
    stride: usize,
}

/// A vector near another one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Neighbour {
    /// Its row.
    pub row: usize,
    /// Cosine of the angle between both, from -1 to 1.
    pub cosine: f32,
}

impl UnitVectors {
    pub(super) fn new(values: &[f32], dimension: usize) -> Self {
        let stride = dimension.next_multiple_of(LANES);
        let mut padded = vec![0.0; values.len() / dimension * stride];
        for (unit, vector) in padded.chunks_exact_mut(stride).zip(values.chunks_exact(dimension)) {
            let square: f64 =
                vector.iter().map(|value| f64::from(*value) * f64::from(*value)).sum();
            if 0.0 < square {
                for (unit, value) in unit.iter_mut().zip(vector) {
                    *unit = (f64::from(*value) / square.sqrt()) as f32;
                }
            }
        }
        Self { values: padded, stride }
    }

    /// Number of vectors.
    pub fn len(&self) -> usize {
        self.values.len() / self.stride
    }

    /// Whether there are no vectors.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The `n` vectors nearest to that of a row, without itself: the nearest first, at the same
    /// cosine the lower row. Compares with all vectors. Empty if the row does not exist.
    pub fn nearest(&self, row: usize, n: usize) -> Vec<Neighbour> {
        let Some(vector) = self.values.chunks_exact(self.stride).nth(row) else {
            return Vec::new();
        };
        let mut found: Vec<Neighbour> = Vec::with_capacity(n.saturating_add(1).min(self.len()));
        for (other, values) in self.values.chunks_exact(self.stride).enumerate() {
            let cosine = cosine(vector, values);
            let is_near = found.len() < n || found.last().is_some_and(|last| last.cosine < cosine);
            if other == row || n == 0 || !is_near {
                continue;
            }
            let place = found.partition_point(|near| cosine <= near.cosine);
            found.truncate(n - 1);
            found.insert(place, Neighbour { row: other, cosine });
        }
        found
    }

    /// The share of vectors whose nearest neighbour has the same label: a score of embeddings whose
    /// families are known. Compares all pairs. `labels` has one entry for each vector; entries
    /// beyond the vectors do not count.
    pub fn label_score<L: PartialEq>(&self, labels: &[L]) -> f64 {
        let n_vectors = self.len().min(labels.len());
        let is_found = |row: &usize| {
            let nearest = self.nearest(*row, 1);
            nearest.first().and_then(|near| labels.get(near.row)) == Some(&labels[*row])
        };
        (0..n_vectors).filter(is_found).count() as f64 / n_vectors.max(1) as f64
    }
}

/// The scalar product of two padded vectors.
fn cosine(a: &[f32], b: &[f32]) -> f32 {
    let mut sums = [0.0; LANES];
    for (a, b) in a.as_chunks::<LANES>().0.iter().zip(b.as_chunks::<LANES>().0) {
        for lane in 0..LANES {
            sums[lane] += a[lane] * b[lane];
        }
    }
    sums.iter().sum()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_nearest_are_those_of_a_sort(
            values in prop::collection::vec(-2_i8..3, 33),
            row in 0_usize..12,
            n in 0_usize..14,
        ) {
            let values: Vec<f32> = values.into_iter().map(f32::from).collect();
            let unit = UnitVectors::new(&values, 3);
            prop_assert_eq!(unit.len(), 11);
            let found = unit.nearest(row, n);
            let Some(vector) = values.chunks(3).nth(row) else {
                prop_assert_eq!(found, vec![]);
                return Ok(());
            };
            let length = |v: &[f32]| v.iter().map(|x| x * x).sum::<f32>().sqrt();
            let mut expected: Vec<f32> = values
                .chunks(3)
                .enumerate()
                .filter(|(other, _)| *other != row)
                .map(|(_, other)| {
                    let product: f32 = vector.iter().zip(other).map(|(a, b)| a * b).sum();
                    if product == 0.0 { 0.0 } else { product / length(vector) / length(other) }
                })
                .collect();
            expected.sort_by(|a, b| b.total_cmp(a));
            expected.truncate(n);
            prop_assert_eq!(found.len(), expected.len());
            for (found, expected) in found.iter().zip(expected) {
                prop_assert!((found.cosine - expected).abs() < 1e-5);
                prop_assert_ne!(found.row, row);
            }
        }
    }

    #[test]
    fn labels_of_neighbours_are_scored() {
        let values = [1.0, 0.0, 0.9, 0.1, 0.0, 1.0, 0.1, 0.9, 0.5, 0.4];
        let unit = UnitVectors::new(&values, 2);
        assert_eq!(unit.label_score(&["a", "a", "b", "b", "b"]), 0.8);
        assert_eq!(unit.label_score::<u8>(&[]), 0.0);
        assert!(!unit.is_empty());
    }
}
