//! Compares plans of listed orders with a naive definition: the list, cut into global batches.

use std::sync::Arc;

use proptest::prelude::*;
use shuffle::sample::Sampling;
use shuffle::{BatchSpec, BlockPlan, Order, PlanError, PlanSpec, Remainder};

const N_ROWS: u64 = 40;

fn plan_spec(chunks_per_block: u64) -> PlanSpec {
    PlanSpec {
        n_rows: N_ROWS,
        chunk_rows: 1,
        chunks_per_block,
        order: Order::Listed,
        seed: 3,
        ramp_blocks: 0,
    }
}

#[derive(Debug, Clone)]
struct Case {
    list: Arc<[u32]>,
    batches: BatchSpec,
    chunks_per_block: u64,
}

impl Case {
    /// The batches of a rank.
    fn expected(&self) -> Vec<Vec<u64>> {
        let BatchSpec { batch_rows, rank, world_size, remainder, .. } = self.batches;
        let (of_rank, global) = (batch_rows as usize, (batch_rows * world_size) as usize);
        let mut list: Vec<u64> = self.list.iter().map(|row| u64::from(*row)).collect();
        let n_rows = list.len();
        match remainder {
            Remainder::Short => return list.chunks(global).map(<[_]>::to_vec).collect(),
            Remainder::Drop => list.truncate(n_rows / global * global),
            Remainder::Pad => {
                let n_padded = n_rows.next_multiple_of(global);
                list = list.into_iter().cycle().take(n_padded).collect();
            }
        }
        list.chunks(global)
            .map(|batch| batch[rank as usize * of_rank..][..of_rank].to_vec())
            .collect()
    }

    fn plan(&self) -> shuffle::EpochPlan {
        let spec = plan_spec(self.chunks_per_block);
        spec.sampled_epoch(9, &self.batches, Arc::clone(&self.list)).unwrap()
    }
}

prop_compose! {
    fn case()(
        list in prop::collection::vec(0..N_ROWS as u32, 0..90),
        (batch_rows, world_size, rank) in (1_u64..7, 1_u64..5, any::<prop::sample::Index>()),
        chunks_per_block in 1_u64..20,
        remainder in prop::sample::select(vec![Remainder::Short, Remainder::Drop, Remainder::Pad]),
    ) -> Case {
        let world_size = if remainder == Remainder::Short { 1 } else { world_size };
        let rank = rank.index(world_size as usize) as u64;
        let batches = BatchSpec { batch_rows, rank, world_size, lanes: 1, remainder };
        Case { list: list.into(), batches, chunks_per_block }
    }
}

fn delivered(blocks: impl Iterator<Item = BlockPlan>) -> Vec<u64> {
    blocks.flat_map(|block| block.delivered_rows()).collect()
}

proptest! {
    #[test]
    fn ranks_take_their_part_of_each_piece_of_the_list(case in case()) {
        let (plan, expected) = (case.plan(), case.expected());
        prop_assert_eq!(plan.n_batches(), expected.len() as u64);
        prop_assert_eq!(plan.n_rows(), expected.iter().map(Vec::len).sum::<usize>() as u64);
        let of_global = (case.batches.rank + 1) * case.batches.batch_rows;
        let last = case.list.len() as u64 % (case.batches.batch_rows * case.batches.world_size);
        let n_padding = match case.batches.remainder {
            Remainder::Pad if last > 0 => of_global.saturating_sub(last).min(case.batches.batch_rows),
            _ => 0,
        };
        prop_assert_eq!(plan.n_padding(), n_padding);
        prop_assert_eq!(delivered(plan), expected.concat());
    }

    #[test]
    fn a_plan_goes_on_from_every_batch(case in case()) {
        let (plan, expected) = (case.plan(), case.expected());
        for first_batch in 0..=expected.len() {
            let rest = plan.clone().starting_at(first_batch as u64);
            let rows = expected[first_batch..].concat();
            prop_assert_eq!((rest.len(), rest.n_rows()), (rest.clone().count(), rows.len() as u64));
            prop_assert_eq!(delivered(rest), rows);
        }
    }

    /// Each block but the last has as many rows as specified, whatever the rank, and each distinct
    /// row is read once.
    #[test]
    fn blocks_are_as_specified(case in case()) {
        let plan = case.plan();
        let spec = plan_spec(case.chunks_per_block);
        let most = spec.rank_block_rows(&case.batches, case.list.len() as u64).unwrap();
        let n_blocks = plan.n_blocks();
        prop_assert_eq!(n_blocks, plan.n_rows().div_ceil(case.chunks_per_block));
        for block in plan {
            let n_rows = block.n_rows() as u64;
            prop_assert!(n_rows == most || block.block_idx + 1 == n_blocks && n_rows < most);
            prop_assert!(block.chunks.windows(2).all(|pair| pair[0].end < pair[1].start));
            let mut distinct = block.delivered_rows();
            distinct.sort_unstable();
            distinct.dedup();
            let read: Vec<u64> = block.chunks.into_iter().flatten().collect();
            prop_assert_eq!(read, distinct);
        }
    }
}

#[test]
fn a_list_needs_its_order_and_the_order_a_list() {
    let (listed, single) = (plan_spec(4), BatchSpec::single(6));
    let sampling = Sampling::listed(N_ROWS, [3, 1]).unwrap();
    let ascending = Sampling::with_replacement(N_ROWS, 2).unwrap();
    listed.check_sampling(&single, Some(&sampling)).unwrap();
    assert_eq!(listed.check_sampling(&single, None), Err(PlanError::NoList));
    assert_eq!(listed.check_sampling(&single, Some(&ascending)), Err(PlanError::NoList));
    assert_eq!(listed.dealt_epoch(0, &single).unwrap_err(), PlanError::NoList);
    for order in [Order::Shuffled, Order::InOrder] {
        let other = PlanSpec { order, ..listed };
        assert_eq!(other.check_sampling(&single, Some(&sampling)), Err(PlanError::ListReordered));
        other.check_sampling(&single, Some(&ascending)).unwrap();
        other.check_sampling(&single, None).unwrap();
        // The list itself does not ascend.
        let rows = sampling.rows(0, 0).unwrap();
        let error = other.sampled_epoch(0, &single, rows).unwrap_err();
        assert!(matches!(error, PlanError::SampledRows { .. }), "{error}");
    }
}

#[test]
fn sizes_that_a_list_cannot_have_are_refused() {
    let single = BatchSpec::single(6);
    let epoch = |spec: PlanSpec, batches: BatchSpec, rows: &[u32]| {
        spec.sampled_epoch(0, &batches, rows.into()).unwrap_err()
    };
    let chunks = PlanSpec { chunk_rows: 2, ..plan_spec(4) };
    assert_eq!(epoch(chunks, single, &[0]), PlanError::ListedChunks { chunk_rows: 2 });
    assert_eq!(chunks.check(), Err(PlanError::ListedChunks { chunk_rows: 2 }));
    let lanes = BatchSpec { lanes: 2, ..single };
    assert_eq!(epoch(plan_spec(4), lanes, &[0]), PlanError::LanesInOrder { lanes: 2 });
    let error = epoch(plan_spec(4), single, &[50, 1]).to_string();
    assert!(error.contains("row 50 is none of 40"), "{error}");
    let error = Sampling::listed(N_ROWS, [1, 40, 2]).unwrap_err().to_string();
    assert!(error.contains("row 40, at place 1, is none of 40"), "{error}");
}
