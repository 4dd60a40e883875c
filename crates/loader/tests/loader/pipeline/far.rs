//! The first batch of an experiment behind a link: how many requests come before it.

use link::{BUCKET, LinkServer, LinkSpec};
use loader::{Dataset, Loader};
use soma_io::{Config, Experiment, OpenOptions};

use crate::pipeline::{experiment, sample};

#[test]
fn the_first_batch_takes_few_requests() {
    let folder = tempfile::tempdir().unwrap();
    experiment::write(folder.path().join("experiment").to_str().unwrap());
    let link: LinkSpec = "0".parse().unwrap();
    let server = LinkServer::start(folder.path(), link).unwrap();
    let address = server.address().to_string();
    let settings = [
        ("vfs.s3.endpoint_override", address.as_str()),
        ("vfs.s3.scheme", "http"),
        ("vfs.s3.region", "us-east-1"),
        ("vfs.s3.no_sign_request", "true"),
    ];
    let config: Config =
        settings.map(|(name, value)| (name.to_owned(), value.to_owned())).into_iter().collect();
    let options = OpenOptions { config, ..OpenOptions::default() };
    let experiment = Experiment::open(&format!("s3://{BUCKET}/experiment"), &options).unwrap();
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
