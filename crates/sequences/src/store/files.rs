//! A folder of sequences, read without a server.

use std::ops::Range;
use std::sync::Arc;

use pipeline::Stop;
use storage::{Piece, Storage};
use twox_hash::XxHash3_64;

use super::SequenceStore;
use super::manifest::Summary;
use crate::error::Error;
use crate::sequence_list::SequenceList;

/// The letters of all sequences.
pub(crate) const LETTERS: &str = "letters";
/// The ends of the sequences in [`LETTERS`].
pub(crate) const LETTER_ENDS: &str = "letter-ends";
/// The names of all sequences.
pub(crate) const NAMES: &str = "names";
/// The ends of the names in [`NAMES`].
pub(crate) const NAME_ENDS: &str = "name-ends";
/// Hashes of names, with rows.
pub(crate) const BY_NAME: &str = "by-name";
/// The [`Summary`].
pub(crate) const SUMMARY: &str = "sequences.json";

/// Bytes of an entry of [`BY_NAME`].
const ENTRY: u64 = 12;

/// A store of sequences in the files of a folder or of an object store, as
/// [`SequenceFilesWriter`](super::SequenceFilesWriter) writes them.
///
/// It keeps 8 bytes for each sequence in memory. Letters are read by their positions and not mapped
/// into memory: where a mapped file is cut short, the process dies, and here an error says so.
#[derive(Debug)]
pub struct SequenceFiles {
    storage: Arc<dyn Storage>,
    summary: Summary,
    letter_ends: Vec<u64>,
}

impl SequenceFiles {
    /// Opens a store.
    ///
    /// # Errors
    /// There is none, its format is another one, or its files have other sizes than they should.
    pub fn open(storage: Arc<dyn Storage>) -> Result<Self, Error> {
        let place = storage.place();
        let [summary, ends] = read_whole(&*storage, [SUMMARY, LETTER_ENDS])?;
        let summary = Summary::from_json(&summary, &place)?;
        let letter_ends: Vec<u64> = numbers(&ends).collect();
        let damaged = |reason: String| Error::Damaged { place: place.clone(), reason };
        let n = summary.n_sequences;
        if ends.len() as u64 != n.saturating_mul(8) {
            return Err(damaged(format!(
                "{LETTER_ENDS} has {} bytes, and {n} sequences need 8 each",
                ends.len()
            )));
        }
        if !letter_ends.is_sorted() {
            return Err(damaged(format!("{LETTER_ENDS} descends")));
        }
        if letter_ends.last().copied().unwrap_or(0) != summary.n_letters {
            return Err(damaged(format!(
                "{LETTER_ENDS} ends at {}, and there are {} letters",
                letter_ends.last().copied().unwrap_or(0),
                summary.n_letters
            )));
        }
        let expected = [
            (LETTERS, Some(summary.n_letters)),
            (NAMES, Some(summary.n_name_bytes)),
            (NAME_ENDS, n.checked_mul(8)),
            (BY_NAME, n.checked_mul(ENTRY)),
        ];
        let sizes = storage.sizes(&expected.map(|(file, _)| file));
        for ((file, expected), size) in expected.into_iter().zip(sizes) {
            let size = size.map_err(|source| unreadable(&*storage, file, source))?;
            if Some(size) != expected {
                return Err(damaged(format!(
                    "{file} has {size} bytes, and {} were written",
                    expected.unwrap_or(u64::MAX)
                )));
            }
        }
        Ok(Self { storage, summary, letter_ends })
    }

