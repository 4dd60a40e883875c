//! Kinds of reads for the comparison of the two readers of X, and the rows of each read.

use std::fmt;
use std::str::FromStr;

use anyhow::Context as _;
use bench_run::{BlockSpec, parse_blocks};
use serde::{Deserialize, Serialize};
use shuffle::{Order, PlanSpec};
use soma_io::RowRanges;

/// A kind of read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ReadKind {
    /// Chunks at random places, all in one read.
    Random(BlockSpec),
    /// Every row in order, [`WHOLE_READ_ROWS`] per read.
    Whole,
}

/// Rows of a read of [`ReadKind::Whole`].
const WHOLE_READ_ROWS: u64 = 65_536;

/// Least rows of a repetition: it has several reads if one has fewer rows.
const REPETITION_ROWS: u64 = 4_096;

impl ReadKind {
    /// Kinds that are compared by default.
    pub(crate) const DEFAULT: [&str; 5] = ["16x64", "256x64", "1024x64", "1024x1", "whole"];

    /// Returns the reads of one repetition, of an array of `n_rows` rows. They are disjoint, and
    /// random ones differ in each repetition.
    pub(crate) fn reads(
        self,
        n_rows: u64,
        seed: u64,
        repetition: u64,
    ) -> anyhow::Result<Vec<RowRanges>> {
        let (spec, n_reads) = match self {
            Self::Random(BlockSpec { chunk_rows, chunks_per_block }) => {
                let sizes = PlanSpec { chunk_rows, chunks_per_block, ..PlanSpec::default() };
                let spec = PlanSpec { n_rows, seed, ..sizes };
                let single_rows = chunk_rows == 1;
                let n_reads = REPETITION_ROWS / (chunk_rows * chunks_per_block);
                (spec, if single_rows { 1 } else { n_reads.max(1) })
            }
            Self::Whole => {
                let (chunk_rows, order) = (WHOLE_READ_ROWS, Order::InOrder);
                let spec = PlanSpec {
                    n_rows,
                    chunk_rows,
                    chunks_per_block: 1,
                    order,
                    ..PlanSpec::default()
                };
                (spec, u64::MAX)
            }
        };
        let plan = spec.epoch(repetition)?;
        (0..plan.n_blocks().min(n_reads))
            .map(|idx| {
                let block = plan.block(idx).context("a plan has all its blocks")?;
                Ok(RowRanges::new(block.chunks)?)
            })
            .collect()
    }
}

impl fmt::Display for ReadKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Random(spec) => write!(f, "{spec}"),
            Self::Whole => f.write_str("whole"),
        }
    }
}

impl FromStr for ReadKind {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        if text == "whole" {
            return Ok(Self::Whole);
        }
        match parse_blocks(text)?[..] {
            [one] => Ok(Self::Random(one)),
            _ => anyhow::bail!("{text:?} stands for several reads: name them one by one"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(text: &str) -> ReadKind {
        text.parse().unwrap()
    }

    #[test]
    fn kinds_are_understood_as_they_are_written() {
        for text in ReadKind::DEFAULT {
            assert_eq!(kind(text).to_string(), text);
        }
        assert_eq!(kind("4096 / 64"), kind("64x64"));
        for bad in ["", "0x4", "half", "4096 / [1,64]"] {
            bad.parse::<ReadKind>().unwrap_err();
        }
    }

    #[test]
    fn random_reads_differ_by_repetition_and_do_not_overlap() {
        let reads = |repetition| kind("16x64").reads(200_000, 7, repetition).unwrap();
        assert_eq!(reads(0).len(), 4);
        assert_eq!(reads(1), reads(1));
        assert_ne!(reads(0), reads(1));
        let mut rows: Vec<u64> = reads(0).iter().flat_map(RowRanges::iter).collect();
        rows.sort_unstable();
        rows.dedup();
        assert_eq!(rows.len(), 4_096);
        assert_eq!(kind("1024x1").reads(200_000, 7, 0).unwrap().len(), 1);
        // The array has fewer rows than one read.
        assert_eq!(kind("16x64").reads(100, 7, 0).unwrap()[0].n_rows(), 100);
    }

    #[test]
    fn whole_reads_are_every_row_in_order() {
        let reads = kind("whole").reads(200_000, 7, 0).unwrap();
        assert_eq!(reads.len(), 4);
        assert!(reads.iter().flat_map(RowRanges::iter).eq(0..200_000));
        assert!(kind("whole").reads(0, 7, 0).unwrap().is_empty());
    }
}
