//! Writes a folder of sequences.

use std::fs::File;
use std::io::{BufReader, BufWriter, Read as _, Seek as _, SeekFrom, Write as _};
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
    /// The hash of each name.
    hashes: Vec<u64>,
    summing: Summing,
    n_letters: u64,
    n_name_bytes: u64,
}

impl SequenceFilesWriter {
    /// Creates the folder under another name, which it loses when it is complete. `sources` are the
    /// paths that are read meanwhile.
    ///
    /// # Errors
    /// The folder exists, another process writes to it, or it cannot be created.
    pub fn create(folder: &Path, sources: &[&str]) -> Result<Self, Error> {
        let uri = folder.to_string_lossy();
        let destination = Destination::claim(&uri, Existing::Keep, sources)?;
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
            hashes: Vec::new(),
            summing: Summing::default(),
            n_letters: 0,
            n_name_bytes: 0,
        })
    }

    /// Appends a sequence.
    ///
    /// # Errors
    /// A file cannot be written, or there are 2^32 sequences already.
    pub fn push(&mut self, letters: &[u8], name: &[u8]) -> Result<(), Error> {
        if u32::try_from(self.hashes.len()).is_err() {
            return Err(Error::settings("a store can have 2^32 sequences at most"));
        }
        self.summing.add(letters, name);
        self.hashes.push(XxHash3_64::oneshot(name));
        self.n_letters += letters.len() as u64;
        self.n_name_bytes += name.len() as u64;
        let folder = &self.folder;
        write(&mut self.letters, letters, folder, LETTERS)?;
        write(&mut self.names, name, folder, NAMES)?;
        write(&mut self.letter_ends, &self.n_letters.to_le_bytes(), folder, LETTER_ENDS)?;
        write(&mut self.name_ends, &self.n_name_bytes.to_le_bytes(), folder, NAME_ENDS)
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
        let mut by_name: Vec<(u64, u32)> = self.hashes.iter().copied().zip(0..=u32::MAX).collect();
        by_name.sort_unstable();
        self.check_names(&by_name)?;
        let mut file = create(&self.folder, BY_NAME)?;
        for (hash, row) in by_name {
            write(&mut file, &hash.to_le_bytes(), &self.folder, BY_NAME)?;
            write(&mut file, &row.to_le_bytes(), &self.folder, BY_NAME)?;
        }
        file.flush().map_err(|source| failed("write", &self.folder.join(BY_NAME), source))?;
        let summary = self.summing.finish();
        let path = self.folder.join(SUMMARY);
        std::fs::write(&path, summary.to_json()?)
            .map_err(|source| failed("write", &path, source))?;
        let mut n_bytes = 0;
        for name in [LETTERS, NAMES, LETTER_ENDS, NAME_ENDS, BY_NAME, SUMMARY] {
            let path = self.folder.join(name);
            let metadata = path.metadata().map_err(|source| failed("read", &path, source))?;
            n_bytes += metadata.len();
        }
        self.destination.publish()?;
        Ok(WriteReport { summary, n_bytes })
    }

    /// Fails if two names are the same. Names of the same hash are compared as they are.
    fn check_names(&self, by_name: &[(u64, u32)]) -> Result<(), Error> {
        for equal in by_name.chunk_by(|one, other| one.0 == other.0).filter(|of| 1 < of.len()) {
            let mut seen: Vec<(String, u32)> = Vec::new();
            for (_, row) in equal {
                let name = self.name(*row)?;
                if let Some((_, first)) = seen.iter().find(|(other, _)| *other == name) {
                    let (first, second) = (u64::from(*first), u64::from(*row));
                    return Err(Error::DuplicateName { name, first, second });
                }
                seen.push((name, *row));
            }
        }
        Ok(())
    }

    /// Reads a name that was written.
    fn name(&self, row: u32) -> Result<String, Error> {
        let ends_path = self.folder.join(NAME_ENDS);
        let mut ends = [0; 16];
        let (from, into) = match row.checked_sub(1) {
            Some(before) => (u64::from(before) * 8, &mut ends[..]),
            None => (0, &mut ends[8..]),
        };
        read_at(&ends_path, from, into)?;
        let number = |bytes: &[u8]| {
            bytes.iter().rev().fold(0_u64, |number, byte| (number << 8) | u64::from(*byte))
        };
        let (start, end) = (number(&ends[..8]), number(&ends[8..]));
        let mut name = vec![0; usize::try_from(end - start).unwrap_or_default()];
        read_at(&self.folder.join(NAMES), start, &mut name)?;
        Ok(String::from_utf8_lossy(&name).into_owned())
    }
}

fn read_at(path: &Path, from: u64, into: &mut [u8]) -> Result<(), Error> {
    let mut read = || {
        let mut file = BufReader::new(File::open(path)?);
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
