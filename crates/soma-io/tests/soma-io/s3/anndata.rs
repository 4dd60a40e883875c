//! AnnData in a bucket is read like from a folder, also if requests fail.

use std::path::Path;

use soma_io::{
    CsrBuffers, Error, Experiment, GeneSelection, OpenOptions, ReaderChoice, RowRanges, contract,
};
use test_storage::{PRIVATE, Server};

use crate::anndata::fixture;

/// Copies the files of a folder and of those in it.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to);
        } else {
            std::fs::copy(entry.path(), to).unwrap();
        }
    }
}

fn open(server: &Server, name: &str) -> Result<Experiment, Error> {
    let options = OpenOptions { config: server.config(), ..OpenOptions::default() };
    Experiment::open(&format!("s3://{PRIVATE}/{name}"), &options)
}

#[test]
fn it_is_read_like_from_a_folder() {
    let server = Server::start();
    copy(&fixture(), &server.bucket(PRIVATE).join("x.zarr"));
    let here = Experiment::open(fixture().to_str().unwrap(), &OpenOptions::default()).unwrap();
    for seed in 0..4 {
        if seed > 0 {
            server.trouble(seed, 4);
        }
        let there = open(&server, "x.zarr").unwrap();
        assert!(there.is_anndata());
        let frames = [(&here, &there)].map(|(here, there)| (here.obs(), there.obs()));
        for (here, there) in frames {
            let (here, there) = (here.unwrap(), there.unwrap());
            assert_eq!(here.read(None, None).unwrap(), there.read(None, None).unwrap());
        }
        let [here, there] = [&here, &there].map(|of| of.measurement("RNA").unwrap());
        for layer in ["X", "counts", "dense"] {
            let [here, there] = [&here, &there].map(|of| of.x(layer).unwrap());
            let [here, there] = [here, there].map(|x| x.reader(ReaderChoice::Auto).unwrap());
            assert!(there.is_far() && !here.is_far());
            let mut rows = CsrBuffers::default();
            let all = RowRanges::new(vec![0..here.n_rows()]).unwrap();
            here.read_csr(&all, &GeneSelection::All, &mut rows).unwrap();
            if seed == 0 {
                contract::check(&*there, &rows);
            }
            let mut of_bucket = CsrBuffers::default();
            there.read_csr(&all, &GeneSelection::All, &mut of_bucket).unwrap();
            assert_eq!(rows, of_bucket, "{layer}");
        }
        server.heal();
    }
    assert!(matches!(open(&server, "y.zarr").unwrap_err(), Error::Missing { .. }));
}
