//! Weighted drawing in constant time: an alias table (Vose, "A linear algorithm for generating
//! random numbers with a given distribution", 1991), built with integers so that it is the same on
//! every machine.

/// One slot: its own item below the threshold, another one from it on.
#[derive(Debug, Clone, Copy)]
struct Slot {
    threshold: u32,
    alias: u32,
}

/// Draws from `0..weights.len()` in proportion to the weights.
#[derive(Debug)]
pub(crate) struct AliasTable {
    slots: Vec<Slot>,
}

impl AliasTable {
    /// Builds the table; no weight may be 0.
    pub(crate) fn new(weights: &[u32]) -> Self {
        let n = weights.len();
        let total: u64 = weights.iter().map(|weight| u64::from(*weight)).sum();
        // A slot has room for `total`; an item needs `weight * n`.
        let mut left: Vec<u64> =
            weights.iter().map(|weight| u64::from(*weight) * n as u64).collect();
        let full = Slot { threshold: u32::MAX, alias: 0 };
        let mut slots: Vec<Slot> = (0..n as u32).map(|item| Slot { alias: item, ..full }).collect();
        let (mut small, mut large): (Vec<u32>, Vec<u32>) =
            (0..n as u32).partition(|item| left[*item as usize] < total);
        while let (Some(item), Some(&donor)) = (small.pop(), large.last()) {
            let own = left[item as usize];
            let threshold = ((u128::from(own) << 32) / u128::from(total)) as u32;
            slots[item as usize] = Slot { threshold, alias: donor };
            left[donor as usize] -= total - own;
            if left[donor as usize] < total {
                large.pop();
                small.push(donor);
            }
        }
        Self { slots }
    }

    /// The item that 64 random bits select.
    #[inline]
    pub(crate) fn pick(&self, bits: u64) -> u32 {
        let at = ((bits >> 32) * self.slots.len() as u64) >> 32;
        let slot = self.slots[at as usize];
        if (bits as u32) < slot.threshold { at as u32 } else { slot.alias }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::random::{Decision, generator};

    proptest! {
        /// The share of each item, summed over the slots, is its weight's share.
        #[test]
        fn the_table_holds_the_weights(weights in prop::collection::vec(1_u32..1 << 28, 1..200)) {
            let table = AliasTable::new(&weights);
            let mut share = vec![0_u64; weights.len()];
            for (item, slot) in table.slots.iter().enumerate() {
                share[item] += u64::from(slot.threshold);
                share[slot.alias as usize] += (1 << 32) - u64::from(slot.threshold);
            }
            let total: f64 = weights.iter().map(|weight| f64::from(*weight)).sum();
            let n = weights.len() as f64;
            for (share, weight) in share.iter().zip(&weights) {
                let (found, wanted) = (*share as f64 / n / 2_f64.powi(32), f64::from(*weight) / total);
                prop_assert!((found - wanted).abs() < 1e-8, "{found} for {wanted}");
            }
        }
    }

    #[test]
    fn draws_follow_the_weights() {
        let weights = [1, 2, 4, 93];
        let table = AliasTable::new(&weights);
        let mut generator = generator(3, Decision::Genes);
        let mut drawn = [0_u32; 4];
        for _ in 0..100_000 {
            drawn[table.pick(generator.next_u64()) as usize] += 1;
        }
        for (drawn, weight) in drawn.iter().zip(weights) {
            let (wanted, spread) =
                (f64::from(weight) * 1000.0, (f64::from(weight) * 1000.0).sqrt());
            assert!((f64::from(*drawn) - wanted).abs() < 5.0 * spread, "{drawn} for {wanted}");
        }
    }
}
