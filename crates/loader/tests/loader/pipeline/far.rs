//! The first batch of an experiment behind a link: how many requests come before it.

use link::{BUCKET, LinkServer, LinkSpec};
use loader::{Dataset, Loader, LoaderSpec, PipelineSpec};
use soma_io::{Experiment, OpenOptions};

use crate::pipeline::{experiment, sample};

fn open(server: &LinkServer) -> Experiment {
    let options = OpenOptions { config: server.config(), ..OpenOptions::default() };
    Experiment::open(&format!("s3://{BUCKET}/experiment"), &options).unwrap()
}

/// The latency is longer than it takes to send what is sent at once, so that requests of which each
/// follows from an answer are distinguished from others.
#[test]
fn the_first_batch_takes_few_rounds() {
    let folder = tempfile::tempdir().unwrap();
    experiment::write(folder.path().join("experiment").to_str().unwrap());
    let link: LinkSpec = "300ms".parse().unwrap();
    let server = LinkServer::start(folder.path(), link).unwrap();
    let experiment = open(&server);
    let opened = server.counts().rounds;
    // The names of all files; the groups, schemas and footers.
    assert!(opened <= 2, "{opened} rounds");
    let dataset = Dataset::from_experiment(&experiment, &experiment::selection()).unwrap();
    // The columns of obs that select, and the joinids of var.
    let selected = server.counts().rounds - opened;
    assert!(selected <= 2, "{selected} rounds");
    // Rows, columns and values of the tiles together, and at most what opening left out. It is the
    // only block, so that nothing is requested for another.
    let spec = LoaderSpec {
        pipeline: PipelineSpec {
            read_threads: 0,
            chunks_per_block: 1000,
            ..sample::spec().pipeline
        },
        ..sample::spec()
    };
    let mut epoch = Loader::new(dataset, spec).unwrap().epoch(0).unwrap();
    epoch.next().unwrap().unwrap();
    let first = server.counts().rounds - opened - selected;
    assert!(first <= 2, "{first} rounds");
}

#[test]
fn the_first_batch_takes_few_requests() {
    let folder = tempfile::tempdir().unwrap();
    experiment::write(folder.path().join("experiment").to_str().unwrap());
    let link: LinkSpec = "0".parse().unwrap();
    let server = LinkServer::start(folder.path(), link).unwrap();
    let experiment = open(&server);
    let opened = server.counts().requests;
    // One listing; two files for each of five groups; two and a fragment's for each of three
    // arrays.
    assert!(opened <= 1 + 5 * 2 + 3 * 3, "{opened} requests");
    let dataset = Dataset::from_experiment(&experiment, &experiment::selection()).unwrap();
    // Values of obs: three columns, a text has two files. The joinids of var.
    let selected = server.counts().requests - opened;
    assert!(selected <= 4 + 1, "{selected} requests");
    let loader = Loader::new(dataset, sample::spec()).unwrap();
    assert_eq!(server.counts().requests, opened + selected);
    loader.epoch(0).unwrap().next().unwrap().unwrap();
}
