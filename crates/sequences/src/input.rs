//! Files of sequences as they are found: lines, FASTA, FASTQ, compressed or not.

mod compressed;
mod lines;
mod parse;

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use self::lines::LineReader;
use self::parse::{Fault, Parsed};
pub(crate) use self::parse::{are_letters, is_text};
use crate::error::Error;
use crate::store::SequenceFilesWriter;

/// How sequences are written in a text file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordFormat {
    /// A line for each sequence: its letters, a comma, its name. Dragon's example writes this.
    Lines,
    /// [FASTA](https://www.ncbi.nlm.nih.gov/genbank/fastaformat/): `>`, the name up to the first
    /// blank, and lines of letters. Lines that begin with `;` are comments; so are those that
    /// begin with `#` or `!` before the first record.
    Fasta,
    /// [FASTQ](https://doi.org/10.1093/nar/gkp1137), also with letters and qualities on several
    /// lines. Qualities are not kept.
    Fastq,
}

/// A sequence with its name.
///
/// Letters are those of the file, without blanks and line breaks: lower case, gaps, `*` and
/// ambiguous bases stay as they are. All are visible ASCII characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record<'a> {
    /// The letters.
    pub letters: &'a [u8],
    /// The name.
    pub name: &'a [u8],
}

/// Reads the records of a file one after another.
///
/// A file that is compressed by gzip, bgzip, bzip2 or zstd is decompressed; other kinds that are
/// recognised, such as xz, are errors that say what to do. The first character decides the format;
/// blank lines, comments and a byte order mark before it are skipped. Lines may end with `\n`,
/// `\r\n` or `\r`, and with blanks before that.
///
/// A compressed file or FASTQ that was cut is an error. Lines and FASTA that were cut in the middle
/// of a name or of letters look like whole files.
pub struct RecordReader {
    path: PathBuf,
    format: RecordFormat,
    lines: LineReader,
    record: Parsed,
    n_read: u64,
    skips_empty: bool,
    n_skipped: u64,
}

/// Bytes of a file or of a text.
type Source = Box<dyn BufRead + Send>;

impl std::fmt::Debug for RecordReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RecordReader")
            .field("path", &self.path)
            .field("format", &self.format)
            .field("n_read", &self.n_read)
            .finish_non_exhaustive()
    }
}

