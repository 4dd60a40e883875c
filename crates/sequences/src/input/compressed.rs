//! Compressed files: which compression a file has, and its text.

use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::Path;

use bzip2::bufread::MultiBzDecoder;
use flate2::bufread::GzDecoder;

use super::Source;
use crate::error::Error;

/// Bytes that are read at once.
pub(super) const READ_BYTES: usize = 1 << 20;

/// Bytes at the start of a file that identify its kind.
const START_BYTES: u64 = 10;

/// Compressions that are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Compression {
    Gzip,
    Bzip2,
    Zstd,
}

/// Kinds of files that are not read, by their first bytes, with what to do instead.
pub(super) const NOT_READ: [(&[u8], &str); 16] = [
    (b"\xfd7zXZ\0", "it is compressed by xz: decompress it first (`xz -d`)"),
    (b"]\0\0", "it is compressed by lzma: decompress it first (`xz -d`)"),
    (b"\x04\x22\x4d\x18", "it is compressed by lz4: decompress it first (`lz4 -d`)"),
    (b"\x1f\x9d", "it is compressed by compress: decompress it first (`gzip -d`)"),
    (b"PK\x03\x04", "it is a zip archive: unpack it first (`unzip`)"),
    (b"7z\xbc\xaf\x27\x1c", "it is a 7z archive: unpack it first"),
    (b"BAM\x01", "it is BAM: write FASTQ of it first (`samtools fastq`)"),
    (b"CRAM\x02", "it is CRAM: write FASTQ of it first (`samtools fastq`)"),
    (b"CRAM\x03", "it is CRAM: write FASTQ of it first (`samtools fastq`)"),
    (b"@HD\tVN:", "it is SAM: write FASTQ of it first (`samtools fastq`)"),
    (b"@SQ\tSN:", "it is SAM: write FASTQ of it first (`samtools fastq`)"),
    (b"\x43\x27\x41\x1a", "it is 2bit: write FASTA of it first (`twoBitToFa`)"),
    (b"\x1a\x41\x27\x43", "it is 2bit: write FASTA of it first (`twoBitToFa`)"),
    (b"LOCUS ", "it is GenBank's format: write FASTA of it first"),
    (b"\xff\xfe", "its text is UTF-16: save it as ASCII or UTF-8"),
    (b"\xfe\xff", "its text is UTF-16: save it as ASCII or UTF-8"),
];

/// The bytes with which a block of bzip2 and the end of a file without blocks begin.
const BZIP2_BLOCKS: [&[u8]; 2] = [b"1AY&SY", b"\x17\x72\x45\x38\x50\x90"];

/// The text of a file that may be compressed.
pub(super) fn text(path: &Path, source: Source) -> Result<Source, Error> {
    let failed = |source| Error::File { action: "read", path: path.to_owned(), source };
    let (start, source) = with_start(source).map_err(failed)?;
    check(path, &start)?;
    let Some(compression) = compression(&start) else { return Ok(source) };
    let text = decoder(compression, source).map_err(failed)?;
    let text = Box::new(BufReader::with_capacity(READ_BYTES, text));
    let (start, text) = with_start(text).map_err(failed)?;
    check(path, &start)?;
    match self::compression(&start) {
        None => Ok(text),
        Some(_) => Err(refused(path, "it was compressed twice: decompress it once")),
    }
}

/// The first bytes of a source, and the source with them. A pipe may deliver them in pieces.
fn with_start(mut source: Source) -> io::Result<(Vec<u8>, Source)> {
    let mut start = Vec::new();
    source.by_ref().take(START_BYTES).read_to_end(&mut start)?;
    let whole = Cursor::new(start.clone()).chain(source);
    Ok((start, Box::new(whole)))
}

fn check(path: &Path, start: &[u8]) -> Result<(), Error> {
    match NOT_READ.iter().find(|(magic, _)| start.starts_with(magic)) {
        Some((_, reason)) => Err(refused(path, reason)),
        None => Ok(()),
    }
}

fn refused(path: &Path, reason: &str) -> Error {
    let (path, place) = (path.to_owned(), "the start".to_owned());
    Error::Input { path, place, reason: reason.to_owned() }
}

fn compression(start: &[u8]) -> Option<Compression> {
    match start {
        [0x1f, 0x8b, ..] => Some(Compression::Gzip),
        [b'B', b'Z', b'h', b'1'..=b'9', block @ ..] if BZIP2_BLOCKS.contains(&block) => {
            Some(Compression::Bzip2)
        }
        // A frame, or one that decoders skip, with which parallel compressors begin.
        [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => {
            Some(Compression::Zstd)
        }
        _ => None,
    }
}

fn decoder(compression: Compression, source: Source) -> io::Result<Box<dyn Read + Send>> {
    Ok(match compression {
        Compression::Gzip => Box::new(GzipMembers::new(source)),
        Compression::Bzip2 => Box::new(MultiBzDecoder::new(source)),
        Compression::Zstd => Box::new(zstd::stream::read::Decoder::with_buffer(source)?),
    })
}

/// Decompresses the members of a gzip file one after another.
///
/// Zeros may follow a member: tapes and some object stores pad files to whole blocks. Blocks of
/// bgzip without the empty one that ends a file ([SAM] specification, section 4.1.2) are an error:
/// gzip alone would take them for a whole file.
///
/// [SAM]: https://samtools.github.io/hts-specs/SAMv1.pdf
struct GzipMembers {
    /// `None` at the end of the file.
    member: Option<GzDecoder<Source>>,
    /// Bytes that the member has given so far.
    n_bytes: u64,
}

impl GzipMembers {
    fn new(source: Source) -> Self {
        Self { member: Some(GzDecoder::new(source)), n_bytes: 0 }
    }

    /// Goes on to the next member, after one whose checksum was right.
    fn begin_next(&mut self) -> io::Result<()> {
        let Some(member) = self.member.take() else { return Ok(()) };
        let extra = member.header().and_then(|header| header.extra());
        let is_bgzip = extra.is_some_and(|extra| extra.starts_with(b"BC\x02\0"));
        let mut source = member.into_inner();
        match first_after_zeros(&mut source)? {
            None if is_bgzip && 0 < self.n_bytes => Err(damaged(
                "the last block of bgzip is missing: the file was cut, or its writer leaves that block \
                     out (then unpack it with `gzip -dc`)",
            )),
            None => Ok(()),
            Some(0x1f) => {
                *self = Self::new(source);
                Ok(())
            }
            Some(_) => Err(damaged(
                "bytes that are not gzip follow its last member: decompress the file first \
                 (`gzip -dc`, which leaves them out), or repair it",
            )),
        }
    }
}

impl Read for GzipMembers {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while let Some(member) = &mut self.member {
            let n_bytes = member.read(into)?;
            self.n_bytes += n_bytes as u64;
            if 0 < n_bytes || into.is_empty() {
                return Ok(n_bytes);
            }
            self.begin_next()?;
        }
        Ok(0)
    }
}

/// Skips zeros; returns the byte after them, if there is one, without consuming it.
fn first_after_zeros(source: &mut Source) -> io::Result<Option<u8>> {
    loop {
        let bytes = source.fill_buf()?;
        if let Some(at) = bytes.iter().position(|byte| *byte != 0) {
            let first = bytes[at];
            source.consume(at);
            return Ok(Some(first));
        }
        let n_zeros = bytes.len();
        if n_zeros == 0 {
            return Ok(None);
        }
        source.consume(n_zeros);
    }
}

fn damaged(reason: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}
