//! Reads the neighbours of a block: rows of the graph, then the rows of X that the block lacks.

use std::ops::Range;

use pipeline::{BlockBytes, BlockPlace, ReadStats, Stop};
use soma_io::{CsrBuffers, GeneSelection};

use super::{Nearest, NeighbourSpec};
use crate::block::BlockMatrix;
use crate::cells::runs;
use crate::dataset::Dataset;
use crate::error::LoaderError;
use crate::selected::Part;

/// The place of a neighbour that there is not.
pub(crate) const MISSING: u32 = u32::MAX;

/// The neighbours of a block's rows.
#[derive(Debug, Default)]
pub(crate) struct BlockNeighbours {
    /// `k` places for each row of the block, the nearest first: below the block's number of rows,
    /// one of its rows; from there on, one of `further`. Or [`MISSING`].
    pub(crate) places: Vec<u32>,
    /// The values of the graph.
    pub(crate) values: Vec<f32>,
    /// The experiment and the joinid of neighbours that are no rows of the block.
    pub(crate) further: Vec<(u32, u64)>,
    /// Their rows of X.
    pub(crate) x: BlockMatrix,
}

impl BlockNeighbours {
    /// Bytes of the rows and places, now and at most.
    pub(crate) fn bytes(&self) -> BlockBytes {
        let own = size_of_val(&self.places[..])
            + size_of_val(&self.values[..])
            + size_of_val(&self.further[..]);
        let BlockBytes { now, most } = self.x.bytes();
        BlockBytes { now: own as u64 + now, most: own as u64 + most }
    }
}

/// Finds the neighbours of the rows of a block.
pub(crate) struct GraphReader<'a> {
    pub(crate) dataset: &'a Dataset,
    pub(crate) spec: &'a NeighbourSpec,
    pub(crate) place: BlockPlace,
    pub(crate) stop: &'a Stop,
}

