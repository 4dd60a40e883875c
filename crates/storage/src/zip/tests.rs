//! An archive that Python's `zipfile` wrote; and the same with each number at its extremes.

use std::num::NonZeroU64;
use std::sync::Arc;

use super::*;
use crate::fuzz::{Served, ZIP, read_zip};
use crate::{Client, Config, LocalStorage, ReadLimit};

/// What the archive has, but for an entry of bzip2.
fn contents() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("a", b"0123456789".to_vec()),
        ("b/c", vec![0; 100_000]),
        ("b/d/e", b"newer".to_vec()),
        ("b/d0", Vec::new()),
        ("fields", b"further fields".to_vec()),
        ("folder/ä", b"umlaut".to_vec()),
        ("wide", b"wide header".to_vec()),
        ("wide deflated", b"wide ".repeat(50)),
    ]
}

fn archive(bytes: &[u8]) -> ZipStorage {
    ZipStorage::new(Arc::new(Served::one("x.zip", bytes)), Arc::new(Archive::new("x.zip")))
}

fn names(entries: Vec<Entry>) -> Vec<String> {
    let name = |entry: Entry| if entry.is_folder { entry.name + "/" } else { entry.name };
    entries.into_iter().map(name).collect()
}

#[test]
fn entries_are_the_files_of_a_storage() {
    let zip = archive(ZIP);
    let root = ["a", "b/", "bzip2", "fields", "folder/", "wide", "wide deflated"];
    assert_eq!(names(zip.list("").unwrap()), root);
    assert_eq!(names(zip.list("b").unwrap()), ["c", "d/", "d0"]);
    assert_eq!(names(zip.list("b/d").unwrap()), ["e"]);
    assert!(zip.list("c").unwrap().is_empty() && zip.list("a").unwrap().is_empty());
    assert_eq!(zip.list_all(9).unwrap().unwrap().len(), 9);
    assert_eq!(zip.list_all(8).unwrap(), None);
    for (name, bytes) in contents() {
        assert_eq!(zip.size(name).unwrap(), bytes.len() as u64, "{name}");
        assert_eq!(zip.read_files(&[name]).remove(0).unwrap(), bytes, "{name}");
    }
    assert_eq!(zip.size("absent").unwrap_err().kind(), io::ErrorKind::NotFound);
    assert_eq!(zip.place(), "memory/x.zip");
}

#[test]
fn parts_of_several_entries_are_read_at_once() {
    let contents = contents();
    let zip = archive(ZIP);
    // The first read learns where entries begin, the second knows it.
    for _ in 0..2 {
        let pieces: Vec<Piece<'_>> = contents
            .iter()
            .rev()
            .flat_map(|(file, bytes)| {
                let len = bytes.len() as u64;
                [len / 3..len, 0..len / 2, len / 2..len / 2].map(|range| Piece { file, range })
            })
            .collect();
        let expected: Vec<u8> = pieces
            .iter()
            .flat_map(|piece| {
                let (_, bytes) = contents.iter().find(|(name, _)| *name == piece.file).unwrap();
                bytes[piece.range.start as usize..piece.range.end as usize].to_vec()
            })
            .collect();
        let mut read = vec![1; expected.len()];
        zip.read(&pieces, &mut read).unwrap();
        assert_eq!(read, expected);
    }
    let beyond = [Piece { file: "a", range: 5..11 }];
    let error = zip.read(&beyond, &mut [0; 6]).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
}

#[test]
fn what_is_not_read_is_named() {
    let zip = archive(ZIP);
    let error = zip.size("bzip2").unwrap_err().to_string();
    assert!(error.contains("method 12") && error.contains("bzip2 in memory/x.zip"), "{error}");
    let error = archive(b"no archive").list("").unwrap_err().to_string();
    assert!(error.contains("x.zip: it is not a whole Zip archive"), "{error}");
    let none = ZipStorage::new(Arc::new(Served::default()), Arc::new(Archive::new("x.zip")));
    assert!(none.list("").unwrap().is_empty());
    assert_eq!(none.size("a").unwrap_err().kind(), io::ErrorKind::NotFound);
}

