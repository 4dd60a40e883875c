//! Slices from an object store equal those from a folder, despite passing faults; a lasting fault
//! is an error, and nothing is written.

use std::fs;
use std::ops::ControlFlow;

use example_data::{GenerateSpec, generate};
use experiment_copy::{Error, Genes, SliceReport, SliceSpec, slice};
use soma_io::{Config, Experiment, OpenOptions, ValueFilter};

use crate::contents::contents;
use test_storage::{PRIVATE, Seen, Server, What};

const N_CELLS: u64 = 600;
/// The files that hold X.
const X_FILES: &str = "ms/RNA/X/raw/__fragments/";

/// A server with an experiment, and a folder for its slices.
struct Bed {
    server: Server,
    folder: tempfile::TempDir,
}

impl Bed {
    fn new() -> Self {
        let server = Server::start();
        let from = server.bucket(PRIVATE).join("atlas");
        fs::create_dir_all(&from).unwrap();
        let spec = GenerateSpec {
            n_cells: N_CELLS,
            n_genes: 150,
            seed: 9,
            fragment_rows: Some(200),
            ..GenerateSpec::default()
        };
        generate(from.join("experiment").to_str().unwrap(), &spec, &mut |_| {}).unwrap();
        Self { server, folder: tempfile::tempdir().unwrap() }
    }

    fn take(&self, uri: &str, config: Config, to: &str) -> Result<SliceReport, Error> {
        let spec = SliceSpec {
            obs_filter: Some(ValueFilter::parse("nnz > 10").unwrap()),
            genes: Genes::First(70),
            ..SliceSpec::default()
        };
        let from =
            Experiment::open(uri, &OpenOptions { config, ..OpenOptions::default() }).unwrap();
        let to = self.folder.path().join(to);
        slice(&from, to.to_str().unwrap(), &spec, &mut |_| ControlFlow::Continue(()))
    }

    fn take_remote(&self, to: &str) -> Result<SliceReport, Error> {
        self.take("s3://private/atlas/experiment", self.server.config(), to)
    }
}

#[test]
fn a_slice_of_a_bucket_is_that_of_a_folder() {
    let bed = Bed::new();
    let local = bed.server.bucket(PRIVATE).join("atlas/experiment");
    let expected = bed.take(local.to_str().unwrap(), Config::new(), "of-folder").unwrap();
    drop(bed.server.seen());
    // A passing fault is retried.
    bed.server.fault(X_FILES, 2, What::Status(503));
    bed.server.fault(X_FILES, 1, What::CutBody);
    let report = bed.take_remote("of-bucket").unwrap();
    assert!(bed.server.seen().iter().any(Seen::is_get));
    assert_eq!(
        (report.n_cells, report.n_genes, report.nnz),
        (expected.n_cells, expected.n_genes, expected.nnz)
    );
    assert!(0 < report.n_cells && report.n_cells <= N_CELLS && report.n_genes == 70);
    let path = |name| bed.folder.path().join(name);
    assert_eq!(contents(&path("of-bucket")), contents(&path("of-folder")));
}

#[test]
fn a_store_that_stays_away_leaves_nothing_behind() {
    let bed = Bed::new();
    bed.server.fault(X_FILES, usize::MAX, What::Status(404));
    let error = bed.take_remote("of-bucket").unwrap_err();
    let mut text = error.to_string();
    let mut source = std::error::Error::source(&error);
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    assert!(text.contains("s3://private/atlas/experiment"), "{text}");
    bed.server.heal();
    let path = bed.folder.path().join("of-bucket");
    assert!(!path.exists(), "{text}");
    let report = bed.take_remote("of-bucket").unwrap();
    assert_eq!(contents(&path).obs.num_rows() as u64, report.n_cells);
}
