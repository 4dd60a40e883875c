//! Writes a folder of sequences.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs::File;
use std::io::{BufWriter, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use storage::{Destination, Existing};
use twox_hash::XxHash3_64;

use super::files::{BY_NAME, LETTER_ENDS, LETTERS, NAME_ENDS, NAMES, SUMMARY};
use super::manifest::{Summary, Summing};
use crate::error::Error;

/// What was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriteReport {
    /// Numbers that describe all sequences.
    pub summary: Summary,
    /// Bytes of all files of the store.
    pub n_bytes: u64,
    /// Sequences that were left out because their name was there already; see
    /// [`SequenceFilesWriter::skipping_doubled`].
    pub n_doubled: u64,
}

/// Writes sequences one after another into a new folder, which appears when it is complete.
///
/// The files, with numbers in little-endian order:
///
/// | file | content |
/// |---|---|
/// | `letters` | the letters of all sequences, without anything between them |
/// | `letter-ends` | for each sequence the end of its letters in that file, a `u64` |
/// | `names` | the names of all sequences |
/// | `name-ends` | for each sequence the end of its name in that file, a `u64` |
/// | `by-name` | for each name its hash (XXH3, 64 bits, seed 0) and the sequence's row (`u32`), ordered by hash and row |
/// | `sequences.json` | the [`Summary`] |
#[derive(Debug)]
pub struct SequenceFilesWriter {
    destination: Destination,
    folder: PathBuf,
    letters: BufWriter<File>,
    names: BufWriter<File>,
    letter_ends: BufWriter<File>,
    name_ends: BufWriter<File>,
    /// The entries of [`BY_NAME`] in the order of rows: the only memory that grows with the store.
    by_name: Vec<NameEntry>,
    /// The row of each name by its hash, if doubled names are skipped. The second name
    /// with the same hash stands at the next free number.
    rows: Option<HashMap<u64, u32>>,
    n_doubled: u64,
    summing: Summing,
    n_letters: u64,
    n_name_bytes: u64,
}

impl SequenceFilesWriter {
    /// Creates the folder under another name, which it loses when it is complete. `sources` are the
    /// paths that are read meanwhile.
    ///
    /// # Errors
    /// The folder exists, another process writes to it, or it cannot be created; its path is the
    /// address of an object store, or not valid UTF-8.
    pub fn create(folder: &Path, sources: &[&str]) -> Result<Self, Error> {
        let refused =
            |why: &str| Error::settings(format!("cannot write to {}: {why}", folder.display()));
        let uri = folder.to_str().ok_or_else(|| refused("its name is not valid UTF-8"))?;
        let destination = Destination::claim(uri, Existing::Keep, sources)?;
        if !destination.is_local() {
            return Err(refused("write to a local folder, then copy it to the object store"));
        }
        let folder = PathBuf::from(destination.uri());
        std::fs::create_dir_all(&folder).map_err(|source| failed("write", &folder, source))?;
        let [letters, names, letter_ends, name_ends] =
            [LETTERS, NAMES, LETTER_ENDS, NAME_ENDS].map(|name| create(&folder, name));
        Ok(Self {
            letters: letters?,
            names: names?,
            letter_ends: letter_ends?,
            name_ends: name_ends?,
            destination,
            folder,
            by_name: Vec::new(),
            rows: None,
            n_doubled: 0,
            summing: Summing::default(),
            n_letters: 0,
            n_name_bytes: 0,
        })
    }

    /// Leaves out sequences whose name is there already, whatever their letters are, and counts
    /// them. Takes some 30 bytes of memory for each name until the store is complete.
    #[must_use]
    pub fn skipping_doubled(mut self) -> Self {
        self.rows = Some(HashMap::new());
        self
    }

    /// Appends a sequence.
    ///
    /// # Errors
    /// A file cannot be written, or there are 2^32 sequences already.
    pub fn push(&mut self, letters: &[u8], name: &[u8]) -> Result<(), Error> {
        let row = u32::try_from(self.by_name.len())
            .map_err(|_| Error::settings("a store can have 2^32 sequences at most"))?;
        let hash = XxHash3_64::oneshot(name);
        if self.is_doubled(name, hash, row)? {
            self.n_doubled += 1;
            return Ok(());
        }
        self.summing.add(letters, name);
        self.by_name.push(name_entry(hash, row));
        self.n_letters += letters.len() as u64;
        self.n_name_bytes += name.len() as u64;
        let folder = &self.folder;
        write(&mut self.letters, letters, folder, LETTERS)?;
        write(&mut self.names, name, folder, NAMES)?;
        write(&mut self.letter_ends, &self.n_letters.to_le_bytes(), folder, LETTER_ENDS)?;
        write(&mut self.name_ends, &self.n_name_bytes.to_le_bytes(), folder, NAME_ENDS)
    }

    /// Whether doubled names are skipped and this one is there already. Else it gets `row`.
    fn is_doubled(&mut self, name: &[u8], hash: u64, row: u32) -> Result<bool, Error> {
        let Some(mut rows) = self.rows.take() else { return Ok(false) };
        let mut place = hash;
        let is_doubled = loop {
            match rows.entry(place) {
                Entry::Vacant(free) => {
                    free.insert(row);
                    break false;
                }
                Entry::Occupied(other) if self.written_name(*other.get())? == name => break true,
                Entry::Occupied(_) => place = place.wrapping_add(1),
            }
        };
        self.rows = Some(rows);
        Ok(is_doubled)
    }

