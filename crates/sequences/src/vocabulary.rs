//! The words of a store, with their counts.

use std::ops::Range;
use std::thread;

use pipeline::Stop;

use crate::alphabet::Alphabet;
use crate::error::Error;
use crate::kmers::{KmerSpec, NO_WORD, codes_into, letters_of};
use crate::sequence_list::SequenceList;
use crate::store::SequenceStore;
use crate::unknown::WhenUnknown;

/// Letters that a counting thread reads at once.
const READ_LETTERS: u64 = 1 << 20;

/// The words that a tokenizer knows, numbered from 0.
///
/// First come the words that were counted, the most frequent first (equally frequent ones in the
/// order of the alphabet). If sequences are padded, all words of padding and letters follow, with
/// count 0: those that begin with padding, then those that end with it, each by their number of
/// letters. The last one is the unknown word, if there is one.
///
/// With the alphabet `ACGTU`, 4-mers and padding, half DNA and half RNA give the 743 words of
/// Dragon's example: 431 of letters (256 + 256, of which 81 are the same) and 312 with padding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vocabulary {
    alphabet: Alphabet,
    k: usize,
    /// The word of each code; [`NO_WORD`] if it was not counted.
    words: Vec<u32>,
    /// The code of each counted word.
    codes: Vec<u32>,
    counts: Vec<u64>,
    /// Words that begin with padding, by their number of letters; as many end with it. Empty
    /// without padding.
    of_padding: Vec<Range<u32>>,
    unknown: Option<u32>,
}

/// The letter that stands for padding before a sequence when a word is printed.
const BEFORE: u8 = b'X';

/// The letter that stands for padding after a sequence when a word is printed.
const AFTER: u8 = b'Y';

impl Vocabulary {
    /// Counts the words of all sequences of a store, in `threads` threads.
    ///
    /// Each thread has 8 bytes for every possible word: 524 kB for 8 letters of DNA, 134 MB for 12.
    ///
    /// # Errors
    /// The settings do not fit the alphabet, the store cannot be read, or a sequence has a letter
    /// that the alphabet lacks and `when_unknown` is [`WhenUnknown::Fail`].
    pub fn count(
        store: &dyn SequenceStore,
        alphabet: &Alphabet,
        spec: &KmerSpec,
        when_unknown: WhenUnknown,
        threads: usize,
    ) -> Result<Self, Error> {
        let stop = Stop::default();
        Self::count_until(&stop, store, alphabet, spec, when_unknown, threads)
    }

