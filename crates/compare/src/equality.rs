//! Checks that two sides have the same values, by sums that do not depend on the order. The
//! scripts' `Tally` in `benches/peers/measuring.py` computes the same.

use serde::{Deserialize, Serialize};

/// Number, exact sum and places of the values that a side has read or delivered.
///
/// The sum is exact: the significands of all values with the same exponent are added up as
/// integers, so the order does not matter and large values do not absorb small ones. Values of
/// other types are compared as the nearest `f32`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Tally {
    pub(crate) n_values: u64,
    /// For each of the 256 exponents of `f32`, the sum of the signed significands modulo 2^64.
    pub(crate) sums: Vec<i64>,
    /// Sum, modulo 2^64, of a hash of each value with its cell and its gene, and of a hash of each
    /// added cell.
    pub(crate) checksum: u64,
}

/// Number of exponents of `f32`, including that of infinity and NaN.
const N_EXPONENTS: usize = 256;
/// Bits of a significand after the leading one.
const SIGNIFICAND_BITS: u32 = 23;

impl Default for Tally {
    fn default() -> Self {
        Self { n_values: 0, sums: vec![0; N_EXPONENTS], checksum: 0 }
    }
}

impl Tally {
    /// Adds a cell without its values; it may have none.
    pub(crate) fn add_cell(&mut self, cell: i64) {
        self.checksum = self.checksum.wrapping_add(hash(cell, NO_GENE, 0));
    }

    /// Adds the values of a cell.
    pub(crate) fn add_row(&mut self, cell: i64, genes: &[u32], values: &[f32]) {
        self.n_values += values.len() as u64;
        for (gene, value) in genes.iter().zip(values) {
            let bits = value.to_bits();
            let exponent = (bits >> SIGNIFICAND_BITS) & 0xff;
            let leading = u32::from(exponent != 0) << SIGNIFICAND_BITS;
            let significand = i64::from((bits & ((1 << SIGNIFICAND_BITS) - 1)) | leading);
            let signed = if bits >> 31 == 0 { significand } else { -significand };
            if let Some(sum) = self.sums.get_mut(exponent as usize) {
                *sum = sum.wrapping_add(signed);
            }
            self.checksum = self.checksum.wrapping_add(hash(cell, *gene, bits));
        }
    }

    /// Returns the sum of the values, to the precision of `f64`; NaN if a value is infinite or NaN.
    pub(crate) fn sum(&self) -> f64 {
        let exponents = self.sums.iter().zip(0..);
        exponents.filter(|(sum, _)| **sum != 0).fold(0.0, |total, (sum, exponent)| {
            // Subnormal numbers have the same power as the least normal exponent.
            let power: i32 = i32::max(exponent, 1) - 127 - SIGNIFICAND_BITS as i32;
            if exponent == 255 { f64::NAN } else { total + *sum as f64 * f64::from(power).exp2() }
        })
    }
}

/// Stands for the gene in the hash of a cell itself.
const NO_GENE: u32 = u32::MAX;

const FACTORS: [u64; 3] = [0x9e37_79b9_7f4a_7c15, 0xbf58_476d_1ce4_e5b9, 0x94d0_49bb_1331_11eb];

/// Hashes a value and its place to 64 bits. The scripts use the same function.
fn hash(cell: i64, gene: u32, bits: u32) -> u64 {
    let terms = [cell.cast_unsigned(), u64::from(gene), u64::from(bits)];
    let x = terms
        .iter()
        .zip(FACTORS)
        .fold(0_u64, |x, (term, factor)| x.wrapping_add(term.wrapping_mul(factor)));
    let x = (x ^ (x >> 32)).wrapping_mul(FACTORS[1]);
    x ^ (x >> 29)
}