    /// A name that may still be in a buffer.
    fn written_name(&mut self, row: u32) -> Result<Vec<u8>, Error> {
        for (file, name) in [(&mut self.names, NAMES), (&mut self.name_ends, NAME_ENDS)] {
            file.flush().map_err(|source| failed("write", &self.folder.join(name), source))?;
        }
        self.name(row)
    }

    /// Number of sequences so far.
    pub fn n_sequences(&self) -> u64 {
        self.summing.n_sequences()
    }

    /// Completes the store.
    ///
    /// # Errors
    /// Two sequences have the same name, or a file cannot be written.
    pub fn finish(mut self) -> Result<WriteReport, Error> {
        for (file, name) in [
            (&mut self.letters, LETTERS),
            (&mut self.names, NAMES),
            (&mut self.letter_ends, LETTER_ENDS),
            (&mut self.name_ends, NAME_ENDS),
        ] {
            file.flush().map_err(|source| failed("write", &self.folder.join(name), source))?;
        }
        let mut by_name = std::mem::take(&mut self.by_name);
        by_name.sort_unstable_by_key(hash_and_row);
        self.check_names(&by_name)?;
        let path = self.folder.join(BY_NAME);
        std::fs::write(&path, by_name.as_flattened())
            .map_err(|source| failed("write", &path, source))?;
        let summary = self.summing.finish();
        let json = summary.to_json()?;
        let path = self.folder.join(SUMMARY);
        std::fs::write(&path, &json).map_err(|source| failed("write", &path, source))?;
        let n_ends = 8 * summary.n_sequences;
        let mut n_bytes = 0;
        for (name, expected) in [
            (LETTERS, self.n_letters),
            (NAMES, self.n_name_bytes),
            (LETTER_ENDS, n_ends),
            (NAME_ENDS, n_ends),
            (BY_NAME, by_name.as_flattened().len() as u64),
            (SUMMARY, json.len() as u64),
        ] {
            let path = self.folder.join(name);
            let size = path.metadata().map_err(|source| failed("read", &path, source))?.len();
            // A write that failed before, and whose error was not heeded.
            if size != expected {
                let reason =
                    format!("it has {size} bytes, and {expected} should have been written");
                return Err(failed("write", &path, std::io::Error::other(reason)));
            }
            n_bytes += size;
        }
        self.destination.publish()?;
        Ok(WriteReport { summary, n_bytes, n_doubled: self.n_doubled })
    }

    /// Fails if two names are the same. Names of the same hash are compared as they are.
    fn check_names(&self, by_name: &[NameEntry]) -> Result<(), Error> {
        let is_same_hash = |one: &NameEntry, other: &NameEntry| one[..8] == other[..8];
        for equal in by_name.chunk_by(is_same_hash).filter(|of| 1 < of.len()) {
            let mut seen: Vec<(Vec<u8>, u32)> = Vec::new();
            for (_, row) in equal.iter().map(hash_and_row) {
                let name = self.name(row)?;
                if let Some((_, first)) = seen.iter().find(|(other, _)| *other == name) {
                    let name = String::from_utf8_lossy(&name).into_owned();
                    let (first, second) = (u64::from(*first), u64::from(row));
                    return Err(Error::DuplicateName { name, first, second });
                }
                seen.push((name, row));
            }
        }
        Ok(())
    }

    /// Reads a name that was written.
    fn name(&self, row: u32) -> Result<Vec<u8>, Error> {
        let ends_path = self.folder.join(NAME_ENDS);
        let mut ends = [0; 16];
        let (from, into) = match row.checked_sub(1) {
            Some(before) => (u64::from(before) * 8, &mut ends[..]),
            None => (0, &mut ends[8..]),
        };
        read_at(&ends_path, from, into)?;
        let [start, end] = [&ends[..8], &ends[8..]].map(little_endian);
        let mut name = vec![0; usize::try_from(end - start).unwrap_or_default()];
        read_at(&self.folder.join(NAMES), start, &mut name)?;
        Ok(name)
    }
}

/// An entry of [`BY_NAME`] as it is written.
type NameEntry = [u8; 12];

fn name_entry(hash: u64, row: u32) -> NameEntry {
    let mut entry = [0; 12];
    entry[..8].copy_from_slice(&hash.to_le_bytes());
    entry[8..].copy_from_slice(&row.to_le_bytes());
    entry
}

fn hash_and_row(entry: &NameEntry) -> (u64, u32) {
    (little_endian(&entry[..8]), little_endian(&entry[8..]) as u32)
}

fn little_endian(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, byte| (number << 8) | u64::from(*byte))
}

fn read_at(path: &Path, from: u64, into: &mut [u8]) -> Result<(), Error> {
    let mut read = || {
        let mut file = File::open(path)?;
        file.seek(SeekFrom::Start(from))?;
        file.read_exact(into)
    };
    read().map_err(|source| failed("read", path, source))
}

fn create(folder: &Path, name: &str) -> Result<BufWriter<File>, Error> {
    let path = folder.join(name);
    let file = File::create(&path).map_err(|source| failed("write", &path, source))?;
    Ok(BufWriter::with_capacity(1 << 20, file))
}

fn write(file: &mut BufWriter<File>, bytes: &[u8], folder: &Path, name: &str) -> Result<(), Error> {
    file.write_all(bytes).map_err(|source| failed("write", &folder.join(name), source))
}

fn failed(action: &'static str, path: &Path, source: std::io::Error) -> Error {
    Error::File { action, path: path.to_owned(), source }
}
