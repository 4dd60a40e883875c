//! A reader in memory that counts what is asked of it.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow_array::RecordBatch;
use arrow_schema::DataType;
use loader::GeneSelection;
use soma_io::{CsrBuffers, MemoryReader, ReadForm, ReadStats, RowRanges, XReader};

/// Counts the reads that begin, and those among them that are given memory which no read had before.
#[derive(Debug)]
pub(crate) struct CountedReader {
    inner: MemoryReader,
    pub(crate) n_started: AtomicUsize,
    pub(crate) n_fresh: AtomicUsize,
    /// Bytes that each holder allows to be kept decoded.
    allowed: Mutex<BTreeMap<u64, u64>>,
    working_bytes: u64,
}

impl CountedReader {
    /// Counts the reads of a reader, and says that each takes so much memory.
    pub(crate) fn new(inner: MemoryReader, working_bytes: u64) -> Self {
        let (n_started, n_fresh) = (AtomicUsize::default(), AtomicUsize::default());
        Self { inner, n_started, n_fresh, allowed: Mutex::default(), working_bytes }
    }

    /// Bytes that all holders together allow to be kept decoded.
    pub(crate) fn allowed(&self) -> u64 {
        self.allowed.lock().unwrap().values().sum()
    }
}

impl XReader for CountedReader {
    fn name(&self) -> &'static str {
        "counted"
    }

    fn n_rows(&self) -> u64 {
        self.inner.n_rows()
    }

    fn n_columns(&self) -> u64 {
        self.inner.n_columns()
    }

    fn data_type(&self) -> &DataType {
        self.inner.data_type()
    }

    fn nnz(&self) -> Result<Option<u64>, soma_io::Error> {
        self.inner.nnz()
    }

    fn working_bytes(&self, _nnz: u64, _genes: &GeneSelection, _form: ReadForm) -> u64 {
        self.working_bytes
    }

    fn keep_decoded(&self, holder: u64, limit_bytes: u64) {
        self.allowed.lock().unwrap().insert(holder, limit_bytes);
    }

    fn read_csr(
        &self,
        rows: &RowRanges,
        genes: &GeneSelection,
        out: &mut CsrBuffers,
    ) -> Result<ReadStats, soma_io::Error> {
        self.n_started.fetch_add(1, Ordering::SeqCst);
        self.n_fresh.fetch_add(usize::from(out.values.capacity() == 0), Ordering::SeqCst);
        self.inner.read_csr(rows, genes, out)
    }

    fn read_coo(
        &self,
        rows: &RowRanges,
        genes: &GeneSelection,
        each: &mut dyn FnMut(&RecordBatch) -> Result<(), soma_io::Error>,
    ) -> Result<ReadStats, soma_io::Error> {
        self.n_started.fetch_add(1, Ordering::SeqCst);
        self.inner.read_coo(rows, genes, each)
    }
}
