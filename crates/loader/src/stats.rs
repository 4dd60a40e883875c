//! Counts and times of an epoch of cells: the engine's, with the settings and the reader's name.

use crate::neighbours::NeighbourRows;
use crate::spec::LoaderSpec;

/// Counts and times of one epoch, so far or in full.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct EpochStats {
    /// What the engine counted. Its values are those of the blocks' rows, with those of neighbours,
    /// and the selected genes; conversions are those of the reader's tables to blocks, from COO to
    /// CSR or dense.
    pub engine: pipeline::EpochStats,
    /// The settings with which it ran, which may read ahead less than requested.
    pub spec: LoaderSpec,
    /// Name of the reader of X; several names are joined by `+` if the readers of the experiments
    /// differ.
    pub reader: String,
    /// Number of genes, the columns of every batch.
    pub n_columns: usize,
    /// Rows of X that were read; `None` without [neighbours](crate::DatasetSpec::neighbours).
    pub neighbours: Option<NeighbourRows>,
}
