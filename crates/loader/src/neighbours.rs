//! Neighbours of cells by a graph of obsp: what is asked for, and which cells of a row are nearest.
//!
//! A graph has a row and a column for each cell of obs, both by joinid. A block reads its rows of
//! the graph, then the rows of X of its cells and all their neighbours, each once; a batch lists
//! each cell once, too.

mod counts;
mod read;
mod table;

use soma_io::{Measurement, ReaderChoice};

pub use self::counts::NeighbourRows;
pub(crate) use self::counts::RowCounts;
pub(crate) use self::read::{BlockNeighbours, GraphReader, MISSING};
pub(crate) use self::table::{Table, TableMaker, Written};
use crate::dataset::Dataset;
use crate::error::{DatasetError, LoaderError, MatrixError, open_error};
use crate::selected::{ColumnPlaces, SelectedMatrix};
use crate::spec::{BlockForm, LoaderSpec, Totals};

/// Most neighbours of a cell.
const MAX_K: usize = 1 << 16;

/// Neighbours of each cell by a graph of obsp, whose rows of X come with the batch
/// ([`Batch::neighbours`](crate::Batch::neighbours)).
///
/// The neighbours of a cell are the `k` cells with the smallest or the largest stored values in its
/// row of the graph, in this order, of equal values the cell with the lower joinid first. Values
/// are compared as f32. The cell itself is never among them, whatever its value; another cell at
/// the same place is. A value that is not stored is no neighbour, not one at distance 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NeighbourSpec {
    /// The name of the graph in obsp of the measurement of X, for example `distances`.
    pub obsp: String,
    /// Number of neighbours of each cell, from 1 to 65,536.
    pub k: usize,
    /// Which values are those of the nearest cells; `None` if the name says so
    /// ([`Nearest::of_name`]).
    pub nearest: Option<Nearest>,
    /// Whether only selected cells are neighbours: within a part of a split, cells of this part.
    /// Otherwise all cells of obs are, so that a cell for validation may have neighbours that a
    /// model was trained on.
    pub selected_only: bool,
    /// Whether a cell may have fewer neighbours than `k`, which a mask says; otherwise the epoch
    /// ends with an error.
    pub allow_fewer: bool,
}

impl NeighbourSpec {
    /// The `k` nearest of all cells, or as many as there are.
    pub fn new(obsp: &str, k: usize) -> Self {
        let obsp = obsp.to_owned();
        Self { obsp, k, nearest: None, selected_only: false, allow_fewer: true }
    }
}

/// Which values of a graph are those of the nearest cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Nearest {
    /// The smallest, as of distances.
    Smallest,
    /// The largest, as of weights and connectivities.
    Largest,
}

impl Nearest {
    /// What the name of a graph says: those of scanpy and squidpy end in `distances` and
    /// `connectivities`. `None` for another name.
    pub fn of_name(obsp: &str) -> Option<Self> {
        match obsp {
            name if name.ends_with("distances") => Some(Self::Smallest),
            name if name.ends_with("connectivities") => Some(Self::Largest),
            _ => None,
        }
    }

    /// Sorts the nearest `k` cells of a row to the front, and leaves out the others.
    fn keep(self, cells: &mut Vec<(u64, f32)>, k: usize) {
        let order = |one: &(u64, f32), other: &(u64, f32)| {
            // 0 and -0 are equal, as everywhere.
            let (value, of_other) = (one.1 + 0.0, other.1 + 0.0);
            let by_value = match self {
                Self::Smallest => value.total_cmp(&of_other),
                Self::Largest => of_other.total_cmp(&value),
            };
            by_value.then(one.0.cmp(&other.0))
        };
        if k < cells.len() {
            cells.select_nth_unstable_by(k, order);
            cells.truncate(k);
        }
        cells.sort_unstable_by(order);
    }
}

/// The neighbours of a batch's cells. Their rows are in [`Batch::x`](crate::Batch::x), which has
/// the cells of the batch first, then all neighbours that are not among them, each once, by their
/// first occurrence.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Neighbours {
    /// Number of neighbours of each cell.
    pub k: usize,
    /// The row in X of each neighbour: `k` for each cell, the nearest first. A neighbour that is
    /// missing has the row of the cell itself.
    pub positions: Vec<u32>,
    /// The values of the graph, as many; 0 where a neighbour is missing.
    pub values: Vec<f32>,
    /// Whether the cell has this neighbour.
    pub present: Vec<bool>,
    /// The `soma_joinid` of each row of X in its experiment.
    pub joinids: Vec<i64>,
    /// The experiment of each row of X.
    pub experiments: Vec<u32>,
}

impl Dataset {
    /// The neighbours that come with each batch.
    pub fn neighbours(&self) -> Option<&NeighbourSpec> {
        self.neighbours.as_ref()
    }

