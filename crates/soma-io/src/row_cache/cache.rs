//! The cache of one matrix: finds, decodes, encodes and writes its pages.

mod pages;

use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rayon::ThreadPool;
use sha2::{Digest as _, Sha256};
use storage::{BlockStore, Eviction, ObjectId};
use worktime::ReadStats;

use self::pages::{Found, Scratch};
use crate::row_cache::output::Output;
use crate::row_cache::page::{FORMAT, page_rows};
use crate::row_cache::requests::{PageRequest, ranges, requests};
use crate::row_cache::stats::{Counters, RowCacheUse};

/// The folder of pages below that of the cache, so that the cache of a storage may be there, too.
const PAGES: &str = "rows";
/// Least limit.
const LEAST_BYTES: u64 = 1 << 20;
/// Approximate bytes of memory that a thread takes for each value of a page that it encodes: its
/// key, value, count, and places in memory and in the page, twice if two versions are merged.
const ENCODING_BYTES: u64 = 40;

/// The place and size of a cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowCacheSpec {
    /// Its folder, on a disk of this machine. It is made if it does not exist, readable by this
    /// user only. Any number of matrices may share it.
    pub folder: PathBuf,
    /// Most bytes of all pages on disk, at least 1 MiB. Only pages that are being written come on
    /// top: 64 for each read.
    pub limit_bytes: u64,
}

/// A selection of a matrix's columns. Rows of other columns are other pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Columns {
    object: ObjectId,
    n_columns: usize,
}

/// Rows of one matrix on disk, for reads of this process and of others.
///
/// [`RowCacheReader`](crate::RowCacheReader) states how rows are kept and what is promised.
#[derive(Debug)]
pub(crate) struct RowCache {
    spec: RowCacheSpec,
    store: BlockStore,
    pool: Arc<ThreadPool>,
    matrix: String,
    counters: Counters,
    problem: Mutex<Option<String>>,
    /// Whether a value was found that is not a whole number below 65,536.
    has_floats: AtomicBool,
    /// Memory left by the threads of earlier reads.
    scratch: Mutex<Vec<Scratch>>,
}

impl RowCache {
    /// Opens the cache of the matrix that `matrix` identifies. The text must differ between any two
    /// matrices, and between versions of one. Threads of `pool` decode and encode.
    ///
    /// Looks at all pages if no living process has the folder open: 200,000 took 0.8 s, and 2.7 s
    /// when the system did not have them cached.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] if the limit is less than 1 MiB; other kinds if the folder
    /// cannot be made, read or written, or if another process locks it for half a minute.
    pub(crate) fn open(
        spec: &RowCacheSpec,
        matrix: &str,
        pool: Arc<ThreadPool>,
    ) -> io::Result<Self> {
        let failed = |error: io::Error| {
            let folder = spec.folder.display();
            let what = format!("could not open the cache of rows in {folder}: {error}");
            io::Error::new(error.kind(), what)
        };
        if spec.limit_bytes < LEAST_BYTES {
            let what = format!("a limit of {} bytes; allow at least 1 MiB", spec.limit_bytes);
            return Err(failed(io::Error::new(io::ErrorKind::InvalidInput, what)));
        }
        let folder = spec.folder.join(PAGES);
        let (store, n_removed) =
            BlockStore::open(&folder, spec.limit_bytes, Eviction::Unused).map_err(failed)?;
        let counters = Counters::default();
        counters.evictions.add(n_removed);
        Ok(Self {
            spec: spec.clone(),
            store,
            pool,
            matrix: matrix.to_owned(),
            counters,
            problem: Mutex::default(),
            has_floats: AtomicBool::new(false),
            scratch: Mutex::default(),
        })
    }

    /// The selection of `n_columns` columns that `selection` identifies: the same bytes for the
    /// same columns in the same order, others for others.
    pub(crate) fn columns(&self, selection: &[u8], n_columns: usize) -> Columns {
        let mut hasher = Sha256::new();
        hasher.update(b"rows");
        hasher.update(FORMAT.to_le_bytes());
        hasher.update((n_columns as u64).to_le_bytes());
        for text in [self.matrix.as_bytes(), selection] {
            // Each text after its length: no two pairs of texts give the same bytes.
            hasher.update((text.len() as u64).to_le_bytes());
            hasher.update(text);
        }
        let mut object = ObjectId::default();
        object.copy_from_slice(&hasher.finalize()[..size_of::<ObjectId>()]);
        Columns { object, n_columns }
    }

    /// Its counts so far, its size and its last problem.
    pub(crate) fn usage(&self) -> RowCacheUse {
        RowCacheUse {
            stats: self.counters.stats(),
            disk_bytes: self.store.used_bytes(),
            limit_bytes: self.spec.limit_bytes,
            problem: self.problem.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        }
    }

