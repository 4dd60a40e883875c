//! Experiments: opening, looking around, and reading obs and var.

use std::sync::Arc;

use arrow_array::RecordBatch;
use bench_run::Secrets;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use soma_io::{
    AxisQuery, Config, DataFrame, Joinids, OpenOptions, ReaderChoice, ValueFilter, XReader,
};

use crate::arrow_table::ArrowTable;
use crate::errors::{IntoException, OrException as _};
use crate::libtiledb;
use crate::numpy::Rows;
use crate::process::PerProcess;
use crate::waiting::interruptible;

/// An experiment's address, and how it is read.
#[derive(Debug)]
pub(crate) struct Address {
    uri: String,
    config: Config,
    timestamp: Option<u64>,
    reader: ReaderChoice,
}

impl Address {
    fn open(&self) -> Result<soma_io::Experiment, soma_io::Error> {
        let Self { config, timestamp, reader, .. } = self;
        let options =
            OpenOptions { config: config.clone(), timestamp: *timestamp, reader: *reader };
        soma_io::Experiment::open(&self.uri, &options)
    }

    /// What must not be in a message.
    fn secrets(&self) -> Secrets {
        Secrets::in_task(&self.uri, &self.config, Vec::new())
    }

    /// Does something with it, in a thread. The message of an error has no secrets.
    pub(crate) fn with<T: Send + 'static, E: IntoException + Send + 'static>(
        self: &Arc<Self>,
        py: Python<'_>,
        work: impl FnOnce(&Self) -> Result<T, E> + Send + 'static,
    ) -> PyResult<T> {
        let address = Arc::clone(self);
        interruptible(py, move || work(&address))?
            .map_err(|error| error.without_secrets(&self.secrets()))
    }
}

/// An open experiment.
#[pyclass(frozen, module = "somafeed._somafeed")]
#[derive(Debug)]
pub(crate) struct Experiment {
    address: Arc<Address>,
    opened: PerProcess<soma_io::Experiment>,
}

impl Experiment {
    /// The experiment, open in this process.
    pub(crate) fn here(&self, py: Python<'_>) -> PyResult<soma_io::Experiment> {
        self.opened.get_or_make(|| self.address.with(py, Address::open))
    }

    /// Its address.
    pub(crate) fn address(&self) -> &Arc<Address> {
        &self.address
    }

    /// Does something with it, in a thread.
    fn with<T: Send + 'static>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&soma_io::Experiment) -> Result<T, soma_io::Error> + Send + 'static,
    ) -> PyResult<T> {
        let experiment = self.here(py)?;
        self.address.with(py, move |_| work(&experiment))
    }
}

#[pymethods]
impl Experiment {
    #[new]
    #[pyo3(signature = (uri, *, config = None, timestamp = None, reader = "auto"))]
    fn new(
        py: Python<'_>,
        uri: String,
        config: Option<Config>,
        timestamp: Option<u64>,
        reader: &str,
    ) -> PyResult<Self> {
        libtiledb::suggest(py)?;
        let (config, reader) = (config.unwrap_or_default(), reader.parse().or_exception()?);
        let address = Arc::new(Address { uri, config, timestamp, reader });
        let opened = address.with(py, Address::open)?;
        Ok(Self { address, opened: PerProcess::new(opened) })
    }

    #[getter]
    fn uri(&self) -> &str {
        &self.address.uri
    }

    #[getter]
    fn config(&self) -> Config {
        self.address.config.clone()
    }

    #[getter]
    fn timestamp(&self) -> Option<u64> {
        self.address.timestamp
    }

    #[pyo3(signature = (measurement = None, layer = None))]
    pub(crate) fn names(
        &self,
        py: Python<'_>,
        measurement: Option<String>,
        layer: Option<String>,
    ) -> PyResult<(String, String)> {
        self.with(py, move |experiment| experiment.names(measurement.as_deref(), layer.as_deref()))
    }

    fn measurements(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.with(py, soma_io::Experiment::measurements)
    }

    fn layers(&self, py: Python<'_>, measurement: String) -> PyResult<Vec<String>> {
        self.with(py, move |experiment| experiment.measurement(&measurement)?.layers())
    }

    fn obsm_names(&self, py: Python<'_>, measurement: String) -> PyResult<Vec<String>> {
        self.with(py, move |experiment| experiment.measurement(&measurement)?.obsm_names())
    }

    fn obsp_names(&self, py: Python<'_>, measurement: String) -> PyResult<Vec<String>> {
        self.with(py, move |experiment| experiment.measurement(&measurement)?.obsp_names())
    }

    #[pyo3(signature = (*, columns = None, joinids = None, value_filter = None))]
    fn obs(
        &self,
        py: Python<'_>,
        columns: Option<Vec<String>>,
        joinids: Option<Rows>,
        value_filter: Option<&str>,
    ) -> PyResult<ArrowTable> {
        let query = query(joinids, value_filter)?;
        let rows =
            self.with(py, move |experiment| read(&experiment.obs()?, columns.as_deref(), &query))?;
        Ok(ArrowTable::new(rows))
    }

