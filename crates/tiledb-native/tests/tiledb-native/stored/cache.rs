//! A cached storage returns the bytes of the storage behind it, whatever happens to the cache, and
//! requests each byte once.

mod arrays;
mod behind;
mod damage;
mod processes;

use std::collections::HashSet;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use behind::{Behind, FRAGMENT, bytes};
use proptest::prelude::*;
use storage::{CacheSpec, CachedStorage, Expected, Piece, Storage};
use tiledb_native::is_in_fragment;

const BLOCK: u64 = 4096;
/// Size on disk of a block of 4 KiB with its header.
const BLOCK_COST: u64 = 8192;

fn spec(folder: &Path, n_blocks: u64) -> CacheSpec {
    CacheSpec { block_bytes: BLOCK, ..CacheSpec::new(folder, n_blocks * BLOCK_COST) }
}

#[track_caller]
fn cached(behind: &Arc<Behind>, folder: &Path, n_blocks: u64) -> CachedStorage {
    CachedStorage::new(Arc::<Behind>::clone(behind), &spec(folder, n_blocks), is_in_fragment)
        .unwrap()
}

fn in_fragment(name: &str) -> String {
    format!("{FRAGMENT}/{name}")
}

/// Reads `ranges` of a file and compares with the expected bytes.
#[track_caller]
fn check_read(storage: &dyn Storage, file: &str, ranges: &[Range<u64>]) {
    let pieces: Vec<_> = ranges.iter().map(|range| Piece { file, range: range.clone() }).collect();
    let expect: Vec<u8> = ranges.iter().flat_map(|range| bytes(file, range.clone())).collect();
    let mut into = vec![0; expect.len()];
    storage.read(&pieces, &mut into).unwrap();
    assert!(into == expect, "{file} {ranges:?}");
}

#[test]
fn what_was_read_is_not_asked_for_again() {
    let folder = tempfile::tempdir().unwrap();
    let file = in_fragment("a0.tdb");
    let behind = Behind::new([(file.as_str(), 50_000)]);
    {
        let storage = cached(&behind, folder.path(), 100);
        check_read(&storage, &file, &[10..20, 49_990..50_000, 5000..9000]);
        assert_eq!(behind.take_read(), [(file.clone(), 0..12_288), (file.clone(), 49_152..50_000)]);
        check_read(&storage, &file, &[0..12_288, 49_152..50_000, 7..7]);
        let stats = storage.stats();
        assert_eq!((stats.hits, stats.misses, stats.evictions, stats.not_kept), (4, 4, 0, 0));
        assert_eq!((stats.bytes_fetched, stats.bytes_from_cache), (13_136, 13_136));
    }
    // Like another process.
    let storage = cached(&behind, folder.path(), 100);
    check_read(&storage, &file, &[11_000..12_288, 49_999..50_000]);
    assert_eq!(behind.take_read(), []);
    assert_eq!(storage.stats().bytes_from_cache, 1289);
    assert_eq!(storage.size(&file).unwrap(), 50_000);
    assert_eq!(behind.n_versions.load(Ordering::SeqCst), 2);
    assert_eq!(storage.problem(), None);
}

