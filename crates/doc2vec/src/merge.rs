//! Merging of the word vectors that threads trained apart.

use crate::document::WordRows;
use crate::row::Row;

/// Moves `base` by the mean change of those copies that changed a row, and makes all copies equal
/// to it. A row that only one thread changed keeps its whole change.
pub(crate) fn merge<const N: usize>(base: &mut WordRows<N>, copies: &mut [&mut WordRows<N>]) {
    let WordRows { inputs, outputs } = base;
    merge_rows(inputs, copies, |words| &mut words.inputs);
    merge_rows(outputs, copies, |words| &mut words.outputs);
}

fn merge_rows<const N: usize>(
    base: &mut [Row<N>],
    copies: &mut [&mut WordRows<N>],
    rows_of: impl Fn(&mut WordRows<N>) -> &mut Vec<Row<N>>,
) {
    let mut copies: Vec<&mut Vec<Row<N>>> = copies.iter_mut().map(|words| rows_of(words)).collect();
    for (idx, base) in base.iter_mut().enumerate() {
        let (mut change, mut n_changed) = (Row::ZERO, 0.0);
        for copy in &copies {
            if copy[idx] != *base {
                change.add(&copy[idx]);
                change.add_scaled(-1.0, base);
                n_changed += 1.0;
            }
        }
        if 0.0 < n_changed {
            base.add_scaled(1.0 / n_changed, &change);
            for copy in &mut copies {
                copy[idx] = *base;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use wide::f32x8;

    use super::*;

    fn row(value: f32) -> Row<1> {
        Row([f32x8::splat(value)])
    }

    fn words(inputs: [f32; 3], output: f32) -> WordRows<1> {
        WordRows { inputs: inputs.map(row).to_vec(), outputs: vec![row(output)] }
    }

    #[test]
    fn changes_are_averaged_over_those_who_made_one() {
        let mut base = words([1.0, 1.0, 1.0], 0.0);
        let (mut a, mut b) = (words([2.0, 1.0, 1.0], 4.0), words([4.0, 3.0, 1.0], 2.0));
        merge(&mut base, &mut [&mut a, &mut b]);
        for merged in [base, a, b] {
            assert_eq!(merged.inputs, [row(3.0), row(3.0), row(1.0)]);
            assert_eq!(merged.outputs, [row(3.0)]);
        }
    }
}
