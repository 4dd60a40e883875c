//! Names the library of a process, which cannot change: the test restarts itself as a separate
//! process.

use std::path::PathBuf;
use std::process::Command;

use tiledb::{Error, PATH_VARIABLE, library, load_from};

/// In the separate process: the file to load.
const FILE: &str = "TILEDB_TEST_FILE";

#[test]
fn a_process_uses_the_library_that_it_names() {
    let Some(file) = std::env::var_os(FILE).map(PathBuf::from) else {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("here.so");
        std::os::unix::fs::symlink(library().unwrap().1, &file).unwrap();
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "load::a_process_uses_the_library_that_it_names"])
            .env(FILE, &file)
            .env(PATH_VARIABLE, folder.path().join("not-looked-for.so"))
            .output()
            .unwrap();
        let output = String::from_utf8_lossy(&child.stdout);
        assert!(child.status.success() && output.contains("1 passed"), "{output}");
        return;
    };
    let absent = file.with_file_name("absent.so");
    assert!(matches!(load_from(&absent), Err(Error::Load { .. })), "and nothing is loaded");
    load_from(&file).unwrap();
    assert_eq!(library().unwrap().1, file);
    load_from(&file.canonicalize().unwrap()).unwrap();
    let error = load_from(&absent).unwrap_err();
    assert!(
        matches!(&error, Error::AlreadyLoaded { path, loaded } if *path == absent && *loaded == file),
        "{error}"
    );
}

#[test]
fn signals_stay_the_programs() {
    let config = [("sm.enable_signal_handlers".to_owned(), "true".to_owned())].into();
    let _context = tiledb::Context::new(&config).unwrap();
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
    // The signal n has the bit n - 1; SIGINT is 2.
    assert_eq!(u64::from_str_radix(caught.trim(), 16).unwrap() & 0b10, 0, "{caught}");
}