    /// Like [`count`](Self::count), until `stop` is set.
    ///
    /// # Errors
    /// Those of [`count`](Self::count); [`Error::Stopped`] if `stop` was set. An error sets it.
    pub fn count_until(
        stop: &Stop,
        store: &dyn SequenceStore,
        alphabet: &Alphabet,
        spec: &KmerSpec,
        when_unknown: WhenUnknown,
        threads: usize,
    ) -> Result<Self, Error> {
        spec.check(alphabet)?;
        let n_sequences = store.summary().n_sequences;
        let mean = (store.summary().n_letters / n_sequences.max(1)).max(1);
        let step = (READ_LETTERS / mean).max(1);
        let next = std::sync::atomic::AtomicU64::new(0);
        let count = || {
            let mut counter = Counter::new(alphabet, spec, when_unknown);
            let mut sequences = SequenceList::default();
            loop {
                let from = next.fetch_add(step, std::sync::atomic::Ordering::Relaxed);
                if n_sequences <= from {
                    return Ok(counter);
                }
                let rows = from..n_sequences.min(from.saturating_add(step));
                sequences.clear();
                let read = store
                    .read(std::slice::from_ref(&rows), false, &mut sequences, stop)
                    .and_then(|_| {
                        let rows = rows.zip(sequences.letters());
                        rows.into_iter().try_for_each(|(row, letters)| counter.add(row, letters))
                    });
                if let Err(error) = read {
                    // The other threads need not go on.
                    stop.set();
                    return Err(error);
                }
            }
        };
        let counted = thread::scope(|scope| {
            let start = |number| {
                let named = thread::Builder::new().name(format!("count-words-{number}"));
                // Without all of its threads, those that run need not go on.
                named.spawn_scoped(scope, count).map_err(|source| {
                    stop.set();
                    Error::Thread { source }
                })
            };
            let running = (0..threads.max(1)).map(start).collect::<Result<Vec<_>, Error>>()?;
            let mut counts: Option<Vec<u64>> = None;
            let mut failure = None;
            for thread in running {
                match thread.join() {
                    Ok(Ok(counter)) => match &mut counts {
                        Some(counts) => add(counts, &counter.counts),
                        None => counts = Some(counter.counts),
                    },
                    Ok(Err(error @ Error::Stopped)) => {
                        failure.get_or_insert(error);
                    }
                    Ok(Err(error)) => failure = Some(error),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            failure.map_or_else(|| Ok(counts.unwrap_or_default()), Err)
        })?;
        Self::from_counts(alphabet, spec, when_unknown, &counted)
    }

    /// Makes the vocabulary of words with these counts; words may come in any order.
    ///
    /// # Errors
    /// A word does not have `k` letters of the alphabet, or the settings do not fit the alphabet.
    pub fn from_words<'a>(
        alphabet: &Alphabet,
        spec: &KmerSpec,
        when_unknown: WhenUnknown,
        words: impl IntoIterator<Item = (&'a [u8], u64)>,
    ) -> Result<Self, Error> {
        spec.check(alphabet)?;
        let mut counter = Counter::new(alphabet, spec, when_unknown);
        let mut codes = Vec::new();
        for (word, count) in words {
            codes_into(word, spec.k, alphabet, &mut codes);
            match codes[..] {
                [code] if code != NO_WORD => {
                    let sum = &mut counter.counts[code as usize];
                    *sum = sum.saturating_add(count);
                }
                _ => {
                    return Err(Error::settings(format!(
                        "{:?} is not a word of {} letters of {alphabet}",
                        String::from_utf8_lossy(word),
                        spec.k
                    )));
                }
            }
        }
        Self::from_counts(alphabet, spec, when_unknown, &counter.counts)
    }

    fn from_counts(
        alphabet: &Alphabet,
        spec: &KmerSpec,
        when_unknown: WhenUnknown,
        of_codes: &[u64],
    ) -> Result<Self, Error> {
        let mut codes: Vec<u32> =
            (0..).zip(of_codes).filter(|(_, count)| 0 < **count).map(|(code, _)| code).collect();
        codes.sort_by_key(|code| (std::cmp::Reverse(of_codes[*code as usize]), *code));
        let mut counts: Vec<u64> = codes.iter().map(|code| of_codes[*code as usize]).collect();
        let mut words = vec![NO_WORD; of_codes.len()];
        for (word, code) in (0..).zip(&codes) {
            words[*code as usize] = word;
        }
        let of_padding = match spec.padding {
            0 => Vec::new(),
            _ => padding_words(alphabet, spec.k, codes.len())?,
        };
        counts.resize(counts.len() + 2 * n_padding_words(&of_padding), 0);
        let unknown = (when_unknown == WhenUnknown::Word).then_some(counts.len() as u32);
        counts.resize(counts.len() + usize::from(unknown.is_some()), 0);
        let alphabet = alphabet.clone();
        Ok(Self { alphabet, k: spec.k, words, codes, counts, of_padding, unknown })
    }

    /// The letters of its words.
    pub fn alphabet(&self) -> &Alphabet {
        &self.alphabet
    }

    /// Letters of a word.
    pub fn k(&self) -> usize {
        self.k
    }

    /// The number of words.
    pub fn n_words(&self) -> usize {
        self.counts.len()
    }

    /// How often each word occurs; 0 for those with padding and the unknown word.
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// Number of words that were counted: the first ones.
    pub fn n_counted(&self) -> usize {
        self.codes.len()
    }

    /// The unknown word, if there is one.
    pub fn unknown(&self) -> Option<u32> {
        self.unknown
    }

    /// The word with this code, if it was counted.
    pub(crate) fn word_of(&self, code: u32) -> Option<u32> {
        Some(self.word_or_none(code)).filter(|word| *word != NO_WORD)
    }

    /// The word with this code, or [`NO_WORD`].
    pub(crate) fn word_or_none(&self, code: u32) -> u32 {
        self.words.get(code as usize).copied().unwrap_or(NO_WORD)
    }

    /// The word of padding and these letters, fewer than `k`. `None` if a letter is unknown, or
    /// sequences are not padded.
    pub(crate) fn padding_word(&self, letters: &[u8], is_before: bool) -> Option<u32> {
        let range = self.of_padding.get(letters.len())?;
        let n_letters = self.alphabet.letters().len() as u32;
        let number = letters.iter().try_fold(0, |number, letter| {
            Some(number * n_letters + u32::from(self.alphabet.code(*letter)?))
        })?;
        let after = if is_before { 0 } else { n_padding_words(&self.of_padding) as u32 };
        Some(range.start + number + after)
    }

    /// A word as text: padding is `X` before a sequence and `Y` after it, the unknown word is
    /// `<unk>`. `None` if there is no such word.
    pub fn word(&self, word: u32) -> Option<String> {
        if let Some(code) = self.codes.get(word as usize) {
            let letters = letters_of(*code, self.k, &self.alphabet);
            return Some(String::from_utf8_lossy(&letters).into_owned());
        }
        if self.unknown == Some(word) {
            return Some("<unk>".to_owned());
        }
        let n_before = n_padding_words(&self.of_padding) as u32;
        let is_with =
            |after: u32| self.of_padding.iter().position(|range| range.contains(&(word - after)));
        let first = self.codes.len() as u32;
        let (after, n_letters) =
            if word < first + n_before { (0, is_with(0)?) } else { (n_before, is_with(n_before)?) };
        let mut number = word - after - self.of_padding.get(n_letters)?.start;
        let alphabet = self.alphabet.letters();
        let mut letters = vec![0; n_letters];
        for letter in letters.iter_mut().rev() {
            *letter = alphabet[number as usize % alphabet.len()];
            number /= alphabet.len() as u32;
        }
        let padding = vec![if after == 0 { BEFORE } else { AFTER }; self.k - n_letters];
        let text = if after == 0 { [padding, letters] } else { [letters, padding] }.concat();
        Some(String::from_utf8_lossy(&text).into_owned())
    }
}

/// The words that begin with padding, by their number of letters: below `k`.
fn padding_words(alphabet: &Alphabet, k: usize, first: usize) -> Result<Vec<Range<u32>>, Error> {
    let too_many = || {
        Error::settings(format!(
            "with {} letters and k = {k} there are too many words with padding: use a smaller k, \
             or no padding",
            alphabet.letters().len()
        ))
    };
    let n_letters = alphabet.letters().len() as u64;
    let mut start = first as u64;
    let mut ranges = Vec::new();
    for n in 0..k as u32 {
        let end = start + n_letters.checked_pow(n).ok_or_else(too_many)?;
        // Words are numbers that torch has, too: 32 bits with a sign, for both sides.
        let number = |word: u64| u32::try_from(word).ok().filter(|_| word < i32::MAX as u64 / 2);
        let (from, to) = number(start).zip(number(end)).ok_or_else(too_many)?;
        ranges.push(from..to);
        start = end;
    }
    Ok(ranges)
}

/// Number of words that begin with padding.
fn n_padding_words(of_padding: &[Range<u32>]) -> usize {
    match (of_padding.first(), of_padding.last()) {
        (Some(first), Some(last)) => (last.end - first.start) as usize,
        _ => 0,
    }
}

/// Counts words by their codes.
struct Counter<'a> {
    alphabet: &'a Alphabet,
    spec: &'a KmerSpec,
    when_unknown: WhenUnknown,
    counts: Vec<u64>,
    codes: Vec<u32>,
}

impl<'a> Counter<'a> {
    /// The settings must have been checked.
    fn new(alphabet: &'a Alphabet, spec: &'a KmerSpec, when_unknown: WhenUnknown) -> Self {
        let counts = vec![0; 1 << (alphabet.bits() as usize * spec.k)];
        Self { alphabet, spec, when_unknown, counts, codes: Vec::new() }
    }