#[test]
fn misses_are_asked_for_in_as_few_ranges_as_the_reader_made() {
    let folder = tempfile::tempdir().unwrap();
    let file = in_fragment("a0.tdb");
    let other = in_fragment("d1.tdb");
    let behind = Behind::new([(file.as_str(), 200_000), (other.as_str(), 200_000)]);
    let storage = cached(&behind, folder.path(), 100);
    check_read(&storage, &file, &[8192..8200]);
    behind.take_read();
    // Joins ranges across gaps that the storage behind accepts: across the one cached block, but
    // not across five.
    check_read(&storage, &file, &[0..20_000, 41_000..45_000]);
    assert_eq!(behind.take_read(), [(file.clone(), 0..20_480), (file.clone(), 40_960..45_056)]);
    assert_eq!(storage.stats().misses, 1 + 4 + 1);
    // Files of one read are requested in one call.
    let calls = behind.n_reads.load(Ordering::SeqCst);
    let pieces =
        [Piece { file: &file, range: 100_000..100_010 }, Piece { file: &other, range: 0..9 }];
    storage.read(&pieces, &mut [0; 19]).unwrap();
    assert_eq!(behind.n_reads.load(Ordering::SeqCst), calls + 1);
    // So are the versions of files that are not known yet.
    assert_eq!(behind.n_versions.load(Ordering::SeqCst), 2);
    let storage = cached(&behind, folder.path(), 100);
    storage.read(&pieces, &mut [0; 19]).unwrap();
    assert_eq!(behind.n_versions.load(Ordering::SeqCst), 3);
    let absent = in_fragment("absent");
    let versions = storage.versions(&[&other, "__array_schema.tdb", &absent, &file, &other]);
    let sizes = versions.into_iter().map(|version| version.map_err(|error| error.kind()));
    let sizes: Vec<_> = sizes.map(|version| version.map(|version| version.size)).collect();
    let none = Err(io::ErrorKind::NotFound);
    assert_eq!(sizes, [Ok(200_000), none, none, Ok(200_000), Ok(200_000)]);
}

#[test]
fn only_files_of_fragments_are_kept_and_listings_never() {
    let folder = tempfile::tempdir().unwrap();
    let schema = "__schema/__1_1_70f1b2c0f0669ba097275f1a0db8dd1c";
    let behind = Behind::new([(schema, 9000), ("__array_schema.tdb", 9000)]);
    let storage = cached(&behind, folder.path(), 100);
    for file in [schema, "__array_schema.tdb"] {
        for _ in 0..2 {
            check_read(&storage, file, &[10..20]);
            assert_eq!(behind.take_read(), [(file.to_owned(), 10..20)]);
            assert_eq!(storage.size(file).unwrap(), 9000);
        }
    }
    assert_eq!(storage.list("").unwrap().len(), 2);
    behind.remove(schema);
    assert_eq!(storage.list("").unwrap().len(), 1);
    assert_eq!(storage.size(schema).unwrap_err().kind(), io::ErrorKind::NotFound);
    let stats = storage.stats();
    assert_eq!((stats.hits, stats.misses, stats.bytes_fetched), (0, 0, 40));
}

#[test]
fn a_file_that_was_replaced_is_another_one() {
    let folder = tempfile::tempdir().unwrap();
    let file = in_fragment("a0.tdb");
    let behind = Behind::new([(file.as_str(), 10_000)]);
    check_read(&cached(&behind, folder.path(), 100), &file, &[0..10_000]);
    let read = |behind: &Arc<Behind>| {
        let mut into = [0; 4];
        let piece = Piece { file: &file, range: 4..8 };
        cached(behind, folder.path(), 100).read(&[piece], &mut into).map(|()| into)
    };
    behind.replace(&file, vec![1; 10_001], None);
    assert_eq!(read(&behind).unwrap(), [1; 4]);
    behind.replace(&file, vec![2; 10_001], Some("two"));
    assert_eq!(read(&behind).unwrap(), [2; 4]);
    behind.replace(&file, vec![3; 10_001], Some("three"));
    assert_eq!(read(&behind).unwrap(), [3; 4]);
    let elsewhere = Behind::at("elsewhere", [(file.as_str(), 10_001)]);
    elsewhere.replace(&file, vec![4; 10_001], Some("three"));
    assert_eq!(read(&elsewhere).unwrap(), [4; 4]);
    behind.remove(&file);
    assert_eq!(read(&behind).unwrap_err().kind(), io::ErrorKind::NotFound);
}

