//! Splits that keep groups whole.

use std::collections::BTreeMap;

use super::parts::{Parts, WHOLE};
use super::{Error, empty_splits, finished};
use crate::RowSet;
use crate::random::{SplitDecision, permute, split_generator};
use crate::stop::{Stopped, pieces};

/// Largest number of passes over all groups to improve their places. A few are enough, because each
/// pass takes the best move of every group.
const MAX_ROUNDS: usize = 32;

/// Splits the rows `0..groups.len()` by `fractions`, whole groups at a time.
///
/// `groups` has a code for each row, for instance of its donor; any codes will do. The groups, in
/// random order, go one by one to the split that lacks most rows of its share; then a group is
/// moved whenever that brings two splits nearer to their shares together. No split is further from
/// its share than `(1 - 1/k)` of the largest group, with `k` splits whose fraction is above 0: for
/// train and test that is half of the largest group. One exception: a split whose share is too
/// small to get a group gets the smallest group that another split can spare.
///
/// # Errors
/// A fraction is outside 0 to 1; the fractions do not sum to 1; there are rows, but fewer groups
/// than splits with a fraction above 0; the rows do not fit into memory.
///
/// ```
/// use shuffle::split::by_group;
///
/// let donors = [4, 4, 4, 9, 9, 2, 2, 2, 2, 7, 7, 7];
/// let splits = by_group(&donors, &[0.75, 0.25], 42)?;
/// assert_eq!([splits[0].len(), splits[1].len()], [9, 3]);
/// let test_donor = donors[splits[1].iter().next().expect("three rows") as usize];
/// assert!(splits[0].iter().all(|row| donors[row as usize] != test_donor));
/// # Ok::<(), shuffle::split::Error>(())
/// ```
pub fn by_group(groups: &[u32], fractions: &[f64], seed: u64) -> Result<Vec<RowSet>, Error> {
    split(groups, None, fractions, seed)
}

/// Splits like [`by_group`], and also gives each split its share of the rows of each label.
///
/// Minimises the sum, over splits, of the distance from the split's share of all rows and from its
/// share of each label's rows. There is no bound: a label of a single group is in a single split.
///
/// # Errors
/// The same as [`by_group`]; `groups` and `labels` differ in length.
///
/// ```
/// use shuffle::split::by_group_stratified;
///
/// // Eight donors of ten cells; the odd ones have cells of type 1, the others of type 0.
/// let donors: Vec<u32> = (0..80).map(|row| row / 10).collect();
/// let types: Vec<u32> = donors.iter().map(|donor| donor % 2).collect();
/// let splits = by_group_stratified(&donors, &types, &[0.75, 0.25], 42)?;
/// let of_type_1 = splits[1].iter().filter(|row| types[*row as usize] == 1);
/// assert_eq!((splits[1].len(), of_type_1.count()), (20, 10));
/// # Ok::<(), shuffle::split::Error>(())
/// ```
pub fn by_group_stratified(
    groups: &[u32],
    labels: &[u32],
    fractions: &[f64],
    seed: u64,
) -> Result<Vec<RowSet>, Error> {
    if groups.len() != labels.len() {
        return Err(Error::LabelsLength { n_groups: groups.len(), n_labels: labels.len() });
    }
    split(groups, Some(labels), fractions, seed)
}

fn split(
    groups: &[u32],
    labels: Option<&[u32]>,
    fractions: &[f64],
    seed: u64,
) -> Result<Vec<RowSet>, Error> {
    let parts = Parts::new(fractions)?;
    let counted = Groups::count(groups, labels)?;
    let n_filled = parts.as_slice().iter().filter(|part| **part > 0).count();
    if !groups.is_empty() && counted.counts.len() < n_filled {
        return Err(Error::FewerGroupsThanSplits {
            n_groups: counted.counts.len(),
            n_splits: n_filled,
        });
    }
    let mut order: Vec<u32> = (0..=u32::MAX).take(counted.counts.len()).collect();
    permute(&mut split_generator(seed, SplitDecision::GroupOrder), &mut order);

    let mut assignment = Assignment::new(&parts, &counted);
    assignment.place(&order);
    assignment.improve(&order);
    assignment.fill_empty(&parts, &order);

    let mut splits = empty_splits(groups.len() as u64, fractions.len())?;
    let mut row = 0;
    for piece in pieces(groups) {
        for run in piece?.chunk_by(|a, b| a == b) {
            let split_idx = assignment.split_of[counted.idx_of(run[0])];
            splits[split_idx].add(row..row + run.len() as u64);
            row += run.len() as u64;
        }
    }
    Ok(finished(splits))
}

/// A kind of rows: kind 0 is all rows, each label is one more kind.
type Kind = usize;

/// Rows of each group, by kind.
#[derive(Debug)]
struct Groups {
    /// Codes of the groups, ascending.
    codes: Vec<u32>,
    /// For each group, the rows of each kind that it has; the first entry is all its rows.
    counts: Vec<Vec<(Kind, u64)>>,
    n_kinds: usize,
}

