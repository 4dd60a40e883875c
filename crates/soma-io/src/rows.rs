//! Selects rows of an array.

use std::ops::Range;

use storage::NextReads;

use crate::Error;

/// Ascending ranges of joinids, none empty and none overlapping.
#[derive(Debug, Clone, Default)]
pub struct RowRanges {
    ranges: Vec<Range<u64>>,
    n_rows: u64,
    next_reads: Option<NextReads>,
}

/// Two are equal if they have the same rows, whenever these are read again.
impl PartialEq for RowRanges {
    fn eq(&self, other: &Self) -> bool {
        self.ranges == other.ranges
    }
}

impl Eq for RowRanges {}

impl RowRanges {
    /// Checks ranges, and joins adjacent ones. An empty list selects no rows.
    pub fn new(ranges: Vec<Range<u64>>) -> Result<Self, Error> {
        let mut joined: Vec<Range<u64>> = Vec::with_capacity(ranges.len());
        let mut n_rows = 0;
        for range in ranges {
            let before = joined.last().map_or(0, |last| last.end);
            if range.is_empty() || range.start < before {
                return Err(Error::RowRanges { start: range.start, end: range.end, before });
            }
            n_rows += range.end - range.start;
            match joined.last_mut() {
                Some(last) if last.end == range.start => last.end = range.end,
                _ => joined.push(range),
            }
        }
        Ok(Self { ranges: joined, n_rows, next_reads: None })
    }

    /// Adds when rows are read again, by joinid. A reader keeps decoded values
    /// ([`XReader::keep_decoded`](crate::XReader::keep_decoded)) that are needed soonest; the
    /// results of reads do not change.
    #[must_use]
    pub fn with_next_reads(self, next_reads: Option<NextReads>) -> Self {
        Self { next_reads, ..self }
    }

    /// When rows are read again, if that is known.
    pub fn next_reads(&self) -> Option<&NextReads> {
        self.next_reads.as_ref()
    }

    /// Number of rows.
    pub fn n_rows(&self) -> u64 {
        self.n_rows
    }

    /// The ranges.
    pub fn ranges(&self) -> &[Range<u64>] {
        &self.ranges
    }

    /// Each joinid, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        self.ranges.iter().cloned().flatten()
    }

    /// Fails if a range extends beyond `n_rows`.
    pub(crate) fn check_within(&self, uri: &str, n_rows: u64) -> Result<(), Error> {
        match self.ranges.last() {
            Some(last) if last.end > n_rows => Err(Error::RowsOutside {
                uri: uri.to_owned(),
                start: last.start,
                end: last.end,
                n_rows,
            }),
            _ => Ok(()),
        }
    }

    /// The ranges with both ends included, in TileDB's form.
    pub(crate) fn inclusive(&self) -> Vec<(i64, i64)> {
        self.ranges.iter().map(|range| (range.start as i64, range.end as i64 - 1)).collect()
    }

    /// Makes a locator of joinids; fast if one lies in the same range as the previous one.
    #[cfg(feature = "libtiledb")]
    pub(crate) fn locator(&self) -> RowLocator<'_> {
        let starts = self
            .ranges
            .iter()
            .scan(0, |n_before, range| {
                let start = *n_before;
                *n_before += range.end - range.start;
                Some(start)
            })
            .collect();
        RowLocator { ranges: &self.ranges, starts, range_idx: 0 }
    }
}

/// Maps joinids to positions among the rows of [`RowRanges`].
#[cfg(feature = "libtiledb")]
pub(crate) struct RowLocator<'a> {
    ranges: &'a [Range<u64>],
    /// The position of each range's first row.
    starts: Vec<u64>,
    range_idx: usize,
}

#[cfg(feature = "libtiledb")]
impl RowLocator<'_> {
    /// The position of a joinid; `None` if it is not among the rows.
    pub(crate) fn position(&mut self, joinid: i64) -> Option<u64> {
        let joinid = u64::try_from(joinid).ok()?;
        if !self.ranges.get(self.range_idx)?.contains(&joinid) {
            self.range_idx =
                self.ranges.partition_point(|range| range.end <= joinid).min(self.ranges.len() - 1);
        }
        let range = &self.ranges[self.range_idx];
        range.contains(&joinid).then(|| self.starts[self.range_idx] + (joinid - range.start))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ranges_are_checked_and_joined() {
        let rows = RowRanges::new(vec![1..3, 3..5, 9..10]).unwrap();
        assert_eq!(rows.ranges(), [1..5, 9..10]);
        assert_eq!(rows.n_rows(), 5);
        assert_eq!(rows.iter().collect::<Vec<_>>(), [1, 2, 3, 4, 9]);
        assert_eq!(rows.inclusive(), [(1, 4), (9, 9)]);
        assert!(RowRanges::new(vec![1..3, 2..5]).is_err());
        assert!(RowRanges::new(vec![4..4]).is_err());
        assert!(RowRanges::new(vec![]).unwrap().iter().next().is_none());
        let message = rows.check_within("x", 9).unwrap_err().to_string();
        assert!(message.contains("9..10") && message.contains("9 rows"), "{message}");
    }

    proptest! {
        #[test]
        fn the_locator_agrees_with_a_search(
            gaps in proptest::collection::vec((1_u64..4, 1_u64..5), 0..8),
            asked in proptest::collection::vec(-2_i64..60, 0..40),
        ) {
            let mut at = 0;
            let ranges = gaps.iter().map(|(gap, length)| { let start = at + gap; at = start + length; start..at }).collect();
            let rows = RowRanges::new(ranges).unwrap();
            let mut locator = rows.locator();
            for joinid in asked {
                let expected = rows.iter().position(|row| row as i64 == joinid).map(|position| position as u64);
                prop_assert_eq!(locator.position(joinid), expected);
            }
        }
    }
}
