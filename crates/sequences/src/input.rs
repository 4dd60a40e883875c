//! Files of sequences as they are found: lines, FASTA, FASTQ, compressed or not.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use flate2::bufread::MultiGzDecoder;
use needletail::FastxReader;

use crate::error::Error;
use crate::store::SequenceFilesWriter;

/// How sequences are written in a text file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordFormat {
    /// A line for each sequence: its letters, a comma, its name. Dragon's example writes this.
    Lines,
    /// [FASTA](https://www.ncbi.nlm.nih.gov/genbank/fastaformat/): `>`, the name up to the first
    /// space, and lines of letters.
    Fasta,
    /// [FASTQ](https://doi.org/10.1093/nar/gkp1137). Qualities are not kept.
    Fastq,
}

/// A sequence with its name.
///
/// Letters are those of the file: lower case, gaps, `*` and ambiguous bases stay as they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record<'a> {
    /// The letters, without line breaks.
    pub letters: &'a [u8],
    /// The name.
    pub name: &'a [u8],
}

/// Reads the records of a file one after another. A file that is compressed by gzip or bgzip is
/// decompressed; the format is that of its first byte.
///
/// A compressed file or FASTQ that was cut is an error. Lines and FASTA that were cut in the middle
/// of a name or of letters look like whole files.
pub struct RecordReader {
    path: PathBuf,
    format: RecordFormat,
    n_read: u64,
    reader: Reader,
}

enum Reader {
    Lines { source: Box<dyn BufRead + Send>, line: Vec<u8> },
    Fastx { source: Box<dyn FastxReader>, letters: Vec<u8>, name: Vec<u8> },
    Empty,
}

impl std::fmt::Debug for RecordReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RecordReader")
            .field("path", &self.path)
            .field("format", &self.format)
            .field("n_read", &self.n_read)
            .finish_non_exhaustive()
    }
}

/// Bytes that are read from a file at once.
const READ_BYTES: usize = 1 << 20;

