//! Numbers for labels, which may be any codes.

use crate::stop::{Stopped, pieces, sort};

/// Labels below this have their numbers in a table.
const TABLE_LEN: u32 = 1 << 20;

/// The distinct labels, numbered in ascending order.
pub(crate) struct LabelNumbers {
    distinct: Vec<u32>,
    /// The number of each label; empty if some label is too large for a table.
    table: Vec<u32>,
}

impl LabelNumbers {
    pub(crate) fn assign(labels: &[u32]) -> Result<Self, Stopped> {
        let mut most = 0;
        for piece in pieces(labels) {
            most = piece?.iter().copied().fold(most, u32::max);
        }
        if most >= TABLE_LEN {
            let mut distinct = labels.to_vec();
            sort(&mut distinct)?;
            distinct.dedup();
            return Ok(Self { distinct, table: Vec::new() });
        }
        let mut is_there = vec![false; most as usize + 1];
        for piece in pieces(labels) {
            piece?.iter().for_each(|label| is_there[*label as usize] = true);
        }
        let distinct: Vec<u32> = (0..=most).filter(|label| is_there[*label as usize]).collect();
        // Labels that are not there keep 0, which nothing reads.
        let mut table = vec![0; most as usize + 1];
        for (number, label) in (0..).zip(&distinct) {
            table[*label as usize] = number;
        }
        Ok(Self { distinct, table })
    }

    pub(crate) fn n_labels(&self) -> usize {
        self.distinct.len()
    }

    /// The label of each number.
    pub(crate) fn labels(self) -> Vec<u32> {
        self.distinct
    }

    /// The number of one of the labels.
    pub(crate) fn of_label(&self, label: u32) -> usize {
        match self.table.get(label as usize) {
            Some(number) => *number as usize,
            None => self.distinct.partition_point(|other| *other < label),
        }
    }
}
