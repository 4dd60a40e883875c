//! Reads through the cache are those of the matrix, to the bit, whatever is in the folder.

use std::fs::{self, File};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use csr::{CsrBuffers, PackedCsr};
use proptest::prelude::*;
use rayon::ThreadPool;
use worktime::ReadStats;

use super::{RowCache, RowCacheSpec};
use crate::row_cache::output::Output;
use crate::row_cache::stats::RowCacheStats;

/// A matrix, and the calls that read rows of it.
struct Matrix {
    all: CsrBuffers,
    n_calls: usize,
    n_rows_read: u64,
}

/// A row: columns and values, with some columns twice.
type Row = Vec<(u32, f32)>;

fn matrix(rows: &[Row], n_columns: usize) -> Matrix {
    let mut all = CsrBuffers::empty(n_columns);
    for row in rows {
        let mut row = row.clone();
        row.sort_by_key(|(column, _)| *column);
        all.columns.extend(row.iter().map(|(column, _)| *column));
        all.values.extend(row.iter().map(|(_, value)| *value));
        all.row_offsets.push(all.values.len());
    }
    Matrix { all, n_calls: 0, n_rows_read: 0 }
}

/// Rows of whole numbers.
fn counts(n_rows: usize) -> Matrix {
    let row = |row: usize| (0..row % 7).map(|idx| (idx as u32, (row + idx) as f32)).collect();
    matrix(&(0..n_rows).map(row).collect::<Vec<_>>(), 7)
}

impl Matrix {
    fn rows(&self, ranges: &[Range<u64>]) -> CsrBuffers {
        let mut out = CsrBuffers::empty(self.all.n_columns);
        for row in ranges.iter().cloned().flatten() {
            let (columns, values) = self.all.row(row as usize);
            out.columns.extend(columns);
            out.values.extend(values);
            out.row_offsets.push(out.values.len());
        }
        out
    }

    /// Reads rows through the cache, whole and packed, and compares them.
    #[track_caller]
    fn check(&mut self, cache: &RowCache, ranges: &[Range<u64>], out: &mut Buffers) -> ReadStats {
        let columns = cache.columns(b"all", self.all.n_columns);
        let expected = self.rows(ranges);
        let mut calls: Vec<u64> = Vec::new();
        out.csr.n_columns = self.all.n_columns;
        out.packed.set_n_columns(self.all.n_columns).unwrap();
        let whole = cache
            .read(ranges, &columns, Output::Csr(&mut out.csr), |ranges, out| {
                calls.push(ranges.iter().map(|range| range.end - range.start).sum());
                let Output::Csr(csr) = out else { panic!("whole rows were asked for") };
                *csr = self.rows(ranges);
                Ok::<(), ()>(())
            })
            .unwrap();
        assert_eq!(bits(&out.csr), bits(&expected), "{ranges:?}");
        cache
            .read(ranges, &columns, Output::Packed(&mut out.packed), |ranges, out| {
                calls.push(ranges.iter().map(|range| range.end - range.start).sum());
                let Output::Packed(packed) = out else { panic!("packed rows were asked for") };
                *packed = PackedCsr::pack(&self.rows(ranges)).unwrap();
                Ok::<(), ()>(())
            })
            .unwrap();
        assert_eq!(bits(&out.packed.unpack()), bits(&expected), "{ranges:?}, packed");
        self.n_calls += calls.len();
        self.n_rows_read += calls.iter().sum::<u64>();
        whole
    }
}

/// Buffers with the rows of earlier reads.
#[derive(Default)]
struct Buffers {
    csr: CsrBuffers,
    packed: PackedCsr,
}

fn bits(csr: &CsrBuffers) -> (Vec<usize>, Vec<u32>, Vec<u32>, usize) {
    let values = csr.values.iter().map(|value| value.to_bits()).collect();
    (csr.row_offsets.clone(), csr.columns.clone(), values, csr.n_columns)
}

fn pool() -> Arc<ThreadPool> {
    Arc::new(rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap())
}

#[track_caller]
fn open(folder: &Path, limit_bytes: u64, matrix: &str) -> RowCache {
    let spec = RowCacheSpec { folder: folder.to_owned(), limit_bytes };
    RowCache::open(&spec, matrix, pool()).unwrap()
}

const ROOM: u64 = 1 << 30;

fn stats(cache: &RowCache) -> RowCacheStats {
    let usage = cache.usage();
    assert_eq!(usage.problem, None);
    assert!(usage.disk_bytes.unwrap() <= usage.limit_bytes);
    usage.stats
}

