//! The reference implementation reads the copy, and finds in it what was in the source.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use example_data::{GenerateSpec, generate};
use relayout::{CodecChoice, Codecs, GENE_CODECS, RelayoutSpec, VALUE_CODECS};
use serde_json::{Value, json};

use crate::small::lay_out;

/// Python with tiledbsoma: the one that `SOMAFEED_PYTHON` names, else the one in the user's cache. Prints a line where there is none.
#[expect(clippy::print_stderr, reason = "a test says what it does not show")]
fn interpreter() -> Option<PathBuf> {
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

/// What a script says of the two experiments.
fn compared(python: &Path, from: &Path, to: &Path) -> Value {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/compare.py");
    let mut command = Command::new(python);
    command.arg(script).args([from, to]).env("PYTHONDONTWRITEBYTECODE", "1");
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn tiledbsoma_finds_every_cell_with_every_value() {
    let Some(python) = interpreter() else { return };
    let folder = tempfile::tempdir().unwrap();
    let from = folder.path().join("from");
    let example =
        GenerateSpec { n_cells: 2_500, n_genes: 3_000, seed: 4, ..GenerateSpec::default() };
    let nnz = generate(from.to_str().unwrap(), &example, &mut |_| {}).unwrap().nnz;
    let pairs = GENE_CODECS.into_iter().zip(VALUE_CODECS);
    for (idx, (genes, values)) in (0..).zip(pairs) {
        let to = folder.path().join(format!("to-{idx}"));
        let codec = CodecChoice::Named(Codecs { genes, values });
        let shuffle_seed = (idx < 2).then_some(idx);
        let spec = RelayoutSpec { codec, shuffle_seed, ..RelayoutSpec::default() };
        lay_out(&from, &to, &spec).unwrap();
        let expected = json!({ "cells": 2_500, "genes": 3_000, "nnz": nnz, "shuffled": idx < 2, "type": "float" });
        assert_eq!(compared(&python, &from, &to), expected, "{genes:?} {values:?}");
    }
}
