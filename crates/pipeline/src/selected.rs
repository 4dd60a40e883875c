//! Some of a source's samples, as a source: the parts of a split, the share of a rank.

use std::hash::Hasher as _;
use std::ops::Range;
use std::sync::Arc;

use shuffle::{RowSet, Stop, Stopped};
use twox_hash::XxHash3_64;
use worktime::ReadStats;

use crate::source::{BlockBytes, BlockRows, Need, Source};

/// The samples of a source that are in a set of rows, in their order.
///
/// Rows are numbered anew, from 0. A batch that names its samples names them as the source does.
#[derive(Debug)]
pub struct Selected<S> {
    source: Arc<S>,
    rows: Arc<RowSet>,
}

impl<S: Source> Selected<S> {
    /// All samples of a source.
    pub fn all(source: Arc<S>) -> Self {
        let rows = Arc::new(RowSet::from_range(0..source.n_rows()));
        Self { source, rows }
    }

    /// Those of these samples that are at `places`. Places past the last have no sample.
    ///
    /// # Errors
    /// The thread's work is to end.
    pub fn at(&self, places: &RowSet) -> Result<Self, Stopped> {
        Ok(Self { source: Arc::clone(&self.source), rows: Arc::new(self.rows.at(places)?) })
    }

    /// The source.
    pub fn source(&self) -> &Arc<S> {
        &self.source
    }

    /// The rows of the source.
    pub fn rows(&self) -> &RowSet {
        &self.rows
    }

    /// The rows of the source that are at ascending, disjoint ranges.
    fn in_source(&self, ranges: &[Range<u64>]) -> Vec<Range<u64>> {
        ranges.iter().flat_map(|places| self.rows.ranges_at(places.clone())).collect()
    }
}

impl<S> Clone for Selected<S> {
    fn clone(&self) -> Self {
        Self { source: Arc::clone(&self.source), rows: Arc::clone(&self.rows) }
    }
}

impl<S: Source> Source for Selected<S> {
    type Block = S::Block;
    type Batch = S::Batch;
    type Error = S::Error;
    type Scratch = S::Scratch;
    type Assembler = S::Assembler;

    fn n_rows(&self) -> u64 {
        self.rows.len()
    }

    fn fingerprint(&self) -> String {
        let of_source = self.source.fingerprint();
        if self.rows.len() == self.source.n_rows() {
            return of_source;
        }
        let mut hash = XxHash3_64::new();
        for range in self.rows.ranges() {
            hash.write(&range.start.to_le_bytes());
            hash.write(&range.end.to_le_bytes());
        }
        format!("{of_source}; rows {:016x}", hash.finish())
    }

    fn need(&self, block_rows: u64, batch_rows: u64) -> Result<Need, Self::Error> {
        self.source.need(block_rows, batch_rows)
    }

    fn block_bytes(&self, block: &Self::Block) -> BlockBytes {
        self.source.block_bytes(block)
    }

    fn read(
        &self,
        rows: &BlockRows<'_>,
        into: &mut Self::Block,
        scratch: &mut Self::Scratch,
        stop: &Stop,
    ) -> Result<ReadStats, Self::Error> {
        let (ranges, next) = (self.in_source(rows.ranges), self.in_source(rows.next));
        let upcoming = &rows.upcoming.selected(&self.rows);
        let rows = BlockRows { ranges: &ranges, next: &next, upcoming, ..*rows };
        self.source.read(&rows, into, scratch, stop)
    }

    fn unit_end(&self, place: u64) -> u64 {
        let end = |row| self.rows.n_below(self.source.unit_end(row));
        self.rows.get(place).map_or(place, end)
    }

    fn row_name(&self, place: u64) -> String {
        self.source.row_name(self.rows.get(place).unwrap_or(place))
    }

    fn is_damage(&self, error: &Self::Error) -> bool {
        self.source.is_damage(error)
    }

    fn assembler(&self, batch_rows: u64) -> Result<Self::Assembler, Self::Error> {
        self.source.assembler(batch_rows)
    }

    fn keep(&self, holder: u64, bytes: u64) {
        self.source.keep(holder, bytes);
    }

    fn keeps(&self) -> bool {
        self.source.keeps()
    }

    fn answers_late(&self) -> bool {
        self.source.answers_late()
    }
}