impl RecordReader {
    /// Opens a file. An empty one has no records.
    ///
    /// # Errors
    /// It cannot be read, what is compressed in it is damaged, or it is a bgzip file without its
    /// last block: it was cut.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let failed = |source| Error::File { action: "read", path: path.to_owned(), source };
        let file = File::open(path).map_err(failed)?;
        let mut file = BufReader::with_capacity(READ_BYTES, file);
        let start = file.fill_buf().map_err(failed)?;
        let (is_compressed, is_bgzip) = (start.starts_with(&[0x1f, 0x8b]), is_bgzip(start));
        if is_bgzip && !ends_as_bgzip(path).map_err(failed)? {
            return Err(Error::Input {
                path: path.to_owned(),
                place: "the end".to_owned(),
                reason: "the last block of bgzip is missing: the file was cut".to_owned(),
            });
        }
        let mut source: Box<dyn BufRead + Send> = if is_compressed {
            Box::new(BufReader::with_capacity(READ_BYTES, MultiGzDecoder::new(file)))
        } else {
            Box::new(file)
        };
        let first = source.fill_buf().map_err(failed)?.first().copied();
        let (format, reader) = match first {
            None => (RecordFormat::Lines, Reader::Empty),
            Some(first @ (b'>' | b'@')) => {
                let format = if first == b'>' { RecordFormat::Fasta } else { RecordFormat::Fastq };
                (format, fastx(path, source)?)
            }
            Some(_) => (RecordFormat::Lines, Reader::Lines { source, line: Vec::new() }),
        };
        Ok(Self { path: path.to_owned(), format, n_read: 0, reader })
    }

    /// The format of the file.
    pub fn format(&self) -> RecordFormat {
        self.format
    }

    /// The next record; `None` at the end of the file.
    ///
    /// # Errors
    /// The file cannot be read; a record has no letters, no name or another form. The error names
    /// the line or the record.
    pub fn next_record(&mut self) -> Result<Option<Record<'_>>, Error> {
        self.n_read += 1;
        let (path, number) = (&self.path, self.n_read);
        match &mut self.reader {
            Reader::Empty => Ok(None),
            Reader::Lines { source, line } => {
                line.clear();
                let n_bytes = source.read_until(b'\n', line).map_err(|source| Error::File {
                    action: "read",
                    path: path.clone(),
                    source,
                })?;
                if n_bytes == 0 {
                    return Ok(None);
                }
                of_line(line).map(Some).map_err(|reason| Error::Input {
                    path: path.clone(),
                    place: format!("line {number}"),
                    reason: reason.to_owned(),
                })
            }
            Reader::Fastx { source, letters, name } => {
                let refused = |reason: String| Error::Input {
                    path: path.clone(),
                    place: format!("record {number}"),
                    reason,
                };
                let Some(record) = source.next() else { return Ok(None) };
                let record = record.map_err(|error| refused(error.to_string()))?;
                letters.clear();
                letters.extend_from_slice(&record.seq());
                name.clear();
                let id = record.id();
                let end = memchr::memchr2(b' ', b'\t', id).unwrap_or(id.len());
                name.extend_from_slice(&id[..end]);
                check(letters, name).map_err(|reason| refused(reason.to_owned()))?;
                Ok(Some(Record { letters, name }))
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

/// The empty block that ends a bgzip file ([SAM] specification, section 4.1.2).
///
/// [SAM]: https://samtools.github.io/hts-specs/SAMv1.pdf
const BGZIP_END: [u8; 28] = [
    0x1f, 0x8b, 8, 4, 0, 0, 0, 0, 0, 0xff, 6, 0, b'B', b'C', 2, 0, 0x1b, 0, 3, 0, 0, 0, 0, 0, 0, 0,
    0, 0,
];

/// Whether a file with this start is a bgzip file: its first extra field is `BC`, of two bytes.
fn is_bgzip(start: &[u8]) -> bool {
    let head =
        start.starts_with(&BGZIP_END[..3]) && start.get(3).is_some_and(|flags| flags & 4 != 0);
    head && start.get(12..16) == Some(&BGZIP_END[12..16])
}

/// Whether a file ends with [`BGZIP_END`]. gzip alone would take blocks without the last ones for
/// a whole file. A pipe has no end to look at.
fn ends_as_bgzip(path: &Path) -> io::Result<bool> {
    let mut file = File::open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Ok(true);
    }
    let mut end = [0; BGZIP_END.len()];
    let Some(start) = metadata.len().checked_sub(end.len() as u64) else { return Ok(false) };
    file.seek(SeekFrom::Start(start))?;
    file.read_exact(&mut end)?;
    Ok(end == BGZIP_END)
}

/// Records between two reports of progress.
const PROGRESS_RECORDS: u64 = 1 << 14;

/// Opens FASTA or FASTQ.
fn fastx(path: &Path, source: Box<dyn BufRead + Send>) -> Result<Reader, Error> {
    let source: Box<dyn Read + Send> = Box::new(source);
    let source = needletail::parse_fastx_reader(source).map_err(|error| Error::Input {
        path: path.to_owned(),
        place: "record 1".to_owned(),
        reason: error.to_string(),
    })?;
    Ok(Reader::Fastx { source, letters: Vec::new(), name: Vec::new() })
}

/// The record of a line.
fn of_line(line: &[u8]) -> Result<Record<'_>, &'static str> {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if line.is_empty() {
        return Err("the line is empty; each line needs letters, a comma and a name");
    }
    let comma = memchr::memchr(b',', line)
        .ok_or("the line has no comma; each line needs letters, a comma and a name")?;
    let (letters, name) = (&line[..comma], &line[comma + 1..]);
    check(letters, name)?;
    Ok(Record { letters, name })
}

fn check(letters: &[u8], name: &[u8]) -> Result<(), &'static str> {
    match (letters.is_empty(), name.is_empty()) {
        (true, _) => Err("the sequence has no letters"),
        (_, true) => Err("the sequence has no name"),
        _ => Ok(()),
    }
}

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
            ("AC,a\nACGT\n", "line 2", "no comma"),
            ("AC,a\n,b\n", "line 2", "no letters"),
            ("AC,a\nAC,\n", "line 2", "no name"),
            (">a\nAC\n>b\n>c\nAC\n", "record 2", "no letters"),
            (">a\nAC\n>\nAC\n", "record 2", "no name"),
            ("@a\nACG\n+\nII\n", "record 1", ""),
            ("@a\nACG\n+\nIII\n@b\nACG\n", "record 2", ""),
        ] {
            let error = records(text.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(place) && error.contains(reason), "{text:?}: {error}");
        }
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
        for end in 2..bgzip.len() {
            assert!(records(&bgzip[..end]).is_err(), "{end}");
        }
    }
}
