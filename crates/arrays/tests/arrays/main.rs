//! Samples of Zarr arrays through the engine, against stores that zarr-python wrote and a naive
//! oracle.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should end")]

mod axes;
mod changed;
mod codecs;
mod conversions;
mod coordinates;
mod damaged;
mod ensembles;
mod epochs;
mod extremes;
mod far;
mod faults;
mod forcings;
mod into;
mod kept;
mod leads;
mod missing;
mod numbers;
mod oracle;
mod parts;
mod patches;
mod rollout;
mod settings;
mod sharing;
mod stacked;
mod stores;
mod timed;
mod xarray;
mod zarr_python;

use std::env;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use arrays::{ArrayBatch, ArraySamples, Element, Error, SampleSpec, Variable};
use pipeline::{Pipeline, PipelineSpec};
use shuffle::Order;
use storage::LocalStorage;

/// Samples of the steps of one array.
fn open(folder: &Path, array: &str) -> Result<ArraySamples, Error> {
    open_with(folder, &SampleSpec::new([Variable::new(array)]))
}

fn open_with(folder: &Path, spec: &SampleSpec) -> Result<ArraySamples, Error> {
    ArraySamples::open(Arc::new(LocalStorage::new(folder)), spec)
}

/// Samples in their own order, in blocks of two and batches of three.
fn in_order() -> PipelineSpec {
    PipelineSpec {
        order: Order::InOrder,
        chunk_rows: 2,
        chunks_per_block: 1,
        batch_rows: 3,
        ..PipelineSpec::default()
    }
}

/// The values of the first variable in all samples, in their order, and the shape of a sample.
fn values<T: Element>(samples: ArraySamples) -> Result<(Vec<T>, Vec<usize>), Error> {
    let pipeline = Pipeline::new(Arc::new(samples), in_order(), ArrayBatch::n_samples)?;
    let (mut all, mut shape) = (Vec::new(), Vec::new());
    for batch in pipeline.epoch(0)? {
        let batch = batch?;
        let first = batch.variables().next().unwrap();
        all.extend_from_slice(first.values::<T>()?);
        shape = first.shape();
    }
    Ok((all, shape.split_off(1)))
}

/// The values of all steps of an array, in their order.
fn read_all<T: Element>(folder: &Path, array: &str) -> Result<Vec<T>, Error> {
    Ok(values(open(folder, array)?)?.0)
}

/// Arrays that a script of `tests/python` wrote, and what it says of each.
struct RandomArrays {
    found: serde_json::Map<String, serde_json::Value>,
    seed: u64,
    n_arrays: u64,
}

/// Has a script write random arrays into a folder: `SOMAFEED_RANDOM_ARRAYS` of them, from
/// `SOMAFEED_RANDOM_SEED`.
///
/// The interpreter is the one that `SOMAFEED_PYTHON` names (`cargo xtask test` sets it). Without it
/// nothing is compared, unless `SOMAFEED_REQUIRE_PYTHON` demands it.
#[expect(clippy::print_stderr, reason = "a test prints what it cannot check")]
fn written(script: &str, folder: &Path) -> Option<RandomArrays> {
    const DEFAULT_ARRAYS: u64 = 100;
    let number =
        |name: &str, default: u64| env::var(name).map_or(default, |text| text.parse().unwrap());
    let Some(python) = env::var_os("SOMAFEED_PYTHON").filter(|python| !python.is_empty()) else {
        let absent = "SOMAFEED_PYTHON names no interpreter with xarray";
        assert!(env::var_os("SOMAFEED_REQUIRE_PYTHON").is_none(), "{absent}");
        eprintln!("{script} did not run: {absent} (`cargo xtask test` makes one)");
        return None;
    };
    let n_arrays = number("SOMAFEED_RANDOM_ARRAYS", DEFAULT_ARRAYS);
    let seed = number("SOMAFEED_RANDOM_SEED", 7);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python").join(script);
    let mut command = Command::new(python);
    command.arg(script).arg(folder).arg(seed.to_string()).arg(n_arrays.to_string());
    let output = command.env("PYTHONDONTWRITEBYTECODE", "1").output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {errors}");
    let found = serde_json::from_slice(&output.stdout).unwrap();
    Some(RandomArrays { found, seed, n_arrays })
}

/// An error and its causes in one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
