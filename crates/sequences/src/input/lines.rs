//! Lines of a text, whatever ends them.

use std::io::{self, BufRead};

/// The mark with which some editors begin a UTF-8 file. In files that were joined it also stands
/// within.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Reads a text line by line. A line ends with `\n`, `\r\n` or `\r`.
pub(super) struct LineReader {
    source: Box<dyn BufRead + Send>,
    line: Vec<u8>,
    number: u64,
    /// The last line ended with `\r`; a `\n` that follows belongs to it.
    ended_by_return: bool,
    is_unread: bool,
}

impl LineReader {
    pub(super) fn new(source: Box<dyn BufRead + Send>) -> Self {
        Self { source, line: Vec::new(), number: 0, ended_by_return: false, is_unread: false }
    }

    /// The number of the last line that was read and not unread, from 1.
    pub(super) fn number(&self) -> u64 {
        self.number - u64::from(self.is_unread)
    }

    /// The next line without its end, without blanks at either end, and without a byte order mark.
    /// `None` at the end of the text.
    pub(super) fn next_line(&mut self) -> io::Result<Option<&[u8]>> {
        if !std::mem::take(&mut self.is_unread) {
            if !self.read_line()? {
                return Ok(None);
            }
            self.number += 1;
        }
        let line = self.line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&self.line);
        Ok(Some(line.trim_ascii()))
    }

    /// Lets [`next_line`](Self::next_line) return the same line once more.
    pub(super) fn unread(&mut self) {
        self.is_unread = true;
    }

    /// Reads a line; `false` at the end of the text.
    fn read_line(&mut self) -> io::Result<bool> {
        self.line.clear();
        loop {
            let bytes = match self.source.fill_buf() {
                Ok(bytes) => bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if bytes.is_empty() {
                return Ok(!self.line.is_empty());
            }
            if std::mem::take(&mut self.ended_by_return) && bytes[0] == b'\n' {
                self.source.consume(1);
                continue;
            }
            let Some(end) = memchr::memchr2(b'\n', b'\r', bytes) else {
                self.line.extend_from_slice(bytes);
                let n_bytes = bytes.len();
                self.source.consume(n_bytes);
                continue;
            };
            self.line.extend_from_slice(&bytes[..end]);
            self.ended_by_return = bytes[end] == b'\r';
            self.source.consume(end + 1);
            return Ok(true);
        }
    }
}
