//! An archive that Python's `zipfile` wrote; and the same with each number at its extremes.

use std::io::Write as _;
use std::num::NonZeroU64;
use std::sync::Arc;

use flate2::Compression;
use flate2::write::DeflateEncoder;

use super::*;
use crate::MemoryStorage;
use crate::fuzz::{ZIP, read_zip};
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
    ZipStorage::new(Arc::new(MemoryStorage::one("x.zip", bytes)), Arc::new(Archive::new("x.zip")))
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
    let none = ZipStorage::new(Arc::new(MemoryStorage::default()), Arc::new(Archive::new("x.zip")));
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
fn names_that_lead_out_or_nowhere_are_errors() {
    let name = b"b/d0";
    let places = (0..ZIP.len() - 4).filter(|at| &ZIP[*at..*at + name.len()] == name);
    let places: Vec<usize> = places.collect();
    // A folder without a name would be below itself, so that a walk never ends.
    for (other, expected) in [(b"../d", "leads out"), (b"b//d", "without a name")] {
        let mut changed = ZIP.to_vec();
        for at in &places {
            changed[*at..*at + 4].copy_from_slice(other);
        }
        let error = archive(&changed).list("").unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
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

/// An archive of deflated entries.
fn deflated(entries: &[(String, Vec<u8>)]) -> Vec<u8> {
    let (mut archive, mut directory) = (Vec::new(), Vec::new());
    for (name, bytes) in entries {
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).unwrap();
        let stored = encoder.finish().unwrap();
        // The version, no flags, deflated, no date.
        let mut fields = vec![20, 0, 0, 0, 8, 0, 0, 0, 0, 0];
        for number in [crc32fast::hash(bytes), stored.len() as u32, bytes.len() as u32] {
            fields.extend(number.to_le_bytes());
        }
        fields.extend((name.len() as u32).to_le_bytes());
        directory.extend(b"PK\x01\x02\x14\0");
        directory.extend(&fields);
        // No comment, the first disk, no attributes.
        directory.extend([0; 10]);
        directory.extend((archive.len() as u32).to_le_bytes());
        directory.extend(name.as_bytes());
        archive.extend(b"PK\x03\x04");
        archive.extend(fields);
        archive.extend(name.as_bytes());
        archive.extend(stored);
    }
    let (start, len, n) = (archive.len() as u32, directory.len() as u32, entries.len() as u16);
    archive.extend(directory);
    archive.extend(b"PK\x05\x06\0\0\0\0");
    archive.extend([n, n].map(u16::to_le_bytes).concat());
    archive.extend([len, start].map(u32::to_le_bytes).concat());
    archive.extend([0; 2]);
    archive
}

/// Bytes that are not all equal, and that deflate makes small.
fn numbered(len: usize, first: u64) -> Vec<u8> {
    (first..).step_by(1 << 12).flat_map(|at| [at.to_le_bytes(); 512]).flatten().take(len).collect()
}

#[test]
fn parts_of_a_large_deflated_entry_are_read_in_any_order() {
    let len = KEPT_BYTES + 12_345;
    let entries = [("large".to_owned(), numbered(len, 7)), ("small".to_owned(), numbered(99, 1))];
    let zip = archive(&deflated(&entries));
    let whole = zip.read_files(&["small", "large"]);
    for ((_, bytes), read) in entries.iter().rev().zip(whole) {
        assert!(read.unwrap() == *bytes);
    }
    let len = len as u64;
    for ranges in [
        // Goes on, ends, begins anew, overlaps.
        vec![10..20, 1_000_000..1_000_010],
        vec![1_000_010..1_000_020, 2_000_000..2_100_000, len - 3..len],
        vec![5..9],
        vec![len - 3..len, 3..9, 0..len, 4..8, 4..4],
    ] {
        let both = ranges.iter().flat_map(|range| [("large", range.clone()), ("small", 7..9)]);
        let pieces: Vec<Piece<'_>> = both.map(|(file, range)| Piece { file, range }).collect();
        let expected = pieces.iter().flat_map(|piece| {
            let (_, bytes) = &entries[usize::from(piece.file == "small")];
            &bytes[piece.range.start as usize..piece.range.end as usize]
        });
        let expected: Vec<u8> = expected.copied().collect();
        let mut read = vec![1; expected.len()];
        zip.read(&pieces, &mut read).unwrap();
        assert!(read == expected, "{ranges:?}");
    }
}

#[test]
fn a_large_deflated_entry_that_is_damaged_is_an_error() {
    let entries = [("large".to_owned(), numbered(KEPT_BYTES + 1, 7))];
    let whole = deflated(&entries);
    let middle = whole.len() / 2;
    let mut n_noticed = 0;
    for at in middle..middle + 20 {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x10;
        match archive(&damaged).read_files(&["large"]).remove(0) {
            Ok(bytes) => assert!(bytes == entries[0].1),
            Err(error) => n_noticed += usize::from(error.to_string().contains("large in memory")),
        }
    }
    // In repeated bytes, some changes of a distance change nothing.
    assert!(n_noticed > 5, "{n_noticed}");
}

#[test]
fn a_little_of_many_deflated_entries_takes_little_memory() {
    let len = KEPT_BYTES + 1;
    let bytes = numbered(len, 3);
    let entries: Vec<_> = (0..24).map(|idx| (format!("{idx}"), bytes.clone())).collect();
    let names: Vec<String> = entries.iter().map(|(name, _)| name.clone()).collect();
    let zip = archive(&deflated(&entries));
    drop(entries);
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
    let before = peak_bytes();
    let range = len as u64 - 4..len as u64;
    let pieces: Vec<Piece<'_>> =
        names.iter().map(|file| Piece { file, range: range.clone() }).collect();
    let mut read = vec![0; 4 * pieces.len()];
    zip.read(&pieces, &mut read).unwrap();
    assert!(read.chunks(4).all(|part| *part == bytes[len - 4..]));
    let taken = peak_bytes() - before;
    // All of them together have twice as much.
    assert!(taken < 12 * KEPT_BYTES as u64, "{taken} bytes");
}

/// The most memory that this process has had.
fn peak_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}
