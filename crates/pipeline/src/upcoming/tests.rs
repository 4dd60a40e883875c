//! What is upcoming against the blocks of the plans themselves.

use proptest::prelude::*;
use shuffle::{Order, Remainder};

use super::*;
use crate::read::Current;
use crate::world::World;

/// The rows of each block that a rank reads from a state on, with what is upcoming.
fn blocks(plans: &Plans, from: &LoaderState) -> Vec<(Vec<u64>, Upcoming)> {
    let (start, plan) = plans.start(from.clone()).unwrap();
    let first_rows = (plans.spec.order == Order::InOrder).then_some(plans.spec.batch_rows);
    let mut current = Current::new(plans, &start, plan, first_rows);
    let next = std::iter::from_fn(|| current.next_block());
    next.map(|(block, _, upcoming)| (block.chunks.into_iter().flatten().collect(), upcoming))
        .collect()
}

fn settings() -> impl Strategy<Value = (PipelineSpec, u64)> {
    let sizes = (1_u64..9, 1_u64..6, 0_u32..3, 1_u64..12);
    let order = prop_oneof![Just(Order::Shuffled), Just(Order::Shuffled), Just(Order::InOrder)];
    let ranks = (1_u64..4).prop_flat_map(|size| (0..size, Just(size)));
    (sizes, order, ranks, any::<u64>(), 1_u64..200).prop_map(
        |(
            (chunk_rows, chunks_per_block, ramp_blocks, batch_rows),
            order,
            (rank, size),
            seed,
            n,
        )| {
            let remainder = if size == 1 { Remainder::Short } else { Remainder::Pad };
            let spec = PipelineSpec {
                chunk_rows,
                chunks_per_block,
                ramp_blocks,
                batch_rows,
                order,
                seed,
                world: World { rank, size },
                remainder,
                ..PipelineSpec::default()
            };
            (spec, n)
        },
    )
}

proptest! {
    #[test]
    fn the_next_read_is_that_of_the_plans(
        (spec, n_rows) in settings(),
        (epoch, at) in (0_u64..3, 0_u64..8),
        ranges in prop::collection::vec((0_u64..200, 1_u64..30), 1..6),
    ) {
        let lanes = spec.default_lanes();
        let batches = spec.batches(lanes);
        let state = LoaderState::new((n_rows, String::new()), &spec, &batches).unwrap();
        let at = at.min(batches.n_batches(n_rows).unwrap());
        let plans = Plans { spec, n_rows };
        let present = blocks(&plans, &state.at(epoch, lanes, at));
        let next = blocks(&plans, &state.at(epoch + 1, lanes, 0));
        for (idx, (block, upcoming)) in present.iter().enumerate() {
            let read: Vec<u64> =
                present[idx..].iter().chain(&next).flat_map(|(rows, _)| rows).copied().collect();
            for &(start, len) in &ranges {
                let rows = start..start + len;
                let found = (block.len()..read.len()).find(|at| rows.contains(&read[*at]));
                let expected = found.map_or(u64::MAX, |at| at as u64);
                prop_assert_eq!(upcoming.rows_until(rows), expected, "{:?}", read);
            }
        }
    }
}

#[test]
fn rows_of_a_selection_are_asked_by_the_numbers_of_the_source() {
    let spec = PipelineSpec { chunk_rows: 2, chunks_per_block: 2, ..PipelineSpec::default() };
    let spec = PipelineSpec { order: Order::InOrder, batch_rows: 4, ..spec };
    let state = LoaderState::new((10, String::new()), &spec, &spec.batches(1)).unwrap();
    let plans = Plans { spec, n_rows: 10 };
    let (_, upcoming) = blocks(&plans, &state).remove(0);
    let odd = Arc::new(RowSet::from_ascending((0..10).map(|row| 2 * row + 1)).unwrap());
    let selected = upcoming.selected(&odd);
    assert_eq!(upcoming.rows_until(6..7), 6);
    assert_eq!(selected.rows_until(13..14), 6);
    assert_eq!(selected.rows_until(12..13), u64::MAX);
    // Those of the block itself come in the next epoch.
    assert_eq!((upcoming.rows_until(1..2), selected.rows_until(2..4)), (11, 11));
    assert_eq!(Upcoming::default().rows_until(0..10), u64::MAX);
}

#[test]
fn a_plan_of_too_many_chunks_has_no_table() {
    let spec = PipelineSpec { chunk_rows: 1, ..PipelineSpec::default() };
    assert_eq!(table_bytes(&spec, 100), 2 * 100 * PIECE_BYTES);
    assert_eq!(table_bytes(&spec, MOST_PIECES + 1), 0);
    let state = LoaderState::new((MOST_PIECES + 1, String::new()), &spec, &spec.batches(1));
    let plans = Plans { spec, n_rows: MOST_PIECES + 1 };
    let (start, plan) = plans.start(state.unwrap()).unwrap();
    let reads = EpochReads::new(&plans, &start.from, &plan);
    assert!(reads.reads().is_none());
}
