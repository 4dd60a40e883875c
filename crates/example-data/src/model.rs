//! The model of a Census-shaped experiment. Every cell is a function of (seed, sizes, joinid), so
//! pieces can be made in any order.
//!
//! Cells come in runs by dataset. Dataset sizes are log-normal; each dataset has 3 to 25 of 100
//! cell types, with shares of its own. About a third of the datasets is sorted by cell type, so
//! that a type is one run. The others are sorted by donor, with types mixed cell by cell. The
//! Census has both, because it keeps the order of the submitters.
//!
//! A cell draws its number of genes, then genes by the weights of its type until it has that many
//! different ones, then a count for each. Genes that its dataset did not measure are skipped.

mod alias;
mod cells;
mod datasets;
mod genes;
mod terms;
#[cfg(test)]
mod tests;

pub(crate) use cells::{Cell, Piece};
pub(crate) use datasets::Dataset;
pub(crate) use genes::{FEATURE_TYPES, Genes};
pub(crate) use terms::{
    ASSAYS, CELL_TYPES, DEVELOPMENT_STAGES, DISEASES, ETHNICITIES, SEXES, SUSPENSION_TYPES, TISSUES,
};

use alias::AliasTable;

/// Values per cell with at least `FULL_GENES` genes; with fewer genes all three numbers shrink in
/// proportion.
const MEDIAN_NNZ: f64 = 1400.0;
const MIN_NNZ: f64 = 200.0;
const MAX_NNZ: f64 = 8000.0;
/// Number of genes at which the cell with the most values has half of the genes.
const FULL_GENES: f64 = 16_000.0;

/// Everything except the cells, and the means to make any cell.
#[derive(Debug)]
pub(crate) struct Model {
    seed: u64,
    n_cells: u64,
    pub(crate) genes: Genes,
    pub(crate) datasets: Vec<Dataset>,
    /// For each cell type, the frequencies of genes.
    tables: Vec<AliasTable>,
    /// Factor for `MEDIAN_NNZ` and its bounds.
    scale: f64,
}

impl Model {
    /// Creates a model; it needs at least one cell and one gene.
    pub(crate) fn new(n_cells: u64, n_genes: u32, seed: u64) -> Self {
        let genes = Genes::new(n_genes as usize, seed);
        let datasets = datasets::datasets(n_cells, seed, &genes);
        let tables =
            (0..CELL_TYPES.len() as u64).map(|cell_type| genes.table_of_type(cell_type)).collect();
        let scale = (f64::from(n_genes) / FULL_GENES).min(1.0);
        Self { seed, n_cells, genes, datasets, tables, scale }
    }

    pub(crate) fn n_cells(&self) -> u64 {
        self.n_cells
    }

    /// Number of cells whose dataset measured a gene.
    pub(crate) fn n_measured_obs(&self, gene: usize) -> u64 {
        self.datasets
            .iter()
            .filter(|dataset| dataset.measures(gene))
            .map(|dataset| dataset.cells.end - dataset.cells.start)
            .sum()
    }
}
