//! Writing a generated experiment: pieces of cells by several threads, one writer.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use soma_io::{Config, Destination, Existing, ExperimentSpec, ExperimentWriter, Extent, XLayout};

use crate::columns::{ObsColumns, var_batch, var_specs};
use crate::model::{Model, Piece};
use crate::{Error, LAYER, MEASUREMENT, pieces};

/// Cells of a piece: a row of X's tiles, so that the writer can pass each piece on at once.
const PIECE_CELLS: u64 = 2048;
/// More makers than this only hold pieces in memory: the writer does not keep up with more.
const MOST_THREADS: usize = 8;
const MOST_CELLS: u64 = 1_000_000_000;
const MOST_GENES: u64 = 1_000_000;

/// A Census-shaped experiment that is to be generated. Cells, genes and values follow from the first three fields alone.
#[derive(Debug, Clone)]
pub struct GenerateSpec {
    /// The number of cells, 1 to a billion.
    pub n_cells: u64,
    /// The number of genes, 1 to a million.
    pub n_genes: u64,
    /// What all random choices come from.
    pub seed: u64,
    /// Threads that make cells; 0 for as many as the machine has, at most 8.
    pub n_threads: usize,
    /// Ends a fragment of X after at least so many rows; `None` writes one fragment.
    pub fragment_rows: Option<u64>,
    /// Whether fragments of X are merged at the end, each value keeping its timestamp, as the Census does. Nothing is to be merged
    /// where there is one fragment.
    pub consolidate: bool,
    /// The level of zstd for X.
    pub zstd_level: i32,
    /// How arrays say how large they are.
    pub extent: Extent,
    /// TileDB's parameters.
    pub config: Config,
    /// Ends it soon after this is set: [`Error::Interrupted`].
    pub interrupted: Option<&'static AtomicBool>,
}

impl Default for GenerateSpec {
    /// 20,000 cells by 20,000 genes with some 31 million values, in one fragment.
    fn default() -> Self {
        Self {
            n_cells: 20_000,
            n_genes: 20_000,
            seed: 0,
            n_threads: 0,
            fragment_rows: None,
            consolidate: false,
            zstd_level: 9,
            extent: Extent::default(),
            config: Config::new(),
            interrupted: None,
        }
    }
}

/// What was generated.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct GenerateReport {
    /// The number of cells.
    pub n_cells: u64,
    /// The number of genes.
    pub n_genes: u64,
    /// The number of values in X.
    pub nnz: u64,
    /// The size of all files, where the experiment is local.
    pub bytes_on_disk: Option<u64>,
    /// How long it took.
    pub seconds: f64,
    /// Where a run that was killed had left something, which was removed.
    pub leftover: Option<PathBuf>,
}

/// Generates a Census-shaped experiment at `uri`, a local path or an address that libtiledb knows, where nothing may be yet.
///
/// A local experiment is written in a folder of another name (`.partial` behind its own) and
/// renamed at the end; what an earlier run left that was killed is removed. Memory is bounded
/// whatever the number of cells: some 30 MB for each thread's piece, 8 bytes per gene for each of
/// 100 cell types, and what libtiledb takes. `progress` is called with the number of cells that are
/// written so far.
pub fn generate(
    uri: &str,
    spec: &GenerateSpec,
    progress: &mut dyn FnMut(u64),
) -> Result<GenerateReport, Error> {
    let started = Instant::now();
    check("the number of cells", spec.n_cells, MOST_CELLS)?;
    check("the number of genes", spec.n_genes, MOST_GENES)?;
    let destination = Destination::claim(uri, Existing::Keep, &[])?;
    let leftover = destination.leftover().map(Into::into);
    let model = Model::new(spec.n_cells, spec.n_genes as u32, spec.seed);
    let nnz = write(destination.uri(), spec, &model, progress)?;
    let bytes_on_disk = destination.publish()?;
    Ok(GenerateReport {
        n_cells: spec.n_cells,
        n_genes: spec.n_genes,
        nnz,
        bytes_on_disk,
        seconds: started.elapsed().as_secs_f64(),
        leftover,
    })
}

fn check(what: &'static str, value: u64, most: u64) -> Result<(), Error> {
    if (1..=most).contains(&value) {
        Ok(())
    } else {
        Err(Error::Size { what, value, least: 1, most })
    }
}

/// Fails when the end was asked for.
pub(crate) fn check_interrupted(interrupted: Option<&AtomicBool>) -> Result<(), Error> {
    if interrupted.is_some_and(|interrupted| interrupted.load(Ordering::Relaxed)) {
        return Err(Error::Interrupted);
    }
    Ok(())
}

/// Writes everything and says how many values there are.
fn write(
    uri: &str,
    spec: &GenerateSpec,
    model: &Model,
    progress: &mut dyn FnMut(u64),
) -> Result<u64, Error> {
    let obs = ObsColumns::new(model);
    let mut writer = ExperimentWriter::create(uri, experiment_spec(spec, &obs))?;
    let mut gene_nnz = vec![0_u64; model.genes.n_genes()];
    let mut n_cells_done = 0;
    let take = |piece: Piece| {
        writer.write_obs(&obs.batch(model, &piece.cells)?)?;
        writer.write_x(LAYER, &piece.row_offsets, &piece.columns, &piece.values)?;
        for (total, nnz) in gene_nnz.iter_mut().zip(&piece.gene_nnz) {
            *total += u64::from(*nnz);
        }
        n_cells_done += piece.cells.len() as u64;
        progress(n_cells_done);
        check_interrupted(spec.interrupted)
    };
    let make = |piece_idx: u64| {
        let first = piece_idx * PIECE_CELLS;
        model.piece(first..model.n_cells().min(first + PIECE_CELLS))
    };
    pieces::in_order(spec.n_cells.div_ceil(PIECE_CELLS), n_threads(spec), make, take)?;
    writer.write_var(&var_batch(model, &gene_nnz)?)?;
    writer.finish()?;
    Ok(gene_nnz.iter().sum())
}

fn experiment_spec(spec: &GenerateSpec, obs: &ObsColumns) -> ExperimentSpec {
    ExperimentSpec {
        n_obs: spec.n_cells,
        n_var: spec.n_genes,
        obs: obs.specs(),
        var: var_specs(),
        measurement: MEASUREMENT.to_owned(),
        layers: vec![LAYER.to_owned()],
        extent: spec.extent,
        x_layout: XLayout::census(spec.zstd_level),
        fragment_rows: spec.fragment_rows,
        consolidate: spec.consolidate,
        config: spec.config.clone(),
    }
}

fn n_threads(spec: &GenerateSpec) -> usize {
    match spec.n_threads {
        0 => std::thread::available_parallelism().map_or(1, |n| n.get().min(MOST_THREADS)),
        n_threads => n_threads,
    }
}
