//! gensim opens our files and finds our neighbours; we open gensim's files.
//!
//! The interpreter is the one that `SOMAFEED_PYTHON` names (`cargo xtask test` sets it). Without it
//! nothing is compared, unless `SOMAFEED_REQUIRE_PYTHON` demands it.

use std::env;
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use doc2vec::NamedVectors;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng as _};
use serde_json::Value;

const N_VECTORS: usize = 50;
const DIMENSION: usize = 24;

#[expect(clippy::print_stderr, reason = "a test prints what it cannot check")]
fn python() -> Option<OsString> {
    let python = env::var_os("SOMAFEED_PYTHON").filter(|python| !python.is_empty());
    if python.is_none() {
        let absent = "SOMAFEED_PYTHON names no interpreter with gensim";
        assert!(env::var_os("SOMAFEED_REQUIRE_PYTHON").is_none(), "{absent}");
        eprintln!("not compared with gensim: {absent} (`cargo xtask test` makes one)");
    }
    python
}

/// Random vectors, with numbers so small and so large that text needs an exponent.
fn vectors() -> NamedVectors {
    let mut generator = ChaCha8Rng::seed_from_u64(9);
    let mut values: Vec<f32> = (0..N_VECTORS * DIMENSION)
        .map(|_| (generator.next_u32() >> 8) as f32 / (1 << 23) as f32 - 1.0)
        .collect();
    values[..4].copy_from_slice(&[1e-30, -1e10, f32::MIN_POSITIVE, -0.0]);
    let names = (0..N_VECTORS).map(|row| format!("design_{row}_ä")).collect();
    NamedVectors::new(names, values, DIMENSION).unwrap()
}

#[test]
fn gensim_opens_our_files_and_we_open_its() {
    let Some(python) = python() else { return };
    let folder = tempfile::tempdir().unwrap();
    let vectors = vectors();
    vectors.write_word2vec_text(folder.path().join("ours.txt")).unwrap();
    vectors.write_word2vec_binary(folder.path().join("ours.bin")).unwrap();

    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/gensim_vectors.py");
    let mut command = Command::new(python);
    command.arg(script).arg(folder.path()).env("PYTHONDONTWRITEBYTECODE", "1");
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {errors}");
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();

    let bits: Vec<u32> = vectors.values().iter().map(|value| value.to_bits()).collect();
    for form in ["text", "binary"] {
        let found = &found[form];
        assert_eq!(found["names"], serde_json::json!(vectors.names()), "{form}");
        assert_eq!(found["bits"], serde_json::json!(bits), "{form}");
        let neighbours = found["nearest"].as_array().unwrap();
        assert_eq!(neighbours.len(), N_VECTORS);
        let unit = vectors.unit();
        for (row, found) in neighbours.iter().enumerate() {
            let near = unit.nearest(row, 1)[0];
            assert_eq!(found[0], vectors.names()[near.row].as_str(), "row {row}");
            assert!((found[1].as_f64().unwrap() - f64::from(near.cosine)).abs() < 1e-5);
        }
    }
    let path = |name: &str| folder.path().join(name);
    // gensim writes the digits of numpy's `repr`, which are exact.
    assert_eq!(NamedVectors::read_word2vec_text(path("gensim.txt")).unwrap(), vectors);
    assert_eq!(NamedVectors::read_word2vec_binary(path("gensim.bin")).unwrap(), vectors);
}
