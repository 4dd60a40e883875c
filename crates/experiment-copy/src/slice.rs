//! Taking a part of an experiment: choosing, then streaming obs, var and X into a new one.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use arrow_schema::DataType;
use soma_io::{
    ColumnChoice, Config, CsrBuffers, Destination, Existing, Experiment, ExperimentSpec,
    ExperimentWriter, Extent, FrameCopy, GeneSelection, Measurement, ReadForm, ReaderChoice,
    RowRanges, ValueFilter, XLayout, XReader,
};

use crate::cells::{self, DatasetSlice, Wanted};
use crate::rows::Reads;
use crate::{Error, Genes};

/// The part of an experiment that is wanted. The default is all of `RNA` with its layer `raw`.
#[derive(Debug, Clone)]
pub struct SliceSpec {
    /// The measurement, as `RNA`.
    pub measurement: String,
    /// The layers of X, as `raw`; their values must be 32-bit floats.
    pub layers: Vec<String>,
    /// Cells of these joinids, of those that there are.
    pub joinids: Option<RowRanges>,
    /// Cells that match.
    pub obs_filter: Option<ValueFilter>,
    /// Cells of these data sets.
    pub datasets: Option<DatasetSlice>,
    /// The genes.
    pub genes: Genes,
    /// The columns of obs that are taken.
    pub obs_columns: ColumnChoice,
    /// The columns of var that are taken.
    pub var_columns: ColumnChoice,
    /// What the column of obs and var is called that keeps the joinids of the source, where there is to be one.
    pub joinid_column: Option<String>,
    /// What reads X.
    pub reader: ReaderChoice,
    /// How much memory rows on their way may take, in bytes. Beside it there are 16 bytes for each run of chosen cells, and what
    /// libtiledb takes.
    pub memory_bytes: u64,
    /// What becomes of an experiment that is where the new one goes.
    pub existing: Existing,
    /// The level of zstd for X.
    pub zstd_level: i32,
    /// How arrays say how large they are.
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

/// What a slice is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SliceEvent<'a> {
    /// A run that was killed had left something here, which is gone now.
    Leftover(&'a Path),
    /// Cells are being chosen.
    Choosing {
        /// So many were looked at; with data sets, twice.
        n_looked_at: u64,
    },
    /// The part is known.
    Chosen {
        /// The number of cells.
        n_cells: u64,
        /// The number of genes.
        n_genes: u64,
        /// What reads the first layer of X.
        reader: &'a str,
    },
    /// So many rows are written, of obs and of each layer: of all together as many as there are cells, times one more than layers.
    Written {
        /// The number of rows.
        n_rows: u64,
    },
}

/// What was taken.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct SliceReport {
    /// The number of cells.
    pub n_cells: u64,
    /// The number of genes.
    pub n_genes: u64,
    /// The number of data sets, where they were asked for.
    pub n_datasets: Option<usize>,
    /// The number of values, of all layers together.
    pub nnz: u64,
    /// Number of reads of X; more than one for each layer if not all of it fits into memory.
    pub n_reads: u64,
    /// The size of all files, where the new experiment is local.
    pub bytes_on_disk: Option<u64>,
    /// How long it took.
    pub seconds: f64,
}

/// Rows of obs or var that are taken together.
const FRAME_ROWS: u64 = 1 << 16;
/// Rows of X that are read together at most: more gain nothing.
const MOST_ROWS: u64 = 1 << 16;
/// Rows of X that are read together at least: fewer would take ages.
const LEAST_ROWS: u64 = 64;
/// Rows that the writer of X holds until they are a row of tiles.
const TILE_ROWS: u64 = 2048;
/// Bytes of a value in CSR.
const CSR_BYTES: u64 = 8;
/// Bytes of a value while a row of tiles is written: in CSR, as coordinates with the value, and as libtiledb's tiles of them.
const WRITING_BYTES: u64 = CSR_BYTES + 20 + 20;

