//! The cache in front of a store: no byte is requested twice, not even by later readers, and no
//! cell changes.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use soma_io::{Config, Error, ReaderChoice, XReader};

use crate::s3::places::{Stored, every_cell, reader_of, text};
use test_storage::PRIVATE;
use test_storage::{Seen, What};

fn config(stored: &Stored, folder: &Path, limit: Option<u64>) -> Config {
    let mut config = stored.server.config();
    config.insert("soma.cache_folder".into(), folder.to_str().unwrap().into());
    config.extend(limit.map(|limit| ("soma.cache_limit_bytes".into(), limit.to_string())));
    config
}

fn open(stored: &Stored, config: Config, choice: ReaderChoice) -> Result<Arc<dyn XReader>, Error> {
    reader_of(&stored.open(config)?, choice)
}

/// Requests for X's cells; libtiledb requests fragment metadata, too, when X is opened.
fn of_cells(seen: &[Seen]) -> usize {
    let files = ["a0.tdb", "d0.tdb", "d1.tdb"];
    seen.iter()
        .filter(|seen| seen.is_get() && files.iter().any(|name| seen.target.contains(name)))
        .count()
}

#[test]
fn what_was_read_once_is_not_asked_for_again() {
    let stored = Stored::new(PRIVATE);
    let folder = tempfile::tempdir().unwrap();
    for again in [false, true] {
        let config = config(&stored, folder.path(), None);
        drop(stored.server.seen());
        let reader = open(&stored, config, ReaderChoice::Native).unwrap();
        assert_eq!(every_cell(&*reader).unwrap(), stored.cells());
        let n_asked = of_cells(&stored.server.seen());
        assert_eq!(n_asked == 0, again, "{n_asked} requests for cells");
        let cache = reader.cache().unwrap();
        assert_eq!((cache.stats.misses == 0, &cache.problem), (again, &None), "{cache:?}");
        assert!(!again || cache.stats.hits > 0, "{cache:?}");
    }
    // Other readers have no cache, and read the same.
    let plain = stored.reader(ReaderChoice::Native).unwrap();
    assert!(plain.cache().is_none());
    let config = config(&stored, folder.path(), None);
    let libtiledb = open(&stored, config, ReaderChoice::Libtiledb).unwrap();
    assert_eq!(every_cell(&*libtiledb).unwrap(), stored.cells());
    assert!(libtiledb.cache().is_none());
}

#[test]
fn damage_and_a_small_limit_cost_requests_and_no_cells() {
    let stored = Stored::new(PRIVATE);
    let folder = tempfile::tempdir().unwrap();
    let limit = 300 << 10;
    for round in 0..4 {
        let config = config(&stored, folder.path(), Some(limit));
        let reader = open(&stored, config, ReaderChoice::Native).unwrap();
        assert_eq!(every_cell(&*reader).unwrap(), stored.cells(), "round {round}");
        let mut bytes = 0;
        for file in files_below(folder.path()) {
            let mut content = fs::read(&file).unwrap();
            bytes += content.len() as u64;
            // Another byte, or fewer.
            match round {
                1 => content.iter_mut().for_each(|byte| *byte ^= 1),
                2 => content.truncate(content.len() / 2),
                _ => continue,
            }
            fs::write(&file, content).unwrap();
        }
        assert!(bytes <= 2 * limit, "{bytes} bytes are kept");
    }
}

fn files_below(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { files.extend(files_below(&path)) } else { files.push(path) }
    }
    files
}

#[test]
fn a_fault_behind_a_cache_is_never_kept() {
    let stored = Stored::new(PRIVATE);
    let folder = tempfile::tempdir().unwrap();
    let open_it = || open(&stored, config(&stored, folder.path(), None), ReaderChoice::Native);
    let reader = open_it().unwrap();
    stored.server.fault("a0.tdb", usize::MAX, What::Status(403));
    every_cell(&*reader).unwrap_err();
    stored.server.heal();
    assert_eq!(every_cell(&*open_it().unwrap()).unwrap(), stored.cells());
}

#[test]
fn a_cache_that_cannot_be_is_an_error_before_reading() {
    let stored = Stored::new(PRIVATE);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let refused = |config| text(&open(&stored, config, ReaderChoice::Auto).unwrap_err());
    let error = refused(config(&stored, &file.join("below"), None));
    assert!(error.contains("soma.cache_folder") && error.contains("below"), "{error}");
    let error = refused(config(&stored, folder.path(), Some(10)));
    assert!(error.contains("10 bytes"), "{error}");
    let mut limit_alone = stored.server.config();
    limit_alone.insert("soma.cache_limit_bytes".into(), "1000000".into());
    let error = refused(limit_alone);
    assert!(error.contains("soma.cache_limit_bytes") && !error.contains("1000000"), "{error}");
}
