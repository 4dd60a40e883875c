//! Short names of the Census, with the server in Amazon's place.

use std::fs;

use soma_io::{Error, Experiment, OpenOptions};

use crate::s3::places::{READERS, Stored, every_cell, reader_of};
use test_storage::{CENSUS, PRIVATE};

const FOLDER: &str = "cell-census/2025-11-08/soma/census_data";

#[test]
fn a_release_and_an_organism_are_an_experiment() {
    let stored = Stored::new(PRIVATE);
    let folder = stored.server.bucket(CENSUS).join(FOLDER);
    fs::create_dir_all(&folder).unwrap();
    fs::rename(stored.folder(), folder.join("homo_sapiens")).unwrap();
    let mut config = stored.server.config();
    for name in ["region", "aws_access_key_id", "aws_secret_access_key"] {
        config.remove(&format!("vfs.s3.{name}"));
    }
    let options = OpenOptions { config, ..OpenOptions::default() };
    let experiment = Experiment::open("census://2025-11-08/homo_sapiens", &options).unwrap();
    assert_eq!(experiment.uri(), format!("s3://{CENSUS}/{FOLDER}/homo_sapiens"));
    for choice in READERS {
        let reader = reader_of(&experiment, choice).unwrap();
        assert_eq!(every_cell(&*reader).unwrap(), stored.cells());
    }
    let seen = stored.server.seen();
    assert!(seen.iter().all(|seen| !seen.is_signed), "{seen:?}");
    // Keys in the user's config are used.
    let options = OpenOptions { config: stored.server.config(), ..OpenOptions::default() };
    Experiment::open("census://2025-11-08/homo_sapiens/", &options).unwrap();
    let seen = stored.server.seen();
    assert!(!seen.is_empty() && seen.iter().all(|seen| seen.is_signed), "{seen:?}");
    let error = Experiment::open("census://2025-11-08/mus_musculus", &options).unwrap_err();
    assert!(matches!(&error, Error::Missing { uri } if uri.ends_with("/mus_musculus")), "{error}");
    let error = Experiment::open("census://stable/homo_sapiens", &options).unwrap_err();
    assert!(matches!(&error, Error::Census { uri, .. } if uri == "census://stable/homo_sapiens"));
}
