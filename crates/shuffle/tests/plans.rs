//! Plans against what they promise, and golden plans that no release may change.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use proptest::prelude::*;
use shuffle::{BatchLengths, Error, Order, PlanSpec};

fn spec() -> impl Strategy<Value = PlanSpec> {
    let order = prop_oneof![Just(Order::Shuffled), Just(Order::InOrder)];
    (0_u64..300, 1_u64..20, 1_u64..12, order, any::<u64>()).prop_map(
        |(n_rows, chunk_rows, chunks_per_block, order, seed)| PlanSpec {
            n_rows,
            chunk_rows,
            chunks_per_block,
            order,
            seed,
        },
    )
}

fn delivered(spec: &PlanSpec, epoch: u64) -> Vec<u64> {
    spec.epoch(epoch).unwrap().flat_map(|block| block.delivered_rows()).collect()
}

proptest! {
    #[test]
    fn every_row_comes_once(spec in spec(), epoch in any::<u64>()) {
        let mut rows = delivered(&spec, epoch);
        if spec.order == Order::InOrder {
            prop_assert!(rows.is_sorted());
        }
        rows.sort_unstable();
        prop_assert_eq!(rows, (0..spec.n_rows).collect::<Vec<_>>());
    }

    #[test]
    fn blocks_are_as_specified(spec in spec(), epoch in 0_u64..5) {
        let plan = spec.epoch(epoch).unwrap();
        prop_assert_eq!(plan.len() as u64, plan.n_blocks());
        let blocks: Vec<_> = plan.clone().collect();
        prop_assert_eq!(blocks.len() as u64, plan.n_blocks());
        for (block_idx, block) in blocks.iter().enumerate() {
            prop_assert_eq!(block.block_idx, block_idx as u64);
            prop_assert_eq!(&plan.block(block_idx as u64).unwrap(), block);
            let is_last = block_idx + 1 == blocks.len();
            prop_assert!(block.chunks.len() as u64 == spec.chunks_per_block || is_last);
            prop_assert!(block.chunks.iter().all(|chunk| !chunk.is_empty() && chunk.start % spec.chunk_rows == 0));
            prop_assert!(block.chunks.windows(2).all(|pair| pair[0].end <= pair[1].start));
            let short = block.chunks.iter().filter(|chunk| chunk.end - chunk.start < spec.chunk_rows);
            prop_assert!(short.clone().count() <= 1 && short.clone().all(|chunk| chunk.end == spec.n_rows));
            let mut order = block.order.clone();
            order.sort_unstable();
            prop_assert_eq!(order, (0..block.n_rows() as u32).collect::<Vec<_>>());
        }
        prop_assert!(plan.block(plan.n_blocks()).is_none());
    }

    #[test]
    fn the_same_numbers_give_the_same_order_and_others_another(seed in any::<u64>(), epoch in 0_u64..1000) {
        // 256 rows have so many orders that two alike do not happen.
        let spec = PlanSpec { n_rows: 256, chunk_rows: 4, chunks_per_block: 16, order: Order::Shuffled, seed };
        let rows = delivered(&spec, epoch);
        prop_assert_eq!(&rows, &delivered(&spec, epoch));
        prop_assert_ne!(&rows, &delivered(&spec, epoch + 1));
        prop_assert_ne!(&rows, &delivered(&PlanSpec { seed: seed.wrapping_add(1), ..spec }, epoch));
    }

    #[test]
    fn batches_cut_all_rows(n_rows in 0_u64..500, batch_rows in 1_u64..70, drop_last in any::<bool>()) {
        let lengths = BatchLengths::new(n_rows, batch_rows, drop_last);
        let (n_batches, delivered) = (lengths.len(), lengths.delivered_rows());
        let lengths: Vec<_> = lengths.collect();
        prop_assert_eq!(lengths.len(), n_batches);
        prop_assert_eq!(lengths.iter().sum::<u64>(), delivered);
        prop_assert_eq!(delivered, if drop_last { n_rows / batch_rows * batch_rows } else { n_rows });
        let full = lengths.iter().take(n_batches.saturating_sub(1));
        prop_assert!(full.clone().all(|length| *length == batch_rows));
        let least = if drop_last { batch_rows } else { 1 };
        prop_assert!(lengths.last().is_none_or(|last| least <= *last));
    }
}

#[test]
fn golden_plans_for_seed_42() {
    let spec = PlanSpec {
        n_rows: 23,
        chunk_rows: 4,
        chunks_per_block: 3,
        order: Order::Shuffled,
        seed: 42,
    };
    insta::assert_snapshot!(format!("{:?}\n{:?}", delivered(&spec, 0), delivered(&spec, 1)));
    insta::assert_snapshot!(format!("{:?}", spec.epoch(7).unwrap().block(1).unwrap()));
}

#[test]
fn impossible_sizes_are_refused() {
    let spec = PlanSpec {
        n_rows: 10,
        chunk_rows: 2,
        chunks_per_block: 2,
        order: Order::Shuffled,
        seed: 0,
    };
    let check = |spec: PlanSpec| spec.epoch(0).unwrap_err();
    assert_eq!(check(PlanSpec { chunk_rows: 0, ..spec }), Error::Zero { size: "the chunk size" });
    assert_eq!(
        check(PlanSpec { chunks_per_block: 0, ..spec }),
        Error::Zero { size: "the number of chunks per block" }
    );
    let large = PlanSpec { chunk_rows: u64::MAX, chunks_per_block: 2, ..spec };
    assert!(matches!(check(large), Error::BlockTooLarge { .. }));
    let many = PlanSpec { n_rows: 1 << 40, chunk_rows: 1, ..spec };
    assert!(matches!(check(many), Error::TooManyChunks { n_chunks, .. } if n_chunks == 1 << 40));
}

#[test]
fn in_order_any_number_of_rows_is_planned() {
    let spec = PlanSpec {
        n_rows: u64::MAX,
        chunk_rows: 3,
        chunks_per_block: 2,
        order: Order::InOrder,
        seed: 0,
    };
    let plan = spec.epoch(0).unwrap();
    let last = plan.block(plan.n_blocks() - 1).unwrap();
    // The number of rows is divisible by 3, but not by 6.
    assert_eq!(last.chunks, [u64::MAX - 3..u64::MAX]);
    assert_eq!(last.order, [0, 1, 2]);
    let first = plan.block(0).unwrap();
    assert_eq!(first.chunks, [0..3, 3..6]);
}
