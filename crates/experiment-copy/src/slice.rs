//! Copying a part of an experiment: chooses cells and genes, then streams the tables and matrices.

use std::num::NonZeroU64;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Instant;

use soma_io::{
    ColumnChoice, Config, Destination, Existing, Experiment, ExperimentWriter, Extent, FrameCopy,
    ReaderChoice, RowRanges, ValueFilter,
};

use crate::cells::{self, DatasetSlice, Wanted};
use crate::matrix::FRAME_ROWS;
use crate::parts::{Parts, Rows};
use crate::{Error, Genes};

/// The part of an experiment to copy. The default is all of `RNA` with its layer `raw`.
#[derive(Debug, Clone)]
pub struct SliceSpec {
    /// Name of the measurement, for instance `RNA`.
    pub measurement: String,
    /// Layers of X, for instance `raw`. They are written as 32-bit floats; a value that these do
    /// not have is an error.
    pub layers: Vec<String>,
    /// Arrays of obsm. They are written as 32-bit floats, to which other values are rounded.
    pub obsm: Vec<String>,
    /// Other measurements, for instance `raw`, with all their genes and layers.
    pub others: Vec<String>,
    /// Whether the plain values of uns are copied, if the source is an AnnData.
    pub uns: bool,
    /// Only cells with these joinids; missing ones are skipped.
    pub joinids: Option<RowRanges>,
    /// Only cells that match.
    pub obs_filter: Option<ValueFilter>,
    /// Only cells of these data sets.
    pub datasets: Option<DatasetSlice>,
    /// The genes to copy.
    pub genes: Genes,
    /// The columns of obs to copy.
    pub obs_columns: ColumnChoice,
    /// The columns of var to copy.
    pub var_columns: ColumnChoice,
    /// Name of a new column in obs and var with the source's joinids; `None` for no such column.
    pub joinid_column: Option<String>,
    /// The reader of X.
    pub reader: ReaderChoice,
    /// Memory limit for rows in transit, in bytes. Not included are 16 bytes per run of chosen
    /// cells, and libtiledb's own memory.
    pub memory_bytes: u64,
    /// Treatment of an existing experiment at the destination.
    pub existing: Existing,
    /// Makes a copy of an AnnData to a folder resumable: an unfinished one stays there, and another
    /// of the same parts goes on with it. Each matrix is written in fragments of at most about this
    /// many values, and what was written of the last one is written again. `None`, and copies of
    /// other sources, leave nothing.
    pub resumable: Option<NonZeroU64>,
    /// Compression level of zstd for X.
    pub zstd_level: i32,
    /// How arrays declare their size.
    pub extent: Extent,
    /// TileDB's parameters for writing.
    pub config: Config,
}

impl Default for SliceSpec {
    fn default() -> Self {
        Self {
            measurement: "RNA".to_owned(),
            layers: vec!["raw".to_owned()],
            obsm: Vec::new(),
            others: Vec::new(),
            uns: false,
            joinids: None,
            obs_filter: None,
            datasets: None,
            genes: Genes::All,
            obs_columns: ColumnChoice::All,
            var_columns: ColumnChoice::All,
            joinid_column: None,
            reader: ReaderChoice::Auto,
            memory_bytes: 1 << 30,
            existing: Existing::Keep,
            resumable: None,
            zstd_level: 9,
            extent: Extent::CurrentDomain,
            config: Config::new(),
        }
    }
}

impl SliceSpec {
    fn wanted(&self) -> Wanted<'_> {
        Wanted {
            joinids: self.joinids.as_ref(),
            filter: self.obs_filter.as_ref(),
            datasets: self.datasets.as_ref(),
        }
    }

    /// What the new experiment depends on: equal texts mean equal experiments. `None` if the copy
    /// cannot be resumed.
    fn task(&self, source: &Experiment) -> Result<Option<String>, Error> {
        if self.resumable.is_none() {
            return Ok(None);
        }
        let Some(state) = source.anndata_version()? else { return Ok(None) };
        let place = match soma_io::local_path(source.uri()) {
            Some(path) => std::path::absolute(path).unwrap_or_else(|_| path.to_owned()),
            None => source.uri().into(),
        };
        // Settings may be secrets.
        let config = Config::new();
        let parts = Self { memory_bytes: 0, existing: Existing::Keep, config, ..self.clone() };
        let version = env!("CARGO_PKG_VERSION");
        Ok(Some(format!("somafeed {version}: {parts:?} of {}\n{state}", place.display())))
    }
}

