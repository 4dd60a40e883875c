//! Finds the neighbours of a block's cells in the graph, and with them the rows of X that the block
//! needs: those of its own cells and those of all their neighbours, each once, in one read.

use pipeline::{BlockBytes, BlockPlace, ReadStats, Stop};
use soma_io::CsrBuffers;

use super::{Nearest, NeighbourSpec};
use crate::cells::runs;
use crate::dataset::Dataset;
use crate::error::LoaderError;
use crate::selected::Part;

/// The row of a neighbour that is missing.
pub(crate) const MISSING: u32 = u32::MAX;

/// The neighbours of a block's cells, as rows of the block's X, which has further cells, too.
#[derive(Debug, Default)]
pub(crate) struct BlockNeighbours {
    /// The row of each of the block's own cells.
    pub(crate) own: Vec<u32>,
    /// `k` rows for each of the block's own cells, the nearest first; [`MISSING`] at the end if a
    /// cell has fewer.
    pub(crate) nearest: Vec<u32>,
    /// The values of the graph, as many.
    pub(crate) values: Vec<f32>,
    /// The experiment and the joinid of each row.
    pub(crate) cells: Vec<(u32, u64)>,
}

impl BlockNeighbours {
    /// Bytes of all lists.
    pub(crate) fn bytes(&self) -> BlockBytes {
        let bytes = size_of_val(&self.own[..])
            + size_of_val(&self.nearest[..])
            + size_of_val(&self.values[..])
            + size_of_val(&self.cells[..]);
        BlockBytes { now: bytes as u64, most: bytes as u64 }
    }

    /// Empties the lists, with room for `n_rows` own cells. `Err` if memory is lacking.
    fn clear(&mut self, n_rows: usize, k: usize) -> Result<(), std::collections::TryReserveError> {
        let Self { own, nearest, values, cells } = self;
        own.clear();
        nearest.clear();
        values.clear();
        cells.clear();
        values.try_reserve(n_rows * k)?;
        nearest.try_reserve(n_rows * k)?;
        nearest.resize(n_rows * k, MISSING);
        own.resize(n_rows, 0);
        Ok(())
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
    /// the parts of X that have them and their neighbours.
    pub(crate) fn find(
        &self,
        parts: &[Part],
        (n_rows, rows): (usize, &mut CsrBuffers),
        into: &mut BlockNeighbours,
    ) -> Result<(Vec<Part>, ReadStats), LoaderError> {
        let (k, mut all) = (self.spec.k, ReadStats::nothing());
        // Places of neighbours and of own rows are counted in 32 bits.
        if n_rows.saturating_mul(k + 1) >= MISSING as usize || into.clear(n_rows, k).is_err() {
            return Err(self.too_many(n_rows));
        }
        let (mut first, mut of_x) = (0, Vec::with_capacity(parts.len()));
        for part in parts {
            let Some(graph) = &self.dataset.sources[part.source].graph else { continue };
            let failed = |error| part.read_error(self.place, error);
            if self.stop.is_set() {
                return Err(failed(crate::read::dropped()));
            }
            let (wanted, all_cells) = (part.rows().map_err(failed)?, &graph.columns.selection);
            let read = graph.reader.read_csr(&wanted, all_cells, rows).map_err(failed)?;
            part.check_shape(graph, (rows.n_rows(), rows.n_columns), self.place.block_idx)?;
            // Not values of X.
            all += ReadStats { values: 0, ..read };
            let mut uses = self.nearest(part, (rows, first), &mut into.values)?;
            let own = first + n_rows * k..;
            uses.extend(part.joinids.iter().cloned().flatten().zip(own).map(Use::new));
            uses.sort_unstable();
            let mut joinids = Vec::new();
            for uses in uses.chunk_by(|one, other| one.joinid() == other.joinid()) {
                let row = into.cells.len() as u32;
                joinids.push(uses[0].joinid());
                into.cells.push((part.source as u32, uses[0].joinid()));
                for place in uses.iter().copied().map(Use::place) {
                    match place.checked_sub(n_rows * k) {
                        Some(own) => into.own[own] = row,
                        None => into.nearest[place] = row,
                    }
                }
            }
            of_x.push(Part {
                joinids: runs(&joinids).collect(),
                n_rows: joinids.len(),
                ..part.clone()
            });
            first += part.n_rows;
        }
        Ok((of_x, all))
    }

    /// The nearest cells of each row, which are the rows of a block from `first` on, with their
    /// places. Appends their values, with 0 for missing ones.
    fn nearest(
        &self,
        part: &Part,
        (rows, first): (&CsrBuffers, usize),
        values: &mut Vec<f32>,
    ) -> Result<Vec<Use>, LoaderError> {
        let source = &self.dataset.sources[part.source];
        let (k, nearest) = (self.spec.k, self.spec.nearest.unwrap_or(Nearest::Smallest));
        let x_rows = source.x.reader.n_rows();
        let mut uses = Vec::with_capacity(rows.n_rows() * (k + 1));
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
            if cells.len() < k && !self.spec.allow_fewer {
                return Err(wrong(format!("it has {} neighbours instead of {k}", cells.len())));
            }
            let places = (first + row) * k..;
            uses.extend(cells.iter().map(|(joinid, _)| *joinid).zip(places).map(Use::new));
            values.extend(cells.iter().map(|(_, value)| *value));
            values.resize((first + row + 1) * k, 0.0);
        }
        Ok(uses)
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

/// A cell that a block needs, and the place of a neighbour, or behind all of them of an own cell,
/// for which it does. One number, because sorting these takes most of the time: both fit in 32
/// bits, joinids because they are columns of the graph.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Use(u64);

impl Use {
    fn new((joinid, place): (u64, usize)) -> Self {
        Self(joinid << 32 | place as u64)
    }

    fn joinid(self) -> u64 {
        self.0 >> 32
    }

    fn place(self) -> usize {
        self.0 as u32 as usize
    }
}
