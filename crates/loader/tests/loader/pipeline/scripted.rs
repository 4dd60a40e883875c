//! A reader that waits, fails or panics at a given read, and records the threads that call it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use arrow_array::RecordBatch;
use arrow_schema::DataType;
use soma_io::{
    CacheUse, CsrBuffers, Error, GeneSelection, MemoryReader, PackedCsr, ReadForm, ReadStats,
    RowCacheUse, RowRanges, WholeRows, XReader, contract,
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
    /// Fails at every read of this row, whatever its index.
    Row(u64),
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
    fn begin(&self, rows: &RowRanges) -> Result<bool, Error> {
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
            At::Row(row) if rows.ranges().iter().any(|rows| rows.contains(&row)) => {
                Err(Error::Missing { uri: format!("row {row}") })
            }
            at => Ok(at != At::Stray(idx)),
        }
    }
}

#[deny(clippy::missing_trait_methods)]
impl XReader for ScriptedReader {
    storage::forward! { inner:
        fn name() -> &'static str;
        fn why_not_native() -> Option<&str>;
        fn n_rows() -> u64;
        fn n_columns() -> u64;
        fn data_type() -> &DataType;
        fn most_nnz() -> Result<Option<u64>, Error>;
        fn working_bytes(nnz: u64, genes: &GeneSelection, form: ReadForm) -> u64;
        fn is_remote() -> bool;
        fn cache() -> Option<CacheUse>;
        fn row_cache() -> Option<RowCacheUse>;
        fn keep_decoded(holder: u64, limit_bytes: u64);
        fn asks_next_reads() -> bool;
        fn index_bytes() -> u64;
        fn decoded_bytes() -> u64;
        fn announce_next(rows: &RowRanges, genes: &GeneSelection);
        fn exact() -> Result<Arc<dyn XReader>, Error>;
        fn packs(genes: &GeneSelection) -> bool;
    }

    fn whole_rows(&self) -> Option<&dyn WholeRows> {
        None
    }

    fn nnz(&self) -> Result<Option<u64>, Error> {
        // The contract of readers asks for it.
        let may_ask = matches!(self.at, At::Never | At::Row(_));
        assert!(may_ask, "a loader would read X to count its values");
        self.inner.nnz()
    }

    fn read_csr(
        &self,
        rows: &RowRanges,
        genes: &GeneSelection,
        out: &mut CsrBuffers,
    ) -> Result<ReadStats, Error> {
        let asked = self.begin(rows)?;
        self.inner.read_csr(if asked { rows } else { &self.all }, genes, out)
    }

    fn read_packed(
        &self,
        rows: &RowRanges,
        genes: &GeneSelection,
        out: &mut PackedCsr,
    ) -> Result<ReadStats, Error> {
        let asked = self.begin(rows)?;
        self.inner.read_packed(if asked { rows } else { &self.all }, genes, out)
    }

    fn read_coo(
        &self,
        rows: &RowRanges,
        genes: &GeneSelection,
        each: &mut dyn FnMut(&RecordBatch) -> Result<(), Error>,
    ) -> Result<ReadStats, Error> {
        let asked = self.begin(rows)?;
        self.inner.read_coo(if asked { rows } else { &self.all }, genes, each)
    }
}

#[test]
fn without_a_script_it_reads_as_its_inner_reader_does() {
    contract::check(&*ScriptedReader::new(23, 9, At::Never), &sample::csr(23, 9));
}