impl RecordReader {
    /// Opens a file. An empty one has no records.
    ///
    /// # Errors
    /// It cannot be read, its start is damaged, or it is of a kind that is not read.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let file = File::open(path).map_err(|source| Error::File {
            action: "read",
            path: path.to_owned(),
            source,
        })?;
        let file = BufReader::with_capacity(compressed::READ_BYTES, file);
        Self::of_text(path, compressed::text(path, Box::new(file))?)
    }

    /// Reads a file that is in memory, and at most `max_bytes` of its text.
    #[cfg(any(test, somafeed_fuzz))]
    pub(crate) fn of_bytes(bytes: Vec<u8>, max_bytes: u64) -> Result<Self, Error> {
        let path = Path::new("a file in memory");
        let text = compressed::text(path, Box::new(std::io::Cursor::new(bytes)))?;
        Self::of_text(path, Box::new(std::io::Read::take(text, max_bytes)))
    }

    /// Reads a text; `path` is for messages.
    fn of_text(path: &Path, text: Source) -> Result<Self, Error> {
        let mut lines = LineReader::new(text);
        let failed = |source| Error::File { action: "read", path: path.to_owned(), source };
        let mut n_skipped = 0;
        let format = loop {
            match lines.next_line().map_err(failed)? {
                Some([] | [b';' | b'#' | b'!', ..]) => n_skipped += 1,
                Some([b'>', ..]) => break RecordFormat::Fasta,
                Some([b'@', ..]) => break RecordFormat::Fastq,
                Some(_) if 0 < n_skipped => {
                    return Err(Error::Input {
                        path: path.to_owned(),
                        place: "line 1".to_owned(),
                        reason: "the line is empty or a comment, and no FASTA or FASTQ follows, \
                                 but lines of letters, a comma and a name: delete the lines \
                                 before them"
                            .to_owned(),
                    });
                }
                Some(_) => break RecordFormat::Lines,
                None => return Ok(Self::new(path, RecordFormat::Lines, lines)),
            }
        };
        lines.unread();
        Ok(Self::new(path, format, lines))
    }

    fn new(path: &Path, format: RecordFormat, lines: LineReader) -> Self {
        Self {
            path: path.to_owned(),
            format,
            lines,
            record: Parsed::default(),
            n_read: 0,
            skips_empty: false,
            n_skipped: 0,
        }
    }

    /// Skips records without letters, as programs that trim reads leave them, and counts them.
    #[must_use]
    pub fn skipping_empty(mut self) -> Self {
        self.skips_empty = true;
        self
    }

    /// The format of the file.
    pub fn format(&self) -> RecordFormat {
        self.format
    }

    /// Number of records without letters that were skipped so far.
    pub fn n_skipped(&self) -> u64 {
        self.n_skipped
    }

    /// The next record; `None` at the end of the file.
    ///
    /// # Errors
    /// The file cannot be read; a record has no letters, no name or another form. The error names
    /// the line or the record.
    pub fn next_record(&mut self) -> Result<Option<Record<'_>>, Error> {
        loop {
            if !self.parse().map_err(|fault| self.error(fault))? {
                return Ok(None);
            }
            if !self.record.letters.is_empty() || !self.skips_empty {
                break;
            }
            self.n_skipped += 1;
        }
        let Parsed { letters, name } = &self.record;
        let problem = match (letters.is_empty(), name.is_empty()) {
            (true, _) => "the sequence has no letters: leave such records out (--skip-empty)",
            (_, true) => "the sequence has no name",
            _ if !is_text(name) => "the name has a control character: is the file a text?",
            _ => return Ok(Some(Record { letters, name })),
        };
        Err(self.error(Fault::Form(problem.to_owned())))
    }

    /// Parses the next record; `false` at the end of the file.
    fn parse(&mut self) -> Result<bool, Fault> {
        let Self { lines, record, .. } = self;
        self.n_read += 1;
        record.letters.clear();
        record.name.clear();
        match self.format {
            RecordFormat::Lines => record.read_line(lines),
            RecordFormat::Fasta => record.read_fasta(lines),
            RecordFormat::Fastq => record.read_fastq(lines),
        }
    }

    fn error(&self, fault: Fault) -> Error {
        let path = self.path.clone();
        let line = self.lines.number();
        match fault {
            Fault::Read(source) => Error::File { action: "read", path, source },
            Fault::Form(reason) => {
                let place = match self.format {
                    RecordFormat::Lines => format!("line {line}"),
                    _ => format!("record {}, line {line}", self.n_read),
                };
                Error::Input { path, place, reason }
            }
        }
    }

    /// Writes all records that are left to a store; calls `progress` with the number of sequences
    /// now and then.
    ///
    /// # Errors
    /// A record cannot be read or written.
    pub fn copy_to(
        &mut self,
        writer: &mut SequenceFilesWriter,
        progress: &mut dyn FnMut(u64),
    ) -> Result<(), Error> {
        while let Some(record) = self.next_record()? {
            writer.push(record.letters, record.name)?;
            if writer.n_sequences().is_multiple_of(PROGRESS_RECORDS) {
                progress(writer.n_sequences());
            }
        }
        Ok(())
    }
}