impl Groups {
    fn count(groups: &[u32], labels: Option<&[u32]>) -> Result<Self, Stopped> {
        let mut kinds: BTreeMap<u32, Kind> = BTreeMap::new();
        let mut by_code: BTreeMap<u32, BTreeMap<Kind, u64>> = BTreeMap::new();
        let mut start = 0;
        for piece in pieces(groups) {
            for run in piece?.chunk_by(|a, b| a == b) {
                let counts = by_code.entry(run[0]).or_default();
                *counts.entry(0).or_default() += run.len() as u64;
                let of_run = labels
                    .iter()
                    .flat_map(|of| of[start..start + run.len()].chunk_by(|a, b| a == b));
                for label_run in of_run {
                    let next = kinds.len() + 1;
                    let kind = *kinds.entry(label_run[0]).or_insert(next);
                    *counts.entry(kind).or_default() += label_run.len() as u64;
                }
                start += run.len();
            }
        }
        Ok(Self {
            codes: by_code.keys().copied().collect(),
            counts: by_code.into_values().map(|counts| counts.into_iter().collect()).collect(),
            n_kinds: kinds.len() + 1,
        })
    }

    fn idx_of(&self, code: u32) -> usize {
        self.codes.partition_point(|other| *other < code)
    }

    fn n_rows(&self, group_idx: u32) -> u64 {
        self.counts[group_idx as usize].first().map_or(0, |(_, n_rows)| *n_rows)
    }
}

/// The split of each group, and the resulting distance of the splits from their shares.
#[derive(Debug)]
struct Assignment<'a> {
    groups: &'a Groups,
    /// Split of each group; 0 until it is placed.
    split_of: Vec<usize>,
    /// For each split and kind, its rows minus its share, in parts of a row.
    excess: Vec<Vec<i128>>,
}

impl<'a> Assignment<'a> {
    fn new(parts: &Parts, groups: &'a Groups) -> Self {
        let mut totals = vec![0_u64; groups.n_kinds];
        for (kind, n_rows) in groups.counts.iter().flatten() {
            totals[*kind] += n_rows;
        }
        let shares = |part: &u64| {
            totals.iter().map(|total| -i128::from(*part) * i128::from(*total)).collect()
        };
        Self {
            groups,
            split_of: vec![0; groups.counts.len()],
            excess: parts.as_slice().iter().map(shares).collect(),
        }
    }

    /// Places each group in the split that it improves most; of equal ones, in the split that lacks
    /// most rows.
    fn place(&mut self, order: &[u32]) {
        for group_idx in order {
            let best = (0..self.excess.len()).min_by_key(|split_idx| {
                (self.change(*group_idx, *split_idx, 1), self.excess[*split_idx][0])
            });
            if let Some(split_idx) = best {
                self.shift(*group_idx, split_idx, 1);
                self.split_of[*group_idx as usize] = split_idx;
            }
        }
    }

    /// Moves groups as long as that brings the splits nearer to their shares.
    fn improve(&mut self, order: &[u32]) {
        for _ in 0..MAX_ROUNDS {
            let mut is_moved = false;
            for group_idx in order {
                let from = self.split_of[*group_idx as usize];
                let leaving = self.change(*group_idx, from, -1);
                let best = (0..self.excess.len())
                    .filter(|to| *to != from)
                    .map(|to| (leaving + self.change(*group_idx, to, 1), to))
                    .min();
                if let Some((change, to)) = best
                    && change < 0
                {
                    self.relocate(*group_idx, to);
                    is_moved = true;
                }
            }
            if !is_moved {
                break;
            }
        }
    }

    /// Gives each split that should have rows but has no group the smallest group of a split with
    /// several.
    fn fill_empty(&mut self, parts: &Parts, order: &[u32]) {
        let mut n_groups = vec![0_usize; self.excess.len()];
        self.split_of.iter().for_each(|split_idx| n_groups[*split_idx] += 1);
        for split_idx in 0..n_groups.len() {
            if n_groups[split_idx] > 0 || parts.as_slice()[split_idx] == 0 {
                continue;
            }
            let spare = |group_idx: &&u32| n_groups[self.split_of[**group_idx as usize]] > 1;
            let smallest =
                order.iter().filter(spare).min_by_key(|group_idx| self.groups.n_rows(**group_idx));
            if let Some(group_idx) = smallest {
                n_groups[self.split_of[*group_idx as usize]] -= 1;
                n_groups[split_idx] += 1;
                self.relocate(*group_idx, split_idx);
            }
        }
    }

    /// The change of the distance from the shares if a split gains a group (`sign` 1) or loses it
    /// (-1).
    fn change(&self, group_idx: u32, split_idx: usize, sign: i128) -> i128 {
        let excess = &self.excess[split_idx];
        let counts = &self.groups.counts[group_idx as usize];
        counts
            .iter()
            .map(|(kind, n_rows)| {
                let before = excess[*kind];
                (before + sign * in_parts(*n_rows)).abs() - before.abs()
            })
            .sum()
    }

    fn shift(&mut self, group_idx: u32, split_idx: usize, sign: i128) {
        for (kind, n_rows) in &self.groups.counts[group_idx as usize] {
            self.excess[split_idx][*kind] += sign * in_parts(*n_rows);
        }
    }

    fn relocate(&mut self, group_idx: u32, to: usize) {
        self.shift(group_idx, self.split_of[group_idx as usize], -1);
        self.shift(group_idx, to, 1);
        self.split_of[group_idx as usize] = to;
    }
}

fn in_parts(n_rows: u64) -> i128 {
    i128::from(n_rows) * i128::from(WHOLE)
}
