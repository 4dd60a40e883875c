//! A fuzz target: feeds arbitrary bytes to the reading of files of sequences, and panics if a
//! promise is broken.
//!
//! Compiled for this crate's tests, which run every kept input, and with `--cfg
//! somafeed_fuzz`, for the package in `fuzz/` that runs it under libFuzzer.

use crate::input::{Record, RecordFormat, RecordReader, are_letters};
use crate::output::write_record;

/// A target's name, which is also that of its corpus, and its function.
pub type Target = (&'static str, fn(&[u8]));

/// All targets of this crate.
pub const TARGETS: [Target; 1] = [("sequence_file", sequence_file)];

/// Bytes of a text that are read, however much a compressed file expands to.
const MAX_BYTES: u64 = 1 << 20;

/// Reads all records of a file. What can be written as FASTA is the same when it is read again.
fn sequence_file(input: &[u8]) {
    let Ok(mut reader) = RecordReader::of_bytes(input.to_vec(), MAX_BYTES) else { return };
    let mut text = Vec::new();
    let mut written = Vec::new();
    while let Ok(Some(record)) = reader.next_record() {
        let Record { letters, name } = record;
        assert!(!letters.is_empty() && !name.is_empty(), "{record:?} is empty");
        assert!(are_letters(letters), "{record:?} has other bytes than letters");
        if write_record(&mut text, RecordFormat::Fasta, &record).is_ok() {
            written.push((letters.to_vec(), name.to_vec()));
        }
    }
    let Ok(mut again) = RecordReader::of_bytes(text, u64::MAX) else {
        panic!("what was written is not FASTA");
    };
    for (letters, name) in &written {
        let record = again.next_record().ok().flatten();
        assert_eq!(record, Some(Record { letters, name }), "another record is read");
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn kept_inputs_break_nothing() {
        fuzz_corpus::run_kept_inputs(&super::TARGETS);
    }
}