/// Records between two reports of progress.
const PROGRESS_RECORDS: u64 = 1 << 14;

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use proptest::prelude::*;

    use super::*;

    fn records(bytes: &[u8]) -> Result<Vec<(String, String)>, Error> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(bytes).unwrap();
        let mut reader = RecordReader::open(file.path())?;
        let mut records = Vec::new();
        while let Some(record) = reader.next_record()? {
            let [letters, name] =
                [record.letters, record.name].map(|of| String::from_utf8_lossy(of).into_owned());
            records.push((letters, name));
        }
        Ok(records)
    }

    fn expected() -> Vec<(String, String)> {
        [("ACGTAC", "one"), ("GG", "two")].map(|(a, b)| (a.to_owned(), b.to_owned())).to_vec()
    }

    #[test]
    fn all_formats_give_the_same() {
        for text in [
            "ACGTAC,one\nGG,two\n",
            "ACGTAC,one\r\nGG,two",
            ">one of some kind\nACG\nTAC\n>two\nGG\n",
            ">one\r\nACG\r\n\r\nTAC\r\n>two\tx\r\nGG\r\n",
            ">one\nACGTAC\n>two\nGG",
            "@one x\nACGTAC\n+\nIIIIII\n@two\nGG\n+one\nII\n",
            "@one x\r\nACGTAC\r\n+\r\nIIIIII\r\n@two\r\nGG\r\n+\r\nII\r\n",
            "@one\nACGTAC\n+\n@>IIII\n@two\nGG\n+\nII",
        ] {
            assert_eq!(records(text.as_bytes()).unwrap(), expected(), "{text}");
            let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            gzip.write_all(text.as_bytes()).unwrap();
            assert_eq!(records(&gzip.finish().unwrap()).unwrap(), expected(), "{text}");
            let mut bgzip = noodles_bgzf::io::Writer::new(Vec::new());
            let (start, end) = text.as_bytes().split_at(8);
            bgzip.write_all(start).unwrap();
            bgzip.flush().unwrap();
            bgzip.write_all(end).unwrap();
            assert_eq!(records(&bgzip.finish().unwrap()).unwrap(), expected(), "{text}");
        }
        assert_eq!(records(b"").unwrap(), []);
    }

    #[test]
    fn letters_stay_as_they_are() {
        let text = b">a\nacgtN-\n*\n>b\nMKV*\n";
        let expected = [("acgtN-*", "a"), ("MKV*", "b")];
        assert_eq!(records(text).unwrap(), expected.map(|(a, b)| (a.to_owned(), b.to_owned())));
    }

    /// Several members of gzip in one file are one text, however it is divided.
    #[test]
    fn gzip_has_several_members() {
        let text = b">one\nACG\nTAC\n>two\nGG\n";
        for at in 0..=text.len() {
            let (start, end) = text.split_at(at);
            let mut bytes = Vec::new();
            for part in [start, b"", end] {
                let fast = flate2::Compression::fast();
                let mut gzip = flate2::write::GzEncoder::new(&mut bytes, fast);
                gzip.write_all(part).unwrap();
                gzip.finish().unwrap();
            }
            assert_eq!(records(&bytes).unwrap(), expected(), "{at}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn no_text_panics(start in "[>@]", text in "[>@+ACI \r\n]{0,40}") {
            drop(records(format!("{start}{text}").as_bytes()));
        }
    }

    #[test]
    fn bad_records_are_named() {
        for (text, place, reason) in [
            ("AC,a\n\nAC,b\n", "line 2", "empty"),
            ("\nAC,a\n", "line 1", "empty"),
            ("# a list\nAC,a\n", "line 1", "comment"),
            ("AC,a\nACGT\n", "line 2", "no comma"),
            ("AC,a\n,b\n", "line 2", "no letters"),
            ("AC,a\nAC,\n", "line 2", "no name"),
            ("AC\u{a0},a\n", "line 1", "0xc2 is not a letter"),
            ("AC,a\0b\n", "line 1", "control character"),
            (">a\nAC\n>b\n>c\nAC\n", "record 2, line 3", "no letters"),
            (">a\nAC\n>\nAC\n", "record 2", "no name"),
            (">a\nAC\u{a0}\n", "record 1, line 2", "0xc2 is not a letter"),
            (">a\nAC>b\nAC\n", "record 1, line 2", "files joined"),
            (">a\nAC\n# b\nAC\n", "record 1, line 3", "`;`"),
            ("@a\nACG\n+\nII\n", "record 1, line 4", "3 letters and 2 qualities"),
            ("@a\nACG\n+\nIIII\n", "record 1, line 4", "3 letters and 4 qualities"),
            ("@a\nACG\n+\nIII\n@b\nACG\n", "record 2", "was cut"),
            ("@a\nACG\n+\nIII\n@b\nACG\n+\n", "record 2", "was cut"),
            ("@a\nACG\n@b\nACG\n+\nIII\n", "record 1, line 3", "`+` is missing"),
            ("@a\nACG\n+\nII\n@b\nGG\n+\nII\n", "record 1, line 4", "qualities"),
            ("@a\nACG\n+\nIII\nIII\n", "record 2, line 5", "begins with `@`"),
            ("@a\n\n+\n\n", "record 1", "no letters"),
            ("\u{feff}@HD\tVN:1\n", "record 1", "was cut"),
            ("@HD\tVN:1.6\n", "the start", "SAM"),
            ("LOCUS       X\n", "the start", "GenBank"),
        ] {
            let error = records(text.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(place) && error.contains(reason), "{text:?}: {error}");
        }
    }

    /// Kinds of files that are not read are errors that say what to do.
    #[test]
    fn files_of_other_kinds_are_named() {
        for (start, reason) in compressed::NOT_READ {
            let bytes = [start, &[b'A'; 20]].concat();
            assert!(records(&bytes).unwrap_err().to_string().contains(reason), "{reason}");
            let bytes = zstd::encode_all(&*bytes, 0).unwrap();
            assert!(records(&bytes).unwrap_err().to_string().contains(reason), "{reason}");
        }
        let twice = zstd::encode_all(&*zstd::encode_all(&b"A,a"[..], 0).unwrap(), 0).unwrap();
        assert!(records(&twice).unwrap_err().to_string().contains("twice"));
    }

    #[test]
    fn records_without_letters_are_skipped_and_counted_on_request() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b">a\n>b\nAC\n>c\n\n").unwrap();
        let mut reader = RecordReader::open(file.path()).unwrap().skipping_empty();
        let record = reader.next_record().unwrap();
        assert_eq!(record, Some(Record { letters: b"AC", name: b"b" }));
        assert_eq!(reader.next_record().unwrap(), None);
        assert_eq!(reader.n_skipped(), 2);
    }

    #[test]
    fn a_compressed_file_that_was_cut_is_an_error() {
        let lines: Vec<String> = (0..5000).map(|number| format!("ACGTTGCA,{number}\n")).collect();
        let text = lines.concat();
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(text.as_bytes()).unwrap();
        let gzip = gzip.finish().unwrap();
        for end in [gzip.len() / 2, gzip.len() - 1, 5] {
            assert!(records(&gzip[..end]).is_err(), "{end}");
        }
        let mut bgzip = noodles_bgzf::io::Writer::new(Vec::new());
        for part in ["AC,a\n", "AC,b\n", "AC,c\n"] {
            bgzip.write_all(part.as_bytes()).unwrap();
            bgzip.flush().unwrap();
        }
        let bgzip = bgzip.finish().unwrap();
        assert_eq!(records(&bgzip).unwrap().len(), 3);
        let zstd = zstd::encode_all(text.as_bytes(), 0).unwrap();
        let mut bzip2 = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
        bzip2.write_all(text.as_bytes()).unwrap();
        for whole in [zstd, bzip2.finish().unwrap()] {
            assert_eq!(records(&whole).unwrap().len(), 5000);
            for end in [whole.len() / 2, whole.len() - 1, whole.len() - 4, 11] {
                assert!(records(&whole[..end]).is_err(), "{end}");
            }
        }
        let joined = [&gzip[..], b"ACGT,x\n"].concat();
        let error = records(&joined).unwrap_err();
        let reason = std::error::Error::source(&error).unwrap().to_string();
        assert!(reason.contains("not gzip follow"), "{reason}");
        for end in 2..bgzip.len() {
            assert!(records(&bgzip[..end]).is_err(), "{end}");
        }
    }
}
