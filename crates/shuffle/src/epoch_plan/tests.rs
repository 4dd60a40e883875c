//! Compares plans with a naive definition: the whole epoch at once, position by position.

use std::sync::Arc;

use proptest::prelude::*;

use crate::random::{Decision, generator, permute};
use crate::{BatchSpec, BlockPlan, Order, PlanSpec, Remainder};

/// Rows in the order of the chunks.
fn in_order_of_chunks(spec: &PlanSpec, epoch: u64, rows: &[u64]) -> Vec<u64> {
    let chunks: Vec<&[u64]> = rows.chunks(spec.chunk_rows as usize).collect();
    let mut order: Vec<u32> = (0..chunks.len() as u32).collect();
    if spec.order == Order::Shuffled {
        permute(&mut generator(spec.seed, epoch, Decision::ChunkOrder), &mut order);
    }
    order.into_iter().flat_map(|idx| chunks[idx as usize]).copied().collect()
}

/// The rows of each window, without end; `fit` makes them fit to the lanes.
fn window_rows(spec: &PlanSpec, fit: impl Fn(u64) -> u64) -> impl Iterator<Item = usize> {
    let spec = *spec;
    let parts = (0_u32..).map(move |idx| 2_u64.pow(spec.ramp_blocks.saturating_sub(idx)));
    parts.map(move |part| fit((spec.chunks_per_block / part).max(1) * spec.chunk_rows) as usize)
}

fn shuffle_windows(
    spec: &PlanSpec,
    epoch: u64,
    lane: u64,
    mut rest: &mut [u64],
    sizes: impl Iterator<Item = usize>,
) {
    for (window, n_rows) in (0..).zip(sizes) {
        let (rows, behind) = rest.split_at_mut(n_rows.min(rest.len()));
        if rows.is_empty() {
            break;
        }
        rest = behind;
        rows.sort_unstable();
        if spec.order == Order::Shuffled {
            let mut order: Vec<u32> = (0..rows.len() as u32).collect();
            permute(
                &mut generator(spec.seed, epoch, Decision::RowOrder { lane, window }),
                &mut order,
            );
            let ascending = rows.to_vec();
            rows.iter_mut().zip(order).for_each(|(row, at)| *row = ascending[at as usize]);
        }
    }
}

/// All global batches; padding rows have `true`.
fn global_batches(
    spec: &PlanSpec,
    batches: &BatchSpec,
    epoch: u64,
    rows: &[u64],
) -> Vec<Vec<(u64, bool)>> {
    let batch_rows = (batches.batch_rows * batches.world_size) as usize;
    let (n_lanes, of_lane) = (batches.lanes as usize, batch_rows / batches.lanes as usize);
    let mut sequence = in_order_of_chunks(spec, epoch, rows);
    if batches.remainder == Remainder::Drop {
        sequence.truncate(sequence.len() / batch_rows * batch_rows);
    }
    // The lane of each position.
    let lane_of = |position: usize| position % batch_rows / of_lane;
    let fit = |rows: u64| match (n_lanes, of_lane as u64) {
        (1, _) => rows,
        (_, of_lane) => (rows / of_lane * of_lane).max(of_lane),
    };
    let mut rest = &sequence[..];
    let mut lanes: Vec<std::vec::IntoIter<u64>> = Vec::new();
    for lane in 0..n_lanes {
        let n_rows = (0..sequence.len()).filter(|position| lane_of(*position) == lane).count();
        let (piece, behind) = rest.split_at(n_rows);
        rest = behind;
        let mut piece = piece.to_vec();
        shuffle_windows(spec, epoch, lane as u64, &mut piece, window_rows(spec, fit));
        lanes.push(piece.into_iter());
    }
    let mut order: Vec<(u64, bool)> = (0..sequence.len())
        .map(|position| (lanes[lane_of(position)].next().unwrap(), false))
        .collect();
    if batches.remainder == Remainder::Pad && !sequence.is_empty() {
        let n_padding = order.len().next_multiple_of(batch_rows) - order.len();
        order.extend(sequence.iter().cycle().take(n_padding).map(|row| (*row, true)));
    }
    order.chunks(batch_rows).map(<[_]>::to_vec).collect()
}