/// Progress of a slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SliceEvent<'a> {
    /// A killed run's leftover at this path was removed.
    Leftover(&'a Path),
    /// The copy goes on with what an earlier one left at this path, which stays there if it fails.
    Resumed(&'a Path),
    /// From now on, what is written stays at this path if the copy fails.
    KeptOnFailure(&'a Path),
    /// Cells are being chosen.
    Choosing {
        /// Cells scanned so far; each cell counts twice if data sets are requested.
        n_scanned: u64,
    },
    /// Cells and genes are chosen.
    Chosen {
        /// Number of cells.
        n_cells: u64,
        /// Number of genes.
        n_genes: u64,
        /// Name of the reader of X's first layer.
        reader: &'a str,
        /// Rows that will be written: those of obs and of each matrix.
        n_rows: u64,
    },
    /// Rows of obs and of the matrices are written.
    Written {
        /// Rows written so far.
        n_rows: u64,
    },
}

/// The result of [`slice()`].
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct SliceReport {
    /// Number of cells.
    pub n_cells: u64,
    /// Number of genes.
    pub n_genes: u64,
    /// Number of data sets, if they were requested.
    pub n_datasets: Option<usize>,
    /// Number of values, summed over the layers of the measurement.
    pub nnz: u64,
    /// Number of reads of X; more than one per layer if it does not fit into memory, fewer if the
    /// copy was resumed.
    pub n_reads: u64,
    /// Arrays of obsm whose values were rounded to 32-bit floats.
    pub rounded: Vec<String>,
    /// The path within uns of each element that was left out, and why.
    pub left_out_of_uns: Vec<(String, String)>,
    /// Size of all files in bytes, if the new experiment is local.
    pub bytes_on_disk: Option<u64>,
    /// Duration in seconds.
    pub seconds: f64,
}

/// Copies the part of `source` that `spec` selects to `uri`, a local path or an address in an
/// object store, to which libtiledb writes.
///
/// Joinids of the new experiment count from 0 in the order of the source. All other columns keep
/// their values, and categorical columns all their categories. A local experiment is written under
/// another name and renamed at the end. `watch` is called with the progress and can end the copy,
/// which then leaves nothing behind, unless it can be [resumed](SliceSpec::resumable). In an object
/// store, objects of an unfinished copy remain and must be removed before the next attempt there.
///
/// # Errors
/// Something to copy is missing; reading or writing fails; no cell or gene is chosen; the memory
/// limit is too small; [`Error::Interrupted`].
pub fn slice(
    source: &Experiment,
    uri: &str,
    spec: &SliceSpec,
    watch: &mut dyn FnMut(SliceEvent<'_>) -> ControlFlow<()>,
) -> Result<SliceReport, Error> {
    let started = Instant::now();
    let mut notify = |event: SliceEvent<'_>| match watch(event) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(Error::Interrupted),
    };
    // Open everything early: scanning may take long.
    let parts = Parts::open(source, spec)?;
    let (task, read) = (spec.task(source)?, parts.places(source));
    let mut destination = match &task {
        Some(task) => Destination::resume(uri, spec.existing, &read, task)?,
        None => Destination::claim(uri, spec.existing, &read)?,
    };
    if let Some(path) = destination.leftover() {
        notify(SliceEvent::Leftover(path))?;
    }
    if let Some(path) = destination.resumed() {
        notify(SliceEvent::Resumed(path))?;
    }
    let chosen = cells::choose(parts.obs.frame(), &spec.wanted(), &mut |n_scanned| {
        notify(SliceEvent::Choosing { n_scanned })
    })?;
    let (cells, genes) = (&chosen.cells, spec.genes.choose(parts.var.frame())?);
    let (n_cells, n_genes) = (cells.n_rows(), genes.n_rows());
    let reader = parts.layers.first().map_or("none", |layer| layer.reader.name());
    let n_rows = n_cells * (1 + parts.matrices().count() as u64);
    notify(SliceEvent::Chosen { n_cells, n_genes, reader, n_rows })?;
    // For all matrices, before the first is written.
    parts.check_memory(spec.memory_bytes, n_cells, &genes)?;

    let fragment_values = spec.resumable.filter(|_| task.is_some());
    let experiment = parts.experiment(spec, n_cells, &genes, fragment_values)?;
    let mut writer = match &task {
        Some(_) if destination.is_local() => {
            ExperimentWriter::resume(destination.uri(), experiment)?
        }
        _ => ExperimentWriter::create(destination.uri(), experiment)?,
    };
    let left_out_of_uns = parts.write_uns_and_var(&mut writer, spec, &genes)?;
    let mut n_rows = 0;
    if writer.n_obs_written() == 0 {
        for part in FrameCopy::parts(cells, FRAME_ROWS) {
            writer.write_obs(&parts.obs.read(&part)?)?;
            n_rows += part.n_rows();
            notify(SliceEvent::Written { n_rows })?;
        }
    }
    if let Some(path) = task.and_then(|_| destination.keep_unfinished()) {
        notify(SliceEvent::KeptOnFailure(path))?;
    }
    n_rows = writer.n_obs_written();
    let mut progress = |added: u64| {
        n_rows += added;
        notify(SliceEvent::Written { n_rows })
    };
    let n_reads =
        parts.write_matrices(&mut writer, Rows { cells, genes: &genes }, spec, &mut progress)?;
    let nnz = writer.main_measurement().nnz();
    writer.finish()?;
    let bytes_on_disk = destination.publish()?;
    let seconds = started.elapsed().as_secs_f64();
    let rounded = parts.obsm.iter().filter(|array| array.is_rounded);
    Ok(SliceReport {
        n_cells,
        n_genes,
        n_datasets: chosen.n_datasets,
        nnz,
        n_reads,
        rounded: rounded.map(|array| array.matrix.name.clone()).collect(),
        left_out_of_uns,
        bytes_on_disk,
        seconds,
    })
}