/// Checks that both sides have the same values at the same places.
///
/// # Errors
/// A message about the difference.
pub(crate) fn same(first: (&str, &Tally), second: (&str, &Tally)) -> Result<(), String> {
    let (name, ours) = first;
    let (other, theirs) = second;
    if ours.n_values != theirs.n_values {
        return Err(format!("{other} has {} values, {name} {}", theirs.n_values, ours.n_values));
    }
    if ours.sums != theirs.sums {
        return Err(format!(
            "the values of {other} add up to {}, those of {name} to {}, and not to exactly the same",
            theirs.sum(),
            ours.sum()
        ));
    }
    if ours.checksum != theirs.checksum {
        return Err(format!(
            "the values of {other} add up to the same as those of {name}, but at other places or in other parts"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Value = (i64, u32, f32);

    fn tally(values: &[Value]) -> Tally {
        let mut tally = Tally::default();
        for (cell, gene, value) in values {
            tally.add_row(*cell, &[*gene], &[*value]);
        }
        tally
    }

    #[track_caller]
    fn differ(ours: &[Value], theirs: &[Value], expect: &str) {
        let error = same(("csr", &tally(ours)), ("table", &tally(theirs))).unwrap_err();
        assert!(error.contains(expect), "{error}");
    }

    #[test]
    fn whatever_differs_is_refused() {
        let values = [(1, 2, 3.0), (1, 3, 5.0), (4, 2, 3.0)];
        differ(&values, &values[1..], "table has 2 values, csr 3");
        differ(&values, &[values[0], values[1], (4, 2, 4.0)], "add up to 12, those of csr to 11");
        differ(&values, &[values[0], (1, 4, 5.0), values[2]], "other places");
        differ(&values, &[values[0], (2, 3, 5.0), values[2]], "other places");
        // The same sum of other values, and a difference that an `f64` sum would lose.
        differ(&values, &[values[0], (1, 3, 4.0), (4, 2, 4.0)], "not to exactly the same");
        differ(&[(0, 0, 1e30), (0, 1, 1e-30)], &[(0, 0, 1e30), (0, 1, 2e-30)], "not to exactly");
    }

    #[test]
    fn a_cell_without_values_counts() {
        let with_cell = |cell| {
            let mut tally = tally(&[(1, 2, 3.0)]);
            tally.add_cell(cell);
            tally
        };
        same(("a", &with_cell(5)), ("b", &with_cell(5))).unwrap();
        let error = same(("a", &with_cell(5)), ("b", &with_cell(6))).unwrap_err();
        assert!(error.contains("other places"), "{error}");
    }

    #[test]
    fn the_sum_is_that_of_the_values() {
        let values = [1.5_f32, -0.25, 1e-40, 3e38, -3e38, 0.0];
        let cells: Vec<Value> = values.iter().map(|value| (7, 1, *value)).collect();
        assert_eq!(tally(&cells).sum(), 1.25 + f64::from(1e-40_f32));
        assert!(tally(&[(0, 0, f32::NAN)]).sum().is_nan());
    }

    #[test]
    fn python_comes_to_the_same() {
        // From `value_hash` of benches/peers/measuring.py.
        assert_eq!(hash(1, 2, 3.0_f32.to_bits()), PYTHON_HASHES[0]);
        assert_eq!(hash(1 << 40, 60_663, (-0.5_f32).to_bits()), PYTHON_HASHES[1]);
        assert_eq!(hash(5, NO_GENE, 0), PYTHON_HASHES[2]);
    }

    const PYTHON_HASHES: [u64; 3] =
        [0x5d01_6999_f7d9_5c35, 0x4a47_3539_8bc0_2c61, 0x7eb7_9bdd_1ef6_be34];

    proptest! {
        #[test]
        fn the_order_does_not_matter(
            values in proptest::collection::vec((0_i64..1 << 40, any::<u32>(), any::<f32>()), 0..60),
            by in any::<u64>(),
        ) {
            let mut other = values.clone();
            other.sort_by_key(|(cell, gene, _)| hash(*cell, *gene, by as u32));
            prop_assert_eq!(same(("a", &tally(&values)), ("b", &tally(&other))), Ok(()));
        }
    }
}