#[test]
fn errors_of_the_storage_behind_pass_and_nothing_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let file = in_fragment("a0.tdb");
    let behind = Behind::new([(file.as_str(), 20_000)]);
    let storage = cached(&behind, folder.path(), 100);
    behind.fails.store(true, Ordering::SeqCst);
    let read = |range: Range<u64>| {
        let mut into = vec![0; (range.end - range.start) as usize];
        storage.read(&[Piece { file: &file, range }], &mut into)
    };
    for _ in 0..2 {
        let error = read(0..10_000).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
        assert_eq!(error.to_string(), "the line is cut");
    }
    behind.fails.store(false, Ordering::SeqCst);
    assert_eq!(blocks(folder.path()), Vec::<std::path::PathBuf>::new());
    check_read(&storage, &file, &[0..10_000]);
    assert_eq!(read(15_000..20_001).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    let absent = storage.read(&[Piece { file: &in_fragment("x"), range: 0..1 }], &mut [0]);
    assert_eq!(absent.unwrap_err().kind(), io::ErrorKind::NotFound);
    let short = storage.read(&[Piece { file: &file, range: 0..5 }], &mut [0; 4]);
    assert_eq!(short.unwrap_err().kind(), io::ErrorKind::InvalidInput);
    assert_eq!(storage.stats().misses, 3);
}

/// The files of all blocks.
fn blocks(folder: &Path) -> Vec<std::path::PathBuf> {
    let below = |path: &Path| -> Vec<_> {
        let entries = std::fs::read_dir(path).unwrap();
        entries.map(|entry| entry.unwrap().path()).collect()
    };
    let mut blocks: Vec<_> =
        below(&folder.join("blocks")).iter().flat_map(|folder| below(folder)).collect();
    blocks.sort();
    blocks
}

#[test]
fn threads_that_miss_the_same_blocks_fetch_them_once() {
    let folder = tempfile::tempdir().unwrap();
    let file = in_fragment("a0.tdb");
    let size = 60 * BLOCK + 77;
    let behind = Behind::new([(file.as_str(), size)]);
    behind.delay(Duration::from_millis(3));
    let storage = cached(&behind, folder.path(), 100);
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let (storage, file) = (&storage, &file);
            scope.spawn(move || {
                for idx in 0..30 {
                    let start = (idx * 7919 + thread % 3 * 104_729) % (size - 20_000);
                    check_read(storage, file, &[start..start + 20_000, start / 2..start / 2 + 10]);
                }
                check_read(storage, file, &[0..size]);
            });
        }
    });
    let stats = storage.stats();
    // Ranges between two missing blocks may contain cached ones.
    let asked: u64 = behind.take_read().iter().map(|(_, range)| range.end - range.start).sum();
    assert_eq!(stats.bytes_fetched, asked);
    assert!(stats.misses <= 61 + stats.not_kept, "{stats:?}");
    assert!(stats.shared > 0, "{stats:?}");
}

#[test]
fn threads_that_wait_for_one_that_fails_ask_themselves() {
    let folder = tempfile::tempdir().unwrap();
    let file = in_fragment("a0.tdb");
    let behind = Behind::new([(file.as_str(), 10_000)]);
    behind.delay(Duration::from_millis(20));
    behind.fails.store(true, Ordering::SeqCst);
    let storage = cached(&behind, folder.path(), 100);
    std::thread::scope(|scope| {
        let read = || storage.read(&[Piece { file: &file, range: 0..9000 }], &mut [0; 9000]);
        let reads = [scope.spawn(read), scope.spawn(read), scope.spawn(read)];
        for read in reads {
            assert_eq!(read.join().unwrap().unwrap_err().kind(), io::ErrorKind::ConnectionReset);
        }
    });
    behind.fails.store(false, Ordering::SeqCst);
    check_read(&storage, &file, &[0..9000]);
}

