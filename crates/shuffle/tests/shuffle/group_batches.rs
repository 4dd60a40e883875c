//! Compares batches of one group each with the definition.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::prelude::*;
use shuffle::sample::{Controls, Error, GroupBatches, Rest, Sampling};
use shuffle::{BatchSpec, Order, PlanError, PlanSpec, Remainder};

use crate::samples::{check_frequencies, outcomes};

/// The labels of rows, of which some are controls.
#[derive(Debug, Clone)]
struct Rows {
    groups: Vec<u32>,
    contexts: Vec<u32>,
    is_control: Vec<bool>,
}

impl Rows {
    fn spec(&self, n_controls: u64, n_own: u64, rest: Rest) -> GroupBatches<'_> {
        let controls =
            Controls { is_control: &self.is_control, contexts: &self.contexts, n_rows: n_controls };
        GroupBatches {
            groups: &self.groups,
            controls: (n_controls > 0).then_some(controls),
            batch_rows: n_controls + n_own,
            rest,
            chunk_rows: 3,
            window_rows: 7,
        }
    }

    /// The rows of each group, and of each of its contexts if there are controls, without these.
    fn of_groups(&self, has_controls: bool) -> BTreeMap<(u32, u32), BTreeSet<u32>> {
        let mut found: BTreeMap<_, BTreeSet<u32>> = BTreeMap::new();
        for row in 0..self.groups.len() {
            if !has_controls {
                found.entry((self.groups[row], 0)).or_default().insert(row as u32);
            } else if !self.is_control[row] {
                let key = (self.groups[row], self.contexts[row]);
                found.entry(key).or_default().insert(row as u32);
            }
        }
        found
    }
}

fn rows() -> impl Strategy<Value = Rows> {
    let row = (0_u32..4, 0_u32..3, any::<bool>());
    prop::collection::vec(row, 0..80).prop_map(|labels| {
        let mut rows = Rows { groups: Vec::new(), contexts: Vec::new(), is_control: Vec::new() };
        // Each context has a control.
        let controls = (0..3).map(|context| (9, context, true));
        for (group, context, is_control) in labels.into_iter().chain(controls) {
            rows.groups.push(group);
            rows.contexts.push(context);
            rows.is_control.push(is_control);
        }
        rows
    })
}

proptest! {
    #[test]
    fn every_batch_is_of_one_group_with_controls_of_its_context(
        rows in rows(), n_own in 1_u64..6, n_controls in 0_u64..4, is_filled: bool, seed in any::<u64>(),
    ) {
        let rest = if is_filled { Rest::Fill } else { Rest::Drop };
        let sampling = Sampling::group_batches(&rows.spec(n_controls, n_own, rest)).unwrap();
        let batch_rows = (n_own + n_controls) as usize;
        prop_assert!(sampling.is_listed() && sampling.batch_rows() == Some(batch_rows as u64));
        let found = sampling.rows(seed, 1).unwrap();
        prop_assert_eq!(&found, &sampling.rows(seed, 1).unwrap());
        prop_assert_eq!(found.len() as u64, sampling.n_samples());

        let groups = rows.of_groups(n_controls > 0);
        let mut n_times: BTreeMap<u32, usize> = BTreeMap::new();
        let mut n_batches: BTreeMap<(u32, u32), usize> = BTreeMap::new();
        for batch in found.chunks(batch_rows) {
            let is_own = |row: &&u32| n_controls == 0 || !rows.is_control[**row as usize];
            let own: Vec<u32> = batch.iter().filter(is_own).copied().collect();
            prop_assert_eq!(own.len() as u64, n_own);
            let (key, of_group) =
                groups.iter().find(|(_, of)| of.contains(&own[0])).unwrap();
            prop_assert!(own.iter().all(|row| of_group.contains(row)), "{batch:?}");
            let distinct: BTreeSet<u32> = own.iter().copied().collect();
            prop_assert_eq!(distinct.len(), own.len().min(of_group.len()));
            for row in &own {
                *n_times.entry(*row).or_default() += 1;
            }
            *n_batches.entry(*key).or_default() += 1;
            let controls: Vec<u32> = batch.iter().filter(|row| !is_own(row)).copied().collect();
            let pool = (0..rows.groups.len())
                .filter(|row| rows.is_control[*row] && rows.contexts[*row] == key.1);
            let pool: BTreeSet<u32> = pool.map(|row| row as u32).collect();
            prop_assert!(controls.iter().all(|row| pool.contains(row)), "{batch:?}");
            let distinct: BTreeSet<u32> = controls.iter().copied().collect();
            prop_assert_eq!(distinct.len(), controls.len().min(pool.len()));
        }
        for (key, of_group) in &groups {
            let n = of_group.len() as u64;
            let expected = if is_filled { n.div_ceil(n_own) } else { n / n_own };
            prop_assert_eq!(n_batches.get(key).copied().unwrap_or(0) as u64, expected);
            let n_once = of_group.iter().filter(|row| n_times.contains_key(row)).count() as u64;
            prop_assert_eq!(n_once, if is_filled { n } else { expected * n_own });
            if !is_filled {
                prop_assert!(of_group.iter().all(|row| n_times.get(row).is_none_or(|n| *n == 1)));
            }
        }
    }

    /// Ranks have batches of one group each, and together the sample.
    #[test]
    fn the_batches_of_ranks_are_of_one_group(
        rows_of in rows(), n_own in 1_u64..4, world_size in 1_u64..4, seed in any::<u64>(),
    ) {
        let sampling = Sampling::group_batches(&rows_of.spec(0, n_own, Rest::Fill)).unwrap();
        let n_rows = rows_of.groups.len() as u64;
        let plan = PlanSpec {
            n_rows, chunk_rows: 1, chunks_per_block: 5, order: Order::Listed, seed, ramp_blocks: 0,
        };
        let sample = sampling.rows(seed, 0).unwrap();
        let mut n_delivered = 0;
        for rank in 0..world_size {
            let batches = BatchSpec {
                batch_rows: n_own, rank, world_size, lanes: 1, remainder: Remainder::Drop,
            };
            plan.check_sampling(&batches, Some(&sampling)).unwrap();
            let blocks = plan.sampled_epoch(0, &batches, Arc::clone(&sample)).unwrap();
            let rows: Vec<u64> = blocks.flat_map(|block| block.delivered_rows()).collect();
            for batch in rows.chunks(n_own as usize) {
                let batch_groups: BTreeSet<u32> =
                    batch.iter().map(|row| rows_of.groups[*row as usize]).collect();
                prop_assert_eq!(batch_groups.len(), 1);
            }
            n_delivered += rows.len() as u64;
        }
        let n_whole = sample.len() as u64 / (n_own * world_size) * n_own * world_size;
        prop_assert_eq!(n_delivered, n_whole);
    }
}