/// The files of all pages.
fn pages(folder: &Path) -> Vec<PathBuf> {
    let folders = fs::read_dir(folder.join("rows/blocks")).unwrap();
    let files = folders.flat_map(|folder| fs::read_dir(folder.unwrap().path()).unwrap());
    files.map(|file| file.unwrap().path()).collect()
}

/// Whole numbers, few others, and any bits.
fn value() -> impl Strategy<Value = f32> {
    prop_oneof![
        8 => (0..300_u16).prop_map(f32::from),
        1 => prop::sample::select(vec![0.5, -0.0, f32::NAN, f32::INFINITY, 70_000.0]),
        1 => any::<u32>().prop_map(f32::from_bits),
    ]
}

/// Ascending ranges of rows.
fn ranges(n_rows: u64) -> impl Strategy<Value = Vec<Range<u64>>> {
    prop::collection::btree_set(0..=n_rows, 0..9).prop_map(|ends| {
        let ends: Vec<u64> = ends.into_iter().collect();
        let (pairs, _) = ends.as_chunks::<2>();
        pairs.iter().map(|[start, end]| *start..*end).collect()
    })
}

/// Damages a page: cuts it, writes a byte, removes it, or replaces it by another.
fn damage(pages: &[PathBuf], at: usize, how: u8) {
    let Some(path) = pages.get(at % pages.len().max(1)) else { return };
    let mut bytes = fs::read(path).unwrap();
    let idx = at % bytes.len();
    match how % 4 {
        0 => bytes.truncate(idx),
        1 => bytes[idx] ^= how | 1,
        2 => return fs::remove_file(path).unwrap(),
        _ => bytes = fs::read(&pages[(at + 1) % pages.len()]).unwrap(),
    }
    fs::write(path, bytes).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn reads_are_those_of_the_matrix(
        rows in prop::collection::vec(prop::collection::vec((0..90_u32, value()), 0..12), 1..400),
        reads in prop::collection::vec((ranges(400), any::<u8>(), any::<u16>()), 1..8),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let n_rows = rows.len() as u64;
        let mut matrix = matrix(&rows, 90);
        let mut out = Buffers::default();
        let caches = [0, 1].map(|_| open(folder.path(), ROOM, "x"));
        for (idx, (ranges, how, at)) in reads.iter().enumerate() {
            let within = |range: &Range<u64>| range.start..range.end.min(n_rows);
            let ranges: Vec<_> =
                ranges.iter().map(within).filter(|range| !range.is_empty()).collect();
            matrix.check(&caches[idx % 2], &ranges, &mut out);
            if *how > 127 {
                damage(&pages(folder.path()), usize::from(*at), *how);
            }
        }
    }
}

#[test]
fn what_was_read_once_is_read_from_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    let mut matrix = counts(1000);
    let mut out = Buffers::default();
    let cache = open(folder.path(), ROOM, "x");
    // A read without rows makes no page, but still calls the matrix.
    matrix.check(&cache, &[], &mut out);
    assert_eq!((matrix.n_calls, stats(&cache)), (2, RowCacheStats::default()));
    // The packed read finds what the first one wrote; another reader, and another process, too.
    matrix.check(&cache, &[0..1000], &mut out);
    assert_eq!((matrix.n_calls, matrix.n_rows_read), (3, 1000));
    drop(cache);
    let cache = open(folder.path(), ROOM, "x");
    let counts = matrix.check(&cache, &[5..10, 70..80, 999..1000], &mut out);
    assert!(counts.bytes_read > Some(0) && counts.values == out.csr.nnz() as u64);
    assert_eq!((matrix.n_calls, stats(&cache).hits, stats(&cache).misses), (3, 6, 0));
    // Other columns, another version and another matrix have pages of their own.
    let others = [cache.columns(b"all", 6), cache.columns(b"some", 7)];
    assert!(others.iter().all(|other| *other != cache.columns(b"all", 7)));
    assert_eq!(open(folder.path(), ROOM, "x").columns(b"all", 7), cache.columns(b"all", 7));
    let other = open(folder.path(), ROOM, "x, changed");
    assert_ne!(other.columns(b"all", 7), cache.columns(b"all", 7));
    matrix.check(&other, &[0..64], &mut out);
    assert_eq!(matrix.n_calls, 4);
}

