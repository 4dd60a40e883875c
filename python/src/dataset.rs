//! Data sets: selected cells and genes, with obs columns in memory.

use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::{Array as _, ArrayRef, RecordBatch, RecordBatchOptions};
use loader::{
    CellJoin, Cells, DatasetError, DatasetSpec, Genes, ModalitySpec, Nearest, NeighbourSpec,
    ReaderChoice, RowSet, encode,
};
use pyo3::exceptions::{PyTypeError, PyUserWarning, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use shuffle::stop;
use soma_io::{AxisQuery, CsrBuffers, Joinids, XReader};

use crate::arrow_table::{ArrowTable, rows_of};
use crate::border::Element;
use crate::encoders::AnyEncoder;
use crate::engine::choice;
use crate::errors::{OrException as _, value_error};
use crate::experiment::{Address, Experiment, Origin, query, unpicklable};
use crate::numpy::{Integers, Rows, array_of, elements};
use crate::process::PerProcess;
use crate::values::stored_type;
use crate::waiting::{computed, interruptible};

/// Selected cells and genes. Immutable.
#[pyclass(frozen, module = "somafeed._somafeed")]
#[derive(Debug)]
pub(crate) struct Dataset {
    here: PerProcess<loader::Dataset>,
    /// One per experiment; `None` for rows in memory, whose reader works in every process.
    sources: Vec<Source>,
    /// Plain memory, which a forked process may read, too.
    obs: RecordBatch,
    var: RecordBatch,
    cells: Vec<Cells>,
    shape: (u64, usize),
    n_unknown: usize,
    reader: String,
    why_not_native: Option<String>,
    /// The type of X's values, or why they cannot have it.
    stored: Result<Element, String>,
    /// Names of further layers.
    layers: Vec<String>,
    /// Names of arrays of obsm, each with its number of columns.
    obsm: Vec<(String, usize)>,
    /// Names of modalities, each with its number of genes and its var.
    modalities: Vec<(String, usize, RecordBatch)>,
    /// The graph of neighbours and their number.
    neighbours: Option<(String, usize)>,
}

/// How a modality is selected: the fields of `somafeed.Modality`.
#[derive(FromPyObject)]
struct Modality {
    #[pyo3(attribute("opened"))]
    experiment: Option<Py<Experiment>>,
    names: Option<String>,
    measurement: Option<String>,
    layer: Option<String>,
    #[pyo3(attribute("selected"))]
    var_joinids: Option<Rows>,
    var_filter: Option<String>,
    genes: Option<(String, Vec<String>)>,
    feature_type: Option<String>,
    presence: Option<String>,
    var_columns: Vec<String>,
}

impl Modality {
    fn spec(self, py: Python<'_>, name: String) -> PyResult<ModalitySpec> {
        let query = query(self.var_joinids, self.var_filter.as_deref())?;
        let (column, names) = self.genes.unzip();
        let experiment = self.experiment.map(|of| of.get().here(py)).transpose()?;
        Ok(ModalitySpec {
            name,
            experiment,
            names: self.names,
            measurement: self.measurement,
            layer: self.layer,
            genes: genes(query, column, names, self.feature_type)?,
            var_columns: self.var_columns,
            presence: self.presence,
        })
    }
}

/// How neighbours are selected: the fields of `somafeed.Neighbours`.
#[derive(FromPyObject)]
struct Neighbours {
    obsp: String,
    k: usize,
    nearest: Option<String>,
    selected_only: bool,
    allow_fewer: bool,
}

impl Neighbours {
    fn spec(self) -> PyResult<NeighbourSpec> {
        let Self { obsp, k, nearest, selected_only, allow_fewer } = self;
        let nearest = nearest.map(|nearest| choice("nearest", &nearest, &NEAREST)).transpose()?;
        Ok(NeighbourSpec { obsp, k, nearest, selected_only, allow_fewer })
    }
}

/// Which values of a graph are those of the nearest cells, by name.
const NEAREST: [(&str, Nearest); 2] =
    [("smallest", Nearest::Smallest), ("largest", Nearest::Largest)];

/// How a process gets its readers of an experiment's matrices.
#[derive(Debug, Clone)]
enum Source {
    Experiment(Box<Origin>),
    Memory(Vec<Arc<dyn XReader>>),
}

impl Source {
    fn open(&self) -> Result<Vec<Arc<dyn XReader>>, soma_io::Error> {
        match self {
            Self::Experiment(origin) => origin.open(),
            Self::Memory(readers) => Ok(readers.clone()),
        }
    }
}

impl Dataset {
    fn new(dataset: loader::Dataset, sources: Vec<Source>) -> Self {
        let n_experiments = dataset.n_experiments();
        Self {
            sources,
            obs: dataset.obs().clone(),
            var: dataset.var().clone(),
            cells: (0..n_experiments).filter_map(|idx| dataset.cells(idx)).cloned().collect(),
            shape: (dataset.n_rows(), dataset.n_columns()),
            n_unknown: dataset.n_absent_genes(),
            reader: dataset.reader_name(),
            why_not_native: dataset.why_not_native().map(str::to_owned),
            stored: stored_type(&dataset),
            layers: dataset.layers().map(str::to_owned).collect(),
            obsm: dataset.obsm().map(|(name, n)| (name.to_owned(), n)).collect(),
            neighbours: dataset.neighbours().map(|of| (of.obsp.clone(), of.k)),
            modalities: dataset
                .modalities()
                .filter_map(|(name, n)| {
                    Some((name.to_owned(), n, dataset.modality_var(name)?.clone()))
                })
                .collect(),
            here: PerProcess::new(dataset),
        }
    }

    /// The data set, with readers of this process.
    pub(crate) fn here(&self, py: Python<'_>) -> PyResult<loader::Dataset> {
        self.here.get_or_make(|| {
            let sources = self.sources.clone();
            let open = move || sources.iter().map(Source::open).collect::<Result<Vec<_>, _>>();
            let readers = interruptible(py, open)?.or_exception()?;
            self.here.with_memory(|dataset| dataset.with_readers(readers))?.or_exception()
        })
    }

    /// Number of selected genes.
    pub(crate) fn n_columns(&self) -> usize {
        self.shape.1
    }

    /// The type in which X's values are stored.
    pub(crate) fn stored_type(&self) -> PyResult<Element> {
        self.stored.clone().map_err(PyValueError::new_err)
    }

    /// The obs columns.
    pub(crate) fn obs_rows(&self) -> &RecordBatch {
        &self.obs
    }

    /// The var columns.
    pub(crate) fn var_rows(&self) -> &RecordBatch {
        &self.var
    }

    fn with(&self, dataset: loader::Dataset) -> Self {
        Self::new(dataset, self.sources.clone())
    }
}

#[pymethods]
impl Dataset {
    #[staticmethod]
    #[pyo3(signature = (
        experiment, *, measurement = None, layer = None,
        obs_joinids = None, obs_filter = None, var_joinids = None, var_filter = None,
        gene_column = None, gene_names = None, obs_columns = Vec::new(), var_columns = Vec::new(),
        totals = None, layers = Vec::new(), obsm = Vec::new(), reader = "auto",
        feature_type = None, modalities = None, presence = None, cell_join = "union",
        neighbours = None
    ))]
    fn from_experiment(
        py: Python<'_>,
        experiment: &Experiment,
        measurement: Option<String>,
        layer: Option<String>,
        obs_joinids: Option<Rows>,
        obs_filter: Option<&str>,
        var_joinids: Option<Rows>,
        var_filter: Option<&str>,
        gene_column: Option<String>,
        gene_names: Option<Vec<String>>,
        obs_columns: Vec<String>,
        var_columns: Vec<String>,
        totals: Option<String>,
        layers: Vec<String>,
        obsm: Vec<String>,
        reader: &str,
        feature_type: Option<String>,
        modalities: Option<Bound<'_, PyDict>>,
        presence: Option<String>,
        cell_join: &str,
        neighbours: Option<Neighbours>,
    ) -> PyResult<Self> {
        let reader: ReaderChoice = reader.parse::<ReaderChoice>().or_exception()?;
        let opened = experiment.here(py)?;
        // A layer that was not named stays so, as it must not differ from that of another data set.
        let named = layer.clone();
        let (measurement, layer) = experiment.names(py, measurement, layer)?;
        let (addresses, modalities) = modality_specs(py, modalities)?;
        let spec = DatasetSpec {
            cells: query(obs_joinids, obs_filter)?,
            genes: genes(query(var_joinids, var_filter)?, gene_column, gene_names, feature_type)?,
            measurement: Some(measurement.clone()),
            layer: named,
            layers,
            obsm,
            obs_columns,
            var_columns,
            modalities,
            neighbours: neighbours.map(Neighbours::spec).transpose()?,
            presence,
            cell_join: choice("cell_join", cell_join, &CELL_JOINS)?,
            totals,
            reader,
        };
        let mut origin = Origin {
            address: Arc::clone(experiment.address()),
            measurement,
            layer,
            layers: spec.layers.clone(),
            obsm: spec.obsm.clone(),
            modalities: Vec::new(),
            obsp: spec.neighbours.as_ref().map(|of| of.obsp.clone()),
            reader,
        };
        let open = move |_: &_| -> Result<_, DatasetError> {
            let names = spec.modality_names(&opened)?;
            Ok((loader::Dataset::from_experiment(&opened, &spec)?, names))
        };
        let (dataset, names) = experiment.address().with(py, open)?;
        let places = addresses.into_iter().zip(names);
        origin.modalities =
            places.map(|(address, (measurement, layer))| (address, measurement, layer)).collect();
        if let Some(warning) = dataset.gene_warning() {
            warn(py, warning)?;
        }
        Ok(Self::new(dataset, vec![Source::Experiment(Box::new(origin))]))
    }

    /// Opens the AnnData and calls `from_experiment` with it.
    #[staticmethod]
    #[pyo3(signature = (anndata, *, raw = false, config = None, **options))]
    fn from_anndata(
        anndata: &Bound<'_, PyAny>,
        raw: bool,
        config: Option<Bound<'_, PyDict>>,
        options: Option<Bound<'_, PyDict>>,
    ) -> PyResult<Py<PyAny>> {
        let py = anndata.py();
        let of_file = PyDict::new(py);
        of_file.set_item("config", config)?;
        let options = options.unwrap_or_else(|| PyDict::new(py));
        let selection = py.import("somafeed.backed")?.getattr("selection")?;
        let (address, options): (String, Bound<'_, PyDict>) =
            selection.call1((anndata, raw, options))?.extract()?;
        let experiment = py.get_type::<Experiment>().call((address,), Some(&of_file))?;
        if !experiment.cast::<Experiment>()?.get().here(py)?.is_anndata() {
            let text = "this is an experiment of SOMA: take somafeed.Dataset.from_experiment";
            return Err(PyValueError::new_err(text));
        }
        if options.contains("measurement")? {
            let text = "from_anndata() has no measurement: raw says which matrix is read";
            return Err(PyTypeError::new_err(text));
        }
        options.set_item("measurement", if raw { "raw" } else { "RNA" })?;
        let made =
            py.get_type::<Self>().call_method("from_experiment", (experiment,), Some(&options));
        Ok(made?.unbind())
    }

    #[staticmethod]
    #[pyo3(signature = (indptr, indices, data, *, n_columns, obs, var = None))]
    fn in_memory(
        indptr: Integers,
        indices: Integers,
        data: &Bound<'_, PyAny>,
        n_columns: usize,
        obs: &Bound<'_, PyAny>,
        var: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let values = elements::<f32>(data)?
            .ok_or_else(|| PyValueError::new_err("data must be an array of float32"))?;
        let (obs, var) = (rows_of(obs)?, var.map_or_else(|| without_columns(n_columns), rows_of)?);
        let made = computed(data.py(), move || {
            let row_offsets = indptr.0.into_iter().map(|offset| offset as usize).collect();
            let csr = CsrBuffers { row_offsets, columns: indices.codes()?, values, n_columns };
            loader::Dataset::in_memory(csr, obs, var).or_exception()
        });
        let dataset = made??;
        let sources = vec![Source::Memory(dataset.readers_of(0))];
        Ok(Self::new(dataset, sources))
    }

    #[staticmethod]
    fn concat(py: Python<'_>, datasets: Vec<Bound<'_, Self>>) -> PyResult<Self> {
        let sources = datasets.iter().flat_map(|one| one.get().sources.iter().cloned()).collect();
        let parts = datasets.iter().map(|one| one.get().here(py)).collect::<PyResult<Vec<_>>>()?;
        let dataset = computed(py, move || loader::Dataset::concat(&parts))?.or_exception()?;
        Ok(Self::new(dataset, sources))
    }

    #[getter]
    fn shape(&self) -> (u64, usize) {
        self.shape
    }

    #[getter]
    fn n_unknown(&self) -> usize {
        self.n_unknown
    }

    #[getter]
    fn n_experiments(&self) -> usize {
        self.sources.len()
    }

    #[getter]
    fn reader(&self) -> &str {
        &self.reader
    }

    #[getter]
    fn why_not_native(&self) -> Option<&str> {
        self.why_not_native.as_deref()
    }

    #[getter]
    fn layers(&self) -> Vec<String> {
        self.layers.clone()
    }

    #[getter]
    fn obsm(&self) -> Vec<(String, usize)> {
        self.obsm.clone()
    }

    #[getter]
    fn modalities(&self) -> Vec<(String, usize)> {
        self.modalities.iter().map(|(name, n, _)| (name.clone(), *n)).collect()
    }

    #[getter]
    fn neighbours(&self) -> Option<(String, usize)> {
        self.neighbours.clone()
    }

    fn modality_var(&self, name: &str) -> PyResult<ArrowTable> {
        let found = self.modalities.iter().find(|(of, ..)| of == name);
        found.map(|(_, _, var)| ArrowTable::new(var.clone())).ok_or_else(|| {
            let names: Vec<&str> = self.modalities.iter().map(|(name, ..)| name.as_str()).collect();
            value_error(&format!("there is no modality {name:?}; there are {names:?}"))
        })
    }

    fn stored_dtype(&self) -> PyResult<&'static str> {
        self.stored_type().map(Element::name)
    }

    fn obs(&self) -> ArrowTable {
        ArrowTable::new(self.obs.clone())
    }

    fn var(&self) -> ArrowTable {
        ArrowTable::new(self.var.clone())
    }

    fn codes(&self, py: Python<'_>) -> PyResult<ArrowTable> {
        let dataset = self.here.with_memory(loader::Dataset::clone)?;
        Ok(ArrowTable::new(computed(py, move || dataset.codes())?.or_exception()?))
    }

    fn joinids<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let (cells, n_rows) = (self.cells.clone(), self.shape.0);
        let joinids = move || {
            stop::collect(n_rows, cells.iter().flat_map(Cells::joinids).map(|joinid| joinid as i64))
        };
        array_of(py, computed(py, joinids)?.or_exception()?)
    }

    fn experiments<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let (cells, n_rows) = (self.cells.clone(), self.shape.0);
        let experiments = move || {
            let of_each = (0_u32..).zip(&cells);
            let repeated =
                |(idx, cells): (u32, &Cells)| std::iter::repeat_n(idx, cells.n_rows() as usize);
            stop::collect(n_rows, of_each.flat_map(repeated))
        };
        array_of(py, computed(py, experiments)?.or_exception()?)
    }

    fn select(&self, py: Python<'_>, rows: Rows) -> PyResult<Self> {
        let dataset = self.here(py)?;
        let n_rows = self.shape.0;
        let selected = computed(py, move || match rows {
            // A range far beyond the end is an error, not an allocation.
            Rows::Range(start, stop) => {
                dataset.part(&RowSet::from_range(start..stop.min(n_rows.saturating_add(1))))
            }
            Rows::List(rows) => dataset.rows(&rows),
        })?;
        Ok(self.with(selected.or_exception()?))
    }

    fn with_encoders(&self, py: Python<'_>, encoders: Vec<AnyEncoder>) -> PyResult<Self> {
        let encoders = encoders.into_iter().map(|one| one.0).collect();
        let encoders = encode::Encoders::new(encoders).or_exception()?;
        let dataset = self.here(py)?;
        let encoded = computed(py, move || dataset.with_encoders(&encoders))?;
        Ok(self.with(encoded.or_exception()?))
    }

    fn groups<'py>(&self, py: Python<'py>, columns: Vec<String>) -> PyResult<Bound<'py, PyAny>> {
        let dataset = self.here(py)?;
        let groups = computed(py, move || {
            dataset.groups(&columns.iter().map(String::as_str).collect::<Vec<_>>())
        })?;
        array_of(py, groups.or_exception()?)
    }

    fn weights<'py>(&self, py: Python<'py>, column: String) -> PyResult<Bound<'py, PyAny>> {
        let dataset = self.here(py)?;
        let weights = computed(py, move || dataset.weights(&column))?;
        array_of(py, weights.or_exception()?)
    }

    fn find(&self, py: Python<'_>, column: &str, label: &str) -> PyResult<Option<usize>> {
        let dataset = self.here(py)?;
        let found =
            dataset.obs().column_by_name(column).cloned().ok_or_else(|| {
                value_error(&format!("there is no obs column {column:?} in memory"))
            })?;
        let label = label.to_owned();
        computed(py, move || first_row(&found, &label))?.or_exception()
    }

    fn __repr__(&self) -> String {
        let (n_rows, n_columns) = self.shape;
        format!("Dataset({n_rows} cells x {n_columns} genes, read by {})", self.reader)
    }

    #[expect(clippy::unused_self, reason = "Python calls it on an object")]
    fn __reduce__(&self) -> PyResult<()> {
        Err(unpicklable("Dataset", "pickle the arguments it was made with"))
    }
}

