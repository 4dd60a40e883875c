//! Damaged files are errors or other values, and never a panic.

use std::fs;

use proptest::prelude::*;

use crate::{data, elements, open};

pub(crate) const PATHS: [&str; 8] = [
    "numbers/int32",
    "numbers/matrix",
    "chunked/gzip",
    "chunked/growing",
    "chunked/wide",
    "chunked/noise",
    "text/variable",
    "text/chunked",
];

/// Reads all that can be read.
fn read_all(bytes: &[u8]) -> usize {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("x.h5"), bytes).unwrap();
    let Ok(storage) = open(folder.path(), "x.h5") else { return 0 };
    PATHS.iter().filter(|path| elements(&storage, path).is_ok()).count()
}

#[test]
fn no_hdf5_file_is_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("x.h5"), "not HDF5").unwrap();
    let error = open(folder.path(), "x.h5").unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::InvalidData);
    assert!(error.to_string().contains("x.h5 is no HDF5 file"), "{error}");
    let error = open(folder.path(), "absent.h5").unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
}

#[test]
fn undamaged_files_are_read_whole() {
    for file in ["kinds.h5", "latest.h5"] {
        assert_eq!(read_all(&fs::read(data().join(file)).unwrap()), PATHS.len());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_cut_file_never_panics(cut in 0.0_f64..1.0, latest: bool) {
        let file = if latest { "latest.h5" } else { "kinds.h5" };
        let bytes = fs::read(data().join(file)).unwrap();
        let cut = (bytes.len() as f64 * cut) as usize;
        read_all(&bytes[..cut]);
    }

    #[test]
    fn other_bytes_never_panic(
        changes in prop::collection::vec((0.0_f64..1.0, any::<u8>()), 1..40),
        latest: bool,
    ) {
        let file = if latest { "latest.h5" } else { "kinds.h5" };
        let mut bytes = fs::read(data().join(file)).unwrap();
        for (at, byte) in changes {
            // Metadata lie at the beginning and at the end for the most part.
            let at = (bytes.len() as f64 * at * at) as usize;
            bytes[at] = byte;
        }
        read_all(&bytes);
    }
}
