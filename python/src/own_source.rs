//! Samples that Python code of the user reads, in the engine: the code reads rows, under the GIL;
//! order, ranks, batches and the rest are the engine's.
//!
//! The code runs in a thread that Python has made, which takes requests from here: Python, when it
//! ends, ends its own threads wherever they are, and aborts if frames of Rust are below.

use std::fmt;
use std::sync::Arc;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded, unbounded};
use pipeline::{Assemble, BatchPlace, BlockBytes, BlockPart, BlockRows, Need, Source};
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyMapping;
use shuffle::Stop;
use worktime::{ReadStats, ThreadTime};

use crate::border::{AlignedBytes, Element, Memory};
use crate::engine::{EpochOf, MadeBatch};
use crate::errors::IntoException;
use crate::experiment::unpicklable;
use crate::memory_limit::KeptBatches;
use crate::numpy::{self, array_of};
use crate::samples::{Chosen, Kind, Samples};
use crate::waiting::SIGNAL_INTERVAL;

/// How a thread is started that reads: a function of Python that takes the requests.
#[derive(Debug)]
pub(crate) struct Start(Py<PyAny>);

impl Kind for Start {
    type Source = OwnSource;
    type Class = OwnSamples;

    fn open(&self) -> PyResult<OwnSource> {
        let (requests, of_thread) = unbounded();
        let start = |py: Python<'_>| self.0.call1(py, (Requests(of_thread),));
        Python::try_attach(start).ok_or(Error::Ending).map_err(IntoException::into_exception)??;
        OwnSource::open(requests).map_err(IntoException::into_exception)
    }

    fn class(chosen: Arc<Chosen<Self>>) -> OwnSamples {
        OwnSamples(chosen)
    }
}

/// The requests of a source, until it is dropped.
#[pyclass(frozen, module = "somafeed._somafeed", name = "_Requests")]
#[derive(Debug)]
struct Requests(Receiver<Request>);

#[pymethods]
impl Requests {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> Option<Request> {
        py.detach(|| self.0.recv().ok())
    }
}

/// What is asked of the thread. Without an answer it fails when it is dropped.
#[pyclass(frozen, module = "somafeed._somafeed", name = "_Request")]
#[derive(Debug)]
struct Request {
    wanted: Wanted,
    answer: Sender<PyResult<Answer>>,
}

#[derive(Debug, Clone)]
enum Wanted {
    NRows,
    Rows(Vec<i64>),
}

#[derive(Debug)]
enum Answer {
    NRows(u64),
    Arrays(Vec<(ArrayOfSample, Vec<u8>)>),
}

#[pymethods]
impl Request {
    /// The rows to read; `None` if their number is asked for.
    #[getter]
    fn rows<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        match &self.wanted {
            Wanted::NRows => Ok(None),
            Wanted::Rows(rows) => array_of(py, rows.clone()).map(Some),
        }
    }

    /// Takes what the source returned.
    fn answer(&self, returned: &Bound<'_, PyAny>) {
        let answer = match &self.wanted {
            Wanted::NRows => returned.extract().map(Answer::NRows),
            Wanted::Rows(rows) => arrays_in(returned, rows.len()).map(Answer::Arrays),
        };
        // The epoch may have been closed.
        let _nobody_waits = self.answer.send(answer);
    }

    /// Takes what the source raised.
    fn fail(&self, error: Bound<'_, PyAny>) {
        let _nobody_waits = self.answer.send(Err(PyErr::from_value(error)));
    }
}

/// An array of each sample.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ArrayOfSample {
    name: String,
    element: Element,
    shape: Vec<usize>,
    n_bytes: usize,
}

impl fmt::Display for ArrayOfSample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {} of shape {:?}", self.name, self.element.name(), self.shape)
    }
}

/// The samples that the code reads. The first one, read when it is opened, says what a sample is.
#[derive(Debug)]
pub(crate) struct OwnSource {
    requests: Sender<Request>,
    n_rows: u64,
    arrays: Arc<[ArrayOfSample]>,
    fingerprint: String,
}

