//! Samples that Python code of the user reads, in the engine: the code reads rows, under the GIL;
//! order, ranks, batches and the rest are the engine's.
//!
//! The code runs in a thread that Python has made, which takes requests from here: Python, when it
//! ends, ends its own threads wherever they are, and aborts if frames of Rust are below.

mod batch;
mod requests;

use std::fmt;
use std::sync::Arc;

use crossbeam_channel::{RecvTimeoutError, Sender, bounded, unbounded};
use pipeline::{Assemble, BatchPlace, BlockBytes, BlockPart, BlockRows, Need, Source};
use pyo3::exceptions::{
    PyConnectionError, PyException, PyMemoryError, PyRuntimeError, PyTimeoutError, PyValueError,
};
use pyo3::prelude::*;
use shuffle::Stop;
use slots::{Pool, PooledSlot, SlotMemory as _};
use worktime::{ReadStats, ThreadTime};

use self::batch::OwnBatch;
pub(crate) use self::batch::SampleBatch;
use self::requests::{Answer, ArrayOfSample, Request, Requests, Wanted};
use crate::errors::IntoException;
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

/// The samples that the code reads. The first one, read when it is opened, says what a sample is.
#[derive(Debug)]
pub(crate) struct OwnSource {
    requests: Sender<Request>,
    n_rows: u64,
    arrays: Arc<[ArrayOfSample]>,
    fingerprint: String,
    /// Memory of batches.
    pool: Arc<Pool>,
}

/// An error of the user's code, or of the engine.
#[derive(Debug)]
pub(crate) enum Error {
    /// What the code raised.
    Raised(PyErr),
    /// What it returned is not what it returned before.
    Returned(String),
    /// There is no memory for a batch of so many samples.
    Memory {
        n_rows: usize,
    },
    /// Its thread has ended, or the epoch was closed.
    Ending,
    Engine(pipeline::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Raised(error) => write!(f, "the source raised {error}"),
            Self::Returned(problem) => f.write_str(problem),
            Self::Memory { n_rows } => {
                write!(
                    f,
                    "there is no memory for a batch of {n_rows} samples: make batches smaller"
                )
            }
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
            Self::Memory { .. } => PyMemoryError::new_err(self.to_string()),
            Self::Ending => PyRuntimeError::new_err(self.to_string()),
        }
    }
}

impl OwnSource {
    fn open(requests: Sender<Request>) -> Result<Self, Error> {
        let mut source = Self {
            requests,
            n_rows: 0,
            arrays: Arc::default(),
            fingerprint: String::new(),
            pool: Arc::default(),
        };
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

    fn is_damage(&self, error: &Error) -> bool {
        match error {
            Error::Raised(error) => Python::try_attach(|py| is_of_rows(py, error)) == Some(true),
            Error::Returned(_) => true,
            Error::Memory { .. } | Error::Ending | Error::Engine(_) => false,
        }
    }

    fn assembler(&self, _batch_rows: u64) -> Result<OwnAssembler, Error> {
        let (arrays, pool) = (Arc::clone(&self.arrays), Arc::clone(&self.pool));
        Ok(OwnAssembler { arrays, pool, ..OwnAssembler::default() })
    }
}

/// Whether an exception may be due to the rows that were read.
fn is_of_rows(py: Python<'_>, error: &PyErr) -> bool {
    let is_of_system = error.is_instance_of::<PyMemoryError>(py)
        || error.is_instance_of::<PyConnectionError>(py)
        || error.is_instance_of::<PyTimeoutError>(py);
    error.is_instance_of::<PyException>(py) && !is_of_system
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
    pool: Arc<Pool>,
    batch: Vec<PooledSlot>,
}

impl Assemble for OwnAssembler {
    type Block = OwnBlock;
    type Batch = OwnBatch;
    type Error = Error;

    fn begin(&mut self, n_rows: usize) -> Result<(), Error> {
        self.samples = Vec::with_capacity(n_rows);
        let slot = |array: &ArrayOfSample| {
            let n_bytes = array.n_bytes.checked_mul(n_rows);
            n_bytes.and_then(|n_bytes| self.pool.take(n_bytes)).ok_or(Error::Memory { n_rows })
        };
        self.batch = self.arrays.iter().map(slot).collect::<Result<_, _>>()?;
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
        let samples = std::mem::take(&mut self.samples);
        // Samples that were skipped are missing at the end.
        let values = std::mem::take(&mut self.batch);
        Ok(OwnBatch { place, arrays: Arc::clone(&self.arrays), samples, values })
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
