//! A folder of sequences, read without a server.

use std::io::{self, ErrorKind};
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
        let summary = Summary::from_json(&description(&*storage)?, &place)?;
        let damaged = |reason: String| Error::Damaged { place: place.clone(), reason };
        let n = summary.n_sequences;
        let expected = [
            (LETTERS, Some(summary.n_letters)),
            (LETTER_ENDS, n.checked_mul(8)),
            (NAMES, Some(summary.n_name_bytes)),
            (NAME_ENDS, n.checked_mul(8)),
            (BY_NAME, n.checked_mul(ENTRY)),
        ];
        // Sizes first: nothing is allocated for a number that the files do not bear out.
        let sizes = storage.sizes(&expected.map(|(file, _)| file));
        for ((file, expected), size) in expected.into_iter().zip(sizes) {
            let size = match size {
                Ok(size) => size,
                Err(source) if source.kind() == ErrorKind::NotFound => {
                    return Err(not_a_store(&*storage, file));
                }
                Err(source) => return Err(unreadable(&*storage, file, source)),
            };
            if Some(size) != expected {
                let n_letters = summary.n_letters;
                return Err(damaged(format!(
                    "{file} has {size} bytes, which does not fit {n} sequences of {n_letters} \
                     letters"
                )));
            }
        }
        let letter_ends = read_ends(&*storage, n)?;
        if !letter_ends.is_sorted() {
            return Err(damaged(format!("{LETTER_ENDS} descends")));
        }
        let last = letter_ends.last().copied().unwrap_or(0);
        let lengths = letter_ends.windows(2).map(|ends| ends[1] - ends[0]);
        let longest = lengths.chain(letter_ends.first().copied()).max().unwrap_or(0);
        if (last, longest) != (summary.n_letters, summary.longest) {
            return Err(damaged(format!(
                "{LETTER_ENDS} has {last} letters, {longest} in the longest sequence, and not {} \
                 and {}",
                summary.n_letters, summary.longest
            )));
        }
        Ok(Self { storage, summary, letter_ends })
    }

    /// The row of the sequence with this name; `None` if there is none.
    ///
    /// Reads 12 bytes about `log2(n)` times, one after another, and then the name.
    ///
    /// # Errors
    /// The store cannot be read, or is damaged.
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
            if self.summary.n_sequences <= row {
                return Err(self.damaged(format!("{BY_NAME} has row {row}")));
            }
            let mut list = SequenceList::default();
            self.read_names(&[row..row + 1], &mut list, &Stop::default())?;
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
        let hash = bytes.first_chunk().map_or(0, |hash| u64::from_le_bytes(*hash));
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
        // Empty sequences and names have no bytes to ask for.
        let ranges = ranges.iter().filter(|range| !range.is_empty());
        let pieces: Vec<Piece<'_>> =
            ranges.map(|range| Piece { file, range: range.clone() }).collect();
        self.storage.read(&pieces, into).map_err(|source| unreadable(&*self.storage, file, source))
    }

    fn damaged(&self, reason: String) -> Error {
        Error::Damaged { place: self.storage.place(), reason }
    }
}

impl SequenceStore for SequenceFiles {
    fn place(&self) -> String {
        self.storage.place()
    }

    fn summary(&self) -> &Summary {
        &self.summary
    }

    /// Ends and lengths of names; letters are read in place.
    fn working_bytes(&self, n_rows: u64, with_names: bool) -> u64 {
        if with_names { n_rows.saturating_mul(16) } else { 0 }
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
        let n_names = if with_names { self.read_names(rows, into, stop)? } else { 0 };
        Ok(n_letters + n_names)
    }

    fn read_names(
        &self,
        rows: &[Range<u64>],
        into: &mut SequenceList,
        stop: &Stop,
    ) -> Result<u64, Error> {
        if stop.is_set() {
            return Err(Error::Stopped);
        }
        for rows in rows {
            self.letters(rows)?;
        }
        // The end before the first row, too; row 0 begins at 0.
        let first = |rows: &Range<u64>| rows.start.saturating_sub(1);
        let n_ends = |rows: &Range<u64>| (rows.end - first(rows)) as usize;
        let in_file: Vec<_> = rows.iter().map(|rows| first(rows) * 8..rows.end * 8).collect();
        let mut ends = vec![0_u64; rows.iter().map(n_ends).sum()];
        self.read_file(NAME_ENDS, &in_file, bytemuck::cast_slice_mut(&mut ends))?;
        let mut rest = &ends[..];
        let (mut lengths, mut names) = (Vec::new(), Vec::with_capacity(rows.len()));
        for rows in rows {
            let (ends, others) = rest.split_at(n_ends(rows));
            rest = others;
            let (mut end, ends) = match ends.split_first() {
                Some((before, ends)) if 0 < rows.start => (u64::from_le(*before), ends),
                _ => (0, ends),
            };
            let start = end;
            for next in ends {
                let next = u64::from_le(*next);
                if next < end || self.summary.n_name_bytes < next {
                    return Err(self.damaged(format!("{NAME_ENDS} descends, or passes the end")));
                }
                lengths.push((next - end) as usize);
                end = next;
            }
            names.push(start..end);
        }
        let n_name_bytes: u64 = names.iter().map(|names| names.end - names.start).sum();
        into.extend_names(lengths, |bytes| self.read_file(NAMES, &names, bytes))?;
        Ok(8 * ends.len() as u64 + n_name_bytes)
    }
}

/// Reads [`SUMMARY`].
fn description(storage: &dyn Storage) -> Result<Vec<u8>, Error> {
    match storage.read_files(&[SUMMARY]).pop() {
        Some(Ok(bytes)) => Ok(bytes),
        Some(Err(source)) if source.kind() != ErrorKind::NotFound => {
            Err(unreadable(storage, SUMMARY, source))
        }
        _ => Err(not_a_store(storage, SUMMARY)),
    }
}

/// Reads [`LETTER_ENDS`] of `n` sequences, after its size was checked.
fn read_ends(storage: &dyn Storage, n: u64) -> Result<Vec<u64>, Error> {
    let failed = |source| unreadable(storage, LETTER_ENDS, source);
    let mut ends = Vec::new();
    let len = usize::try_from(n).unwrap_or(usize::MAX);
    ends.try_reserve_exact(len).map_err(|_| failed(ErrorKind::OutOfMemory.into()))?;
    ends.resize(len, 0_u64);
    let piece = Piece { file: LETTER_ENDS, range: 0..n * 8 };
    storage.read(&[piece], bytemuck::cast_slice_mut(&mut ends)).map_err(failed)?;
    for end in &mut ends {
        *end = u64::from_le(*end);
    }
    Ok(ends)
}

fn not_a_store(storage: &dyn Storage, file: &str) -> Error {
    Error::NotAStore { place: storage.place(), reason: format!("it has no file {file}") }
}

fn unreadable(storage: &dyn Storage, file: &str, source: io::Error) -> Error {
    Error::Read { what: file.to_owned(), place: storage.place(), source: source.into() }
}
