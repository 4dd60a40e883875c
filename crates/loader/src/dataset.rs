//! A data set: selected cells and genes of one experiment or several, with their obs columns.

mod readers;

use std::fmt;
use std::hash::Hasher as _;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::RecordBatch;
use pipeline::Upcoming;
use soma_io::{CsrBuffers, GeneSelection, MemoryReader, NextReads, XReader};
use twox_hash::XxHash3_64;

use crate::beside::Beside;
use crate::cells::Cells;
use crate::error::{ConcatError, DatasetError, columns_error, open_error};
use crate::neighbours::NeighbourSpec;
use crate::selected::{ColumnPlaces, Part, Selected, SelectedMatrix};

/// Selected cells and genes of X, with the cells' obs columns in memory. Cheap to clone.
///
/// Its rows are the selected cells of its experiments, one experiment after another.
/// [`Dataset::concat`] combines several data sets.
#[derive(Clone)]
pub struct Dataset {
    pub(crate) sources: Arc<[Selected]>,
    /// The matrices beside X.
    pub(crate) beside: Arc<[Beside]>,
    /// The neighbours whose rows come with the batches.
    pub(crate) neighbours: Option<NeighbourSpec>,
    /// The first row of each source, then the number of rows.
    pub(crate) starts: Arc<[u64]>,
    pub(crate) obs: RecordBatch,
    /// One column per encoder, of the narrowest integers that have all its codes.
    pub(crate) codes: RecordBatch,
    /// One row per batch column.
    pub(crate) var: RecordBatch,
    /// The var of each modality, in their order: one row per column.
    pub(crate) modality_var: Arc<[RecordBatch]>,
    /// The total of each row, to scale its values by.
    pub(crate) totals: Option<Arc<[f64]>>,
    pub(crate) n_columns: usize,
    /// What to say if an experiment lacks most of the named genes.
    pub(crate) gene_warning: Option<Arc<str>>,
    /// The layer of X that was taken because none was named.
    pub(crate) unnamed_layer: Option<Arc<str>>,
}

impl Dataset {
    /// A data set of rows in memory: row `i` of `csr` is the cell that row `i` of `obs` describes,
    /// and column `j` the gene that row `j` of `var` describes. Needs no experiment and no
    /// libtiledb.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use arrow_array::{ArrayRef, RecordBatch, StringArray};
    /// use loader::{Dataset, Loader, LoaderSpec, PipelineSpec};
    /// use soma_io::CsrBuffers;
    ///
    /// // Three cells x two genes.
    /// let x = CsrBuffers {
    ///     row_offsets: vec![0, 1, 3, 3],
    ///     columns: vec![1, 0, 1],
    ///     values: vec![5.0, 1.0, 2.0],
    ///     n_columns: 2,
    /// };
    /// let texts = |texts: &[&str]| Arc::new(StringArray::from(texts.to_vec())) as ArrayRef;
    /// let obs = RecordBatch::try_from_iter([("cell_type", texts(&["B", "T", "B"]))])?;
    /// let var = RecordBatch::try_from_iter([("feature_id", texts(&["CD19", "CD3E"]))])?;
    /// let dataset = Dataset::in_memory(x, obs, var)?;
    ///
    /// let pipeline = PipelineSpec { batch_rows: 2, ..PipelineSpec::default() };
    /// let loader = Loader::new(dataset, LoaderSpec { pipeline, ..LoaderSpec::default() })?;
    /// let mut joinids = Vec::new();
    /// for batch in loader.epoch(0)? {
    ///     joinids.extend(batch?.joinids);
    /// }
    /// joinids.sort_unstable();
    /// assert_eq!(joinids, [0, 1, 2]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Parts of `csr` that do not fit together; `obs` and `var` that do not have a row for each row
    /// and column of it.
    pub fn in_memory(
        csr: CsrBuffers,
        obs: RecordBatch,
        var: RecordBatch,
    ) -> Result<Self, DatasetError> {
        let (n_rows, n_columns) = (csr.n_rows() as u64, csr.n_columns);
        if var.num_rows() != n_columns {
            return Err(DatasetError::VarLength { n_genes: n_columns, n_var: var.num_rows() });
        }
        let x = MemoryReader::new(csr).map_err(open_error("rows in memory".to_owned()))?;
        let genes = genes_of_x(GeneSelection::All, n_columns as u64)?;
        let source = Selected::new(Cells::Range(0..n_rows), Arc::new(x), genes);
        Self::of_source(source, obs, var)
    }

