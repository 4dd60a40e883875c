//! Maps joinids to positions along an axis.

use std::collections::HashMap;
use std::ops::Range;

use crate::Error;

/// The position of each joinid of an axis in a block: rows of cells, or columns of genes.
#[derive(Debug, Clone)]
pub struct AxisIndex {
    axis: &'static str,
    kind: Kind,
    /// Number of positions before those of the joinids.
    n_before: usize,
}

/// Marks joinids that are absent from a table.
const ABSENT: u32 = u32::MAX;

/// The longest table for a short list: 4 MiB, more than the genes of any organism need. A lookup,
/// one per value, takes a small fraction of the time of hashing.
const TABLE_LEN: usize = 1 << 20;

#[derive(Debug, Clone)]
enum Kind {
    /// Ascending ranges, with the position of each one's first joinid.
    Ranges { ranges: Vec<Range<i64>>, starts: Vec<usize>, len: usize },
    /// Joinids in any order, close together: the position of `first + i` is `positions[i]`, or
    /// `ABSENT`.
    Table { first: i64, positions: Vec<u32>, len: usize },
    /// Joinids in any order, far apart.
    Map { positions: HashMap<i64, usize>, len: usize },
}

impl AxisIndex {
    /// Makes an index of ascending, disjoint ranges of joinids; positions count through all of
    /// them. `axis` is `cell` or `gene`, for errors.
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
        Ok(Self { axis, kind: Kind::Ranges { ranges: kept, starts, len }, n_before: 0 })
    }

    /// Makes an index of distinct joinids in any order; the position of each is its index in the
    /// list.
    pub fn list(axis: &'static str, joinids: &[u64]) -> Result<Self, Error> {
        Self::build(axis, joinids, |idx| idx, joinids.len())
    }

    /// Makes an index of distinct joinids in any order, each with its position below `len`;
    /// positions may be unused.
    pub fn at_positions(
        axis: &'static str,
        joinids: &[u64],
        positions: &[u32],
        len: usize,
    ) -> Result<Self, Error> {
        if positions.len() != joinids.len() {
            let (found, expected) = (positions.len(), joinids.len());
            return Err(Error::Length { what: "the list of positions", found, expected });
        }
        if let Some(row_idx) = positions.iter().position(|position| *position as usize >= len) {
            return Err(Error::Column { row_idx, column: positions[row_idx], n_columns: len });
        }
        Self::build(axis, joinids, |idx| positions[idx] as usize, len)
    }

    fn build(
        axis: &'static str,
        joinids: &[u64],
        position_of: impl Fn(usize) -> usize,
        len: usize,
    ) -> Result<Self, Error> {
        let mut bounds: Option<(i64, i64)> = None;
        for joinid in joinids {
            let joinid = *joinid as i64;
            if joinid < 0 {
                return Err(Error::Joinids { joinid });
            }
            let (first, last) = bounds.unwrap_or((joinid, joinid));
            bounds = Some((first.min(joinid), last.max(joinid)));
        }
        let (first, table_len) =
            bounds.map_or((0, 0), |(first, last)| (first, (last - first) as usize + 1));
        let fits_table = table_len <= TABLE_LEN.max(4 * joinids.len());
        let kind = if fits_table && len < ABSENT as usize {
            table(joinids, position_of, (first, table_len), len)?
        } else {
            map(joinids, position_of, len)?
        };
        Ok(Self { axis, kind, n_before: 0 })
    }

    /// Moves every position up by `n_before`, for joinids of a later part of an axis.
    #[must_use]
    pub fn from_position(self, n_before: usize) -> Self {
        Self { n_before, ..self }
    }

    /// Number of positions, including those before the joinids' own.
    pub fn len(&self) -> usize {
        let (Kind::Ranges { len, .. } | Kind::Table { len, .. } | Kind::Map { len, .. }) =
            &self.kind;
        self.n_before + len
    }

    /// Whether there are no positions.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Starts a series of lookups.
    pub(crate) fn cursor(&self) -> Cursor<'_> {
        Cursor { index: self, range_idx: 0 }
    }
}

fn table(
    joinids: &[u64],
    position_of: impl Fn(usize) -> usize,
    (first, table_len): (i64, usize),
    len: usize,
) -> Result<Kind, Error> {
    let mut positions = vec![ABSENT; table_len];
    for (idx, joinid) in joinids.iter().enumerate() {
        let joinid = *joinid as i64;
        let place = &mut positions[(joinid - first) as usize];
        if *place != ABSENT {
            return Err(Error::Joinids { joinid });
        }
        *place = position_of(idx) as u32;
    }
    Ok(Kind::Table { first, positions, len })
}

fn map(joinids: &[u64], position_of: impl Fn(usize) -> usize, len: usize) -> Result<Kind, Error> {
    let mut positions = HashMap::with_capacity(joinids.len());
    for (idx, joinid) in joinids.iter().enumerate() {
        let joinid = *joinid as i64;
        if positions.insert(joinid, position_of(idx)).is_some() {
            return Err(Error::Joinids { joinid });
        }
    }
    Ok(Kind::Map { positions, len })
}

/// Looks up positions; fast if a joinid lies in the same range as the previous one.
pub(crate) struct Cursor<'a> {
    index: &'a AxisIndex,
    range_idx: usize,
}

impl Cursor<'_> {
    pub(crate) fn position(&mut self, joinid: i64) -> Result<usize, Error> {
        let found = match &self.index.kind {
            Kind::Map { positions, .. } => positions.get(&joinid).copied(),
            // A joinid below the first wraps to an index beyond the end.
            Kind::Table { first, positions, .. } => positions
                .get(joinid.wrapping_sub(*first) as usize)
                .filter(|position| **position != ABSENT)
                .map(|position| *position as usize),
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
        found
            .map(|position| self.index.n_before + position)
            .ok_or(Error::UnknownJoinid { axis: self.index.axis, joinid })
    }
}