#[test]
fn a_damaged_entry_hinders_no_others() {
    let at = ZIP.windows(10).position(|bytes| bytes == b"0123456789").unwrap();
    let mut damaged = ZIP.to_vec();
    damaged[at] = b'1';
    let found = read_zip(&damaged);
    assert_eq!(found.len(), contents().len() - 1);
    let error = archive(&damaged).read_files(&["a"]).remove(0).unwrap_err().to_string();
    assert!(error.contains("a in memory/x.zip: its checksum is another"), "{error}");
}

#[test]
fn an_address_that_names_an_archive_opens_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.ZIP");
    std::fs::write(&path, ZIP).unwrap();
    let client = Client::open(path.to_str().unwrap(), &Config::new()).unwrap();
    let limit = Arc::new(ReadLimit::new(NonZeroU64::new(1 << 30).unwrap()));
    let below = client.storage("b", Some(&limit), None).unwrap().storage;
    assert_eq!(below.read_files(&["d/e"]).remove(0).unwrap(), b"newer");
    assert!(limit.used().bytes > 0);
    assert!(below.versions(&["c"]).remove(0).unwrap().tag.is_some());
    for (address, is_archive) in [
        ("s3://bucket.zip", false),
        ("s3://bucket/x.zip", true),
        ("https://host/x.zarr.zip/", true),
        (folder.path().to_str().unwrap(), false),
        ("x.zip.d", false),
    ] {
        assert_eq!(names_archive(address), is_archive, "{address}");
    }
    // A folder of such a name is one.
    let named = folder.path().join("folder.zip");
    std::fs::create_dir(&named).unwrap();
    std::fs::write(named.join("a"), "in a folder").unwrap();
    let client = Client::open(named.to_str().unwrap(), &Config::new()).unwrap();
    assert_eq!(client.storage("", None, None).unwrap().storage.size("a").unwrap(), 11);
}

#[test]
fn a_name_that_leads_out_is_an_error() {
    let mut changed = ZIP.to_vec();
    let name = b"b/d0";
    let places: Vec<usize> =
        (0..ZIP.len() - 4).filter(|at| &ZIP[*at..*at + name.len()] == name).collect();
    for at in places {
        changed[at..at + 4].copy_from_slice(b"../d");
    }
    let error = archive(&changed).list("").unwrap_err().to_string();
    assert!(error.contains("leads out"), "{error}");
}

/// Values that numbers are set to, and how many bytes of each.
const EXTREMES: [(u64, usize); 9] = [
    (0, 1),
    (u64::MAX, 1),
    (0, 2),
    (u64::MAX, 2),
    (0, 4),
    (u64::MAX, 4),
    (i32::MAX as u64, 4),
    (0, 8),
    (i64::MAX as u64, 8),
];

#[test]
fn an_archive_with_a_number_changed_has_the_archived_bytes_or_an_error() {
    let contents = contents();
    let places = (0..ZIP.len() - 8).flat_map(|place| EXTREMES.map(|extreme| (place, extreme)));
    for (place, (value, len)) in places {
        let mut changed = ZIP.to_vec();
        changed[place..place + len].copy_from_slice(&value.to_le_bytes()[..len]);
        for (name, bytes) in read_zip(&changed) {
            let is_archived = contents.iter().any(|(_, of)| *of == bytes) || bytes == b"old";
            assert!(is_archived, "{name}, {len} bytes at {place} are {value:#x}: {bytes:?}");
        }
    }
    for len in 0..ZIP.len() {
        drop(read_zip(&ZIP[..len]));
    }
}

#[test]
fn an_archive_that_was_replaced_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.zip");
    std::fs::write(&path, ZIP).unwrap();
    let storage: Arc<dyn Storage> = Arc::new(LocalStorage::new(folder.path()));
    let zip = ZipStorage::new(storage, Arc::new(Archive::new("x.zip")));
    assert_eq!(zip.size("a").unwrap(), 10);
    assert_eq!(zip.versions(&["a"]).remove(0).unwrap().size, 10);
    let mut moved = vec![0; 100];
    moved.extend(ZIP);
    let other = folder.path().join("other");
    std::fs::write(&other, moved).unwrap();
    std::fs::rename(&other, &path).unwrap();
    // The file is open, so its bytes are those of before.
    let read = zip.read_files(&["a"]).remove(0);
    assert!(read.is_err() || read.unwrap() == b"0123456789");
    // Whoever checks versions after a read notices it.
    let version = zip.versions(&["a"]).remove(0).unwrap_err().to_string();
    assert!(version.contains("replaced"), "{version}");
}
