//! Checks the promises of plans, and golden plans that no release may change.

use proptest::prelude::*;
use shuffle::{BatchLengths, BatchSpec, Order, PlanError, PlanSpec, Remainder};

fn spec() -> impl Strategy<Value = PlanSpec> {
    let order = prop_oneof![Just(Order::Shuffled), Just(Order::InOrder)];
    (0_u64..300, 1_u64..20, 1_u64..12, order, any::<u64>()).prop_map(
        |(n_rows, chunk_rows, chunks_per_block, order, seed)| PlanSpec {
            n_rows,
            chunk_rows,
            chunks_per_block,
            order,
            seed,
            ramp_blocks: 0,
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
            prop_assert!(block.n_rows() as u64 == spec.block_rows().unwrap() || is_last);
            prop_assert!(block.chunks.windows(2).all(|pair| pair[0].end <= pair[1].start));
            // Chunks are cut at the borders of blocks, which the short chunk moves.
            let whole = block.chunks.iter().filter(|chunk| chunk.end - chunk.start == spec.chunk_rows);
            prop_assert!(whole.clone().all(|chunk| chunk.start % spec.chunk_rows == 0));
            prop_assert!(whole.count() + 3 >= block.chunks.len());
            let mut order = block.order.clone();
            order.sort_unstable();
            prop_assert_eq!(order, (0..block.n_rows() as u32).collect::<Vec<_>>());
        }
        prop_assert!(plan.block(plan.n_blocks()).is_none());
    }

    #[test]
    fn the_same_numbers_give_the_same_order_and_others_another(seed in any::<u64>(), epoch in 0_u64..1000) {
        // 256 rows have far too many orders for two to be equal by chance.
        let spec = PlanSpec { n_rows: 256, chunk_rows: 4, chunks_per_block: 16, order: Order::Shuffled, seed, ramp_blocks: 0 };
        let rows = delivered(&spec, epoch);
        prop_assert_eq!(&rows, &delivered(&spec, epoch));
        prop_assert_ne!(&rows, &delivered(&spec, epoch + 1));
        prop_assert_ne!(&rows, &delivered(&PlanSpec { seed: seed.wrapping_add(1), ..spec }, epoch));
    }

    #[test]
    fn batches_cut_all_rows(n_rows in 0_u64..500, batch_rows in 1_u64..70) {
        let lengths = BatchLengths::new(n_rows, batch_rows);
        let n_batches = lengths.len();
        prop_assert_eq!(lengths.n_rows(), n_rows);
        let lengths: Vec<_> = lengths.collect();
        prop_assert_eq!(lengths.len(), n_batches);
        prop_assert_eq!(lengths.iter().sum::<u64>(), n_rows);
        let full = lengths.iter().take(n_batches.saturating_sub(1));
        prop_assert!(full.clone().all(|length| *length == batch_rows));
        prop_assert!(lengths.last().is_none_or(|last| 1 <= *last));
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
        ramp_blocks: 0,
    };
    insta::assert_snapshot!(format!("{:?}\n{:?}", delivered(&spec, 0), delivered(&spec, 1)));
    insta::assert_snapshot!(format!("{:?}", spec.epoch(7).unwrap().block(1).unwrap()));
}

