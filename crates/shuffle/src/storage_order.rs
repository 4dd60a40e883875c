//! The order in which rows are stored when they are shuffled once, before all training.

use crate::random;

/// A uniform permutation of `0..n_rows`: row `storage_order(n, seed)[i]` is to be stored at place
/// `i`.
///
/// Its random numbers are independent of those of plans, samples and splits with the same seed.
///
/// ```
/// let mut order = shuffle::storage_order(1000, 42);
/// assert_eq!(order[..4], [986, 502, 513, 837]);
/// order.sort_unstable();
/// assert!(order.into_iter().eq(0..1000));
/// ```
pub fn storage_order(n_rows: u32, seed: u64) -> Vec<u32> {
    let mut order: Vec<u32> = (0..n_rows).collect();
    random::permute(&mut random::storage_generator(seed), &mut order);
    order
}

#[cfg(test)]
mod tests {
    use super::storage_order;
    use crate::PlanSpec;

    #[test]
    fn seeds_differ_and_plans_do_too() {
        assert_ne!(storage_order(100, 1), storage_order(100, 2));
        assert_eq!(storage_order(100, 1), storage_order(100, 1));
        assert_eq!((storage_order(0, 1), storage_order(1, 1)), (vec![], vec![0]));
        let spec = PlanSpec {
            n_rows: 100,
            chunk_rows: 100,
            chunks_per_block: 1,
            seed: 1,
            ..PlanSpec::default()
        };
        let plan: Vec<u64> =
            spec.epoch(0).unwrap().flat_map(|block| block.delivered_rows()).collect();
        assert!(!storage_order(100, 1).into_iter().map(u64::from).eq(plan));
    }
}
