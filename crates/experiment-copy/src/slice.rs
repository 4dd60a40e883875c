//! Copying a part of an experiment: chooses cells and genes, then streams obs, var and X.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use soma_io::{
    ColumnChoice, Config, CsrBuffers, Destination, Existing, Experiment, ExperimentSpec,
    ExperimentWriter, Extent, FrameCopy, GeneSelection, Measurement, ReadForm, ReaderChoice,
    RowRanges, ValueFilter, XLayout, XReader,
};

use crate::cells::{self, DatasetSlice, Wanted};
use crate::rows::Reads;
use crate::{Error, Genes};

/// The part of an experiment to copy. The default is all of `RNA` with its layer `raw`.
#[derive(Debug, Clone)]
pub struct SliceSpec {
    /// Name of the measurement, for instance `RNA`.
    pub measurement: String,
    /// Layers of X, for instance `raw`. They are written as 32-bit floats; a value that these do
    /// not have is an error.
    pub layers: Vec<String>,
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
    },
    /// Rows of obs and of each layer are written. The final number is the number of cells times (1
    /// + number of layers).
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
    /// Number of values, summed over the layers.
    pub nnz: u64,
    /// Number of reads of X; more than one per layer if it does not fit into memory.
    pub n_reads: u64,
    /// Size of all files in bytes, if the new experiment is local.
    pub bytes_on_disk: Option<u64>,
    /// Duration in seconds.
    pub seconds: f64,
}

/// Rows of obs or var that are copied together.
const FRAME_ROWS: u64 = 1 << 16;
/// Largest number of rows of X per read; more gain nothing.
const MAX_ROWS: u64 = 1 << 16;
/// Smallest number of rows of X per read; fewer would take too long.
const MIN_ROWS: u64 = 64;
/// Rows that the writer of X buffers for one row of tiles.
const TILE_ROWS: u64 = 2048;
/// Bytes of a value in CSR.
const CSR_BYTES: u64 = 8;
/// Bytes of a value while a row of tiles is written: in CSR, as coordinates with the value, and as
/// libtiledb's tiles of them.
const WRITING_BYTES: u64 = CSR_BYTES + 20 + 20;

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
    let layers = layers(&measurement, spec)?;
    let joinid_column = spec.joinid_column.as_deref();
    let obs = FrameCopy::new(source.obs()?, &spec.obs_columns, joinid_column)?;
    let var = FrameCopy::new(measurement.var()?, &spec.var_columns, joinid_column)?;
    // Check early: scanning may take long.
    let frames = [source.uri(), obs.frame().uri(), var.frame().uri()];
    let read = frames.into_iter().chain(layers.iter().map(|layer| layer.uri.as_str()));
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
    notify(SliceEvent::Chosen { n_cells, n_genes, reader })?;

    let experiment = experiment_spec(spec, &obs, n_cells, &var, n_genes);
    let mut writer = ExperimentWriter::create(destination.uri(), experiment)?;
    for part in FrameCopy::parts(&genes, FRAME_ROWS) {
        writer.write_var(&var.read(&part)?)?;
    }
    let mut n_rows = 0;
    for part in FrameCopy::parts(&chosen.cells, FRAME_ROWS) {
        writer.write_obs(&obs.read(&part)?)?;
        n_rows += part.n_rows();
        notify(SliceEvent::Written { n_rows })?;
    }
    let (mut nnz, mut n_reads) = (0, 0);
    for layer in &layers {
        let copy = LayerCopy { layer, genes: &selection(&genes), spec };
        nnz += copy.write(&chosen.cells, &mut |rows| {
            writer.write_x(&layer.name, &rows.row_offsets, &rows.columns, &rows.values)?;
            n_rows += rows.n_rows() as u64;
            n_reads += 1;
            notify(SliceEvent::Written { n_rows })
        })?;
    }
    writer.finish()?;
    let bytes_on_disk = destination.publish()?;
    let seconds = started.elapsed().as_secs_f64();
    Ok(SliceReport {
        n_cells,
        n_genes,
        n_datasets: chosen.n_datasets,
        nnz,
        n_reads,
        bytes_on_disk,
        seconds,
    })
}

