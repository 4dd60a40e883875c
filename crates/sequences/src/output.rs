//! Writes sequences as text.

use std::io::{self, Write};

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
/// `into` cannot be written, or [`RecordReader`](crate::RecordReader) would read another record
/// ([`io::ErrorKind::InvalidInput`]): there are no letters or no name, a line break in either, a
/// comma, `>` or `@` in letters where the format has it for something else, a space in a name.
pub fn write_record(
    into: &mut dyn Write,
    format: RecordFormat,
    record: &Record<'_>,
) -> io::Result<()> {
    let Record { letters, name } = record;
    let (in_letters, in_name) = match format {
        RecordFormat::Lines => ("\r\n,>@", "\r\n"),
        RecordFormat::Fasta => ("\r\n>", "\r\n \t"),
        RecordFormat::Fastq => ("\r\n", "\r\n \t"),
    };
    for (what, bytes, breaks) in [("letters", letters, in_letters), ("name", name, in_name)] {
        let breaks = breaks.as_bytes();
        if bytes.is_empty() || breaks.iter().any(|of| memchr::memchr(*of, bytes).is_some()) {
            let name = String::from_utf8_lossy(name);
            let reason = format!(
                "the {what} of {name:?} cannot be written as {format:?}: nothing, or a break"
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
        }
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
            records in proptest::collection::vec(("[ACGT]{0,200}[-,>@+*a]?", "[a-z, \n]{0,6}"), 1..4),
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