/// The first row whose string is this one; `None` also for columns of other types.
fn first_row(column: &ArrayRef, label: &str) -> Result<Option<usize>, stop::Stopped> {
    if let Some(dictionary) = column.as_any_dictionary_opt() {
        let Some(key) = first_row(dictionary.values(), label)? else { return Ok(None) };
        let keys = dictionary.normalized_keys();
        return stop::position(0..column.len(), |row| column.is_valid(row) && keys[row] == key);
    }
    if let Some(texts) = column.as_string_opt::<i64>() {
        return stop::position(texts.iter(), |text| text == Some(label));
    }
    let texts = column.as_string_opt::<i32>();
    texts.map_or(Ok(None), |texts| stop::position(texts.iter(), |text| text == Some(label)))
}

/// Which cells come if some measurement lacks them, by name.
const CELL_JOINS: [(&str, CellJoin); 2] =
    [("union", CellJoin::Union), ("intersection", CellJoin::Intersection)];

/// The addresses of modalities that are in another experiment.
type Addresses = Vec<Option<Arc<Address>>>;

/// The modalities of a dictionary by name, and the address of each that is in another experiment.
fn modality_specs(
    py: Python<'_>,
    modalities: Option<Bound<'_, PyDict>>,
) -> PyResult<(Addresses, Vec<ModalitySpec>)> {
    let (mut addresses, mut specs) = (Vec::new(), Vec::new());
    for (name, of) in modalities.into_iter().flatten() {
        let modality: Modality = of.extract()?;
        let address = modality.experiment.as_ref();
        addresses.push(address.map(|of| Arc::clone(of.get().address())));
        specs.push(modality.spec(py, name.extract()?)?);
    }
    Ok((addresses, specs))
}

