//! Reads from a bucket equal those from a folder, in every form of request.

use soma_io::{Error, Experiment, GeneSelection, OpenOptions, ReaderChoice, contract};

use crate::cells::{read_coo, read_csr};
use crate::s3::places::{READERS, Stored, every_cell, reader_of, rows, text};
use test_storage::{DOMAIN, PRIVATE, PUBLIC, Server};

#[test]
fn both_readers_read_what_the_folder_holds() {
    let stored = Stored::new(PRIVATE);
    let folder = stored.folder();
    let local = Experiment::open(folder.to_str().unwrap(), &OpenOptions::default()).unwrap();
    let remote = stored.open(stored.server.config()).unwrap();
    assert_eq!(remote.uri(), stored.uri());
    let (ours, theirs) = (local.obs().unwrap(), remote.obs().unwrap());
    assert_eq!(ours.read(None, None).unwrap(), theirs.read(None, None).unwrap());
    assert_eq!(theirs.n_rows().unwrap(), stored.small.spec.n_obs);
    let here = reader_of(&local, ReaderChoice::Native).unwrap();
    assert_eq!(every_cell(&*here).unwrap(), stored.cells());
    for choice in READERS {
        let there = reader_of(&remote, choice).unwrap();
        assert_eq!((there.name(), there.why_not_native()), (choice.name(), None));
        assert_eq!(every_cell(&*there).unwrap(), stored.cells());
        contract::check(&*there, &stored.small.x);
        // Cells have the same order as from the folder, too.
        let (rows, genes) = (rows([3..50, 51..52, 200..333]), GeneSelection::Range(5..60));
        let expect = read_csr(&*here, &rows, &genes).unwrap();
        assert_eq!(read_csr(&*there, &rows, &genes).unwrap(), expect);
        let expect = read_coo(&*here, &rows, &genes).unwrap();
        assert_eq!(read_coo(&*there, &rows, &genes).unwrap(), expect);
    }
    let auto = reader_of(&remote, ReaderChoice::Auto).unwrap();
    assert_eq!((auto.name(), auto.why_not_native()), ("native", None));
}

/// Requests are signed if there are keys, unless the config says otherwise; a private bucket then
/// refuses.
#[test]
fn who_does_not_sign_reads_what_is_public() {
    let mut stored = Stored::new(PUBLIC);
    let mut unsigned = stored.server.config();
    unsigned.insert("vfs.s3.no_sign_request".to_owned(), "true".to_owned());
    for (config, is_signed) in [(stored.server.config(), true), (unsigned.clone(), false)] {
        for choice in READERS {
            drop(stored.server.seen());
            let experiment = stored.open(config.clone()).unwrap();
            let reader = reader_of(&experiment, choice).unwrap();
            assert_eq!(every_cell(&*reader).unwrap(), stored.cells());
            let seen = stored.server.seen();
            assert!(!seen.is_empty());
            assert!(seen.iter().all(|seen| seen.is_signed == is_signed), "{seen:?}");
        }
    }
    let (public, private) = (stored.server.bucket(PUBLIC), stored.server.bucket(PRIVATE));
    std::fs::rename(public.join("atlas"), private.join("atlas")).unwrap();
    stored.bucket = PRIVATE;
    for choice in READERS {
        assert_eq!(every_cell(&*stored.reader(choice).unwrap()).unwrap(), stored.cells());
    }
    let error = text(&stored.open(unsigned).unwrap_err());
    assert!(error.contains("s3://private/atlas/experiment"), "{error}");
    let mut wrong = stored.server.config();
    wrong.insert("vfs.s3.aws_secret_access_key".to_owned(), "another".to_owned());
    let error = text(&stored.open(wrong).unwrap_err());
    assert!(error.contains("s3://private/atlas/experiment"), "{error}");
}

/// The bucket is the first part of the host's name, which is Amazon's preferred form. No name
/// server knows this host, so requests go through a proxy: the server itself.
#[test]
fn buckets_may_stand_in_the_hosts_name() {
    let stored = Stored::new(PRIVATE);
    let mut config = stored.server.config();
    config.insert("vfs.s3.endpoint_override".to_owned(), DOMAIN.to_owned());
    config.insert("vfs.s3.use_virtual_addressing".to_owned(), "true".to_owned());
    config.insert("vfs.s3.proxy_host".to_owned(), "127.0.0.1".to_owned());
    config.insert("vfs.s3.proxy_port".to_owned(), stored.server.address.port().to_string());
    for choice in READERS {
        let reader = reader_of(&stored.open(config.clone()).unwrap(), choice).unwrap();
        drop(stored.server.seen());
        assert_eq!(every_cell(&*reader).unwrap(), stored.cells());
        for seen in stored.server.seen() {
            assert_eq!(seen.host, format!("{PRIVATE}.{DOMAIN}"));
        }
    }
}

#[test]
fn nothing_there_is_missing() {
    let server = Server::start();
    let options = OpenOptions { config: server.config(), ..OpenOptions::default() };
    let error = Experiment::open("s3://private/nothing", &options).unwrap_err();
    assert!(matches!(&error, Error::Missing { uri } if uri == "s3://private/nothing"), "{error}");
    let error = text(&Experiment::open("s3://no-such-bucket/x", &options).unwrap_err());
    assert!(error.contains("s3://no-such-bucket/x") && error.contains("NoSuchBucket"), "{error}");
    let error = Experiment::open("s3:///x", &options).unwrap_err();
    let Error::Storage(storage::Error::Address { address, .. }) = &error else { panic!("{error}") };
    assert_eq!(address, "s3:///x");
}
