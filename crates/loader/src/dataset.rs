//! The source of samples: which rows of X, their obs columns, and which genes.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::{ArrowError, Schema};
use soma_io::{Experiment, GeneSelection, ReaderChoice, RowRanges, XReader};

use crate::cells::{Cells, JOINID};
use crate::error::Error;

/// Which part of an experiment is wanted.
#[derive(Clone, Debug)]
pub struct DatasetSpec {
    /// The measurement, as `RNA`.
    pub measurement: String,
    /// The layer of X, as `raw`.
    pub layer: String,
    /// The obs columns that come beside each batch. May be none; `soma_joinid` may be one.
    pub obs_columns: Vec<String>,
    /// The genes, which are the columns of every batch.
    pub genes: GeneSelection,
    /// The cells, as a range of joinids within obs; all those of obs where there is none.
    pub rows: Option<Range<u64>>,
    /// What reads X.
    pub reader: ReaderChoice,
}

/// The selected cells and genes of X, with the obs columns of those cells in memory. Cheap to clone.
#[derive(Clone)]
pub struct Dataset {
    x: Arc<dyn XReader>,
    cells: Cells,
    obs: RecordBatch,
    genes: GeneSelection,
    n_columns: usize,
}

impl Dataset {
    /// A data set of parts: row `i` of `obs` belongs to the `i`-th of `cells`.
    pub fn new(
        x: Arc<dyn XReader>,
        cells: Cells,
        obs: RecordBatch,
        genes: GeneSelection,
    ) -> Result<Self, Error> {
        cells.check_ascending()?;
        if cells.n_rows() != obs.num_rows() as u64 {
            return Err(Error::ObsLength { n_cells: cells.n_rows(), n_obs: obs.num_rows() });
        }
        if let Some(joinid) = cells.first_outside(x.n_rows()) {
            return Err(Error::CellOutsideX { joinid, x_rows: x.n_rows() });
        }
        let x_columns = x.n_columns();
        let n_columns = genes
            .n_columns(x_columns)
            .map_err(|source| Error::GenesOutsideX { x_columns, source: Box::new(source) })?;
        Ok(Self { x, cells, obs, genes, n_columns })
    }

    /// Opens X and reads the wanted obs columns of an experiment.
    pub fn from_experiment(experiment: &Experiment, spec: &DatasetSpec) -> Result<Self, Error> {
        let open = |what: String| move |source| Error::Open { what, source: Box::new(source) };
        let measurement = experiment
            .measurement(&spec.measurement)
            .map_err(open(format!("measurement {:?}", spec.measurement)))?;
        let x = measurement.x(&spec.layer).map_err(open(format!("layer {:?} of X", spec.layer)))?;
        let reader =
            x.reader(spec.reader).map_err(open(format!("a reader of layer {:?}", spec.layer)))?;

        let wanted: Vec<&str> = spec.obs_columns.iter().map(String::as_str).collect();
        let mut columns = wanted.clone();
        if !columns.contains(&JOINID) {
            columns.push(JOINID);
        }
        let rows = match &spec.rows {
            Some(rows) if rows.is_empty() => Some(RowRanges::default()),
            Some(rows) => Some(
                RowRanges::new(vec![rows.clone()]).map_err(open(format!("the cells {rows:?}")))?,
            ),
            None => None,
        };
        let obs = experiment
            .obs()
            .and_then(|obs| obs.read(Some(&columns), rows.as_ref()))
            .map_err(open(format!("obs columns {}", columns.join(", "))))?;
        let cells = Cells::from_obs(&obs)?;
        Self::new(
            reader,
            cells,
            project(&obs, &wanted).map_err(|source| Error::ObsColumns { source })?,
            spec.genes.clone(),
        )
    }

    /// The reader of X.
    pub fn x(&self) -> &Arc<dyn XReader> {
        &self.x
    }

    /// The selected cells.
    pub fn cells(&self) -> &Cells {
        &self.cells
    }

    /// The obs columns, a row for each selected cell.
    pub fn obs(&self) -> &RecordBatch {
        &self.obs
    }

    /// The selected genes.
    pub fn genes(&self) -> &GeneSelection {
        &self.genes
    }

    /// The number of selected cells.
    pub fn n_rows(&self) -> u64 {
        self.cells.n_rows()
    }

    /// The number of selected genes, the columns of every batch.
    pub fn n_columns(&self) -> usize {
        self.n_columns
    }

    /// Bytes of memory that the obs columns take, for as long as the data set or a loader of it is there.
    pub fn obs_bytes(&self) -> usize {
        self.obs.get_array_memory_size()
    }
}

impl fmt::Debug for Dataset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dataset")
            .field("x", &self.x)
            .field("n_rows", &self.n_rows())
            .field("n_columns", &self.n_columns)
            .field("obs_bytes", &self.obs_bytes())
            .finish_non_exhaustive()
    }
}

/// The columns of these names, in this order; may be none.
fn project(batch: &RecordBatch, names: &[&str]) -> Result<RecordBatch, ArrowError> {
    let schema = batch.schema();
    let positions =
        names.iter().map(|name| schema.index_of(name)).collect::<Result<Vec<_>, _>>()?;
    let fields: Vec<_> = positions.iter().map(|&idx| Arc::clone(&schema.fields()[idx])).collect();
    let columns = positions.iter().map(|&idx| Arc::clone(batch.column(idx))).collect();
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options)
}