    /// Makes a data set from a reader of X and the selected cells and genes. Row `i` of `obs`
    /// belongs to the `i`-th cell.
    ///
    /// # Errors
    /// Joinids do not ascend, obs has another number of rows than there are cells, or cells or
    /// genes are outside X.
    pub fn new(
        x: Arc<dyn XReader>,
        cells: Cells,
        obs: RecordBatch,
        genes: GeneSelection,
    ) -> Result<Self, DatasetError> {
        let genes = genes_of_x(genes, x.n_columns())?;
        let var = crate::obs::without_columns("var", genes.n_columns)?;
        Self::of_source(Selected::new(cells, x, genes), obs, var)
    }

    /// A data set of one experiment; `var` has one row per batch column.
    pub(crate) fn of_source(
        source: Selected,
        obs: RecordBatch,
        var: RecordBatch,
    ) -> Result<Self, DatasetError> {
        let Selected { cells, x: SelectedMatrix { reader: x, columns, .. }, .. } = &source;
        cells.check_ascending()?;
        if cells.n_rows() != obs.num_rows() as u64 {
            return Err(DatasetError::ObsLength { n_cells: cells.n_rows(), n_obs: obs.num_rows() });
        }
        if let Some(joinid) = cells.first_outside(x.n_rows()) {
            return Err(DatasetError::CellOutsideX { joinid, x_rows: x.n_rows() });
        }
        let n_columns = columns.n_columns;
        let starts = Arc::new([0, cells.n_rows()]);
        let codes = crate::obs::without_columns("the codes", obs.num_rows())?;
        let (sources, beside) = (Arc::new([source]), Arc::new([]));
        Ok(Self {
            sources,
            beside,
            neighbours: None,
            starts,
            obs,
            codes,
            var,
            modality_var: Arc::new([]),
            totals: None,
            n_columns,
            gene_warning: None,
            unnamed_layer: None,
        })
    }

    /// Adds a total for each cell, by which its values can be [scaled](crate::Totals::Obs).
    ///
    /// # Errors
    /// The number of totals is not the number of cells.
    pub fn with_totals(self, totals: Vec<f64>) -> Result<Self, DatasetError> {
        if totals.len() as u64 != self.n_rows() {
            return Err(DatasetError::TotalsLength { found: totals.len(), n_cells: self.n_rows() });
        }
        Ok(Self { totals: Some(totals.into()), ..self })
    }

