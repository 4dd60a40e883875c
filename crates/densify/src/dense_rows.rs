//! Writes sparse rows as dense ones.

use crate::Value;
use crate::past_caches::PastCaches;

/// Size from which rows are written past the caches; a smaller batch is still cached when it is
/// read.
const LARGE_BYTES: usize = 8 << 20;
/// Values that are assembled at once before they are written past the caches: 16 KiB, which fit the
/// nearest cache.
const SEGMENT_VALUES: usize = 4096;

/// Writes consecutive rows into memory with any contents.
#[derive(Debug)]
pub(crate) struct DenseRows<V> {
    /// All zero between two rows. `None` if rows are written through the caches.
    segment: Option<(Vec<V>, PastCaches)>,
}

impl<V: Value> DenseRows<V> {
    /// Prepares for writing `n_values` values in all.
    pub(crate) fn new(n_values: usize) -> Self {
        let is_large = n_values.saturating_mul(size_of::<V>()) >= LARGE_BYTES;
        let segment = || (vec![V::default(); SEGMENT_VALUES], PastCaches::new());
        Self { segment: is_large.then(segment) }
    }

    /// Writes a whole row; of values with the same column, the last counts. Returns a column that
    /// is out of range, if any.
    pub(crate) fn write(
        &mut self,
        columns: &[u32],
        values: &[f32],
        convert: impl Fn(f32) -> V,
        out: &mut [V],
    ) -> Option<u32> {
        if let Some((segment, past_caches)) = &mut self.segment {
            if write_segments(columns, values, &convert, segment, past_caches, out) {
                return None;
            }
            past_caches.fence();
        }
        // Zeroed row by row, so that the row is still in the cache when its values are written.
        out.fill(V::default());
        scatter(columns, values, convert, out)
    }
}

/// Writes a row segment by segment. Returns false if columns do not ascend, so that some values
/// were not written.
fn write_segments<V: Value>(
    columns: &[u32],
    values: &[f32],
    convert: &impl Fn(f32) -> V,
    segment: &mut [V],
    past_caches: &mut PastCaches,
    out: &mut [V],
) -> bool {
    let mut at = 0;
    for (first, out) in (0..).step_by(SEGMENT_VALUES).zip(out.chunks_mut(SEGMENT_VALUES)) {
        let begin = at;
        let segment = &mut segment[..out.len()];
        // A column before the segment wraps to one after it.
        let place = |column: u32| column.wrapping_sub(first) as usize;
        while let (Some(column), Some(value)) = (columns.get(at), values.get(at))
            && let Some(to) = segment.get_mut(place(*column))
        {
            *to = convert(*value);
            at += 1;
        }
        past_caches.copy(segment, out);
        columns[begin..at].iter().for_each(|column| segment[place(*column)] = V::default());
    }
    at == columns.len()
}

/// Writes the values of a row to their places. Returns a column that is out of range, if any.
fn scatter<V>(
    columns: &[u32],
    values: &[f32],
    convert: impl Fn(f32) -> V,
    out: &mut [V],
) -> Option<u32> {
    for (column, value) in columns.iter().zip(values) {
        match out.get_mut(*column as usize) {
            Some(place) => *place = convert(*value),
            None => return Some(*column),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use half::f16;
    use proptest::prelude::*;

    use super::*;

    const N_COLUMNS: usize = 2 * SEGMENT_VALUES + 3;

    /// Columns near the borders of segments, in any order, with repetitions, perhaps one beyond the
    /// row.
    fn columns() -> impl Strategy<Value = Vec<u32>> {
        let near = |border: usize| (border.saturating_sub(3)..border + 3).prop_map(|at| at as u32);
        let column = prop_oneof![
            near(0),
            near(SEGMENT_VALUES),
            near(2 * SEGMENT_VALUES),
            0..N_COLUMNS as u32
        ];
        (prop::collection::vec(column, 0..60), any::<bool>()).prop_map(|(mut columns, sorted)| {
            if sorted {
                columns.sort_unstable();
            }
            columns
        })
    }

    fn check<V: Value + PartialEq + std::fmt::Debug>(rows: &[Vec<u32>]) {
        let mut dense = DenseRows { segment: DenseRows::<V>::new(LARGE_BYTES).segment };
        assert!(dense.segment.is_some() && DenseRows::<V>::new(1000).segment.is_none());
        for columns in rows {
            let values: Vec<f32> = (1..=columns.len()).map(|value| value as f32).collect();
            let mut out = vec![V::from_f32(9.0); N_COLUMNS];
            let stray = dense.write(columns, &values, V::from_f32, &mut out);
            dense.segment.iter_mut().for_each(|(_, past_caches)| past_caches.fence());
            let expected_stray = columns.iter().find(|column| N_COLUMNS <= **column as usize);
            assert_eq!(stray.is_some(), expected_stray.is_some());
            if stray.is_none() {
                let mut expected = vec![V::default(); N_COLUMNS];
                let cells = columns.iter().zip(&values);
                cells.for_each(|(column, value)| expected[*column as usize] = V::from_f32(*value));
                assert!(out == expected);
            }
        }
    }

    proptest! {
        #[test]
        fn rows_are_as_a_naive_scatter_has_them(rows in prop::collection::vec(columns(), 1..5)) {
            check::<f32>(&rows);
            check::<f16>(&rows);
        }
    }
}
