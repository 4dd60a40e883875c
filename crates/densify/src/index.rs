//! From joinids to positions along an axis.

use std::collections::HashMap;
use std::ops::Range;

use crate::Error;

/// Where the joinids of an axis come in a block: rows of cells, or columns of genes.
#[derive(Debug, Clone)]
pub struct AxisIndex {
    axis: &'static str,
    kind: Kind,
}

#[derive(Debug, Clone)]
enum Kind {
    /// Ascending ranges, with the position of the first of each.
    Ranges { ranges: Vec<Range<i64>>, starts: Vec<usize>, len: usize },
    /// Any joinids in any order.
    List(HashMap<i64, usize>),
}

impl AxisIndex {
    /// Ascending, disjoint ranges of joinids, positions counted through all of them. `axis` is `cell` or `gene`, for errors.
    pub fn ranges(
        axis: &'static str,
        ranges: impl IntoIterator<Item = Range<u64>>,
    ) -> Result<Self, Error> {
        let mut kept: Vec<Range<i64>> = Vec::new();
        let (mut starts, mut len) = (Vec::new(), 0);
        for range in ranges.into_iter().filter(|range| !range.is_empty()) {
            let before = kept.last().map_or(0, |last| last.end);
            let (start, end) = (range.start as i64, range.end as i64);
            if start < before || end < start {
                return Err(Error::Joinids { joinid: start });
            }
            starts.push(len);
            len += (end - start) as usize;
            match kept.last_mut() {
                Some(last) if last.end == start => {
                    last.end = end;
                    starts.pop();
                }
                _ => kept.push(start..end),
            }
        }
        Ok(Self { axis, kind: Kind::Ranges { ranges: kept, starts, len } })
    }

    /// Joinids in any order, none twice: the position of each is that in the list.
    pub fn list(axis: &'static str, joinids: &[u64]) -> Result<Self, Error> {
        let mut positions = HashMap::with_capacity(joinids.len());
        for (position, joinid) in joinids.iter().enumerate() {
            let joinid = *joinid as i64;
            if joinid < 0 || positions.insert(joinid, position).is_some() {
                return Err(Error::Joinids { joinid });
            }
        }
        Ok(Self { axis, kind: Kind::List(positions) })
    }

    /// How many positions there are.
    pub fn len(&self) -> usize {
        match &self.kind {
            Kind::Ranges { len, .. } => *len,
            Kind::List(positions) => positions.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Looks positions up one after another.
    pub(crate) fn cursor(&self) -> Cursor<'_> {
        Cursor { index: self, range_idx: 0 }
    }
}

/// Looks positions up; quick when a joinid lies in the same range as the one before.
pub(crate) struct Cursor<'a> {
    index: &'a AxisIndex,
    range_idx: usize,
}

impl Cursor<'_> {
    pub(crate) fn position(&mut self, joinid: i64) -> Result<usize, Error> {
        let found = match &self.index.kind {
            Kind::List(positions) => positions.get(&joinid).copied(),
            Kind::Ranges { ranges, starts, .. } => {
                if !ranges.get(self.range_idx).is_some_and(|range| range.contains(&joinid)) {
                    self.range_idx = ranges.partition_point(|range| range.end <= joinid);
                }
                ranges
                    .get(self.range_idx)
                    .filter(|range| range.contains(&joinid))
                    .map(|range| starts[self.range_idx] + (joinid - range.start) as usize)
            }
        };
        found.ok_or(Error::UnknownJoinid { axis: self.index.axis, joinid })
    }
}