    #[pyo3(signature = (measurement, *, columns = None, joinids = None, value_filter = None))]
    fn var(
        &self,
        py: Python<'_>,
        measurement: String,
        columns: Option<Vec<String>>,
        joinids: Option<Rows>,
        value_filter: Option<&str>,
    ) -> PyResult<ArrowTable> {
        let query = query(joinids, value_filter)?;
        let rows = self.with(py, move |experiment| {
            read(&experiment.measurement(&measurement)?.var()?, columns.as_deref(), &query)
        })?;
        Ok(ArrowTable::new(rows))
    }

    fn obs_columns(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.with(py, |experiment| Ok(names(&experiment.obs()?)))
    }

    fn var_columns(&self, py: Python<'_>, measurement: String) -> PyResult<Vec<String>> {
        self.with(py, move |experiment| Ok(names(&experiment.measurement(&measurement)?.var()?)))
    }

    #[pyo3(signature = (measurement = None))]
    fn why_not_native(
        &self,
        py: Python<'_>,
        measurement: Option<String>,
    ) -> PyResult<Option<String>> {
        self.with(py, move |experiment| {
            let frame = match measurement {
                Some(measurement) => experiment.measurement(&measurement)?.var()?,
                None => experiment.obs()?,
            };
            Ok(frame.why_not_native().map(str::to_owned))
        })
    }

    fn shape(&self, py: Python<'_>, measurement: String, layer: String) -> PyResult<(u64, u64)> {
        self.with(py, move |experiment| {
            Ok(experiment.measurement(&measurement)?.x(&layer)?.shape())
        })
    }

    fn __repr__(&self) -> String {
        format!("Experiment({:?})", self.address.secrets().hide(&self.address.uri))
    }

    #[expect(clippy::unused_self, reason = "Python calls it on an object")]
    fn __reduce__(&self) -> PyResult<()> {
        Err(unpicklable("Experiment", "pickle its uri, config and timestamp"))
    }
}

/// The error of pickling an object of this class.
pub(crate) fn unpicklable(class: &str, instead: &str) -> PyErr {
    PyTypeError::new_err(format!("cannot pickle a somafeed {class}: {instead}, and open it there"))
}

/// The query of these arguments.
pub(crate) fn query(joinids: Option<Rows>, value_filter: Option<&str>) -> PyResult<AxisQuery> {
    let joinids = match joinids {
        None => Joinids::All,
        Some(Rows::Range(start, stop)) => Joinids::Range(start..stop),
        Some(Rows::List(joinids)) => Joinids::List(joinids),
    };
    let value_filter = value_filter.map(ValueFilter::parse).transpose().or_exception()?;
    Ok(AxisQuery { joinids, value_filter })
}

fn read(
    frame: &DataFrame,
    columns: Option<&[String]>,
    query: &AxisQuery,
) -> Result<RecordBatch, soma_io::Error> {
    let columns: Option<Vec<&str>> =
        columns.map(|columns| columns.iter().map(String::as_str).collect());
    frame.query(columns.as_deref(), query)
}

fn names(frame: &DataFrame) -> Vec<String> {
    frame.schema().fields().iter().map(|field| field.name().clone()).collect()
}

/// Where the X of a data set is, so that a forked process can open it for itself.
#[derive(Debug, Clone)]
pub(crate) struct Origin {
    pub(crate) address: Arc<Address>,
    pub(crate) measurement: String,
    pub(crate) layer: String,
    pub(crate) layers: Vec<String>,
    pub(crate) obsm: Vec<String>,
    /// The measurement and the layer of each modality, and its experiment if it is another.
    pub(crate) modalities: Vec<(Option<Arc<Address>>, String, String)>,
    /// The graph of neighbours.
    pub(crate) obsp: Option<String>,
    pub(crate) reader: ReaderChoice,
}

impl Origin {
    /// Opens readers of X, of the further layers, the arrays of obsm, the modalities and the graph
    /// of neighbours.
    pub(crate) fn open(&self) -> Result<Vec<Arc<dyn XReader>>, soma_io::Error> {
        let experiment = self.address.open()?;
        let measurement = experiment.measurement(&self.measurement)?;
        let layers = std::iter::once(&self.layer).chain(&self.layers);
        let layers = layers.map(|layer| measurement.x(layer)?.reader(self.reader));
        let obsm = self.obsm.iter().map(|name| measurement.obsm(name)?.reader(self.reader));
        let mut readers = layers.chain(obsm).collect::<Result<Vec<_>, _>>()?;
        // Modalities of one matrix share its reader.
        let mut open = vec![((&self.measurement, &self.layer), Arc::clone(&readers[0]))];
        for (address, measurement, layer) in &self.modalities {
            let of = |experiment: &soma_io::Experiment| {
                experiment.measurement(measurement)?.x(layer)?.reader(self.reader)
            };
            let known = open.iter().find(|(place, _)| *place == (measurement, layer));
            let reader = match (address, known) {
                (Some(address), _) => of(&address.open()?)?,
                (None, Some((_, reader))) => Arc::clone(reader),
                (None, None) => {
                    let reader = of(&experiment)?;
                    open.push(((measurement, layer), Arc::clone(&reader)));
                    reader
                }
            };
            readers.push(reader);
        }
        if let Some(name) = &self.obsp {
            readers.push(measurement.obsp(name)?.reader(self.reader)?);
        }
        Ok(readers)
    }
}
