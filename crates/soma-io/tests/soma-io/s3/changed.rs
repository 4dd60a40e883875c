//! Objects that are replaced or removed during reads: never bytes of both versions.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use soma_io::{GeneSelection, ReaderChoice};

use crate::cells::read_csr;
use crate::s3::places::{READERS, Stored, every_cell, in_time, rows, text};
use test_storage::PRIVATE;
use test_storage::What;

const X_FILES: &str = "ms/RNA/X/raw/__fragments/";

/// The files of X's values, columns and rows.
fn data_files(stored: &Stored) -> Vec<PathBuf> {
    let fragments = fs::read_dir(stored.folder().join("ms/RNA/X/raw/__fragments")).unwrap();
    let folders = fragments.map(|entry| entry.unwrap().path());
    folders
        .flat_map(|folder| ["a0.tdb", "d0.tdb", "d1.tdb"].map(|name| folder.join(name)))
        .collect()
}

/// Replaces each file by one of the same length, with a bit changed near the end.
fn replace(files: &[PathBuf]) {
    for file in files {
        let mut bytes = fs::read(file).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        // Atomically, as in a store.
        let whole = file.with_extension("new");
        fs::write(&whole, bytes).unwrap();
        fs::rename(whole, file).unwrap();
    }
}

#[test]
fn a_replaced_object_is_an_error() {
    let stored = Stored::new(PRIVATE);
    let reader = stored.reader(ReaderChoice::Native).unwrap();
    let some = rows([0..40, 390..400]);
    read_csr(&*reader, &some, &GeneSelection::All).unwrap();
    replace(&data_files(&stored));
    for rows in [rows([100..300]), some] {
        let error = text(&read_csr(&*reader, &rows, &GeneSelection::All).unwrap_err());
        assert!(error.contains("was replaced while the array was open"), "{error}");
        assert!(
            error.contains("s3://private/atlas/experiment/ms/RNA/X/raw/__fragments/"),
            "{error}"
        );
    }
    // Once restored, they equal the opened ones.
    replace(&data_files(&stored));
    assert_eq!(every_cell(&*reader).unwrap(), stored.cells());
}

/// In the middle of one read, at each of its requests in turn.
#[test]
fn an_object_replaced_in_a_read_is_not_mixed() {
    let stored = Stored::new(PRIVATE);
    let files = data_files(&stored);
    let mut n_errors = 0;
    for after in 0.. {
        let reader = stored.reader(ReaderChoice::Native).unwrap();
        let before = fs::read(&files[0]).unwrap();
        let to_replace = files.clone();
        let deed = move || replace(&to_replace);
        stored.server.fault_after(X_FILES, after, 1, What::First(Arc::new(deed)));
        let read = every_cell(&*reader);
        stored.server.heal();
        if fs::read(&files[0]).unwrap() == before {
            // The read takes fewer requests.
            assert!(read.unwrap() == stored.cells());
            break;
        }
        match read {
            // All bytes are of one version, perhaps the later: a bit in the last file distinguishes
            // them, or breaks the packing.
            Ok(cells) => assert_eq!(cells.len(), stored.cells().len()),
            Err(error) => {
                let error = text(&error);
                assert!(error.contains("was replaced") || error.contains("is damaged"), "{error}");
                n_errors += 1;
            }
        }
        replace(&files);
    }
    assert!(n_errors > 0);
}

#[test]
fn a_removed_object_is_an_error() {
    for choice in READERS {
        let stored = Stored::new(PRIVATE);
        let reader = stored.reader(choice).unwrap();
        for file in data_files(&stored) {
            fs::remove_file(file).unwrap();
        }
        let error = text(&in_time(|| every_cell(&*reader)).unwrap_err());
        assert!(
            error.contains("s3://private/atlas/experiment/ms/RNA/X/raw/__fragments/"),
            "{error}"
        );
    }
}
