//! A reader that waits, fails or panics at a given read, and records the threads that call it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use arrow_array::RecordBatch;
use arrow_schema::DataType;
use soma_io::{
    CacheUse, CsrBuffers, Error, GeneSelection, MemoryReader, PackedCsr, ReadForm, ReadStats,
    RowCacheUse, RowRanges, XReader, contract,
};

use crate::pipeline::sample;

/// The event at one read, by its index from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum At {
    Never,
    Fail(usize),
    Panic(usize),
    /// Returns all rows of X instead of the requested ones.
    Stray(usize),
}

#[derive(Debug)]
pub(crate) struct ScriptedReader {
    inner: MemoryReader,
    all: RowRanges,
    at: At,
    n_started: AtomicUsize,
    /// Number of reads that may start; further ones wait.
    allowed: Mutex<usize>,
    changed: Condvar,
    threads: Mutex<Vec<String>>,
}

impl ScriptedReader {
    pub(crate) fn new(n_rows: u64, n_genes: u64, at: At) -> Arc<Self> {
        Arc::new(Self {
            inner: sample::reader(n_rows, n_genes),
            all: RowRanges::new(vec![0..n_rows]).unwrap(),
            at,
            n_started: AtomicUsize::new(0),
            allowed: Mutex::new(usize::MAX),
            changed: Condvar::new(),
            threads: Mutex::default(),
        })
    }

    /// Lets this many reads start, counted from the first.
    pub(crate) fn allow(&self, n_reads: usize) {
        *self.allowed.lock().unwrap() = n_reads;
        self.changed.notify_all();
    }

    pub(crate) fn n_started(&self) -> usize {
        self.n_started.load(Ordering::SeqCst)
    }

    /// Waits until this many reads have started.
    pub(crate) fn wait_for_reads(&self, n_reads: usize) {
        let start = Instant::now();
        while self.n_started() < n_reads {
            assert!(
                start.elapsed() < Duration::from_secs(20),
                "{} of {n_reads} reads",
                self.n_started()
            );
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// The names of the threads that read.
    pub(crate) fn threads(&self) -> Vec<String> {
        let mut names = self.threads.lock().unwrap().clone();
        names.dedup();
        names
    }

    /// Whether to return the requested rows.
    fn begin(&self) -> Result<bool, Error> {
        self.threads
            .lock()
            .unwrap()
            .push(std::thread::current().name().unwrap_or("unnamed").to_owned());
        let idx = self.n_started.fetch_add(1, Ordering::SeqCst);
        let allowed = self.allowed.lock().unwrap();
        drop(self.changed.wait_while(allowed, |allowed| *allowed <= idx).unwrap());
        assert!(self.at != At::Panic(idx), "scripted panic");
        match self.at {
            At::Fail(at) if at == idx => Err(Error::Missing { uri: "scripted".to_owned() }),
            at => Ok(at != At::Stray(idx)),
        }
    }
}

#[deny(clippy::missing_trait_methods)]
impl XReader for ScriptedReader {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn why_not_native(&self) -> Option<&str> {
        self.inner.why_not_native()
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

    fn nnz(&self) -> Result<Option<u64>, Error> {
        // The contract of readers asks for it.
        assert!(self.at == At::Never, "a loader would read X to count its values");
        self.inner.nnz()
    }

    fn most_nnz(&self) -> Result<Option<u64>, Error> {
        self.inner.most_nnz()
    }

    fn working_bytes(&self, nnz: u64, genes: &GeneSelection, form: ReadForm) -> u64 {
        self.inner.working_bytes(nnz, genes, form)
    }

    fn is_remote(&self) -> bool {
        self.inner.is_remote()
    }

    fn cache(&self) -> Option<CacheUse> {
        self.inner.cache()
    }

    fn row_cache(&self) -> Option<RowCacheUse> {
        self.inner.row_cache()
    }

    fn keep_decoded(&self, holder: u64, limit_bytes: u64) {
        self.inner.keep_decoded(holder, limit_bytes);
    }

    fn index_bytes(&self) -> u64 {
        self.inner.index_bytes()
    }

    fn decoded_bytes(&self) -> u64 {
        self.inner.decoded_bytes()
    }

    fn announce_next(&self, rows: &RowRanges, genes: &GeneSelection) {
        self.inner.announce_next(rows, genes);
    }

    fn exact(&self) -> Result<Arc<dyn XReader>, Error> {
        self.inner.exact()
    }

    fn read_csr(
        &self,
        rows: &RowRanges,
        genes: &GeneSelection,
        out: &mut CsrBuffers,
    ) -> Result<ReadStats, Error> {
        let asked = self.begin()?;
        self.inner.read_csr(if asked { rows } else { &self.all }, genes, out)
    }

    fn packs(&self, genes: &GeneSelection) -> bool {
        self.inner.packs(genes)
    }

    fn read_packed(
        &self,
        rows: &RowRanges,
        genes: &GeneSelection,
        out: &mut PackedCsr,
    ) -> Result<ReadStats, Error> {
        let asked = self.begin()?;
        self.inner.read_packed(if asked { rows } else { &self.all }, genes, out)
    }

    fn read_coo(
        &self,
        rows: &RowRanges,
        genes: &GeneSelection,
        each: &mut dyn FnMut(&RecordBatch) -> Result<(), Error>,
    ) -> Result<ReadStats, Error> {
        let asked = self.begin()?;
        self.inner.read_coo(if asked { rows } else { &self.all }, genes, each)
    }
}

#[test]
fn without_a_script_it_reads_as_its_inner_reader_does() {
    contract::check(&*ScriptedReader::new(23, 9, At::Never), &sample::csr(23, 9));
}
