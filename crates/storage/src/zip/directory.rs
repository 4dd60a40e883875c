//! The directory at an archive's end, which crate `rawzip` parses.

use std::collections::BTreeMap;
use std::io;
use std::ops::Bound;
use std::sync::{Mutex, PoisonError};

use rawzip::{ErrorKind, MAX_CENTRAL_DIRECTORY_RECORD_SIZE, ReaderAt, ZipLocator};

use super::entry::{Entry as ZipEntry, invalid};
use crate::names;
use crate::storage::{Entry, ListedFile, Piece, Storage, zeroed};

/// Bytes at the end of the archive that are searched for the record with which it ends: that and
/// the longest comment behind it.
const TAIL_BYTES: u64 = (64 << 10) + 128;
/// Bytes of the archive that are read at once.
const WINDOW_BYTES: u64 = 1 << 20;

/// What an archive has.
#[derive(Debug)]
pub(super) struct Directory {
    entries: BTreeMap<String, ZipEntry>,
    /// Entries lie before this place.
    pub(super) entries_end: u64,
}

impl Directory {
    /// Reads the directory of the archive `name` of a storage. If a name is there twice, the last
    /// entry has it, as in Python: Zarr adds files anew that it changes.
    pub(super) fn read(storage: &dyn Storage, name: &str) -> io::Result<Self> {
        let n_bytes = storage.size(name)?;
        let tail = n_bytes.saturating_sub(TAIL_BYTES);
        let archive = Window { storage, name, n_bytes, read: Mutex::default() };
        // All of the tail at once, rather than piece by piece from its end.
        archive.fill(tail, n_bytes)?;
        let mut buffer = vec![0; MAX_CENTRAL_DIRECTORY_RECORD_SIZE];
        let locator = ZipLocator::new().max_search_space(TAIL_BYTES);
        let located = locator.locate_in_reader(archive, &mut buffer, n_bytes);
        let archive = located.map_err(|(_, error)| failed(error))?;
        let entries_end = archive.directory_offset();
        let mut records = archive.entries(&mut buffer);
        let mut entries = BTreeMap::new();
        while let Some(record) = records.next_entry().map_err(failed)? {
            let path = record.file_path();
            let bytes: &[u8] = path.as_ref();
            let name = std::str::from_utf8(bytes);
            let name = name.map_err(|_| invalid("the name of an entry is not UTF-8"))?;
            names::check(name)?;
            // A folder without a name would list itself among what is below it.
            if name.contains("//") {
                return Err(invalid(&format!("the entry {name:?} has a folder without a name")));
            }
            // Folders are those of their files.
            if !name.ends_with('/') {
                entries.insert(name.to_owned(), ZipEntry::new(&record));
            }
        }
        Ok(Self { entries, entries_end })
    }

    pub(super) fn entry(&self, name: &str) -> Option<&ZipEntry> {
        self.entries.get(name)
    }

    /// What is in a folder.
    pub(super) fn list(&self, folder: &str) -> Vec<Entry> {
        let prefix = if folder.is_empty() { String::new() } else { format!("{folder}/") };
        let mut found = Vec::new();
        let mut from = Bound::Included(prefix.clone());
        loop {
            let mut after = self.entries.range((from.clone(), Bound::Unbounded));
            let Some((path, entry)) = after.next() else { return found };
            let Some(below) = path.strip_prefix(&prefix) else { return found };
            if let Some((name, _)) = below.split_once('/') {
                found.push(Entry { name: name.to_owned(), is_folder: true, bytes: None });
                // What follows all files below: `0` is the letter after the slash.
                from = Bound::Included(format!("{prefix}{name}0"));
            } else {
                let bytes = Some(entry.n_bytes);
                found.push(Entry { name: below.to_owned(), is_folder: false, bytes });
                from = Bound::Excluded(path.clone());
            }
        }
    }

    /// All files, if they are at most `most`.
    pub(super) fn list_all(&self, most: usize) -> Option<Vec<ListedFile>> {
        let file = |(path, entry): (&String, &ZipEntry)| ListedFile {
            path: path.clone(),
            bytes: entry.n_bytes,
        };
        (self.entries.len() <= most).then(|| self.entries.iter().map(file).collect())
    }
}

/// A file, of which a part is in memory.
struct Window<'a> {
    storage: &'a dyn Storage,
    name: &'a str,
    n_bytes: u64,
    /// A part of it, and where it begins.
    read: Mutex<(u64, Vec<u8>)>,
}

impl Window<'_> {
    /// Reads a range of the file, in place of the part that is in memory.
    fn fill(&self, start: u64, end: u64) -> io::Result<()> {
        let mut bytes = zeroed(usize::try_from(end - start).unwrap_or(usize::MAX))?;
        self.storage.read(&[Piece { file: self.name, range: start..end }], &mut bytes)?;
        *self.read.lock().unwrap_or_else(PoisonError::into_inner) = (start, bytes);
        Ok(())
    }

    /// Copies bytes that are in memory; `None` if the first is not.
    fn copy(&self, into: &mut [u8], offset: u64) -> Option<usize> {
        let read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let at = usize::try_from(offset.checked_sub(read.0)?).ok()?;
        let rest = read.1.get(at..).filter(|rest| !rest.is_empty())?;
        let len = rest.len().min(into.len());
        into[..len].copy_from_slice(&rest[..len]);
        Some(len)
    }
}

impl ReaderAt for Window<'_> {
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        if self.n_bytes <= offset || into.is_empty() {
            return Ok(0);
        }
        if let Some(len) = self.copy(into, offset) {
            return Ok(len);
        }
        self.fill(offset, self.n_bytes.min(offset.saturating_add(WINDOW_BYTES)))?;
        Ok(self.copy(into, offset).unwrap_or(0))
    }
}

/// The storage's own error, or one that says what is wrong with the archive.
fn failed(error: rawzip::Error) -> io::Error {
    let text = error.to_string();
    match error.into_kind() {
        ErrorKind::IO(error) => error,
        _ => invalid(&format!("it is not a whole Zip archive ({text})")),
    }
}