    /// Approximate bytes of memory that a read takes if a row has `row_nnz` values, without the
    /// returned rows and without the read of the matrix.
    pub(crate) fn working_bytes(&self, row_nnz: u64, columns: &Columns) -> u64 {
        let page_values = row_nnz.saturating_mul(page_rows(columns.n_columns));
        let n_threads = self.pool.current_num_threads() as u64;
        page_values.saturating_mul(n_threads).saturating_mul(ENCODING_BYTES)
    }

    /// The rows among ascending, disjoint, non-empty `rows` that a read would take from the matrix,
    /// as far as is known without decoding pages.
    pub(crate) fn missing(&self, rows: &[Range<u64>], columns: &Columns) -> Vec<Range<u64>> {
        let page_rows = page_rows(columns.n_columns);
        let requests = requests(rows, page_rows);
        let (found, _) = self.look(columns, &requests);
        let misses = requests.iter().zip(&found).filter(|(_, found)| !found.is_hit());
        ranges(misses.map(|(request, _)| request), page_rows)
    }

    /// Reads ascending, disjoint, non-empty `rows` into `out`, which must have the number of
    /// `columns`. `rest` reads rows of the matrix: it replaces the rows of its output by those of
    /// the ranges, with the same number of columns. It is called at most once, except after a page
    /// was found damaged, and always if there are no rows.
    ///
    /// # Errors
    /// Those of `rest`.
    pub(crate) fn read<E>(
        &self,
        rows: &[Range<u64>],
        columns: &Columns,
        mut out: Output<'_>,
        mut rest: impl FnMut(&[Range<u64>], Output<'_>) -> Result<(), E>,
    ) -> Result<ReadStats, E> {
        let requests = requests(rows, page_rows(columns.n_columns));
        if let Err(error) = self.store.note_use(&columns.object) {
            self.note_problem(&error);
        }
        let (mut found, mut stats) = self.look(columns, &requests);
        loop {
            self.lay_out(&requests, &found, columns, &mut out, &mut rest)?;
            let n_rows: usize = requests.iter().map(PageRequest::n_rows).sum();
            if out.n_rows() != n_rows {
                // The caller compares the number of rows with that it asked for.
                return Ok(stats);
            }
            let (lost, decoded) = self.decode(columns, &requests, &found, &mut out);
            stats += decoded;
            if lost.is_empty() {
                break;
            }
            // The lengths of their rows may be wrong, so everything is read again.
            for idx in lost {
                found[idx] = Found::Damaged;
            }
        }
        let n_hits = found.iter().filter(|found| found.is_hit()).count();
        self.counters.hits.add(n_hits as u64);
        self.counters.misses.add((found.len() - n_hits) as u64);
        if out.holds_packed_floats() {
            self.has_floats.store(true, Ordering::Relaxed);
        }
        stats.add_decoded(0, 0, self.keep(columns, &requests, &found, &out));
        Ok(stats)
    }

    /// Reads the rows that are not in the folder, and makes room for the others between them.
    fn lay_out<E>(
        &self,
        requests: &[PageRequest],
        found: &[Found],
        columns: &Columns,
        out: &mut Output<'_>,
        rest: &mut impl FnMut(&[Range<u64>], Output<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let misses = requests.iter().zip(found).filter(|(_, found)| !found.is_hit());
        let missing =
            ranges(misses.clone().map(|(request, _)| request), page_rows(columns.n_columns));
        let mut lengths: Vec<Option<usize>> = Vec::new();
        for (request, found) in requests.iter().zip(found) {
            match found {
                Found::Hit(head) => {
                    lengths.extend(head.places(request.rows).map(|(_, place)| Some(place.len())));
                }
                _ => lengths.extend(std::iter::repeat_n(None, request.n_rows())),
            }
        }
        let are_counts = !self.has_floats.load(Ordering::Relaxed)
            && found.iter().all(|found| !found.is_hit() || found.has_counts());
        let n_missing: usize = misses.map(|(request, _)| request.n_rows()).sum();
        if n_missing == 0 && !requests.is_empty() {
            out.keep_counts(are_counts);
            out.begin(&lengths);
            return Ok(());
        }
        rest(&missing, out.reborrow())?;
        // Another number of rows is the caller's to find.
        if n_missing < lengths.len() && out.n_rows() == n_missing {
            if !are_counts {
                out.widen();
            }
            out.insert(&lengths);
        }
        Ok(())
    }

    fn note_problem(&self, error: &io::Error) {
        let folder = self.spec.folder.display();
        let text = format!("could not keep rows in {folder}: {error}");
        *self.problem.lock().unwrap_or_else(PoisonError::into_inner) = Some(text);
    }

    fn with_scratch<T>(&self, work: impl FnOnce(&mut Scratch) -> T) -> T {
        let taken = self.scratch.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut scratch = taken.unwrap_or_default();
        let out = work(&mut scratch);
        self.scratch.lock().unwrap_or_else(PoisonError::into_inner).push(scratch);
        out
    }
}

#[cfg(test)]
mod tests;