    /// The row of the sequence with this name; `None` if there is none.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn find(&self, name: &[u8]) -> Result<Option<u64>, Error> {
        let hash = XxHash3_64::oneshot(name);
        let (mut low, mut high) = (0, self.summary.n_sequences);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.by_name(middle)?.0 < hash { low = middle + 1 } else { high = middle }
        }
        // Different names may have the same hash.
        while low < self.summary.n_sequences {
            let (found, row) = self.by_name(low)?;
            if found != hash {
                break;
            }
            let mut list = SequenceList::default();
            self.read_names(&[row..row + 1], &mut list)?;
            if list.name(0) == Some(name) {
                return Ok(Some(row));
            }
            low += 1;
        }
        Ok(None)
    }

    /// The hash and the row of an entry of [`BY_NAME`].
    fn by_name(&self, entry: u64) -> Result<(u64, u64), Error> {
        let mut bytes = [0; ENTRY as usize];
        self.read_file(BY_NAME, &[entry * ENTRY..(entry + 1) * ENTRY], &mut bytes)?;
        let hash = numbers(&bytes).next().unwrap_or_default();
        let row = bytes.last_chunk().map_or(0, |row| u32::from_le_bytes(*row));
        Ok((hash, u64::from(row)))
    }

    /// The place of the letters of rows in [`LETTERS`].
    fn letters(&self, rows: &Range<u64>) -> Result<Range<u64>, Error> {
        let n = self.summary.n_sequences;
        if n < rows.end || rows.end < rows.start {
            return Err(Error::settings(format!(
                "{} has {n} sequences, and rows {} to {} were asked for",
                self.storage.place(),
                rows.start,
                rows.end
            )));
        }
        Ok(self.end_before(rows.start)..self.end_before(rows.end))
    }

    /// The end of the letters before a row.
    fn end_before(&self, row: u64) -> u64 {
        row.checked_sub(1).map_or(0, |before| self.letter_ends[before as usize])
    }

    fn read_file(&self, file: &str, ranges: &[Range<u64>], into: &mut [u8]) -> Result<(), Error> {
        let pieces: Vec<Piece<'_>> =
            ranges.iter().map(|range| Piece { file, range: range.clone() }).collect();
        self.storage.read(&pieces, into).map_err(|source| unreadable(&*self.storage, file, source))
    }

    /// Appends the names of `rows`, without letters, and returns the bytes that were read.
    ///
    /// # Errors
    /// A row does not exist, or the store cannot be read or is damaged.
    pub fn read_names(&self, rows: &[Range<u64>], into: &mut SequenceList) -> Result<u64, Error> {
        let mut n_read = 0;
        for rows in rows {
            self.letters(rows)?;
            let first = rows.start.saturating_sub(1);
            let mut bytes = vec![0; (rows.end - first) as usize * 8];
            self.read_file(NAME_ENDS, &[first * 8..rows.end * 8], &mut bytes)?;
            let mut ends: Vec<u64> = numbers(&bytes).collect();
            if rows.start == 0 {
                ends.insert(0, 0);
            }
            let in_file = ends.last().is_some_and(|end| *end <= self.summary.n_name_bytes);
            if !ends.is_sorted() || !in_file {
                let (place, reason) = (self.storage.place(), format!("{NAME_ENDS} descends"));
                return Err(Error::Damaged { place, reason });
            }
            let lengths = ends.windows(2).map(|ends| (ends[1] - ends[0]) as usize);
            let range = ends[0]..ends[ends.len() - 1];
            n_read += bytes.len() as u64 + (range.end - range.start);
            into.extend_names(lengths, |names| self.read_file(NAMES, &[range], names))?;
        }
        Ok(n_read)
    }
}

impl SequenceStore for SequenceFiles {
    fn place(&self) -> String {
        self.storage.place()
    }

    fn summary(&self) -> &Summary {
        &self.summary
    }

    fn read(
        &self,
        rows: &[Range<u64>],
        with_names: bool,
        into: &mut SequenceList,
        stop: &Stop,
    ) -> Result<u64, Error> {
        if stop.is_set() {
            return Err(Error::Stopped);
        }
        let ranges = rows.iter().map(|rows| self.letters(rows)).collect::<Result<Vec<_>, _>>()?;
        let n_letters: u64 = ranges.iter().map(|range| range.end - range.start).sum();
        let lengths = rows.iter().cloned().flatten();
        let lengths = lengths.map(|row| (self.end_before(row + 1) - self.end_before(row)) as usize);
        into.extend_letters(lengths, |letters| self.read_file(LETTERS, &ranges, letters))?;
        let n_names = if with_names { self.read_names(rows, into)? } else { 0 };
        Ok(n_letters + n_names)
    }
}

fn numbers(bytes: &[u8]) -> impl Iterator<Item = u64> {
    bytes.as_chunks().0.iter().map(|bytes| u64::from_le_bytes(*bytes))
}

/// Reads files of a store as a whole.
fn read_whole<const N: usize>(
    storage: &dyn Storage,
    files: [&str; N],
) -> Result<[Vec<u8>; N], Error> {
    let mut read = storage.read_files(&files).into_iter();
    let mut bytes = files.map(|_| Vec::new());
    for (bytes, file) in bytes.iter_mut().zip(files) {
        *bytes = match read.next() {
            Some(Ok(read)) => read,
            Some(Err(source)) if source.kind() == std::io::ErrorKind::NotFound => {
                let reason = format!("it has no file {file}");
                return Err(Error::NotAStore { place: storage.place(), reason });
            }
            Some(Err(source)) => return Err(unreadable(storage, file, source)),
            None => return Err(unreadable(storage, file, std::io::ErrorKind::NotFound.into())),
        };
    }
    Ok(bytes)
}

fn unreadable(storage: &dyn Storage, file: &str, source: std::io::Error) -> Error {
    Error::Read { what: file.to_owned(), place: storage.place(), source: source.into() }
}
