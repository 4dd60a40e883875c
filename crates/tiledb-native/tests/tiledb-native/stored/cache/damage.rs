//! Damage to the files of a cache: reads still return the right bytes, and damaged blocks are
//! replaced.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;

use storage::CachedStorage;
use tiledb_native::is_in_fragment;

use super::behind::Behind;
use super::{BLOCK, blocks, cached, check_read, in_fragment, spec};

const N_BLOCKS: u64 = 20;

/// A cache that is full with one file, and the storage behind it.
fn filled(folder: &Path) -> (Arc<Behind>, String) {
    let file = in_fragment("a0.tdb");
    let behind = Behind::new([(file.as_str(), N_BLOCKS * BLOCK - 100)]);
    check_read(&cached(&behind, folder, 100), &file, &[0..N_BLOCKS * BLOCK - 100]);
    assert_eq!(blocks(folder).len() as u64, N_BLOCKS);
    (behind, file)
}

#[test]
fn damaged_blocks_are_fetched_again_and_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let (behind, file) = filled(folder.path());
    let all = blocks(folder.path());
    let flip = |path: &Path, at: usize| {
        let mut bytes = fs::read(path).unwrap();
        bytes[at] ^= 0x10;
        fs::write(path, bytes).unwrap();
    };
    let cut = |path: &Path, len: usize| fs::write(path, &fs::read(path).unwrap()[..len]).unwrap();
    // Damage in every field of the header, and in the payload.
    for (path, at) in all.iter().zip([0, 9, 13, 20, 35, 41, 47, 48, 2000, 3000]) {
        flip(path, at);
    }
    for (path, len) in all[10..].iter().zip([0, 1, 47, 48, 3000]) {
        cut(path, len);
    }
    // Another block's file, a longer file, other content, another block's name, and no file.
    fs::copy(&all[19], &all[15]).unwrap();
    fs::write(&all[16], [fs::read(&all[16]).unwrap(), vec![0]].concat()).unwrap();
    fs::write(&all[17], vec![0; 5000]).unwrap();
    fs::rename(&all[17], &all[18]).unwrap();

    let storage = cached(&behind, folder.path(), 100);
    check_read(&storage, &file, &[0..N_BLOCKS * BLOCK - 100]);
    let stats = storage.stats();
    assert_eq!((stats.damaged, stats.misses, stats.hits), (18, 19, 1), "{stats:?}");
    assert_eq!((stats.not_kept, storage.problem()), (0, None));
    check_read(&storage, &file, &[0..N_BLOCKS * BLOCK - 100]);
    let stats = storage.stats();
    assert_eq!((stats.damaged, stats.misses, stats.hits), (18, 19, 1 + N_BLOCKS), "{stats:?}");
}

#[test]
fn a_folder_in_place_of_a_block_is_in_nobodys_way() {
    let folder = tempfile::tempdir().unwrap();
    let (behind, file) = filled(folder.path());
    let block = &blocks(folder.path())[3];
    fs::remove_file(block).unwrap();
    fs::create_dir(block).unwrap();
    let storage = cached(&behind, folder.path(), 100);
    for _ in 0..3 {
        check_read(&storage, &file, &[0..N_BLOCKS * BLOCK - 100]);
    }
    assert_eq!(storage.stats().misses, 3);
    assert_eq!(storage.stats().not_kept, 3);
    let problem = storage.problem().unwrap();
    assert!(problem.starts_with("could not keep a block in /"), "{problem}");
}

#[test]
fn a_folder_that_cannot_be_had_is_an_error_that_names_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    for path in [file.clone(), file.join("below")] {
        let error =
            CachedStorage::new(Behind::new([]), &spec(&path, 10), is_in_fragment).unwrap_err();
        let named = format!("could not open the cache in {}: ", path.display());
        assert!(error.to_string().starts_with(&named), "{error}");
        assert_ne!(error.kind(), io::ErrorKind::Other);
    }
}

#[test]
fn reading_goes_on_when_the_folder_no_longer_takes_blocks() {
    let folder = tempfile::tempdir().unwrap();
    let file = in_fragment("a0.tdb");
    let behind = Behind::new([(file.as_str(), 300 * BLOCK)]);
    let storage = cached(&behind, folder.path(), 1000);
    check_read(&storage, &file, &[0..3 * BLOCK]);
    let (unfinished, aside) = (folder.path().join("unfinished"), folder.path().join("aside"));
    fs::rename(&unfinished, &aside).unwrap();
    fs::write(&unfinished, "in the way").unwrap();
    behind.take_read();
    let some = [BLOCK..3 * BLOCK, 10 * BLOCK + 5..12 * BLOCK];
    for round in 1..=5 {
        check_read(&storage, &file, &some);
        let stats = storage.stats();
        assert_eq!((stats.misses, stats.not_kept), (3 + 2 * round, 2 * round), "{stats:?}");
    }
    // After the first failure only wanted bytes are fetched.
    let read = behind.take_read();
    assert_eq!(read[0], (file.clone(), 10 * BLOCK..12 * BLOCK));
    assert!(read[1..].iter().all(|(_, range)| *range == (10 * BLOCK + 5..12 * BLOCK)), "{read:?}");
    assert_eq!(read.len(), 5);
    let problem = storage.problem().unwrap();
    assert!(problem.contains("could not keep a block in /"), "{problem}");

    // Once writing works again, blocks are cached again.
    fs::remove_file(&unfinished).unwrap();
    fs::rename(&aside, &unfinished).unwrap();
    check_read(&storage, &file, &[100 * BLOCK..200 * BLOCK]);
    check_read(&storage, &file, &[200 * BLOCK..210 * BLOCK]);
    behind.take_read();
    check_read(&storage, &file, &[200 * BLOCK..210 * BLOCK, 0..BLOCK]);
    assert_eq!(behind.take_read(), []);
}

#[test]
fn a_cache_that_is_removed_under_way_is_missed() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("cache");
    let (behind, file) = filled(&at);
    let storage = cached(&behind, &at, 100);
    fs::remove_dir_all(&at).unwrap();
    check_read(&storage, &file, &[0..N_BLOCKS * BLOCK - 100]);
    assert_eq!(storage.stats().hits, 0);
    assert_eq!(storage.stats().not_kept, N_BLOCKS);
    assert!(storage.problem().unwrap().contains("No such file"));
    drop(storage);
    let storage = cached(&behind, &at, 100);
    check_read(&storage, &file, &[0..BLOCK]);
    assert_eq!((storage.stats().not_kept, storage.problem()), (0, None));
}