    /// Adds neighbours by a graph with a row and a column for each cell, by joinid, which
    /// [`Batch::neighbours`](crate::Batch::neighbours) then has.
    ///
    /// # Errors
    /// The data set has several experiments, or neighbours already; `k` is 0 or above 65,536; the
    /// name does not say which values are nearest, and `spec` neither; the graph has another
    /// number of columns than of rows, or too few rows for the selected cells.
    pub fn with_neighbours(
        self,
        spec: NeighbourSpec,
        reader: std::sync::Arc<dyn soma_io::XReader>,
    ) -> Result<Self, MatrixError> {
        let graph = format!("graph {:?} of obsp", spec.obsp);
        let [source] = &self.sources[..] else {
            let n_experiments = self.sources.len();
            return Err(MatrixError::SeveralExperiments { matrix: graph, n_experiments });
        };
        let problem = |problem: String| MatrixError::Neighbours { graph: graph.clone(), problem };
        if self.neighbours.is_some() {
            return Err(MatrixError::Twice { matrix: graph });
        }
        if !(1..=MAX_K).contains(&spec.k) {
            return Err(problem(format!("k is {}: take 1 to {MAX_K} neighbours", spec.k)));
        }
        let nearest = spec.nearest.or_else(|| Nearest::of_name(&spec.obsp)).ok_or_else(|| {
            problem(
                "its name does not say whether it has distances or weights: give nearest, \
                 \"smallest\" or \"largest\""
                    .to_owned(),
            )
        })?;
        let (n_rows, n_columns) = (reader.n_rows(), reader.n_columns());
        if n_rows != n_columns {
            return Err(problem(format!(
                "it has {n_rows} rows and {n_columns} columns, but both are the cells"
            )));
        }
        if let Some(joinid) = source.cells.first_outside(n_rows) {
            return Err(MatrixError::CellOutside { matrix: graph, joinid, n_rows });
        }
        let columns =
            ColumnPlaces::new(soma_io::GeneSelection::All, n_columns).map_err(|source| {
                MatrixError::ColumnsOutside { matrix: graph, n_columns, source: Box::new(source) }
            })?;
        let mut source = source.clone();
        source.graph = Some(SelectedMatrix::new(reader, columns));
        let neighbours = Some(NeighbourSpec { nearest: Some(nearest), ..spec });
        Ok(Self { sources: std::sync::Arc::new([source]), neighbours, ..self })
    }

    /// Opens the graph of a specification in the measurement of X.
    pub(crate) fn with_graph_of(
        self,
        measurement: &Measurement,
        spec: Option<&NeighbourSpec>,
        choice: ReaderChoice,
    ) -> Result<Self, DatasetError> {
        let Some(spec) = spec else { return Ok(self) };
        let failed = || open_error(format!("graph {:?} of obsp", spec.obsp));
        let graph = measurement.obsp(&spec.obsp).map_err(failed())?;
        let reader = graph.reader(choice).map_err(failed())?;
        Ok(self.with_neighbours(spec.clone(), reader)?)
    }
}

/// Fails if batches of these settings cannot have neighbours.
pub(crate) fn check(dataset: &Dataset, spec: &LoaderSpec) -> Result<(), LoaderError> {
    if dataset.neighbours.is_none() {
        return Ok(());
    }
    let problem = if spec.block_form == BlockForm::Dense {
        "blocks of form np.array are dense: take blocks of form scipy.csr or csr"
    } else if spec.tokens.is_some() {
        "batches have tokens in place of X: leave one of both out"
    } else if spec.transform.target_sum.is_some() && spec.totals == Totals::Obs {
        "values are scaled by totals in obs, which only selected cells have: take the sums of the \
         selected genes"
    } else {
        return Ok(());
    };
    Err(LoaderError::NeighbourSettings { problem })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_come_first_and_of_equals_the_lower_joinid() {
        let cells = vec![(9, 1.0), (7, 0.0), (4, 2.0), (5, 1.0), (3, -0.0), (8, 0.5)];
        for (nearest, k, expected) in [
            (Nearest::Smallest, 4, vec![(3, -0.0), (7, 0.0), (8, 0.5), (5, 1.0)]),
            (Nearest::Largest, 3, vec![(4, 2.0), (5, 1.0), (9, 1.0)]),
            (
                Nearest::Largest,
                9,
                vec![(4, 2.0), (5, 1.0), (9, 1.0), (8, 0.5), (3, -0.0), (7, 0.0)],
            ),
        ] {
            let mut kept = cells.clone();
            nearest.keep(&mut kept, k);
            assert_eq!(kept, expected, "{nearest:?} {k}");
        }
    }

    #[test]
    fn the_names_of_scanpy_and_squidpy_say_what_is_near() {
        assert_eq!(Nearest::of_name("spatial_distances"), Some(Nearest::Smallest));
        assert_eq!(Nearest::of_name("connectivities"), Some(Nearest::Largest));
        assert_eq!(Nearest::of_name("knn"), None);
    }
}
