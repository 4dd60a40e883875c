//! Copying a part of an experiment: chooses cells and genes, then streams the tables and matrices.

use std::ops::ControlFlow;
use std::path::Path;
use std::time::Instant;

use soma_io::{
    ColumnChoice, Config, CsrBuffers, Destination, Existing, Experiment, ExperimentSpec,
    ExperimentWriter, Extent, FrameCopy, ReaderChoice, RowRanges, ValueFilter, XLayout,
};

use crate::beside::{Obsm, Other};
use crate::cells::{self, DatasetSlice, Wanted};
use crate::matrix::{FRAME_ROWS, Matrix, selection};
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
}

/// Progress of a slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SliceEvent<'a> {
    /// A killed run's leftover at this path was removed.
    Leftover(&'a Path),
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
    /// Number of reads of X; more than one per layer if it does not fit into memory.
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
/// which then leaves nothing behind. In an object store, objects of an unfinished copy remain and
/// must be removed before the next attempt there.
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
    let measurement = source.measurement(&spec.measurement)?;
    let layers = Matrix::layers(&measurement, &spec.layers, spec.reader)?;
    let joinid_column = spec.joinid_column.as_deref();
    let obs = FrameCopy::new(source.obs()?, &spec.obs_columns, joinid_column)?;
    let var = FrameCopy::new(measurement.var()?, &spec.var_columns, joinid_column)?;
    let others =
        spec.others.iter().map(|name| Other::open(source, name, spec.reader, joinid_column));
    let others: Vec<Other> = others.collect::<Result<_, _>>()?;
    let obsm = spec.obsm.iter().map(|name| Obsm::open(&measurement, name, spec.reader));
    let obsm: Vec<Obsm> = obsm.collect::<Result<_, _>>()?;
    // Check early: scanning may take long.
    let frames = [source.uri(), obs.frame().uri(), var.frame().uri()];
    let of_others = others.iter().flat_map(|other| &other.layers);
    let matrices: Vec<&Matrix> =
        layers.iter().chain(of_others).chain(obsm.iter().map(|array| &array.matrix)).collect();
    let read = frames.into_iter().chain(matrices.iter().map(|matrix| matrix.uri.as_str()));
    let destination = Destination::claim(uri, spec.existing, &read.collect::<Vec<_>>())?;
    if let Some(path) = destination.leftover() {
        notify(SliceEvent::Leftover(path))?;
    }
    let chosen = cells::choose(obs.frame(), &spec.wanted(), &mut |n_scanned| {
        notify(SliceEvent::Choosing { n_scanned })
    })?;
    let genes = spec.genes.choose(var.frame())?;
    let (n_cells, n_genes) = (chosen.cells.n_rows(), genes.n_rows());
    let reader = layers.first().map_or("none", |layer| layer.reader.name());
    let n_rows = n_cells * (1 + matrices.len() as u64);
    notify(SliceEvent::Chosen { n_cells, n_genes, reader, n_rows })?;

    let experiment = experiment_spec(spec, &obs, n_cells, &var, n_genes);
    let mut writer = ExperimentWriter::create(destination.uri(), experiment)?;
    let uns = if spec.uns { measurement.uns()? } else { None };
    let uns = uns.map(|uns| writer.write_uns(&uns)).transpose()?;
    for part in FrameCopy::parts(&genes, FRAME_ROWS) {
        writer.write_var(&var.read(&part)?)?;
    }
    let mut n_rows = 0;
    for part in FrameCopy::parts(&chosen.cells, FRAME_ROWS) {
        writer.write_obs(&obs.read(&part)?)?;
        n_rows += part.n_rows();
        notify(SliceEvent::Written { n_rows })?;
    }
    let mut progress = |rows: &CsrBuffers| {
        n_rows += rows.n_rows() as u64;
        notify(SliceEvent::Written { n_rows })
    };
    let cells = &chosen.cells;
    let (mut nnz, mut n_reads) = (0, 0);
    for layer in &layers {
        nnz += layer.copy(cells, &selection(&genes), spec.memory_bytes, &mut |rows| {
            writer.write_x(&layer.name, &rows.row_offsets, &rows.columns, &rows.values)?;
            n_reads += 1;
            progress(rows)
        })?;
    }
    for array in &obsm {
        array.copy(cells, spec.memory_bytes, &mut writer, &mut progress)?;
    }
    for other in &others {
        other.copy(cells, spec.memory_bytes, &mut writer, &mut progress)?;
    }
    writer.finish()?;
    let bytes_on_disk = destination.publish()?;
    let seconds = started.elapsed().as_secs_f64();
    let rounded = obsm.iter().filter(|array| array.is_rounded);
    Ok(SliceReport {
        n_cells,
        n_genes,
        n_datasets: chosen.n_datasets,
        nnz,
        n_reads,
        rounded: rounded.map(|array| array.matrix.name.clone()).collect(),
        left_out_of_uns: uns.unwrap_or_default(),
        bytes_on_disk,
        seconds,
    })
}

fn experiment_spec(
    spec: &SliceSpec,
    obs: &FrameCopy,
    n_obs: u64,
    var: &FrameCopy,
    n_var: u64,
) -> ExperimentSpec {
    ExperimentSpec {
        n_obs,
        n_var,
        obs: obs.specs().to_vec(),
        var: var.specs().to_vec(),
        measurement: spec.measurement.clone(),
        layers: spec.layers.clone(),
        extent: spec.extent,
        x_layout: XLayout::census(spec.zstd_level),
        fragment_rows: None,
        consolidate: false,
        config: spec.config.clone(),
    }
}
