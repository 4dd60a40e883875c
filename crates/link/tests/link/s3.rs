//! Reads through `object_store`'s client of S3, unsigned.

use std::sync::Arc;

use link::{BUCKET, LinkServer, ServeOptions};
use storage::{OpenOptions, Piece, Storage};

use crate::{folder, serve};

pub(crate) fn open(server: &LinkServer, key: &str) -> Arc<dyn Storage> {
    open_with(server, key, &[])
}

pub(crate) fn open_with(server: &LinkServer, key: &str, more: &[(&str, &str)]) -> Arc<dyn Storage> {
    let mut config = server.config();
    config.extend(more.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    storage::open(&format!("s3://{BUCKET}/{key}"), &OpenOptions::new(&config)).unwrap().storage
}

#[test]
fn a_client_reads_the_bytes_of_the_files() {
    let files = [("data/a", 700_001), ("data/b c/d&e", 10), ("data/empty", 0), ("other", 3)];
    let folder = folder(&files);
    let server = serve(folder.path(), "1ms,unlimited");
    let storage = open(&server, "data");
    let on_disk = |name: &str| std::fs::read(folder.path().join("data").join(name)).unwrap();
    for (start, end) in [(0, 1), (0, 700_001), (699_000, 700_001), (131_071, 131_073), (5, 300_000)]
    {
        let mut read = vec![0; (end - start) as usize];
        storage.read(&[Piece { file: "a", range: start..end }], &mut read).unwrap();
        assert!(read == on_disk("a")[start as usize..end as usize], "{start}..{end}");
    }
    assert_eq!(storage.read_files(&["b c/d&e"])[0].as_ref().unwrap(), &on_disk("b c/d&e"));
    assert_eq!(storage.read_files(&["empty"])[0].as_ref().unwrap(), &Vec::<u8>::new());
    let sizes: Vec<u64> =
        storage.sizes(&["a", "b c/d&e", "empty"]).into_iter().map(Result::unwrap).collect();
    assert_eq!(sizes, [700_001, 10, 0]);
    let versions = storage.versions(&["a", "b c/d&e"]);
    let tags: Vec<_> = versions.into_iter().map(|version| version.unwrap().tag.unwrap()).collect();
    assert_ne!(tags[0], tags[1]);

    let absent = storage.read(&[Piece { file: "absent", range: 0..1 }], &mut [0]).unwrap_err();
    assert_eq!(absent.kind(), std::io::ErrorKind::NotFound);
    assert_eq!(storage.size("b c").unwrap_err().kind(), std::io::ErrorKind::NotFound);
    let beyond = storage.read(&[Piece { file: "b c/d&e", range: 8..12 }], &mut [0; 4]);
    assert_eq!(beyond.unwrap_err().kind(), std::io::ErrorKind::UnexpectedEof);
    let outside = open(&server, "..%2F..").size("etc/passwd").unwrap_err();
    assert_ne!(outside.kind(), std::io::ErrorKind::Other, "{outside}");

    let counts = server.counts();
    assert!(700_001 <= counts.bytes_sent && 10 <= counts.requests, "{counts:?}");
    assert!(1 <= counts.connections && counts.connections <= counts.requests, "{counts:?}");
}

#[test]
fn requests_one_after_another_are_rounds() {
    let folder = folder(&[("data/a", 3), ("data/b", 3)]);
    let server = serve(folder.path(), "0");
    let storage = open(&server, "data");
    for round in 1..4 {
        storage.size("a").unwrap();
        assert_eq!((server.counts().requests, server.counts().rounds), (round, round));
    }
    storage.sizes(&["a", "b"]).into_iter().for_each(|size| assert_eq!(size.unwrap(), 3));
    assert!((4..=5).contains(&server.counts().rounds));
}

#[test]
fn a_client_lists_folders_of_any_size() {
    let names: Vec<String> = (0..2300).map(|idx| format!("data/c/{idx}")).collect();
    let mut files: Vec<(&str, usize)> = names.iter().map(|name| (name.as_str(), 1)).collect();
    files.extend([("data/zarr.json", 2), ("data/b c/0", 1), ("database", 1)]);
    let folder = folder(&files);
    let server = serve(folder.path(), "0");
    let storage = open(&server, "data");
    let listed = |folder: &str| {
        let mut entries: Vec<(String, bool)> = storage
            .list(folder)
            .unwrap()
            .into_iter()
            .map(|entry| (entry.name, entry.is_folder))
            .collect();
        entries.sort();
        entries
    };
    let entry = |name: &str, is_folder| (name.to_owned(), is_folder);
    assert_eq!(listed(""), [entry("b c", true), entry("c", true), entry("zarr.json", false)]);
    assert_eq!(listed("c").len(), 2300);
    assert_eq!(listed("absent"), []);
}

#[test]
fn a_replaced_file_is_another_version() {
    let folder = folder(&[("a", 100)]);
    let server = serve(folder.path(), "0");
    let storage = open(&server, "");
    storage.read(&[Piece { file: "a", range: 0..10 }], &mut [0; 10]).unwrap();
    std::fs::write(folder.path().join("b"), [1; 100]).unwrap();
    std::fs::rename(folder.path().join("b"), folder.path().join("a")).unwrap();
    let error = storage.read(&[Piece { file: "a", range: 0..10 }], &mut [0; 10]).unwrap_err();
    assert!(error.to_string().contains("a was replaced"), "{error}");
}

#[test]
fn requests_that_are_late_are_repeated() {
    let folder = folder(&[("data/a", 400_000)]);
    let options = ServeOptions {
        spec: "5ms".parse().unwrap(),
        faults: "slow=1/25:1s,seed=3".parse().unwrap(),
        name: String::new(),
    };
    let server = LinkServer::start_with(folder.path(), &options).unwrap();
    let storage = open(&server, "data");
    let on_disk = std::fs::read(folder.path().join("data/a")).unwrap();
    for idx in 0..200 {
        let (mut read, start) = ([0; 100], idx * 2000);
        storage.read(&[Piece { file: "a", range: start..start + 100 }], &mut read).unwrap();
        assert_eq!(read, on_disk[start as usize..start as usize + 100]);
    }
    let counts = storage.request_counts().unwrap();
    assert_eq!(counts.sent, 200 + counts.repeated);
    // At most one request in twenty was repeated, and one more.
    assert!((1..=11).contains(&counts.repeated), "{counts:?}");
    assert_eq!(server.counts().requests, counts.sent);
}