    /// Concatenates data sets into one that is shuffled as a whole: the rows of the first, then
    /// those of the second, and so on. [`Batch::experiments`](crate::Batch::experiments) has the
    /// experiment of each row.
    ///
    /// All must have the same genes as columns: select them by `Genes::Named`,
    /// or let `Dataset::from_experiments` align them. The var columns are those of the first.
    ///
    /// # Errors
    /// `datasets` is empty; gene counts differ; obs columns or codes differ in name or type; the
    /// layers, arrays of obsm or modalities beside X differ, in name, order or number of columns;
    /// only some have totals; no layer was named, and that of one has another name than that of
    /// another.
    pub fn concat(datasets: &[Self]) -> Result<Self, ConcatError> {
        let [first, others @ ..] = datasets else { return Err(ConcatError::NoDatasets) };
        for (idx, other) in (1..).zip(others) {
            if other.n_columns != first.n_columns {
                return Err(ConcatError::Genes {
                    idx,
                    n_columns: other.n_columns,
                    first: first.n_columns,
                });
            }
            first.check_same_matrices(idx, other)?;
        }
        check_unnamed_layers(datasets)?;
        let parts = |of: fn(&Self) -> &RecordBatch| datasets.iter().map(of).collect::<Vec<_>>();
        let obs = crate::obs::concat(&parts(|dataset| &dataset.obs))?;
        let codes = crate::encode::unified(&parts(|dataset| &dataset.codes))
            .map_err(columns_error("the codes"))?;
        let codes = crate::obs::concat(&codes.iter().collect::<Vec<_>>())?;
        let sources: Arc<[Selected]> =
            datasets.iter().flat_map(|dataset| dataset.sources.iter().cloned()).collect();
        let totals: Option<Vec<&[f64]>> = datasets.iter().map(Self::totals).collect();
        if totals.is_none()
            && let Some(idx) =
                datasets.iter().position(|one| one.totals.is_some() != first.totals.is_some())
        {
            let problem = "one has totals, the other has none".to_owned();
            return Err(ConcatError::Obs { idx, problem });
        }
        Ok(Self {
            starts: Self::starts_of(&sources),
            sources,
            beside: Arc::clone(&first.beside),
            neighbours: first.neighbours.clone(),
            obs,
            codes,
            var: first.var.clone(),
            modality_var: Arc::clone(&first.modality_var),
            totals: totals.map(|totals| totals.concat().into()),
            n_columns: first.n_columns,
            gene_warning: datasets.iter().find_map(|one| one.gene_warning.clone()),
            unnamed_layer: datasets.iter().find_map(|one| one.unnamed_layer.clone()),
        })
    }

    /// Number of matrices of each batch: X, and the layers, arrays of obsm and modalities beside
    /// it.
    pub fn n_matrices(&self) -> usize {
        1 + self.beside.len()
    }

    /// Number of experiments.
    pub fn n_experiments(&self) -> usize {
        self.sources.len()
    }

    /// The selected cells of an experiment; `None` if there are fewer experiments.
    pub fn cells(&self, experiment: usize) -> Option<&Cells> {
        self.sources.get(experiment).map(|source| &source.cells)
    }

    /// The obs columns: one row per selected cell.
    pub fn obs(&self) -> &RecordBatch {
        &self.obs
    }

    /// The var columns: one row per batch column, null if no experiment has the gene.
    pub fn var(&self) -> &RecordBatch {
        &self.var
    }

    /// Number of batch columns that are all zero because no experiment has the gene.
    pub fn n_absent_genes(&self) -> usize {
        let there = |column| self.sources.iter().any(|source| source.x.columns.has(column));
        (0..self.n_columns).filter(|column| !there(*column)).count()
    }

    /// What to print if an experiment has fewer than half of the
    /// [named genes](crate::Genes::Named): how many, what the names look like, and in which way
    /// more would be found. The first one of several experiments.
    pub fn gene_warning(&self) -> Option<&str> {
        self.gene_warning.as_deref()
    }

    /// The total of each selected cell, if the data set has totals.
    pub fn totals(&self) -> Option<&[f64]> {
        self.totals.as_deref()
    }

    /// Number of selected cells.
    pub fn n_rows(&self) -> u64 {
        self.starts.last().copied().unwrap_or(0)
    }

    /// Number of selected genes, the columns of every batch.
    pub fn n_columns(&self) -> usize {
        self.n_columns
    }

    /// The experiment of a row, as its index from 0, and the row's joinid in it.
    ///
    /// # Panics
    /// If `row_idx` is not below [`n_rows`](Self::n_rows).
    pub fn origin(&self, row_idx: u64) -> (usize, u64) {
        // The last source that begins at or before the row, after any sources without rows.
        let idx = self.starts.partition_point(|&start| start <= row_idx) - 1;
        assert!(idx < self.sources.len(), "row {row_idx} of {} cells", self.n_rows());
        (idx, self.sources[idx].cells.joinid(row_idx - self.starts[idx]))
    }

