//! Writing a generated experiment: several threads make pieces of cells, one thread writes them.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use soma_io::{Config, Destination, Existing, ExperimentSpec, ExperimentWriter, Extent, XLayout};

use crate::columns::{ObsColumns, var_batch, var_specs};
use crate::model::{Model, Piece};
use crate::{Error, LAYER, MEASUREMENT, pieces};

/// Cells per piece: one row of X's tiles, so that the writer can pass each piece on at once.
const PIECE_CELLS: u64 = 2048;
/// Largest number of threads: with more, pieces would only wait for the writer.
const MAX_THREADS: usize = 8;
const MAX_CELLS: u64 = 1_000_000_000;
const MAX_GENES: u64 = 1_000_000;

/// Specifies a Census-shaped experiment to generate. Cells, genes and values depend on the first
/// three fields only.
#[derive(Debug, Clone)]
pub struct GenerateSpec {
    /// Number of cells, 1 to a billion.
    pub n_cells: u64,
    /// Number of genes, 1 to a million.
    pub n_genes: u64,
    /// Seed of all random choices.
    pub seed: u64,
    /// Threads that make cells; 0 for one per processor, at most 8.
    pub n_threads: usize,
    /// Ends a fragment of X after at least this number of rows; `None` writes one fragment.
    pub fragment_rows: Option<u64>,
    /// Whether fragments of X are merged at the end, each value keeping its timestamp, like in the
    /// Census. Has no effect on a single fragment.
    pub consolidate: bool,
    /// Compression level of zstd for X.
    pub zstd_level: i32,
    /// How arrays declare their size.
    pub extent: Extent,
    /// TileDB's parameters.
    pub config: Config,
    /// Ends the run with [`Error::Interrupted`] soon after this is set.
    pub interrupted: Option<&'static AtomicBool>,
}

impl Default for GenerateSpec {
    /// 20,000 cells by 20,000 genes with about 31 million values, in one fragment.
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

/// The result of [`generate`].
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct GenerateReport {
    /// Number of cells.
    pub n_cells: u64,
    /// Number of genes.
    pub n_genes: u64,
    /// Number of values in X.
    pub nnz: u64,
    /// Size of all files in bytes, if the experiment is local.
    pub bytes_on_disk: Option<u64>,
    /// Duration in seconds.
    pub seconds: f64,
    /// A killed run's leftover that was removed.
    pub leftover: Option<PathBuf>,
}

/// Generates a Census-shaped experiment at `uri`, a local path or an address in an object store,
/// to which libtiledb writes. Nothing may exist there yet.
///
/// A local experiment is written to a folder with the suffix `.partial` and renamed at the end; the
/// leftover of a killed run is removed. Memory does not grow with the number of cells: about 30 MB
/// for each thread's piece, 8 bytes per gene for each of 100 cell types, and 20 bytes per value
/// of 2,048 cells while they are written. `progress` is called with the number of cells written so far.
///
/// # Errors
/// A size is out of range, writing fails, or the run is interrupted.
pub fn generate(
    uri: &str,
    spec: &GenerateSpec,
    progress: &mut dyn FnMut(u64),
) -> Result<GenerateReport, Error> {
    let started = Instant::now();
    check("the number of cells", spec.n_cells, MAX_CELLS)?;
    check("the number of genes", spec.n_genes, MAX_GENES)?;
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

/// Fails if the caller interrupted the run.
pub(crate) fn check_interrupted(interrupted: Option<&AtomicBool>) -> Result<(), Error> {
    if interrupted.is_some_and(|interrupted| interrupted.load(Ordering::Relaxed)) {
        return Err(Error::Interrupted);
    }
    Ok(())
}

/// Writes everything and returns the number of values.
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
        0 => std::thread::available_parallelism().map_or(1, |n| n.get().min(MAX_THREADS)),
        n_threads => n_threads,
    }
}