/// Takes the part of `source` that `spec` names to `uri`, a local path or an address that libtiledb knows.
///
/// Joinids of the new experiment count on from 0 in the order of the source; all other columns are as they were, categories with all
/// their values. A local experiment is written under another name and renamed at the end. `watch` is told what happens, and can end
/// it; then nothing is left of what was written. In an object store objects stay that make no experiment, and are to be removed before
/// the next run there.
///
/// # Errors
/// What is not there, or cannot be read or written; nothing chosen; memory that does not do; [`Error::Interrupted`].
pub fn slice(
    source: &Experiment,
    uri: &str,
    spec: &SliceSpec,
    watch: &mut dyn FnMut(SliceEvent<'_>) -> ControlFlow<()>,
) -> Result<SliceReport, Error> {
    let started = Instant::now();
    let mut tell = |event: SliceEvent<'_>| match watch(event) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(Error::Interrupted),
    };
    let measurement = source.measurement(&spec.measurement)?;
    let layers = layers(&measurement, spec)?;
    let joinid_column = spec.joinid_column.as_deref();
    let obs = FrameCopy::new(source.obs()?, &spec.obs_columns, joinid_column)?;
    let var = FrameCopy::new(measurement.var()?, &spec.var_columns, joinid_column)?;
    // Before anything is looked through, since that may take long.
    let frames = [source.uri(), obs.frame().uri(), var.frame().uri()];
    let read = frames.into_iter().chain(layers.iter().map(|layer| layer.uri.as_str()));
    let destination = Destination::claim(uri, spec.existing, &read.collect::<Vec<_>>())?;
    if let Some(path) = destination.leftover() {
        tell(SliceEvent::Leftover(path))?;
    }
    let chosen = cells::choose(obs.frame(), &spec.wanted(), &mut |n_looked_at| {
        tell(SliceEvent::Choosing { n_looked_at })
    })?;
    let genes = spec.genes.choose(var.frame())?;
    let (n_cells, n_genes) = (chosen.cells.n_rows(), genes.n_rows());
    let reader = layers.first().map_or("none", |layer| layer.reader.name());
    tell(SliceEvent::Chosen { n_cells, n_genes, reader })?;

    let experiment = experiment_spec(spec, &obs, n_cells, &var, n_genes);
    let mut writer = ExperimentWriter::create(destination.uri(), experiment)?;
    for part in FrameCopy::parts(&genes, FRAME_ROWS) {
        writer.write_var(&var.read(&part)?)?;
    }
    let mut n_rows = 0;
    for part in FrameCopy::parts(&chosen.cells, FRAME_ROWS) {
        writer.write_obs(&obs.read(&part)?)?;
        n_rows += part.n_rows();
        tell(SliceEvent::Written { n_rows })?;
    }
    let (mut nnz, mut n_reads) = (0, 0);
    for layer in &layers {
        let copy = LayerCopy { layer, genes: &selection(&genes), spec };
        nnz += copy.write(&chosen.cells, &mut |rows| {
            writer.write_x(&layer.name, &rows.row_offsets, &rows.columns, &rows.values)?;
            n_rows += rows.n_rows() as u64;
            n_reads += 1;
            tell(SliceEvent::Written { n_rows })
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

/// A layer of X, and what reads it.
struct Layer {
    name: String,
    uri: String,
    reader: Arc<dyn XReader>,
}

/// The layers, whose values can be written as they are.
fn layers(measurement: &Measurement, spec: &SliceSpec) -> Result<Vec<Layer>, Error> {
    let open = |name: &String| {
        let x = measurement.x(name)?;
        let (name, uri) = (name.clone(), x.uri().to_owned());
        let layer = Layer { name, uri, reader: x.reader(spec.reader)? };
        match layer.reader.data_type() {
            DataType::Float32 => Ok(layer),
            other => {
                let data_type = other.clone();
                Err(Error::Values { layer: layer.name, uri: layer.uri, data_type })
            }
        }
    };
    spec.layers.iter().map(open).collect()
}

/// Genes as a read of X is asked for them: a run as a range, which is quicker than a list.
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

/// A layer of X on its way.
struct LayerCopy<'a> {
    layer: &'a Layer,
    genes: &'a GeneSelection,
    spec: &'a SliceSpec,
}

impl LayerCopy<'_> {
    /// Reads all rows, as many at a time as fit, and says how many values there were.
    ///
    /// Whether memory does is said before the first read, by the mean row; a run of denser rows is read in smaller parts, not refused.
    fn write(
        &self,
        cells: &RowRanges,
        each: &mut dyn FnMut(&CsrBuffers) -> Result<(), Error>,
    ) -> Result<u64, Error> {
        let mean = self.expected_row()?.max(1);
        let least_bytes = self.bytes_of(LEAST_ROWS.min(cells.n_rows()), mean);
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

    /// The values of a row of the chosen genes, as if all genes had as many.
    fn expected_row(&self) -> Result<u64, Error> {
        let (n_rows, n_columns) =
            (self.layer.reader.n_rows().max(1), self.layer.reader.n_columns().max(1));
        let share = self.genes.n_columns(n_columns)? as f64 / n_columns as f64;
        let nnz = self.layer.reader.nnz()?.unwrap_or(0) as f64 / n_rows as f64;
        Ok((nnz * share).ceil() as u64)
    }

    /// How many rows are read together, so that they fit into the memory beside those that are being written.
    fn rows_at_once(&self, row_nnz: u64) -> u64 {
        let mut n_rows = LEAST_ROWS;
        while n_rows < MOST_ROWS && self.bytes_of(2 * n_rows, row_nnz) <= self.spec.memory_bytes {
            n_rows *= 2;
        }
        n_rows
    }

    /// The memory that reading so many rows takes, and writing a row of tiles.
    fn bytes_of(&self, n_rows: u64, row_nnz: u64) -> u64 {
        let nnz = n_rows * row_nnz;
        let reading = self.layer.reader.working_bytes(nnz, self.genes, ReadForm::Csr);
        TILE_ROWS * row_nnz * WRITING_BYTES + nnz * CSR_BYTES + reading
    }

    /// X may hold a value twice, which has no meaning that could be kept.
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