#[derive(Debug, Clone)]
struct Case {
    spec: PlanSpec,
    batches: BatchSpec,
    epoch: u64,
    /// The sampled rows, if the epoch is a sample.
    sampled: Option<Arc<[u32]>>,
}

impl Case {
    fn rows(&self) -> Vec<u64> {
        match &self.sampled {
            Some(rows) => rows.iter().map(|row| u64::from(*row)).collect(),
            None => (0..self.spec.n_rows).collect(),
        }
    }

    fn plan(&self, rank: u64, world_size: u64) -> crate::EpochPlan {
        let global_rows = self.batches.batch_rows * self.batches.world_size;
        let batches =
            BatchSpec { batch_rows: global_rows / world_size, rank, world_size, ..self.batches };
        match &self.sampled {
            Some(rows) => self.spec.sampled_epoch(self.epoch, &batches, Arc::clone(rows)),
            None => self.spec.dealt_epoch(self.epoch, &batches),
        }
        .unwrap()
    }

    fn global_batches(&self) -> Vec<Vec<(u64, bool)>> {
        global_batches(&self.spec, &self.batches, self.epoch, &self.rows())
    }
}

prop_compose! {
    fn case()(
        (n_rows, chunk_rows, chunks_per_block) in (0_u64..260, 1_u64..12, 1_u64..10),
        // Rows per lane and number of lanes; the world size divides their product.
        (of_lane, lanes, world_size) in (1_u64..7, 1_u64..7, 1_u64..9),
        (remainder, is_in_order) in (0_usize..3, prop::bool::weighted(0.2)),
        (seed, epoch, ramp_blocks) in (any::<u64>(), 0_u64..4, prop_oneof![Just(0), 1_u32..7]),
        sampled in prop::option::weighted(0.3, prop::collection::vec(any::<u32>(), 0..200)),
    ) -> Case {
        let lanes = if is_in_order { 1 } else { lanes };
        let global_rows = (of_lane * lanes).next_multiple_of(lanes * world_size);
        let world_size = if remainder == 0 { 1 } else { world_size };
        let sampled = sampled.filter(|_| n_rows > 0).map(|rows| {
            let mut rows: Vec<u32> = rows.into_iter().map(|row| row % n_rows as u32).collect();
            rows.sort_unstable();
            rows.into()
        });
        Case {
            spec: PlanSpec {
                n_rows,
                chunk_rows,
                chunks_per_block,
                order: if is_in_order { Order::InOrder } else { Order::Shuffled },
                seed,
                ramp_blocks,
            },
            batches: BatchSpec {
                batch_rows: global_rows / world_size,
                rank: 0,
                world_size,
                lanes,
                remainder: [Remainder::Short, Remainder::Drop, Remainder::Pad][remainder],
            },
            epoch,
            sampled,
        }
    }
}

fn delivered(blocks: impl Iterator<Item = BlockPlan>) -> Vec<u64> {
    blocks.flat_map(|block| block.delivered_rows()).collect()
}

/// World sizes that divide the rows of a global batch.
fn world_sizes(batches: &BatchSpec) -> Vec<u64> {
    let global_rows = batches.batch_rows * batches.world_size;
    match batches.remainder {
        Remainder::Short => vec![1],
        _ => (1..=global_rows).filter(|size| global_rows.is_multiple_of(*size)).collect(),
    }
}

