//! The reference implementation: Python with tiledbsoma 2.3.0, if installed.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

/// The interpreter: the one that `SOMAFEED_PYTHON` names, otherwise the one in the user's cache.
/// Prints a line if there is none.
///
/// # Panics
/// There is none, and `SOMAFEED_REQUIRE_PYTHON` is set.
#[expect(clippy::print_stderr, reason = "a test prints what it cannot check")]
pub(crate) fn interpreter() -> Option<PathBuf> {
    if let Some(named) = env::var_os("SOMAFEED_PYTHON").filter(|named| !named.is_empty()) {
        return Some(named.into());
    }
    let cache = env::var_os("XDG_CACHE_HOME").filter(|folder| !folder.is_empty());
    let cache = cache.map(PathBuf::from).or_else(|| Some(env::home_dir()?.join(".cache")));
    let python = cache?.join("somafeed/python-tiledbsoma-2.3.0/bin/python");
    if python.exists() {
        return Some(python);
    }
    let absent = format!("there is no Python with tiledbsoma 2.3.0 at {}", python.display());
    assert!(env::var_os("SOMAFEED_REQUIRE_PYTHON").is_none(), "{absent}");
    eprintln!("not compared with tiledbsoma: {absent} (`cargo xtask test` makes it)");
    None
}

/// Runs a script of `tests/python`, and returns the JSON that it prints.
#[track_caller]
pub(crate) fn run(python: &Path, script: &str, arguments: &[&str]) -> Value {
    printed(&output(python, script, arguments), script)
}

/// What a script of `tests/python` printed, and how it ended.
#[track_caller]
pub(crate) fn output(python: &Path, script: &str, arguments: &[&str]) -> Output {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python").join(script);
    let mut command = Command::new(python);
    command.arg(&script).args(arguments).env("PYTHONDONTWRITEBYTECODE", "1");
    command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

/// The JSON that a script has printed.
///
/// # Panics
/// The script failed.
#[track_caller]
pub(crate) fn printed(output: &Output, script: &str) -> Value {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{script} ended with {}:\n{said}", output.status);
    serde_json::from_slice(&output.stdout).unwrap()
}