impl GraphReader<'_> {
    /// Reads the graph's rows of these parts, which are all `n_rows` rows of a block, and returns
    /// the parts of X with the neighbours that are not among them.
    pub(crate) fn find(
        &self,
        parts: &[Part],
        (n_rows, rows): (usize, &mut CsrBuffers),
        into: &mut BlockNeighbours,
    ) -> Result<(Vec<Part>, ReadStats), LoaderError> {
        let BlockNeighbours { places, values, further, .. } = into;
        let n_places = n_rows * self.spec.k;
        places.clear();
        values.clear();
        further.clear();
        let (reserved, of_values) = (places.try_reserve(n_places), values.try_reserve(n_places));
        reserved.and(of_values).map_err(|_| self.too_many(n_rows))?;
        let (mut first, mut of_x) = (0, Vec::new());
        let mut all = ReadStats::nothing();
        for part in parts {
            let Some(graph) = &self.dataset.sources[part.source].graph else { continue };
            let failed = |error| part.read_error(self.place, error);
            if self.stop.is_set() {
                return Err(failed(crate::read::dropped()));
            }
            let wanted = part.rows().map_err(failed)?;
            let read = graph.reader.read_csr(&wanted, &GeneSelection::All, rows).map_err(failed)?;
            part.check_shape(graph, (rows.n_rows(), rows.n_columns), self.place.block_idx)?;
            // Not values of X.
            all += ReadStats { values: 0, ..read };
            let nearest = self.nearest(part, rows, values)?;
            let own = Places::new(&part.joinids, first);
            let mut others: Vec<u64> =
                nearest.iter().copied().filter(|id| *id != NONE && own.of(*id).is_none()).collect();
            others.sort_unstable();
            others.dedup();
            let joinids: Vec<_> = runs(&others).collect();
            let of_further = Places::new(&joinids, n_rows + further.len());
            further.extend(others.iter().map(|joinid| (part.source as u32, *joinid)));
            if MISSING as usize <= n_rows + further.len() {
                return Err(self.too_many(n_rows));
            }
            places.extend(nearest.iter().map(|joinid| {
                let place = own.of(*joinid).or_else(|| of_further.of(*joinid));
                place.map_or(MISSING, |place| place as u32)
            }));
            if !others.is_empty() {
                let (source, n_rows) = (part.source, others.len());
                of_x.push(Part { source, joinids, n_rows, next_reads: None });
            }
            first += part.n_rows;
        }
        Ok((of_x, all))
    }

    /// The joinids of the nearest cells of each row, `k` for each, and [`NONE`] for those that are
    /// missing. Appends their values, with 0 for missing ones.
    fn nearest(
        &self,
        part: &Part,
        rows: &CsrBuffers,
        values: &mut Vec<f32>,
    ) -> Result<Vec<u64>, LoaderError> {
        let source = &self.dataset.sources[part.source];
        let (k, nearest) = (self.spec.k, self.spec.nearest.unwrap_or(Nearest::Smallest));
        let x_rows = source.x.reader.n_rows();
        let mut joinids = Vec::with_capacity(rows.n_rows() * k);
        let mut cells: Vec<(u64, f32)> = Vec::new();
        for (row, centre) in part.joinids.iter().cloned().flatten().enumerate() {
            let (columns, stored) = rows.row(row);
            let wrong = |problem: String| LoaderError::Neighbours {
                obsp: self.spec.obsp.clone(),
                experiment: part.source,
                joinid: centre,
                problem,
            };
            let all = columns.iter().map(|column| u64::from(*column)).zip(stored.iter().copied());
            cells.clear();
            cells.extend(all.filter(|(joinid, _)| {
                *joinid != centre && (!self.spec.selected_only || source.cells.contains(*joinid))
            }));
            if let Some((joinid, _)) = cells.iter().find(|(_, value)| value.is_nan()) {
                return Err(wrong(format!("the value of cell {joinid} is not a number")));
            }
            nearest.keep(&mut cells, k);
            if let Some((joinid, _)) = cells.iter().find(|(joinid, _)| x_rows <= *joinid) {
                let problem = format!("cell {joinid} is its neighbour, but X has {x_rows} rows");
                return Err(wrong(problem));
            }
            let n_missing = k - cells.len();
            if n_missing > 0 && !self.spec.allow_fewer {
                return Err(wrong(format!("it has {} neighbours instead of {k}", cells.len())));
            }
            joinids.extend(cells.iter().map(|(joinid, _)| *joinid));
            joinids.resize(joinids.len() + n_missing, NONE);
            values.extend(cells.iter().map(|(_, value)| *value));
            values.resize(values.len() + n_missing, 0.0);
        }
        Ok(joinids)
    }

    fn too_many(&self, n_rows: usize) -> LoaderError {
        LoaderError::OutOfMemory {
            what: "the neighbours of a block",
            bytes: n_rows as u128 * self.spec.k as u128 * 8,
            n_rows: n_rows as u64,
            n_columns: self.spec.k as u64,
            advice: "make chunks or blocks smaller, or take fewer neighbours",
        }
    }
}

/// The joinid of a neighbour that there is not: joinids are below 2^63.
const NONE: u64 = u64::MAX;

/// The places of joinids that are read together.
struct Places<'a> {
    joinids: &'a [Range<u64>],
    /// The place of the first joinid of each range.
    starts: Vec<usize>,
}

impl<'a> Places<'a> {
    fn new(joinids: &'a [Range<u64>], first: usize) -> Self {
        let starts = joinids.iter().scan(first, |next, range| {
            let start = *next;
            *next += (range.end - range.start) as usize;
            Some(start)
        });
        Self { joinids, starts: starts.collect() }
    }

    fn of(&self, joinid: u64) -> Option<usize> {
        let idx = self.joinids.partition_point(|range| range.end <= joinid);
        let range = self.joinids.get(idx).filter(|range| range.start <= joinid)?;
        Some(self.starts[idx] + (joinid - range.start) as usize)
    }
}