/// As with a filter on cells, or chunks of another number of rows than a page.
#[test]
fn rows_of_a_page_come_together_over_several_reads() {
    let folder = tempfile::tempdir().unwrap();
    let mut matrix = counts(640);
    let mut out = Buffers::default();
    let cache = open(folder.path(), ROOM, "x");
    // Chunks of 50 rows, of which every third row is selected.
    let chunk = |chunk: u64| -> Vec<Range<u64>> {
        (chunk * 50..chunk * 50 + 50).filter(|row| row % 3 == 0).map(|row| row..row + 1).collect()
    };
    for idx in [3, 0, 1, 9, 2, 4, 11, 7, 5, 6, 8, 10] {
        matrix.check(&cache, &chunk(idx), &mut out);
    }
    // No row was read twice.
    assert_eq!(matrix.n_rows_read, 200);
    for idx in 0..12 {
        matrix.check(&cache, &chunk(idx), &mut out);
    }
    assert_eq!(matrix.n_rows_read, 200);
}

/// Each time the page is written as a whole.
#[test]
fn a_page_is_not_written_for_each_of_its_rows() {
    let folder = tempfile::tempdir().unwrap();
    let mut matrix = counts(64);
    let mut out = Buffers::default();
    let cache = open(folder.path(), ROOM, "x");
    for row in 0..64 {
        matrix.check(&cache, &[row..row + 1], &mut out);
    }
    let few = stats(&cache);
    assert_eq!((few.written, few.not_written), (12, 2 * (64 - 12)));
    matrix.check(&cache, &[0..64], &mut out);
    assert_eq!(stats(&cache).written, 13);
    let n_calls = matrix.n_calls;
    matrix.check(&cache, &[40..41], &mut out);
    assert_eq!(matrix.n_calls, n_calls);
}

#[test]
fn damaged_pages_are_read_and_written_again() {
    let folder = tempfile::tempdir().unwrap();
    let mut matrix = counts(320);
    let mut out = Buffers::default();
    let cache = open(folder.path(), ROOM, "x");
    matrix.check(&cache, &[0..320], &mut out);
    for how in 0..4 {
        let all = pages(folder.path());
        // Behind the head, so that the page is taken for whole at first.
        damage(&all, fs::metadata(&all[0]).unwrap().len() as usize - 1, how);
        let (n_calls, before) = (matrix.n_calls, stats(&cache));
        matrix.check(&cache, &[0..320], &mut out);
        assert!(matrix.n_calls > n_calls, "{how}");
        let damaged = stats(&cache).damaged - before.damaged;
        assert_eq!(damaged, u64::from(how != 2), "{how}");
        let n_calls = matrix.n_calls;
        matrix.check(&cache, &[0..320], &mut out);
        assert_eq!(matrix.n_calls, n_calls, "{how}");
    }
}

#[test]
fn an_error_of_the_matrix_is_that_of_the_read() {
    let folder = tempfile::tempdir().unwrap();
    let cache = open(folder.path(), ROOM, "x");
    let columns = cache.columns(b"all", 7);
    let mut csr = CsrBuffers::empty(7);
    let read = cache.read(&[0..9], &columns, Output::Csr(&mut csr), |_, _| Err("far away"));
    assert_eq!(read, Err("far away"));
    // Another number of rows is the caller's to find; nothing of it is kept.
    let mut read = |n_rows: usize| {
        cache.read(&[0..9], &columns, Output::Csr(&mut csr), |_, out| {
            let Output::Csr(csr) = out else { panic!("whole rows were asked for") };
            *csr = CsrBuffers { row_offsets: vec![0; n_rows + 1], ..CsrBuffers::empty(7) };
            Ok::<(), ()>(())
        })
    };
    read(3).unwrap();
    assert_eq!(csr.n_rows(), 3);
    assert_eq!(pages(folder.path()).len(), 0);
}

/// A matrix whose pages take 4 KiB each.
fn limited(n_pages: u64) -> (Matrix, u64) {
    (counts(64 * n_pages as usize), 1 << 20)
}

