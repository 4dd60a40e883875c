//! Writes sequences as text.

use std::io::{self, Write};

use crate::input::{Record, RecordFormat, are_letters, is_text};

/// Letters of a line of FASTA.
const LINE_LETTERS: usize = 80;

/// The quality that FASTQ gets, since stores keep none: an error in 10,000 letters.
const QUALITY: u8 = b'I';

/// Writes one record as text.
///
/// Records of FASTQ get the quality `I` (40) for each letter, because stores keep no qualities.
///
/// # Errors
/// `into` cannot be written, or [`RecordReader`](crate::RecordReader) would read another record
/// ([`io::ErrorKind::InvalidInput`]): there are no letters or no name, letters have a blank or a
/// character that the format uses for something else, a name has a line break, or a blank where a
/// name ends with it.
pub fn write_record(
    into: &mut dyn Write,
    format: RecordFormat,
    record: &Record<'_>,
) -> io::Result<()> {
    let Record { letters, name } = record;
    let can_be_written = are_letters(letters)
        && !letters.is_empty()
        && !is_taken(format, letters)
        && is_name(format, name);
    if !can_be_written {
        let name = String::from_utf8_lossy(name);
        let reason = format!(
            "the sequence {name:?} cannot be written as {format:?}: its letters or its name are \
             empty, or have blanks or characters that the format uses for something else"
        );
        return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
    }
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

/// Whether letters have a character that means something else in the format.
fn is_taken(format: RecordFormat, letters: &[u8]) -> bool {
    match format {
        RecordFormat::Lines => letters.contains(&b',') || b">@;#!".contains(&letters[0]),
        RecordFormat::Fasta => letters.iter().any(|letter| b">;#!".contains(letter)),
        RecordFormat::Fastq => b"@+".contains(&letters[0]),
    }
}

/// Whether a name is read as it is written.
fn is_name(format: RecordFormat, name: &[u8]) -> bool {
    let is_whole = match format {
        RecordFormat::Lines => name.trim_ascii() == name,
        RecordFormat::Fasta | RecordFormat::Fastq => !name.iter().any(u8::is_ascii_whitespace),
    };
    is_whole && is_text(name) && !name.is_empty()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::input::RecordReader;

    const FORMATS: [RecordFormat; 3] =
        [RecordFormat::Lines, RecordFormat::Fasta, RecordFormat::Fastq];

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// What is written is read again, or refused.
        #[test]
        fn records_come_back(
            records in proptest::collection::vec(("[#;@+]?[ACGT]{0,200}[-,>@+*a; ]?", "[a-z, \r\n]{0,6}"), 1..4),
        ) {
            for format in FORMATS {
                let mut text = Vec::new();
                let mut written = Vec::new();
                for (letters, name) in &records {
                    let record = Record { letters: letters.as_bytes(), name: name.as_bytes() };
                    match write_record(&mut text, format, &record) {
                        Ok(()) => written.push((letters.as_bytes(), name.as_bytes())),
                        Err(error) => prop_assert_eq!(error.kind(), io::ErrorKind::InvalidInput),
                    }
                }
                let mut file = tempfile::NamedTempFile::new().unwrap();
                file.write_all(&text).unwrap();
                let mut reader = RecordReader::open(file.path()).unwrap();
                for (letters, name) in written {
                    let record = reader.next_record().unwrap();
                    prop_assert_eq!(record, Some(Record { letters, name }));
                }
                prop_assert_eq!(reader.next_record().unwrap(), None);
            }
        }
    }

    #[test]
    fn plain_records_can_be_written() {
        for format in FORMATS {
            let record = Record { letters: b"ACGT", name: b"one" };
            write_record(&mut Vec::new(), format, &record).unwrap();
        }
    }
}
