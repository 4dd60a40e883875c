//! What a store says about its sequences.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::hash::Hasher as _;

use serde::{Deserialize, Serialize};

use crate::alphabet::Alphabet;
use crate::error::Error;

/// The version of the format that is written here.
pub(crate) const VERSION: u32 = 1;

/// Numbers that describe all sequences of a store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// Version of the format.
    pub(crate) version: u32,
    /// Number of sequences.
    pub n_sequences: u64,
    /// Number of letters of all sequences.
    pub n_letters: u64,
    /// Bytes of all names.
    pub n_name_bytes: u64,
    /// Letters of the longest sequence.
    pub longest: u64,
    /// Each letter that occurs, with its count.
    pub letters: Vec<(char, u64)>,
    /// Hash of all letters and names: equal for stores of the same sequences in the same order.
    pub fingerprint: String,
}

impl Summary {
    /// The letters that occur, as an alphabet in the order of their bytes.
    ///
    /// # Errors
    /// There are none or too many, or one is not a visible ASCII character.
    pub fn alphabet(&self) -> Result<Alphabet, Error> {
        // A letter is one byte; above ASCII it is refused as not visible.
        let letters: Vec<u8> =
            self.letters.iter().map(|(letter, _)| u8::try_from(*letter).unwrap_or(0)).collect();
        Alphabet::new(&letters)
    }

    /// The letters that occur in either case, as an alphabet in which both cases of a letter are
    /// the same one: for genomes whose repeats are in lower case.
    ///
    /// # Errors
    /// Those of [`alphabet`](Self::alphabet).
    pub fn alphabet_of_both_cases(&self) -> Result<Alphabet, Error> {
        let of_both =
            |(letter, _): &(char, u64)| u8::try_from(*letter).unwrap_or(0).to_ascii_uppercase();
        let letters: BTreeSet<u8> = self.letters.iter().map(of_both).collect();
        let letters: Vec<u8> = letters.into_iter().collect();
        Ok(Alphabet::new(&letters)?.folding_case())
    }

    /// The numbers of several stores together.
    pub(crate) fn of_all<'a>(all: impl Iterator<Item = &'a Self>) -> Self {
        let mut together = Summing::default().summary;
        let mut letters: BTreeMap<char, u64> = BTreeMap::new();
        let mut hash = twox_hash::XxHash3_64::with_seed(0);
        for summary in all {
            together.n_sequences += summary.n_sequences;
            together.n_letters += summary.n_letters;
            together.n_name_bytes += summary.n_name_bytes;
            together.longest = together.longest.max(summary.longest);
            for (letter, count) in &summary.letters {
                *letters.entry(*letter).or_default() += count;
            }
            // Where a store ends counts, too.
            hash.write(&summary.n_sequences.to_le_bytes());
            hash.write(summary.fingerprint.as_bytes());
        }
        together.letters = letters.into_iter().collect();
        together.fingerprint = format!("{:016x}", hash.finish());
        together
    }

    /// Reads what [`to_json`](Self::to_json) writes.
    pub(crate) fn from_json(bytes: &[u8], place: &str) -> Result<Self, Error> {
        let summary: Self = serde_json::from_slice(bytes).map_err(|error| {
            let reason = format!("its description cannot be understood: {error}");
            Error::NotAStore { place: place.to_owned(), reason }
        })?;
        summary.check_version(place)?;
        Ok(summary)
    }

    /// Fails if this program does not read the version of the format.
    pub(crate) fn check_version(&self, place: &str) -> Result<(), Error> {
        if self.version == VERSION {
            return Ok(());
        }
        let reason = format!(
            "it has version {} of the format, and this program reads version {VERSION}",
            self.version
        );
        Err(Error::NotAStore { place: place.to_owned(), reason })
    }

    pub(crate) fn to_json(&self) -> Result<Vec<u8>, Error> {
        serde_json::to_vec_pretty(self).map_err(|error| {
            Error::settings(format!("the description of the store cannot be written: {error}"))
        })
    }
}

/// Counts what a [`Summary`] has while sequences are written one after another.
pub(crate) struct Summing {
    summary: Summary,
    letters: LetterCounts,
    hash: twox_hash::XxHash3_64,
}

impl fmt::Debug for Summing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Summing").field("summary", &self.summary).finish_non_exhaustive()
    }
}

impl Default for Summing {
    fn default() -> Self {
        let summary = Summary {
            version: VERSION,
            n_sequences: 0,
            n_letters: 0,
            n_name_bytes: 0,
            longest: 0,
            letters: Vec::new(),
            fingerprint: String::new(),
        };
        Self {
            summary,
            letters: LetterCounts::default(),
            hash: twox_hash::XxHash3_64::with_seed(0),
        }
    }
}

impl Summing {
    pub(crate) fn add(&mut self, letters: &[u8], name: &[u8]) {
        let (n_letters, n_name) = (letters.len() as u64, name.len() as u64);
        self.summary.n_sequences += 1;
        self.summary.n_letters += n_letters;
        self.summary.n_name_bytes += n_name;
        self.summary.longest = self.summary.longest.max(n_letters);
        self.letters.add(letters);
        // Lengths keep "AC" + "G" apart from "A" + "CG".
        self.hash.write(&n_letters.to_le_bytes());
        self.hash.write(&n_name.to_le_bytes());
        self.hash.write(letters);
        self.hash.write(name);
    }

    pub(crate) fn n_sequences(&self) -> u64 {
        self.summary.n_sequences
    }

    pub(crate) fn finish(mut self) -> Summary {
        let counted = (0_u8..=u8::MAX).zip(self.letters.finish()).filter(|(_, count)| 0 < *count);
        self.summary.letters = counted.map(|(letter, count)| (char::from(letter), count)).collect();
        self.summary.fingerprint = format!("{:016x}", self.hash.finish());
        self.summary
    }
}

/// Counts of all letters.
///
/// Four tables take turns: neighbours are often the same letter, and a count would have to wait for
/// the one before. They are added up only when their 32 bits might not suffice, because for short
/// sequences that takes longer than counting.
struct LetterCounts {
    tables: Box<[[u32; 256]; 4]>,
    /// Letters in the tables.
    n_letters: usize,
    counts: Box<[u64; 256]>,
}

/// Letters that the tables may have.
const MAX_LETTERS: usize = 1 << 24;

impl Default for LetterCounts {
    fn default() -> Self {
        Self { tables: Box::new([[0; 256]; 4]), n_letters: 0, counts: Box::new([0; 256]) }
    }
}

impl LetterCounts {
    fn add(&mut self, letters: &[u8]) {
        for part in letters.chunks(MAX_LETTERS) {
            if MAX_LETTERS < self.n_letters + part.len() {
                self.add_up();
            }
            self.n_letters += part.len();
            let (fours, rest) = part.as_chunks::<4>();
            for four in fours {
                for (letter, table) in four.iter().zip(self.tables.iter_mut()) {
                    table[usize::from(*letter)] += 1;
                }
            }
            for letter in rest {
                self.tables[0][usize::from(*letter)] += 1;
            }
        }
    }

    fn add_up(&mut self) {
        for table in self.tables.iter_mut() {
            for (count, more) in self.counts.iter_mut().zip(table) {
                *count += u64::from(std::mem::take(more));
            }
        }
        self.n_letters = 0;
    }

    fn finish(mut self) -> [u64; 256] {
        self.add_up();
        *self.counts
    }
}