    fn add(&mut self, row: u64, letters: &[u8]) -> Result<(), Error> {
        codes_into(letters, self.spec.k, self.alphabet, &mut self.codes);
        for frame in 0..self.spec.n_frames {
            let frame = self.spec.frame(frame, letters.len());
            let within = self.codes.get(frame.first..).unwrap_or_default();
            for code in within.iter().step_by(self.spec.stride).take(frame.n_within) {
                // An unknown word's code is beyond all counts.
                if let Some(count) = self.counts.get_mut(*code as usize) {
                    *count += 1;
                } else if self.when_unknown == WhenUnknown::Fail {
                    return Err(unknown_letter(row, letters, self.alphabet));
                }
            }
        }
        Ok(())
    }
}

/// The error of the first unknown letter of a sequence.
pub(crate) fn unknown_letter(row: u64, letters: &[u8], alphabet: &Alphabet) -> Error {
    let is_unknown = |letter: &u8| alphabet.code(*letter).is_none();
    let position = letters.iter().position(is_unknown).unwrap_or_default();
    let letter = char::from(letters.get(position).copied().unwrap_or_default());
    Error::UnknownLetter { row, position, letter, alphabet: alphabet.to_string() }
}

fn add(counts: &mut [u64], more: &[u64]) {
    for (count, more) in counts.iter_mut().zip(more) {
        *count += more;
    }
}
