//! Writes sequences as text.

use std::io::Write;

use crate::input::{Record, RecordFormat};

/// Letters of a line of FASTA.
const LINE_LETTERS: usize = 80;

/// The quality that FASTQ gets, since stores keep none: an error in 10,000 letters.
const QUALITY: u8 = b'I';

/// Writes one record as text.
///
/// Records of FASTQ get the quality `I` (40) for each letter, because stores keep no qualities.
///
/// # Errors
/// `into` cannot be written.
pub fn write_record(
    into: &mut dyn Write,
    format: RecordFormat,
    record: &Record<'_>,
) -> std::io::Result<()> {
    let Record { letters, name } = record;
    match format {
        RecordFormat::Lines => {
            into.write_all(letters)?;
            into.write_all(b",")?;
            into.write_all(name)?;
        }
        RecordFormat::Fasta => {
            into.write_all(b">")?;
            into.write_all(name)?;
            for line in letters.chunks(LINE_LETTERS) {
                into.write_all(b"\n")?;
                into.write_all(line)?;
            }
        }
        RecordFormat::Fastq => {
            into.write_all(b"@")?;
            into.write_all(name)?;
            into.write_all(b"\n")?;
            into.write_all(letters)?;
            into.write_all(b"\n+\n")?;
            into.write_all(&vec![QUALITY; letters.len()])?;
        }
    }
    into.write_all(b"\n")
}