proptest! {
    /// The order does not depend on the world size, ranks are disjoint and equally long, and only
    /// padding comes twice.
    #[test]
    fn every_rank_delivers_its_part_of_the_global_batches(case in case()) {
        let expect = case.global_batches();
        for world_size in world_sizes(&case.batches) {
            for rank in 0..world_size {
                let of_rank = |batch: &Vec<(u64, bool)>| {
                    let of_each = if world_size == 1 { batch.len() } else { batch.len() / world_size as usize };
                    batch[rank as usize * of_each..][..of_each].to_vec()
                };
                let expect: Vec<Vec<(u64, bool)>> = expect.iter().map(of_rank).collect();
                let plan = case.plan(rank, world_size);
                prop_assert_eq!(plan.n_batches(), expect.len() as u64);
                prop_assert_eq!(plan.n_rows(), expect.iter().map(Vec::len).sum::<usize>() as u64);
                let last = expect.last();
                let n_padding = last.map_or(0, |last| last.iter().filter(|(_, is_padding)| *is_padding).count());
                prop_assert_eq!(plan.n_padding(), n_padding as u64);
                prop_assert!(last.is_none_or(|last| last[last.len() - n_padding..].iter().all(|(_, is_padding)| *is_padding)));
                let rows: Vec<u64> = expect.into_iter().flatten().map(|(row, _)| row).collect();
                prop_assert_eq!(delivered(plan), rows);
            }
        }
    }

    #[test]
    fn a_plan_goes_on_from_every_batch(case in case(), world in any::<prop::sample::Index>(), rank in any::<prop::sample::Index>()) {
        let world_sizes = world_sizes(&case.batches);
        let world_size = world_sizes[world.index(world_sizes.len())];
        let plan = case.plan(rank.index(world_size as usize) as u64, world_size);
        let whole = delivered(plan.clone());
        for first_batch in 0..=plan.n_batches() {
            let rest = plan.clone().starting_at(first_batch);
            prop_assert_eq!(rest.first_batch(), first_batch);
            let n_rows = rest.n_rows() as usize;
            prop_assert_eq!(rest.len(), rest.clone().count());
            prop_assert_eq!(delivered(rest), &whole[whole.len() - n_rows..]);
        }
        prop_assert_eq!(delivered(plan.clone().starting_at(plan.n_batches() + 1)), Vec::<u64>::new());
    }

    #[test]
    fn only_rows_that_are_delivered_are_read(case in case(), rank in any::<prop::sample::Index>(), first in 0_u64..4) {
        let world_size = case.batches.world_size;
        let plan = case.plan(rank.index(world_size as usize) as u64, world_size);
        let most = case.spec.rank_block_rows(&case.batches, case.rows().len() as u64).unwrap();
        for block in plan.starting_at(first) {
            prop_assert!(block.chunks.iter().all(|chunk| !chunk.is_empty()));
            prop_assert!(block.chunks.windows(2).all(|pair| pair[0].end <= pair[1].start));
            let mut read: Vec<u32> = block.order.clone();
            read.sort_unstable();
            read.dedup();
            prop_assert_eq!(read, (0..block.n_rows_read() as u32).collect::<Vec<_>>());
            prop_assert!(block.n_rows() as u64 <= most);
        }
    }

    /// Checks the naive definition itself against the promises about all rows.
    #[test]
    fn every_row_comes_once(case in case()) {
        let batches = case.global_batches();
        let mut rows: Vec<u64> =
            batches.iter().flatten().filter(|(_, is_padding)| !is_padding).map(|(row, _)| *row).collect();
        let n_rows = case.rows().len();
        let global_rows = (case.batches.batch_rows * case.batches.world_size) as usize;
        prop_assert_eq!(rows.len(), if case.batches.remainder == Remainder::Drop { n_rows / global_rows * global_rows } else { n_rows });
        if case.sampled.is_none() {
            rows.sort_unstable();
            rows.dedup();
            prop_assert_eq!(rows.len(), if case.batches.remainder == Remainder::Drop { n_rows / global_rows * global_rows } else { n_rows });
        }
        if case.batches.remainder != Remainder::Drop {
            rows.sort_unstable();
            prop_assert_eq!(rows, case.rows());
        }
    }
}