/// A layer of X and its reader.
struct Layer {
    name: String,
    uri: String,
    reader: Arc<dyn XReader>,
}

/// Opens the layers. Reading one fails at a value that 32-bit floats do not have.
fn layers(measurement: &Measurement, spec: &SliceSpec) -> Result<Vec<Layer>, Error> {
    let open = |name: &String| {
        let x = measurement.x(name)?;
        let (name, uri) = (name.clone(), x.uri().to_owned());
        Ok(Layer { name, uri, reader: x.exact_reader(spec.reader)? })
    };
    spec.layers.iter().map(open).collect()
}

/// Requests a run of genes as a range, which reads faster than a list.
fn selection(genes: &RowRanges) -> GeneSelection {
    match genes.ranges() {
        [one] => GeneSelection::Range(one.clone()),
        _ => GeneSelection::List(genes.iter().collect()),
    }
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

/// A layer of X that is being copied.
struct LayerCopy<'a> {
    layer: &'a Layer,
    genes: &'a GeneSelection,
    spec: &'a SliceSpec,
}

impl LayerCopy<'_> {
    /// Copies all rows, as many at a time as fit, and returns the number of values.
    ///
    /// Checks the memory limit before the first read, by the mean row. A run of denser rows is read
    /// in smaller parts rather than rejected.
    fn write(
        &self,
        cells: &RowRanges,
        each: &mut dyn FnMut(&CsrBuffers) -> Result<(), Error>,
    ) -> Result<u64, Error> {
        let mean = self.expected_row()?.max(1);
        let least_bytes = self.bytes_of(MIN_ROWS.min(cells.n_rows()), mean);
        if least_bytes > self.spec.memory_bytes {
            let memory_bytes = self.spec.memory_bytes;
            return Err(Error::Memory { memory_bytes, n_values: mean, least_bytes });
        }
        let mut reads = Reads::new(cells);
        let mut rows = CsrBuffers::default();
        let (mut nnz, mut latest) = (0, mean);
        while let Some(part) = reads.next(self.rows_at_once(latest.max(mean)))? {
            self.layer.reader.read_csr(&part, self.genes, &mut rows)?;
            self.check_ascending(&part, &rows)?;
            each(&rows)?;
            nnz += rows.nnz() as u64;
            latest = (rows.nnz() as u64).div_ceil(rows.n_rows().max(1) as u64);
        }
        Ok(nnz)
    }

    /// Mean values per row of the chosen genes, if all genes had equally many.
    fn expected_row(&self) -> Result<u64, Error> {
        let (n_rows, n_columns) =
            (self.layer.reader.n_rows().max(1), self.layer.reader.n_columns().max(1));
        let share = self.genes.n_columns(n_columns)? as f64 / n_columns as f64;
        let nnz = self.layer.reader.nnz()?.unwrap_or(0) as f64 / n_rows as f64;
        Ok((nnz * share).ceil() as u64)
    }

    /// Rows per read that fit into memory beside those that are being written.
    fn rows_at_once(&self, row_nnz: u64) -> u64 {
        let mut n_rows = MIN_ROWS;
        while n_rows < MAX_ROWS && self.bytes_of(2 * n_rows, row_nnz) <= self.spec.memory_bytes {
            n_rows *= 2;
        }
        n_rows
    }

    /// Memory for reading that many rows and writing a row of tiles.
    fn bytes_of(&self, n_rows: u64, row_nnz: u64) -> u64 {
        let nnz = n_rows * row_nnz;
        let reading = self.layer.reader.working_bytes(nnz, self.genes, ReadForm::Csr);
        TILE_ROWS * row_nnz * WRITING_BYTES + nnz * CSR_BYTES + reading
    }

    /// Fails if X has a value twice: the new experiment could not represent it.
    fn check_ascending(&self, part: &RowRanges, rows: &CsrBuffers) -> Result<(), Error> {
        for (row_idx, joinid) in part.iter().enumerate() {
            let (columns, _) = rows.row(row_idx);
            if let Some([gene, _]) = columns.array_windows().find(|[gene, next]| gene == next) {
                return Err(Error::ValueTwice { uri: self.layer.uri.clone(), joinid, gene: *gene });
            }
        }
        Ok(())
    }
}