/// An error of the user's code, or of the engine.
#[derive(Debug)]
pub(crate) enum Error {
    /// What the code raised.
    Raised(PyErr),
    /// What it returned is not what it returned before.
    Returned(String),
    /// Its thread has ended, or the epoch was closed.
    Ending,
    Engine(pipeline::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Raised(error) => write!(f, "the source raised {error}"),
            Self::Returned(problem) => f.write_str(problem),
            Self::Ending => f.write_str(
                "the thread that reads the source has ended, as it does when Python ends",
            ),
            Self::Engine(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {}

impl From<pipeline::Error> for Error {
    fn from(error: pipeline::Error) -> Self {
        Self::Engine(error)
    }
}

impl IntoException for Error {
    fn without_secrets(self, secrets: &bench_run::Secrets) -> PyErr {
        match self {
            Self::Raised(error) => error,
            Self::Returned(problem) => PyValueError::new_err(problem),
            Self::Engine(error) => error.without_secrets(secrets),
            Self::Ending => PyRuntimeError::new_err(self.to_string()),
        }
    }
}

impl OwnSource {
    fn open(requests: Sender<Request>) -> Result<Self, Error> {
        let mut source =
            Self { requests, n_rows: 0, arrays: Arc::default(), fingerprint: String::new() };
        let never = Stop::default();
        if let Answer::NRows(n_rows) = source.asked(Wanted::NRows, &never)? {
            source.n_rows = n_rows;
        }
        if source.n_rows > 0 {
            let first = source.read_rows(vec![0], &never)?;
            source.arrays = first.into_iter().map(|(array, _)| array).collect();
            if source.arrays.is_empty() {
                let problem = "read returned a dictionary without arrays";
                return Err(Error::Returned(problem.to_owned()));
            }
        }
        let described: Vec<String> = source.arrays.iter().map(ToString::to_string).collect();
        source.fingerprint = format!("{} rows of {}", source.n_rows, described.join(", "));
        Ok(source)
    }

    /// Asks the thread, and waits for its answer until `stop` is set.
    fn asked(&self, wanted: Wanted, stop: &Stop) -> Result<Answer, Error> {
        let (answer, answered) = bounded(1);
        self.requests.send(Request { wanted, answer }).map_err(|_| Error::Ending)?;
        loop {
            match answered.recv_timeout(SIGNAL_INTERVAL) {
                Ok(answer) => return answer.map_err(Error::Raised),
                Err(RecvTimeoutError::Timeout) if !stop.is_set() => {}
                Err(_) => return Err(Error::Ending),
            }
        }
    }

    fn read_rows(
        &self,
        rows: Vec<i64>,
        stop: &Stop,
    ) -> Result<Vec<(ArrayOfSample, Vec<u8>)>, Error> {
        match self.asked(Wanted::Rows(rows), stop)? {
            Answer::Arrays(arrays) => Ok(arrays),
            Answer::NRows(_) => Err(Error::Ending),
        }
    }

    fn bytes_of(&self, n_rows: u64) -> u64 {
        let n_bytes: usize = self.arrays.iter().map(|array| array.n_bytes).sum();
        n_rows.saturating_mul(n_bytes as u64)
    }
}

/// The arrays that the source returned for some rows, as bytes.
fn arrays_in(
    returned: &Bound<'_, PyAny>,
    n_rows: usize,
) -> PyResult<Vec<(ArrayOfSample, Vec<u8>)>> {
    let Ok(arrays) = returned.cast::<PyMapping>() else {
        let class = returned.get_type().qualname()?;
        let problem = format!("read returned a {class}, and not a dictionary of arrays");
        return Err(PyTypeError::new_err(problem));
    };
    let items = arrays.items()?;
    let arrays = items.iter().map(|item| {
        let (name, array) = item.extract::<(String, Bound<'_, PyAny>)>()?;
        array_bytes(name, &array, n_rows)
    });
    arrays.collect()
}

/// What one sample of an array is, and the bytes of all.
fn array_bytes(
    name: String,
    array: &Bound<'_, PyAny>,
    n_rows: usize,
) -> PyResult<(ArrayOfSample, Vec<u8>)> {
    let numpy = array.py().import("numpy")?;
    let array = numpy.call_method1("asarray", (array,))?;
    let native = array.getattr("dtype")?.call_method1("newbyteorder", ("=",))?;
    let element = native.getattr("name")?.extract::<String>()?;
    let Some(element) = Element::named(&element) else {
        let problem = format!(
            "array {name:?} has elements of type {element}: a batch holds numbers and Booleans"
        );
        return Err(PyTypeError::new_err(problem));
    };
    let array = numpy.call_method1("require", (array, native, "CA"))?;
    let shape: Vec<usize> = array.getattr("shape")?.extract()?;
    let Some((_, shape)) = shape.split_first().filter(|(first, _)| **first == n_rows) else {
        let problem = format!(
            "array {name:?} has the shape {shape:?}, but {n_rows} samples were asked for: its \
             first dimension is theirs"
        );
        return Err(PyValueError::new_err(problem));
    };
    let n_bytes = element.n_bytes() * shape.iter().product::<usize>();
    let of_sample = ArrayOfSample { name, element, shape: shape.to_vec(), n_bytes };
    let bytes = array.call_method1("reshape", (-1,))?.call_method1("view", ("u1",))?;
    Ok((of_sample, PyBuffer::<u8>::get(&bytes)?.to_vec(array.py())?))
}

/// Rows that were read, an array after the other as in `OwnSource::arrays`.
#[derive(Debug, Default)]
pub(crate) struct OwnBlock {
    rows: Vec<u64>,
    arrays: Vec<Vec<u8>>,
}

impl Source for OwnSource {
    type Block = OwnBlock;
    type Batch = OwnBatch;
    type Error = Error;
    type Scratch = ();
    type Assembler = OwnAssembler;

    fn n_rows(&self) -> u64 {
        self.n_rows
    }

    fn fingerprint(&self) -> String {
        self.fingerprint.clone()
    }

    fn need(&self, block_rows: u64, batch_rows: u64) -> Result<Need, Error> {
        let (block, batch) = (self.bytes_of(block_rows), self.bytes_of(batch_rows));
        // The code's own arrays are there until they are copied.
        Ok(Need { block, largest: block, batch, reading: block, other: 0 })
    }

    fn block_bytes(&self, block: &OwnBlock) -> BlockBytes {
        let n_bytes = block.arrays.iter().map(|array| array.capacity() as u64).sum();
        BlockBytes { now: n_bytes, most: n_bytes }
    }

    fn read(
        &self,
        rows: &BlockRows<'_>,
        into: &mut OwnBlock,
        _scratch: &mut (),
        stop: &Stop,
    ) -> Result<ReadStats, Error> {
        into.rows.clear();
        into.rows.extend(rows.ranges.iter().cloned().flatten());
        let wanted = into.rows.iter().map(|row| *row as i64).collect();
        let mut found = self.read_rows(wanted, stop)?;
        into.arrays.clear();
        for array in self.arrays.iter() {
            into.arrays.push(matching(array, &mut found)?);
        }
        let n_elements = |array: &ArrayOfSample| array.shape.iter().product::<usize>() as u64;
        let values = self.arrays.iter().map(n_elements).sum::<u64>() * into.rows.len() as u64;
        Ok(ReadStats { values, ..ReadStats::default() })
    }

    fn assembler(&self, _batch_rows: u64) -> Result<OwnAssembler, Error> {
        Ok(OwnAssembler { arrays: Arc::clone(&self.arrays), ..OwnAssembler::default() })
    }
}

/// The bytes that were read of this array, if its samples are like the first one.
fn matching(
    expected: &ArrayOfSample,
    found: &mut [(ArrayOfSample, Vec<u8>)],
) -> Result<Vec<u8>, Error> {
    match found.iter_mut().find(|(array, _)| array.name == expected.name) {
        Some((array, bytes)) if array == expected => Ok(std::mem::take(bytes)),
        Some((array, _)) => Err(Error::Returned(format!(
            "read returned samples with {array}, but the first sample has {expected}"
        ))),
        None => Err(Error::Returned(format!(
            "read returned no array {:?}, which the first sample has",
            expected.name
        ))),
    }
}

/// Copies rows into batches.
#[derive(Debug, Default)]
pub(crate) struct OwnAssembler {
    arrays: Arc<[ArrayOfSample]>,
    samples: Vec<u64>,
    batch: Vec<AlignedBytes>,
}

impl Assemble for OwnAssembler {
    type Block = OwnBlock;
    type Batch = OwnBatch;
    type Error = Error;

    fn begin(&mut self, n_rows: usize) -> Result<(), Error> {
        self.samples = Vec::with_capacity(n_rows);
        let zeroed = |array: &ArrayOfSample| AlignedBytes::zeroed(array.n_bytes * n_rows);
        self.batch = self.arrays.iter().map(zeroed).collect();
        Ok(())
    }

    fn add(&mut self, block: &OwnBlock, part: BlockPart<'_>) -> Result<ThreadTime, Error> {
        let before = self.samples.len();
        for ((array, bytes), into) in self.arrays.iter().zip(&block.arrays).zip(&mut self.batch) {
            let n_bytes = array.n_bytes;
            let into = &mut into.bytes_mut()[before * n_bytes..];
            for (at, place) in part.order.iter().enumerate() {
                let start = *place as usize * n_bytes;
                into[at * n_bytes..][..n_bytes].copy_from_slice(&bytes[start..][..n_bytes]);
            }
        }
        self.samples.extend(part.order.iter().map(|place| block.rows[*place as usize]));
        Ok(ThreadTime::default())
    }

    fn finish(&mut self, place: BatchPlace) -> Result<OwnBatch, Error> {
        let (samples, values) =
            (std::mem::take(&mut self.samples), std::mem::take(&mut self.batch));
        Ok(OwnBatch { place, arrays: Arc::clone(&self.arrays), samples, values })
    }
}

/// A batch, outside of Python.
#[derive(Debug)]
pub(crate) struct OwnBatch {
    place: BatchPlace,
    arrays: Arc<[ArrayOfSample]>,
    samples: Vec<u64>,
    values: Vec<AlignedBytes>,
}

impl MadeBatch for OwnBatch {
    fn batch_idx(&self) -> u64 {
        self.place.batch_idx
    }

    fn n_samples(&self) -> usize {
        self.samples.len()
    }

    fn into_python(self: Box<Self>, py: Python<'_>, epoch: &EpochOf) -> PyResult<Py<PyAny>> {
        Ok(Py::new(py, SampleBatch::new(py, *self, &epoch.kept)?)?.into_any())
    }
}

/// Samples that Python code of the user reads.
#[pyclass(extends = Samples, frozen, module = "somafeed._somafeed")]
#[derive(Debug)]
pub(crate) struct OwnSamples(Arc<Chosen<Start>>);

#[pymethods]
impl OwnSamples {
    #[new]
    fn new(py: Python<'_>, start: Py<PyAny>) -> PyResult<PyClassInitializer<Self>> {
        Chosen::open(py, Start(start))
    }

    /// Name, type and shape of one sample of each array.
    fn arrays(&self, py: Python<'_>) -> PyResult<Vec<(String, &'static str, Vec<usize>)>> {
        let here = self.0.here(py)?;
        let described =
            |array: &ArrayOfSample| (array.name.clone(), array.element.name(), array.shape.clone());
        Ok(here.source().arrays.iter().map(described).collect())
    }
}

/// An array of each name, whose first dimension is the samples'.
#[pyclass(frozen, module = "somafeed._somafeed")]
#[derive(Debug)]
pub(crate) struct SampleBatch {
    place: BatchPlace,
    n_samples: usize,
    samples: Py<Memory>,
    values: Vec<(String, Py<Memory>)>,
}

impl SampleBatch {
    fn new(py: Python<'_>, batch: OwnBatch, kept: &Arc<KeptBatches>) -> PyResult<Self> {
        let OwnBatch { place, arrays, samples, values } = batch;
        let (n_samples, mut n_bytes) = (samples.len(), 0);
        let values = arrays.iter().zip(values).map(|(array, bytes)| {
            let of_array = (array.n_bytes * n_samples) as u64;
            n_bytes += of_array;
            let shape = [&[n_samples], array.shape.as_slice()].concat();
            let memory = Memory::of_bytes(bytes, array.element, kept.keep(of_array));
            Ok((array.name.clone(), Py::new(py, memory.with_shape(&shape)?)?))
        });
        let values = values.collect::<PyResult<_>>()?;
        kept.lease(n_bytes);
        let samples = Py::new(py, Memory::of_vec(samples))?;
        Ok(Self { place, n_samples, samples, values })
    }
}

#[pymethods]
impl SampleBatch {
    #[getter]
    fn batch_idx(&self) -> u64 {
        self.place.batch_idx
    }

    #[getter]
    fn n_padding(&self) -> usize {
        self.place.n_padding
    }

    #[getter]
    fn samples<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        numpy::array(py, &self.samples)
    }

    /// The arrays by their names.
    fn arrays<'py>(&self, py: Python<'py>) -> PyResult<Vec<(&str, Bound<'py, PyAny>)>> {
        let arrays = self.values.iter();
        arrays.map(|(name, values)| Ok((name.as_str(), numpy::array(py, values)?))).collect()
    }

    fn __len__(&self) -> usize {
        self.n_samples
    }

    fn __repr__(&self) -> String {
        format!("SampleBatch({}: {} samples)", self.place.batch_idx, self.n_samples)
    }

    #[expect(clippy::unused_self, reason = "Python calls it on an object")]
    fn __reduce__(&self) -> PyResult<()> {
        Err(unpicklable("SampleBatch", "pickle its arrays"))
    }
}