/// The genes of a query, of a feature type, or those with these names.
fn genes(
    query: AxisQuery,
    column: Option<String>,
    names: Option<Vec<String>>,
    feature_type: Option<String>,
) -> PyResult<Genes> {
    if let Some(name) = feature_type {
        let is_all = query.joinids == Joinids::All && query.value_filter.is_none();
        if !is_all || column.is_some() || names.is_some() {
            let problem = "feature_type selects genes, so it cannot be combined with joinids, a \
                           filter or names of genes";
            return Err(PyValueError::new_err(problem));
        }
        return Ok(Genes::FeatureType(name));
    }
    match (column, names) {
        (None, None) => Ok(Genes::Query(query)),
        (Some(column), Some(names)) => {
            if query.joinids != Joinids::All || query.value_filter.is_some() {
                let problem = "gene_names cannot be combined with var_joinids or var_filter";
                return Err(PyValueError::new_err(problem));
            }
            Ok(Genes::Named { column, names })
        }
        _ => Err(PyValueError::new_err("gene_names and gene_column belong together: give both")),
    }
}

/// Warns at the line of Python that called.
fn warn(py: Python<'_>, text: &str) -> PyResult<()> {
    let text = std::ffi::CString::new(text)?;
    PyErr::warn(py, &py.get_type::<PyUserWarning>(), &text, 1)
}

fn without_columns(n_rows: usize) -> PyResult<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(n_rows));
    let schema = Arc::new(arrow_schema::Schema::empty());
    RecordBatch::try_new_with_options(schema, Vec::new(), &options)
        .map_err(|error| PyValueError::new_err(error.to_string()))
}
