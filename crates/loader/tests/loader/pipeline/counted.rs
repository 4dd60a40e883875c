//! A reader in memory that counts its calls.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use arrow_array::RecordBatch;
use arrow_schema::DataType;
use loader::GeneSelection;
use soma_io::{
    CacheUse, CsrBuffers, MemoryReader, PackedCsr, ReadForm, ReadStats, RowCacheUse, RowRanges,
    WholeRows, XReader, contract,
};

use crate::pipeline::sample;

/// Counts the reads, and those among them that fill new memory.
#[derive(Debug)]
pub(crate) struct CountedReader {
    inner: MemoryReader,
    pub(crate) n_started: AtomicUsize,
    pub(crate) n_fresh: AtomicUsize,
    /// Bytes of decoded values that each holder allows.
    allowed: Mutex<BTreeMap<u64, u64>>,
    working_bytes: u64,
    /// Whether it knows its number of values.
    pub(crate) knows_nnz: bool,
    /// Whether it says that it is remote.
    pub(crate) is_remote: bool,
    /// Whether it reads several selections of genes at once.
    pub(crate) reads_whole_rows: bool,
}

impl CountedReader {
    /// Counts the reads of a reader, each of which claims to need this much memory.
    pub(crate) fn new(inner: MemoryReader, working_bytes: u64) -> Self {
        let (n_started, n_fresh) = (AtomicUsize::default(), AtomicUsize::default());
        Self {
            inner,
            n_started,
            n_fresh,
            allowed: Mutex::default(),
            working_bytes,
            knows_nnz: true,
            is_remote: false,
            reads_whole_rows: false,
        }
    }

    /// Bytes of decoded values that all holders allow together.
    pub(crate) fn allowed(&self) -> u64 {
        self.allowed.lock().unwrap().values().sum()
    }
}

#[deny(clippy::missing_trait_methods)]
impl XReader for CountedReader {
    storage::forward! { inner:
        fn name() -> &'static str;
        fn why_not_native() -> Option<&str>;
        fn n_rows() -> u64;
        fn n_columns() -> u64;
        fn data_type() -> &DataType;
        fn cache() -> Option<CacheUse>;
        fn row_cache() -> Option<RowCacheUse>;
        fn index_bytes() -> u64;
        fn decoded_bytes() -> u64;
        fn announce_next(rows: &RowRanges, genes: &GeneSelection);
        fn exact() -> Result<Arc<dyn XReader>, soma_io::Error>;
        fn packs(genes: &GeneSelection) -> bool;
    }

    fn nnz(&self) -> Result<Option<u64>, soma_io::Error> {
        if !self.knows_nnz {
            return Ok(None);
        }
        self.inner.nnz()
    }

    fn most_nnz(&self) -> Result<Option<u64>, soma_io::Error> {
        if self.knows_nnz { self.inner.most_nnz() } else { Ok(None) }
    }

    fn working_bytes(&self, _nnz: u64, _genes: &GeneSelection, _form: ReadForm) -> u64 {
        self.working_bytes
    }

    fn is_remote(&self) -> bool {
        self.is_remote
    }

    fn whole_rows(&self) -> Option<&dyn WholeRows> {
        self.reads_whole_rows.then_some(self)
    }

    fn keep_decoded(&self, holder: u64, limit_bytes: u64) {
        self.allowed.lock().unwrap().insert(holder, limit_bytes);
        self.inner.keep_decoded(holder, limit_bytes);
    }

    fn asks_next_reads(&self) -> bool {
        self.inner.asks_next_reads()
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

    fn read_packed(
        &self,
        rows: &RowRanges,
        genes: &GeneSelection,
        out: &mut PackedCsr,
    ) -> Result<ReadStats, soma_io::Error> {
        self.n_started.fetch_add(1, Ordering::SeqCst);
        self.inner.read_packed(rows, genes, out)
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

impl WholeRows for CountedReader {
    fn read_selections(
        &self,
        rows: &RowRanges,
        selections: &mut [(&GeneSelection, &mut CsrBuffers)],
    ) -> Result<ReadStats, soma_io::Error> {
        self.n_started.fetch_add(1, Ordering::SeqCst);
        let mut all = ReadStats::nothing();
        for (genes, out) in selections {
            all += self.inner.read_csr(rows, genes, out)?;
        }
        Ok(all)
    }
}

#[test]
fn it_reads_as_its_inner_reader_does() {
    let counted = CountedReader::new(sample::reader(23, 9), 77);
    contract::check(&counted, &sample::csr(23, 9));
    assert!(counted.n_started.load(Ordering::SeqCst) > 0);
}