#[test]
fn batches_of_groups_are_those_of_a_rank() {
    let spec = GroupBatches {
        groups: &[0; 12],
        controls: None,
        batch_rows: 4,
        rest: Rest::Drop,
        chunk_rows: 1,
        window_rows: 12,
    };
    let sampling = Sampling::group_batches(&spec).unwrap();
    let plan = PlanSpec {
        n_rows: 12,
        chunk_rows: 1,
        chunks_per_block: 5,
        order: Order::Listed,
        seed: 0,
        ramp_blocks: 0,
    };
    let check = |batch_rows, world_size| {
        let remainder = Remainder::Drop;
        let batches = BatchSpec { batch_rows, rank: 0, world_size, lanes: 1, remainder };
        plan.check_sampling(&batches, Some(&sampling))
    };
    assert_eq!((check(4, 1), check(4, 3)), (Ok(()), Ok(())));
    // Two groups, or half of one, would be in a batch.
    for (batch_rows, world_size) in [(8, 1), (2, 2), (6, 2)] {
        let refused = Err(PlanError::GroupBatchSize { sampled_rows: 4, batch_rows });
        assert_eq!(check(batch_rows, world_size), refused);
    }
}

#[test]
fn all_batches_of_a_group_are_equally_likely_in_one_window() {
    let groups = [0, 0, 0, 0, 1, 1];
    let spec = GroupBatches {
        groups: &groups,
        controls: None,
        batch_rows: 2,
        rest: Rest::Drop,
        chunk_rows: 2,
        window_rows: 6,
    };
    let sampling = Sampling::group_batches(&spec).unwrap();
    // The group of each batch in turn, and the row with which row 0 is in a batch.
    let orders = outcomes(3_000, |epoch| {
        let rows = sampling.rows(5, epoch).unwrap();
        rows.chunks(2).map(|batch| groups[batch[0] as usize]).collect::<Vec<u32>>()
    });
    let third = 1.0 / 3.0;
    let expected = [(vec![0, 0, 1], third), (vec![0, 1, 0], third), (vec![1, 0, 0], third)];
    check_frequencies(&orders, &expected.into_iter().collect());
    let partners = outcomes(3_000, |epoch| {
        let rows = sampling.rows(5, epoch).unwrap();
        let batch = rows.chunks(2).find(|batch| batch.contains(&0)).unwrap();
        batch[0].max(batch[1])
    });
    check_frequencies(&partners, &[(1, third), (2, third), (3, third)].into_iter().collect());
}

#[test]
fn what_cannot_be_composed_says_why() {
    let rows = Rows {
        groups: vec![1, 1, 2, 9],
        contexts: vec![0, 0, 5, 0],
        is_control: vec![false, false, false, true],
    };
    let refused = |spec: &GroupBatches<'_>| Sampling::group_batches(spec).unwrap_err();
    let spec = rows.spec(1, 1, Rest::Drop);
    assert_eq!(refused(&spec), Error::NoControls { group: 2, context: 5 });
    let only_controls = GroupBatches { batch_rows: 1, ..spec };
    assert_eq!(refused(&only_controls), Error::OnlyControls { batch_rows: 1, n_controls: 1 });
    let none = GroupBatches { window_rows: 0, ..spec };
    assert_eq!(refused(&none), Error::Zero { size: "the window size" });
    let few = GroupBatches { groups: &rows.groups[1..], ..spec };
    let what = "a mark of controls";
    assert_eq!(
        refused(&few),
        Error::UnequalLists { first: "a group", what, n_rows: 3, n_found: 4 }
    );
}
