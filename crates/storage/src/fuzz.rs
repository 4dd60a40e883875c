//! Targets for fuzzing: functions that give any bytes to one part of the crate and panic if a
//! promise is broken.
//!
//! Compiled for this crate's tests, which run every kept input, and with `--cfg
//! somafeed_fuzz`, for the package in `fuzz/` that runs them under libFuzzer.

use std::sync::Arc;

use crate::MemoryStorage;
use crate::cache::block::{BlockId, HEADER_BYTES, ObjectId, object_id};
use crate::storage::{FileVersion, Piece, Storage as _};
use crate::zip::{Archive, ZipStorage};

/// A target's name, which is also that of its corpus, and the function.
pub type Target = (&'static str, fn(&[u8]));

/// All targets of this crate.
pub const TARGETS: [Target; 2] = [("cache_block", cache_block), ("zip_archive", zip_archive)];

/// A Zip archive as Python's `zipfile` writes it, with entries of each kind.
pub const ZIP: &[u8] = include_bytes!("../tests/data/small.zip");
/// Its name.
const ZIP_NAME: &str = "x.zip";

/// Whether the archive is [`ZIP`] (first byte 0) or the rest of the input, then changes to it, as
/// [`MemoryStorage::changed`] takes them.
fn zip_archive(input: &[u8]) {
    let (choice, rest) = input.split_first().map_or((0, input), |(of, rest)| (*of, rest));
    let served = match choice {
        0 => MemoryStorage::one(ZIP_NAME, ZIP).changed(rest),
        _ => MemoryStorage::one(ZIP_NAME, rest),
    };
    let bytes = served.files.get(ZIP_NAME).map(|file| file.to_vec()).unwrap_or_default();
    drop(read_zip(&bytes));
}

/// Lists an archive, reads its entries whole and in part, and returns those that could be read.
///
/// # Panics
/// A promise is broken: sizes are out of proportion to the archive, or parts are not those of the
/// whole.
pub fn read_zip(archive: &[u8]) -> Vec<(String, Vec<u8>)> {
    let served = Arc::new(MemoryStorage::one(ZIP_NAME, archive));
    let zip = ZipStorage::new(served, Arc::new(Archive::new(ZIP_NAME)));
    let mut found = Vec::new();
    let mut folders = vec![String::new()];
    while let Some(folder) = folders.pop() {
        // Errors are acceptable results.
        for entry in zip.list(&folder).unwrap_or_default() {
            let path = match folder.as_str() {
                "" => entry.name,
                folder => format!("{folder}/{}", entry.name),
            };
            if entry.is_folder {
                folders.push(path);
            } else if let Ok(bytes) = zip.read_files(&[&path]).remove(0) {
                check_parts(&zip, &path, &bytes, archive.len());
                found.push((path, bytes));
            }
        }
    }
    found
}

fn check_parts(zip: &ZipStorage, path: &str, bytes: &[u8], archive_bytes: usize) {
    assert!(bytes.len() <= archive_bytes * 1032);
    let middle = bytes.len() / 2;
    let pieces = [middle..bytes.len(), 0..middle]
        .map(|range| Piece { file: path, range: range.start as u64..range.end as u64 });
    let mut parts = vec![0; bytes.len()];
    assert!(zip.read(&pieces, &mut parts).is_ok());
    parts.rotate_right(middle);
    assert_eq!(parts, bytes);
}

/// Length of a name (1 byte), the name, and the block's file.
fn cache_block(input: &[u8]) {
    let (name_len, rest) = input.split_first().map_or((0, input), |(len, rest)| (*len, rest));
    let (name, file) = rest.split_at(rest.len().min(name_len.into()));
    let text = String::from_utf8_lossy(name);
    if let Some(id) = BlockId::parse(&text) {
        assert_eq!(id.name(), text);
        assert_eq!(id.folder().len(), 2);
        check_file(&id, file);
    }
    // Any bytes make a block. It is accepted only whole, and only under its own name.
    let version = FileVersion { size: file.len() as u64, tag: Some(text.into_owned()) };
    let object: ObjectId = object_id("memory", "file", &version, 4096);
    let id = BlockId { object, idx: name.len() as u64 };
    let mut whole = id.header(file).to_vec();
    whole.extend_from_slice(file);
    assert_eq!(id.payload(&whole), Some(file));
    assert_eq!(BlockId { idx: id.idx + 1, ..id }.payload(&whole), None);
    assert_eq!(id.payload(&whole[..whole.len() - 1]), None);
    let at = name.iter().fold(0, |at, byte| (at * 31 + usize::from(*byte)) % whole.len());
    whole[at] ^= 1;
    assert_eq!(id.payload(&whole), None, "byte {at}");
}

fn check_file(id: &BlockId, file: &[u8]) {
    if let Some(payload) = id.payload(file) {
        assert_eq!(payload.len() + HEADER_BYTES, file.len());
        assert_eq!(id.header(payload), file[..HEADER_BYTES]);
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn no_kept_input_breaks_a_promise() {
        fuzz_corpus::run_kept_inputs(&super::TARGETS);
    }
}