#[test]
fn a_matrix_that_is_larger_than_the_limit_stays_in_part() {
    let folder = tempfile::tempdir().unwrap();
    // 256 pages of 4 KiB are 1 MiB.
    let (mut matrix, limit) = limited(400);
    let mut out = Buffers::default();
    let cache = open(folder.path(), limit, "x");
    let epoch = |matrix: &mut Matrix, out: &mut Buffers, cache: &RowCache, step: u64| {
        let n_rows = matrix.n_rows_read;
        for page in 0..400 {
            let first = page * step % 400 * 64;
            matrix.check(cache, &[first..first + 64], out);
        }
        matrix.n_rows_read - n_rows
    };
    epoch(&mut matrix, &mut out, &cache, 1);
    let kept = pages(folder.path()).len();
    assert!((240..=256).contains(&kept), "{kept} pages");
    let before = stats(&cache);
    assert_eq!(before.evictions, 0);
    // In whatever order: what is there stays, so two reads of each other page ask the matrix.
    for step in [1, 7, 399] {
        let n_rows = epoch(&mut matrix, &mut out, &cache, step);
        assert_eq!(n_rows, 2 * 64 * (400 - kept as u64));
    }
    assert_eq!(pages(folder.path()).len(), kept);
    // Another matrix has no room as long as this one is read, and takes its place after that.
    let other = open(folder.path(), limit, "y");
    matrix.check(&other, &[0..64], &mut out);
    assert_eq!((stats(&other).written, stats(&cache).evictions), (0, 0));
    drop((cache, other));
    let other = open(folder.path(), limit, "y");
    matrix.check(&other, &[0..64 * 100], &mut out);
    assert_eq!(stats(&other).written, 100);
    assert!(stats(&other).evictions >= 100);
}

#[test]
fn threads_and_processes_share_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let caches = [0, 1].map(|_| open(folder.path(), ROOM, "x"));
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let cache = &caches[thread % 2];
            scope.spawn(move || {
                let (mut matrix, mut out) = (counts(2000), Buffers::default());
                for idx in 0..40 {
                    let first = (idx * (31 + thread as u64) * 50) % 1900;
                    matrix.check(cache, &[first..first + 50, 1960..1990], &mut out);
                }
            });
        }
    });
    for cache in &caches {
        assert_eq!(stats(cache).damaged, 0);
    }
}

#[test]
fn what_a_killed_process_left_is_no_page_and_goes() {
    let folder = tempfile::tempdir().unwrap();
    let mut matrix = counts(640);
    let mut out = Buffers::default();
    let cache = open(folder.path(), ROOM, "x");
    matrix.check(&cache, &[0..320], &mut out);
    // A process that is killed leaves a lock that nobody has, and a part of a page.
    let unfinished = folder.path().join("rows/unfinished");
    fs::create_dir(unfinished.join("killed")).unwrap();
    File::create(unfinished.join("killed/lock")).unwrap();
    let page = fs::read(&pages(folder.path())[0]).unwrap();
    fs::write(unfinished.join("killed/0"), &page[..page.len() / 2]).unwrap();
    drop(cache);
    let cache = open(folder.path(), ROOM, "x");
    assert_eq!(fs::read_dir(&unfinished).unwrap().count(), 1);
    let n_calls = matrix.n_calls;
    matrix.check(&cache, &[0..320], &mut out);
    assert_eq!(matrix.n_calls, n_calls);
}

#[test]
fn reading_goes_on_if_nothing_can_be_written() {
    let folder = tempfile::tempdir().unwrap();
    let mut matrix = counts(6400);
    let mut out = Buffers::default();
    let cache = open(folder.path(), ROOM, "x");
    // As if the disk were full, for every user: the folder of unfinished pages is a file.
    let unfinished = folder.path().join("rows/unfinished");
    fs::remove_dir_all(&unfinished).unwrap();
    fs::write(&unfinished, "in the way").unwrap();
    matrix.check(&cache, &[0..6400], &mut out);
    let usage = cache.usage();
    assert_eq!((usage.stats.hits, usage.stats.misses), (0, 200));
    assert!(usage.problem.unwrap().contains("could not keep rows in"));
    assert_eq!((usage.stats.written, usage.stats.not_written), (0, 200));
    // After a while it tries again.
    fs::remove_file(&unfinished).unwrap();
    fs::create_dir_all(unfinished.join("0")).unwrap();
    for _ in 0..2 {
        matrix.check(&cache, &[0..6400], &mut out);
    }
    assert!(cache.usage().stats.written > 0);
}

#[test]
fn a_limit_that_holds_nothing_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let spec = RowCacheSpec { folder: folder.path().to_owned(), limit_bytes: 1000 };
    let error = RowCache::open(&spec, "x", pool()).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
    assert!(error.to_string().contains("at least 1 MiB"), "{error}");
    let spec = RowCacheSpec { folder: "/dev/null/x".into(), limit_bytes: ROOM };
    assert!(RowCache::open(&spec, "x", pool()).is_err());
    let cache = open(folder.path(), ROOM, "x");
    let columns = cache.columns(b"all", 60_000);
    assert!(cache.working_bytes(1000, &columns) > 64 * 1000 * 8);
}
