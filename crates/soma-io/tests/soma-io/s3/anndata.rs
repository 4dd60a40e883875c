//! AnnData in a bucket and on a server of files is read like from a folder, also if requests fail.

use std::path::Path;

use soma_io::{
    CsrBuffers, Error, Experiment, GeneSelection, OpenOptions, ReaderChoice, RowRanges, contract,
};
use test_storage::{PRIVATE, PUBLIC, Server, pack};

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

/// Reads all that `open` opens, in quiet and in trouble.
fn check(server: &Server, open: impl Fn() -> Result<Experiment, Error>) {
    let here = Experiment::open(fixture().to_str().unwrap(), &OpenOptions::default()).unwrap();
    for seed in 0..4 {
        if seed > 0 {
            server.trouble(seed, 4);
        }
        let there = open().unwrap();
        assert!(there.is_anndata());
        let (of_here, of_there) = (here.obs().unwrap(), there.obs().unwrap());
        assert_eq!(of_here.read(None, None).unwrap(), of_there.read(None, None).unwrap());
        let [here, there] = [&here, &there].map(|of| of.measurement("RNA").unwrap());
        for layer in ["X", "counts", "dense"] {
            let [here, there] = [&here, &there].map(|of| of.x(layer).unwrap());
            let [here, there] = [here, there].map(|x| x.reader(ReaderChoice::Auto).unwrap());
            assert!(there.is_remote() && !here.is_remote());
            let mut rows = CsrBuffers::default();
            let all = RowRanges::new(vec![0..here.n_rows()]).unwrap();
            here.read_csr(&all, &GeneSelection::All, &mut rows).unwrap();
            if seed == 0 {
                contract::check(&*there, &rows);
            }
            let mut of_server = CsrBuffers::default();
            there.read_csr(&all, &GeneSelection::All, &mut of_server).unwrap();
            assert_eq!(rows, of_server, "{layer}");
        }
        server.heal();
    }
}

#[test]
fn a_bucket_is_read_like_a_folder() {
    let server = Server::start();
    copy(&fixture(), &server.bucket(PRIVATE).join("x.zarr"));
    let open = |name: &str| {
        let options = OpenOptions { config: server.config(), ..OpenOptions::default() };
        Experiment::open(&format!("s3://{PRIVATE}/{name}"), &options)
    };
    pack(&fixture(), &server.bucket(PRIVATE).join("x.zarr.zip"));
    for name in ["x.zarr", "x.zarr.zip"] {
        check(&server, || open(name));
    }
    for name in ["y.zarr", "y.zarr.zip"] {
        assert!(matches!(open(name).unwrap_err(), Error::Missing { .. }), "{name}");
    }
}

/// An archive has one list of all its files.
#[test]
fn an_archive_takes_fewer_requests_than_a_folder() {
    let server = Server::start();
    copy(&fixture(), &server.bucket(PRIVATE).join("x.zarr"));
    pack(&fixture(), &server.bucket(PRIVATE).join("x.zarr.zip"));
    let [folder, archive] = ["x.zarr", "x.zarr.zip"].map(|name| {
        let options = OpenOptions { config: server.config(), ..OpenOptions::default() };
        let before = server.seen().len();
        let opened = Experiment::open(&format!("s3://{PRIVATE}/{name}"), &options).unwrap();
        opened.obs().unwrap().read(None, None).unwrap();
        let x = opened.measurement("RNA").unwrap().x("X").unwrap();
        let (all, mut rows) = (RowRanges::new(vec![0..7]).unwrap(), CsrBuffers::default());
        let reader = x.reader(ReaderChoice::Auto).unwrap();
        reader.read_csr(&all, &GeneSelection::All, &mut rows).unwrap();
        server.seen().len() - before
    });
    assert!(archive < folder, "{archive} and {folder} requests");
}

/// It lists nothing.
#[test]
fn a_server_of_files_is_read_like_a_folder() {
    let server = Server::start();
    copy(&fixture(), &server.bucket(PUBLIC).join("x.zarr"));
    let h5ad = fixture().with_file_name("x.h5ad");
    std::fs::copy(h5ad, server.bucket(PUBLIC).join("x.h5ad")).unwrap();
    let host = server.config()["vfs.s3.endpoint_override"].clone();
    let open = |name: &str| {
        let limits = ["soma.retry_limit_ms", "soma.request_limit_ms"].map(str::to_owned);
        let config = limits.map(|name| (name, "4000".to_owned())).into();
        let options = OpenOptions { config, ..OpenOptions::default() };
        Experiment::open(&format!("http://{host}/{PUBLIC}/{name}"), &options)
    };
    pack(&fixture(), &server.bucket(PUBLIC).join("x.zarr.zip"));
    for name in ["x.zarr", "x.h5ad", "x.zarr.zip"] {
        check(&server, || open(name));
    }
    let absent = open("y.zarr").unwrap_err().to_string();
    assert!(absent.contains("y.zarr") && absent.contains("AnnData"), "{absent}");
    let absent = open("y.h5ad").unwrap_err();
    assert!(matches!(absent, Error::Missing { .. }), "{absent}");
}
