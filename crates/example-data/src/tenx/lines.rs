//! Lines of a text file, plain or gzipped, each with its number for errors.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _};
use std::path::{Path, PathBuf};

use flate2::bufread::MultiGzDecoder;

use crate::Error;

/// Largest length of a line, far beyond any in these files: a longer one is not text.
const MAX_BYTES: u64 = 1 << 20;
const BUFFER_BYTES: usize = 1 << 17;

/// Reads a file line by line. Detects gzip by the first bytes, not by the name.
pub(super) struct Lines {
    path: PathBuf,
    reader: Box<dyn BufRead>,
    line: Vec<u8>,
    n_read: u64,
}

impl Lines {
    pub(super) fn open(path: &Path) -> Result<Self, Error> {
        let failed = |source| Error::Io { action: "open", path: path.to_owned(), source };
        let mut plain = BufReader::with_capacity(BUFFER_BYTES, File::open(path).map_err(failed)?);
        let is_gzip = plain.fill_buf().map_err(failed)?.starts_with(&[0x1f, 0x8b]);
        let reader: Box<dyn BufRead> = if is_gzip {
            Box::new(BufReader::with_capacity(BUFFER_BYTES, MultiGzDecoder::new(plain)))
        } else {
            Box::new(plain)
        };
        Ok(Self { path: path.to_owned(), reader, line: Vec::new(), n_read: 0 })
    }

    /// Number of the last line read, from 1.
    pub(super) fn number(&self) -> u64 {
        self.n_read
    }

    /// The next line without its line ending; `None` after the last.
    pub(super) fn next(&mut self) -> Result<Option<&[u8]>, Error> {
        self.line.clear();
        let read = self.reader.by_ref().take(MAX_BYTES).read_until(b'\n', &mut self.line);
        let n_bytes = read.map_err(|source| self.broken(source))?;
        if n_bytes == 0 {
            return Ok(None);
        }
        self.n_read += 1;
        if self.line.last() == Some(&b'\n') {
            self.line.pop();
        } else if n_bytes as u64 == MAX_BYTES {
            return Err(self.wrong(format!("it is longer than {MAX_BYTES} bytes: is this text?")));
        }
        if self.line.last() == Some(&b'\r') {
            self.line.pop();
        }
        Ok(Some(&self.line))
    }

    /// An error about the last line read.
    pub(super) fn wrong(&self, problem: impl Into<String>) -> Error {
        self.wrong_at(self.n_read.max(1), problem)
    }

    /// An error about a line.
    pub(super) fn wrong_at(&self, line: u64, problem: impl Into<String>) -> Error {
        Error::Line { path: self.path.clone(), line, problem: problem.into() }
    }

    fn broken(&self, source: io::Error) -> Error {
        Error::Read { path: self.path.clone(), line: self.n_read, source }
    }
}