/// Three lanes with two rows each per batch of six; the batches of each of two ranks.
#[test]
fn golden_plans_of_lanes_for_seed_42() {
    let spec = PlanSpec {
        n_rows: 23,
        chunk_rows: 4,
        chunks_per_block: 1,
        order: Order::Shuffled,
        seed: 42,
        ramp_blocks: 0,
    };
    let lines = [Remainder::Drop, Remainder::Pad].map(|remainder| {
        let of_rank = |rank| {
            let batches = BatchSpec { batch_rows: 3, rank, world_size: 2, lanes: 3, remainder };
            let plan = spec.dealt_epoch(0, &batches).unwrap();
            let rows: Vec<u64> = plan.flat_map(|block| block.delivered_rows()).collect();
            rows.chunks(3).map(|batch| format!("{batch:?}")).collect::<Vec<_>>().join(" ")
        };
        format!("{remainder:?}, rank 0: {}\n{remainder:?}, rank 1: {}", of_rank(0), of_rank(1))
    });
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn what_is_dropped_is_another_part_in_each_epoch() {
    let spec = PlanSpec {
        n_rows: 95,
        chunk_rows: 4,
        chunks_per_block: 2,
        order: Order::Shuffled,
        seed: 3,
        ramp_blocks: 0,
    };
    let batches = BatchSpec { remainder: Remainder::Drop, lanes: 2, ..BatchSpec::single(10) };
    let mut dropped: Vec<u64> = (0..40)
        .flat_map(|epoch| {
            let plan = spec.dealt_epoch(epoch, &batches).unwrap();
            let rows: Vec<u64> = plan.flat_map(|block| block.delivered_rows()).collect();
            (0..95).filter(move |row| !rows.contains(row))
        })
        .collect();
    assert_eq!(dropped.len(), 5 * 40);
    dropped.sort_unstable();
    dropped.dedup();
    // Each of 40 epochs drops one or two of 24 chunks.
    assert!(dropped.len() > 60, "{dropped:?}");
}

/// A rank does not have a slice of its own: in every epoch its rows come from everywhere, and
/// differ from those of the last.
#[test]
fn a_rank_draws_from_the_whole_data_in_every_epoch() {
    let spec = PlanSpec {
        n_rows: 8000,
        chunk_rows: 5,
        chunks_per_block: 40,
        order: Order::Shuffled,
        seed: 9,
        ramp_blocks: 0,
    };
    let of_rank = |rank, epoch| -> Vec<u64> {
        let remainder = Remainder::Drop;
        let batches = BatchSpec { batch_rows: 100, rank, world_size: 4, lanes: 4, remainder };
        spec.dealt_epoch(epoch, &batches)
            .unwrap()
            .flat_map(|block| block.delivered_rows())
            .collect()
    };
    for rank in 0..4 {
        let mut has_come = vec![0; 8000];
        for epoch in 0..10 {
            let rows = of_rank(rank, epoch);
            assert_eq!(rows.len(), 2000);
            for row in &rows {
                has_come[*row as usize] += 1;
            }
            // A quarter of 400 chunks comes from each quarter: 100, with a standard deviation of 8.
            for quarter in 0..4 {
                let n = rows.iter().filter(|row| **row / 2000 == quarter).count();
                assert!(
                    (300..700).contains(&n),
                    "rank {rank}, epoch {epoch}, quarter {quarter}: {n}"
                );
            }
        }
        // A row is absent in all of ten epochs with probability 0.75^10, 5.6 %.
        let n_never = has_come.iter().filter(|n| **n == 0).count();
        assert!((200..750).contains(&n_never), "rank {rank}: {n_never}");
    }
}

#[test]
fn data_smaller_than_a_global_batch() {
    let spec = PlanSpec {
        n_rows: 3,
        chunk_rows: 2,
        chunks_per_block: 2,
        order: Order::InOrder,
        seed: 0,
        ramp_blocks: 0,
    };
    let of_rank = |rank, remainder| {
        let batches = BatchSpec { batch_rows: 4, rank, world_size: 2, lanes: 1, remainder };
        let plan = spec.dealt_epoch(0, &batches).unwrap();
        let (n_batches, n_padding) = (plan.n_batches(), plan.n_padding());
        (n_batches, n_padding, plan.flat_map(|block| block.delivered_rows()).collect::<Vec<_>>())
    };
    assert_eq!(of_rank(1, Remainder::Drop), (0, 0, vec![]));
    assert_eq!(of_rank(0, Remainder::Pad), (1, 1, vec![0, 1, 2, 0]));
    assert_eq!(of_rank(1, Remainder::Pad), (1, 4, vec![1, 2, 0, 1]));
    // An empty epoch has no rows to pad with.
    let none = PlanSpec { n_rows: 0, ..spec };
    let batches = BatchSpec { remainder: Remainder::Pad, ..BatchSpec::single(4) };
    assert_eq!(none.dealt_epoch(0, &batches).unwrap().n_batches(), 0);
}

/// A valid specification; the tests make invalid ones from it.
const POSSIBLE: PlanSpec = PlanSpec {
    n_rows: 10,
    chunk_rows: 2,
    chunks_per_block: 2,
    order: Order::Shuffled,
    seed: 0,
    ramp_blocks: 0,
};

#[test]
fn impossible_sizes_are_refused() {
    let spec = POSSIBLE;
    let check = |spec: PlanSpec| spec.epoch(0).unwrap_err();
    assert_eq!(
        check(PlanSpec { chunk_rows: 0, ..spec }),
        PlanError::Zero { size: "the chunk size" }
    );
    assert_eq!(
        check(PlanSpec { chunks_per_block: 0, ..spec }),
        PlanError::Zero { size: "the number of chunks per block" }
    );
    let large = PlanSpec { chunk_rows: u64::MAX, chunks_per_block: 2, ..spec };
    assert!(matches!(check(large), PlanError::BlockTooLarge { .. }));
    let many = PlanSpec { n_rows: 1 << 40, chunk_rows: 1, ..spec };
    assert!(
        matches!(check(many), PlanError::TooManyChunks { n_chunks, .. } if n_chunks == 1 << 40)
    );
}

#[test]
fn worlds_that_do_not_fit_are_refused() {
    let spec = POSSIBLE;
    let fits =
        BatchSpec { batch_rows: 6, rank: 1, world_size: 2, lanes: 3, remainder: Remainder::Drop };
    spec.dealt_epoch(0, &fits).unwrap();
    let check = |batches: BatchSpec| spec.dealt_epoch(0, &batches).unwrap_err();
    assert_eq!(
        check(BatchSpec { batch_rows: 0, ..fits }),
        PlanError::Zero { size: "the batch size" }
    );
    assert_eq!(
        check(BatchSpec { world_size: 0, ..fits }),
        PlanError::Zero { size: "the world size" }
    );
    assert_eq!(
        check(BatchSpec { lanes: 0, ..fits }),
        PlanError::Zero { size: "the number of lanes" }
    );
    assert_eq!(check(BatchSpec { rank: 2, ..fits }), PlanError::Rank { rank: 2, world_size: 2 });
    assert_eq!(
        check(BatchSpec { lanes: 5, ..fits }),
        PlanError::Lanes { lanes: 5, global_batch_rows: 12 }
    );
    assert_eq!(
        check(BatchSpec { remainder: Remainder::Short, ..fits }),
        PlanError::ShortAmongRanks { world_size: 2 }
    );
    let many = BatchSpec { batch_rows: 1 << 40, lanes: 1 << 30, ..fits };
    assert!(matches!(check(many), PlanError::TooManyLanes { lanes, .. } if lanes == 1 << 30));
    let large = BatchSpec { batch_rows: u64::MAX, ..fits };
    assert!(matches!(check(large), PlanError::TooManyRows { .. }));
    let in_order = PlanSpec { order: Order::InOrder, ..spec };
    assert_eq!(in_order.dealt_epoch(0, &fits).unwrap_err(), PlanError::LanesInOrder { lanes: 3 });
    // One rank delivers all of many lanes.
    let wide = PlanSpec { n_rows: 1 << 40, chunk_rows: 1 << 20, chunks_per_block: 1 << 10, ..spec };
    let batches = BatchSpec { lanes: 8, remainder: Remainder::Drop, ..BatchSpec::single(1024) };
    assert_eq!(
        wide.dealt_epoch(0, &batches).unwrap_err(),
        PlanError::RankBlockTooLarge { block_rows: 1 << 33, lanes: 8 }
    );
    for (rows, problem) in
        [(&[1, 0][..], "row 0 stands after 1"), (&[3, 10], "row 10 is none of 10")]
    {
        let error = spec.sampled_epoch(0, &fits, rows.into()).unwrap_err();
        assert_eq!(error, PlanError::SampledRows { problem: problem.to_owned() });
    }
}

#[test]
fn in_order_any_number_of_rows_is_planned() {
    let spec = PlanSpec {
        n_rows: u64::MAX,
        chunk_rows: 3,
        chunks_per_block: 2,
        order: Order::InOrder,
        seed: 0,
        ramp_blocks: 0,
    };
    let plan = spec.epoch(0).unwrap();
    let last = plan.block(plan.n_blocks() - 1).unwrap();
    // The number of rows is divisible by 3, but not by 6.
    assert_eq!(last.chunks, [u64::MAX - 3..u64::MAX]);
    assert_eq!(last.order, [0, 1, 2]);
    let first = plan.block(0).unwrap();
    assert_eq!(first.chunks, [0..3, 3..6]);
}

#[test]
fn a_ramp_doubles_the_blocks_until_they_are_full() {
    let spec = |ramp_blocks, order| PlanSpec {
        n_rows: 1000,
        chunk_rows: 4,
        chunks_per_block: 32,
        order,
        seed: 5,
        ramp_blocks,
    };
    for order in [Order::Shuffled, Order::InOrder] {
        let rows = |ramp_blocks| -> Vec<usize> {
            spec(ramp_blocks, order).epoch(1).unwrap().map(|block| block.n_rows()).collect()
        };
        assert_eq!(rows(0), [128, 128, 128, 128, 128, 128, 128, 104]);
        assert_eq!(rows(2), [32, 64, 128, 128, 128, 128, 128, 128, 128, 8]);
        // No block has less than a chunk.
        assert_eq!(rows(7)[..8], [4, 4, 4, 8, 16, 32, 64, 128]);
        assert_eq!(rows(u32::MAX)[..60], [4; 60]);
    }
    // Memory is that of full blocks.
    assert_eq!(
        spec(3, Order::Shuffled).rank_block_rows(&BatchSpec::single(10), 1000).unwrap(),
        128
    );
}
