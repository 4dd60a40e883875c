//! The records of a text: a line each, FASTA or FASTQ.

use std::io;

use super::lines::LineReader;

/// A record as it is read, in memory that is used again.
#[derive(Debug, Default)]
pub(super) struct Parsed {
    pub(super) letters: Vec<u8>,
    pub(super) name: Vec<u8>,
}

/// The reason why there is no next record.
pub(super) enum Fault {
    /// The text cannot be read.
    Read(io::Error),
    /// The text has another form.
    Form(String),
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Self::Read(error)
    }
}

fn form<T>(reason: impl Into<String>) -> Result<T, Fault> {
    Err(Fault::Form(reason.into()))
}

impl Parsed {
    /// Reads a record that is a line; `false` at the end.
    pub(super) fn read_line(&mut self, lines: &mut LineReader) -> Result<bool, Fault> {
        let Some(line) = lines.next_line()? else { return Ok(false) };
        if line.is_empty() {
            return form("the line is empty; each line needs letters, a comma and a name");
        }
        let Some(comma) = memchr::memchr(b',', line) else {
            return form(
                "the line has no comma; each line needs letters, a comma and a name (FASTA begins \
                 with `>`, FASTQ with `@`)",
            );
        };
        self.name.extend_from_slice(line[comma + 1..].trim_ascii_start());
        self.push_letters(&line[..comma])?;
        Ok(true)
    }

    /// Reads a record of FASTA; `false` at the end.
    pub(super) fn read_fasta(&mut self, lines: &mut LineReader) -> Result<bool, Fault> {
        let Some(title) = line_of_fasta(lines)? else { return Ok(false) };
        let Some(title) = title.strip_prefix(b">") else {
            return form("a record of FASTA begins with `>`");
        };
        self.push_name(title);
        while let Some(line) = line_of_fasta(lines)? {
            match line[0] {
                b'>' => {
                    lines.unread();
                    break;
                }
                b'#' | b'!' => {
                    return form(
                        "a line begins with `#` or `!`: delete such lines, or begin them with `;` \
                         if they are comments",
                    );
                }
                _ if line.contains(&b'>') => {
                    return form(
                        "`>` follows letters on the same line: were files joined of which one \
                         does not end with a line break?",
                    );
                }
                _ => self.push_letters(line)?,
            }
        }
        Ok(true)
    }

    /// Reads a record of FASTQ; `false` at the end. Letters and qualities may take several lines.
    pub(super) fn read_fastq(&mut self, lines: &mut LineReader) -> Result<bool, Fault> {
        let Some(title) = full_line(lines)? else { return Ok(false) };
        let Some(title) = title.strip_prefix(b"@") else {
            return form("a record of FASTQ begins with `@`: the one before it has more lines");
        };
        self.push_name(title);
        let mut n_lines = 0;
        loop {
            match full_line(lines)? {
                None => return form("the file ends before the line with `+`: it was cut"),
                Some([b'+', ..]) => break,
                Some([b'@', ..]) => {
                    return form("the line with `+` is missing before the next `@`");
                }
                Some(line) => self.push_letters(line)?,
            }
            n_lines += 1;
        }
        self.skip_qualities(lines, n_lines == 1)
    }

    /// Skips as many qualities as there are letters. Those of letters on one line are on one line,
    /// too: then a damaged record is seen by itself.
    fn skip_qualities(&self, lines: &mut LineReader, on_one_line: bool) -> Result<bool, Fault> {
        let n_letters = self.letters.len();
        let mut n_qualities = 0;
        while n_qualities < n_letters {
            match full_line(lines)? {
                None => return form("the file ends before the qualities do: it was cut"),
                Some(line) => {
                    n_qualities += line.iter().filter(|byte| !byte.is_ascii_whitespace()).count();
                }
            }
            if n_letters < n_qualities || (on_one_line && n_qualities < n_letters) {
                return form(format!("it has {n_letters} letters and {n_qualities} qualities"));
            }
        }
        Ok(true)
    }

    /// Keeps the name at the start of a title: the rest after a blank describes the record.
    fn push_name(&mut self, title: &[u8]) {
        let title = title.trim_ascii_start();
        let end = title.iter().position(u8::is_ascii_whitespace).unwrap_or(title.len());
        self.name.extend_from_slice(&title[..end]);
    }

    /// Appends the letters of a line, without blanks between them.
    fn push_letters(&mut self, line: &[u8]) -> Result<(), Fault> {
        if are_letters(line) {
            self.letters.extend_from_slice(line);
            return Ok(());
        }
        let letters = line.iter().filter(|byte| !byte.is_ascii_whitespace());
        for letter in letters {
            if !letter.is_ascii_graphic() {
                return form(format!(
                    "the byte {letter:#04x} is not a letter: letters are visible ASCII characters"
                ));
            }
            self.letters.push(*letter);
        }
        Ok(())
    }
}

/// Whether all bytes are visible ASCII characters.
pub(crate) fn are_letters(bytes: &[u8]) -> bool {
    // Without an early end, so that the processor compares many bytes at once.
    bytes.iter().fold(true, |all, byte| all & byte.is_ascii_graphic())
}

/// Whether a name has no control characters, apart from tabs within.
pub(crate) fn is_text(name: &[u8]) -> bool {
    name.iter().all(|byte| !byte.is_ascii_control() || *byte == b'\t')
}

/// The next line that is not empty.
fn full_line(lines: &mut LineReader) -> io::Result<Option<&[u8]>> {
    skip_until(lines, |line| !line.is_empty())
}

/// The next line that is neither empty nor a comment.
fn line_of_fasta(lines: &mut LineReader) -> io::Result<Option<&[u8]>> {
    skip_until(lines, |line| !matches!(line, [] | [b';', ..]))
}

/// Skips lines up to one that is wanted.
fn skip_until(
    lines: &mut LineReader,
    is_wanted: impl Fn(&[u8]) -> bool,
) -> io::Result<Option<&[u8]>> {
    loop {
        match lines.next_line()? {
            None => return Ok(None),
            Some(line) if is_wanted(line) => break,
            Some(_) => {}
        }
    }
    // A line cannot be returned from within the loop: the borrow would last for all of it.
    lines.unread();
    lines.next_line()
}