#[test]
fn what_makes_no_sense_is_refused_before_anything_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let behind = Behind::new([]);
    let open = |spec: CacheSpec| {
        CachedStorage::new(Arc::<Behind>::clone(&behind), &spec, is_in_fragment).unwrap_err()
    };
    for block_bytes in [0, 4095, 5000, 2048, 128 << 20] {
        let error = open(CacheSpec { block_bytes, ..spec(folder.path(), 9) });
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        assert!(error.to_string().contains(&format!("blocks of {block_bytes} bytes")), "{error}");
    }
    let error = open(CacheSpec { limit_bytes: BLOCK_COST - 1, ..spec(folder.path(), 9) });
    assert!(error.to_string().contains("a limit of 8191 bytes, and one block takes 8192"));
    assert!(error.to_string().starts_with("could not open the cache in /"), "{error}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

fn ranges() -> impl Strategy<Value = Vec<(usize, Range<u64>)>> {
    let range = (0..4_usize, 0_u64..60_000, 0_u64..20_000)
        .prop_map(|(file, start, len)| (file, start.min(60_000)..(start + len).min(60_000)));
    prop::collection::vec(range, 0..6)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn any_reads_give_what_is_there(
        reads in prop::collection::vec((any::<bool>(), ranges()), 1..12),
        block_bits in 12_u32..17,
        limit_blocks in 1_u64..40,
    ) {
        let folder = tempfile::tempdir().unwrap();
        // One of these does not belong to a fragment.
        let files = [in_fragment("a0.tdb"), in_fragment("d0.tdb"), in_fragment("d1.tdb"), "__array_schema.tdb".to_owned()];
        let behind = Behind::new(files.iter().map(|file| (file.as_str(), 60_000)));
        let block_bytes = 1 << block_bits;
        let limit_bytes = limit_blocks * (block_bytes + 4096);
        let spec = CacheSpec { folder: folder.path().to_owned(), limit_bytes, block_bytes };
        let open = || CachedStorage::new(Arc::<Behind>::clone(&behind), &spec, is_in_fragment).unwrap();
        let storages = [open(), open()];
        for (which, ranges) in &reads {
            let pieces: Vec<_> = ranges.iter().map(|(file, range)| Piece { file: &files[*file], range: range.clone() }).collect();
            let len = pieces.iter().map(|piece| (piece.range.end - piece.range.start) as usize).sum();
            let (mut into, mut expect) = (vec![0; len], vec![0; len]);
            let storage = &storages[usize::from(*which)];
            storage.prefetch(&pieces, Expected::Now);
            storage.read(&pieces, &mut into).unwrap();
            behind.take_read();
            behind.read(&pieces, &mut expect).unwrap();
            behind.take_read();
            prop_assert!(into == expect, "{:?}", pieces);
            let taken: u64 = blocks(folder.path()).iter().map(|path| path.metadata().unwrap().len().div_ceil(4096) * 4096).sum();
            prop_assert!(taken <= limit_bytes, "{} of {}", taken, limit_bytes);
        }
        for storage in &storages {
            prop_assert_eq!(storage.stats().not_kept, 0);
        }
    }

    /// Prefetching announces the ranges to request, without the cached ones.
    #[test]
    fn only_what_is_missing_is_announced(first in ranges(), second in ranges()) {
        let folder = tempfile::tempdir().unwrap();
        let files = ["a0.tdb", "d0.tdb", "d1.tdb", "t.tdb"].map(in_fragment);
        let behind = Behind::new(files.iter().map(|file| (file.as_str(), 60_000)));
        let storage = cached(&behind, folder.path(), 1000);
        for ranges in [first, second] {
            let pieces: Vec<_> = ranges.iter().map(|(file, range)| Piece { file: &files[*file], range: range.clone() }).collect();
            let len = pieces.iter().map(|piece| (piece.range.end - piece.range.start) as usize).sum();
            storage.prefetch(&pieces, Expected::Now);
            storage.read(&pieces, &mut vec![0; len]).unwrap();
            let announced: HashSet<_> = behind.take_announced().into_iter().collect();
            let read: HashSet<_> = behind.take_read().into_iter().collect();
            prop_assert_eq!(announced, read);
        }
    }
}