    /// A hash of the selected cells of each experiment, the same for equal cells in any form, and
    /// of the names and numbers of columns of the matrices beside X, and of the neighbours.
    pub(crate) fn fingerprint(&self) -> String {
        let mut hash = XxHash3_64::new();
        for Selected { cells, .. } in self.sources.iter() {
            hash.write(&cells.n_rows().to_le_bytes());
            for run in cells.ranges() {
                write_run(&mut hash, run.start, run.end - run.start);
            }
        }
        for beside in self.beside.iter() {
            hash.write(format!("{beside} x {}\0", beside.n_columns).as_bytes());
        }
        if let Some(neighbours) = &self.neighbours {
            hash.write(format!("{neighbours:?}\0").as_bytes());
        }
        format!("{:016x}", hash.finish())
    }

    /// When cells of an experiment are read again, by their joinids.
    pub(crate) fn next_reads(&self, experiment: usize, upcoming: &Upcoming) -> NextReads {
        let (sources, upcoming) = (Arc::clone(&self.sources), upcoming.clone());
        let start = self.starts[experiment];
        NextReads::new(move |joinids| {
            let cells = &sources[experiment].cells;
            let row = |joinid| start + cells.n_below(joinid);
            upcoming.rows_until(row(joinids.start)..row(joinids.end))
        })
    }

    /// Splits ascending, disjoint ranges of rows by source.
    pub(crate) fn parts(&self, rows: &[Range<u64>]) -> Vec<Part> {
        let mut parts = Vec::new();
        for (idx, source) in self.sources.iter().enumerate() {
            let (start, end) = (self.starts[idx], self.starts[idx + 1]);
            let of_source: Vec<Range<u64>> = rows
                .iter()
                .map(|rows| {
                    rows.start.clamp(start, end) - start..rows.end.clamp(start, end) - start
                })
                .filter(|rows| !rows.is_empty())
                .collect();
            let n_rows: u64 = of_source.iter().map(|rows| rows.end - rows.start).sum();
            if n_rows > 0 {
                let joinids = source.cells.joinid_ranges(&of_source);
                let n_rows = n_rows as usize;
                parts.push(Part { source: idx, joinids, n_rows, next_reads: None });
            }
        }
        parts
    }
}

/// The selected genes of an X with this number of columns.
pub(crate) fn genes_of_x(
    genes: GeneSelection,
    x_columns: u64,
) -> Result<ColumnPlaces, DatasetError> {
    ColumnPlaces::new(genes, x_columns).map_err(genes_error(x_columns))
}

/// The error of genes that X lacks.
pub(crate) fn genes_error(x_columns: u64) -> impl FnOnce(soma_io::Error) -> DatasetError {
    move |source| DatasetError::GenesOutsideX { x_columns, source: Box::new(source) }
}

fn write_run(hash: &mut XxHash3_64, first: u64, n: u64) {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&first.to_le_bytes());
    bytes[8..].copy_from_slice(&n.to_le_bytes());
    hash.write(&bytes);
}

impl fmt::Debug for Dataset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (n_rows, n_columns) = (self.n_rows(), self.n_columns);
        write!(f, "Dataset({n_rows} cells x {n_columns} genes")?;
        self.beside.iter().try_for_each(|beside| write!(f, ", {beside}"))?;
        write!(f, ", read by {})", self.reader_name())
    }
}

/// Fails if layers that were taken because none was named have different names: raw counts and
/// normalised values must not meet by chance. X of an AnnData stands for `raw`, as ever.
fn check_unnamed_layers(datasets: &[Dataset]) -> Result<(), ConcatError> {
    let mut unnamed = datasets
        .iter()
        .enumerate()
        .filter_map(|(idx, one)| Some((idx, one.unnamed_layer.as_deref()?)));
    let Some((_, first)) = unnamed.next() else { return Ok(()) };
    let is_usual = |layer: &str| ["raw", "X"].contains(&layer);
    let is_other = |layer: &str| layer != first && !(is_usual(layer) && is_usual(first));
    match unnamed.find(|(_, layer)| is_other(layer)) {
        Some((idx, layer)) => {
            Err(ConcatError::Layers { idx, layer: layer.to_owned(), first: first.to_owned() })
        }
        None => Ok(()),
    }
}
