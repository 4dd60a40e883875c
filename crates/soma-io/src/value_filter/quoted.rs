//! Parses Python's quoted texts, with prefixes and escapes.

use super::Problem;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Quoted {
    Text(String),
    Bytes(Vec<u8>),
}

/// How to read a quoted text, given its prefix.
#[derive(Debug, Clone, Copy)]
pub(super) struct Prefix {
    raw: bool,
    bytes: bool,
}

impl Prefix {
    /// The prefix that a word before a quote represents; `None` if it is not one.
    pub(super) fn parse(word: &str) -> Option<Self> {
        let (raw, bytes) = match word.to_ascii_lowercase().as_str() {
            "" | "u" => (false, false),
            "r" => (true, false),
            "b" => (false, true),
            "br" | "rb" => (true, true),
            _ => return None,
        };
        Some(Self { raw, bytes })
    }
}

/// Parses the quoted text whose first quote is at `start`. Returns it and its end.
pub(super) fn quoted(
    text: &[char],
    start: usize,
    prefix: Prefix,
) -> Result<(Quoted, usize), Problem> {
    let quote = text[start];
    let is_triple = text[start..].starts_with(&[quote; 3]);
    let n_quotes = if is_triple { 3 } else { 1 };
    let mut reading =
        Reading { text, at: start + n_quotes, prefix, found: String::new(), bytes: Vec::new() };
    loop {
        let at = reading.at;
        match text.get(at) {
            None => return Err(Problem::new(start, "the quote that opens here is not closed")),
            Some('\n' | '\r') if !is_triple => {
                return Err(Problem::new(
                    start,
                    "the quote that opens here is not closed in its line; write \\n for a line break",
                ));
            }
            Some(_) if text[at..].starts_with(&[quote; 3][..n_quotes]) => break,
            Some('\\') => reading.escape()?,
            Some(&c) => {
                reading.push(c, at)?;
                reading.at += 1;
            }
        }
    }
    let end = reading.at + n_quotes;
    let found =
        if prefix.bytes { Quoted::Bytes(reading.bytes) } else { Quoted::Text(reading.found) };
    Ok((found, end))
}

struct Reading<'a> {
    text: &'a [char],
    at: usize,
    prefix: Prefix,
    found: String,
    bytes: Vec<u8>,
}

impl Reading<'_> {
    fn push(&mut self, c: char, at: usize) -> Result<(), Problem> {
        if !self.prefix.bytes {
            self.found.push(c);
        } else if c.is_ascii() {
            self.bytes.push(c as u8);
        } else {
            return Err(Problem::new(
                at,
                "bytes hold ASCII only; write others as \\x and two digits",
            ));
        }
        Ok(())
    }

    /// Appends a character given by its code.
    fn push_code(&mut self, code: u32, at: usize) -> Result<(), Problem> {
        if self.prefix.bytes {
            let byte = u8::try_from(code)
                .map_err(|_| Problem::new(at, "the escape is past the last byte, \\377"))?;
            self.bytes.push(byte);
        } else {
            let c = char::from_u32(code)
                .ok_or_else(|| Problem::new(at, "the escape is not a character of Unicode"))?;
            self.found.push(c);
        }
        Ok(())
    }

    /// Parses an escape, from the backslash on.
    fn escape(&mut self) -> Result<(), Problem> {
        let at = self.at;
        let Some(&c) = self.text.get(at + 1) else {
            return Err(Problem::new(at, "expected a character after the backslash"));
        };
        self.at += 2;
        if self.prefix.raw {
            // In a raw text a quote after a backslash does not end the text, and the backslash
            // stays.
            self.push('\\', at)?;
            return self.push(c, at + 1);
        }
        let code = match c {
            '\n' => return Ok(()),
            '\\' | '\'' | '"' => u32::from(c),
            'a' => 0x07,
            'b' => 0x08,
            'f' => 0x0c,
            'n' => 0x0a,
            'r' => 0x0d,
            't' => 0x09,
            'v' => 0x0b,
            '0'..='7' => {
                self.at = at + 1;
                self.digits(8, 3)
            }
            'x' => self.all_digits(at, 2)?,
            'u' if !self.prefix.bytes => self.all_digits(at, 4)?,
            'U' if !self.prefix.bytes => self.all_digits(at, 8)?,
            'N' if !self.prefix.bytes => {
                return Err(Problem::new(
                    at,
                    "characters are not known by name here; write \\u and four digits",
                ));
            }
            // Python leaves unknown escapes unchanged.
            _ => {
                self.push('\\', at)?;
                return self.push(c, at + 1);
            }
        };
        self.push_code(code, at)
    }

    /// The number formed by up to `most` digits.
    fn digits(&mut self, radix: u32, most: usize) -> u32 {
        let mut code = 0_u32;
        for _ in 0..most {
            let Some(digit) = self.text.get(self.at).and_then(|c| c.to_digit(radix)) else { break };
            code = code.wrapping_mul(radix).wrapping_add(digit);
            self.at += 1;
        }
        code
    }

    fn all_digits(&mut self, at: usize, n: usize) -> Result<u32, Problem> {
        let first = self.at;
        let code = self.digits(16, n);
        if self.at - first < n {
            return Err(Problem::new(at, format!("expected {n} hexadecimal digits in the escape")));
        }
        Ok(code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(prefix: &str, text: &str) -> Result<Quoted, Problem> {
        let characters: Vec<char> = text.chars().collect();
        quoted(&characters, 0, Prefix::parse(prefix).unwrap()).map(|(found, end)| {
            assert_eq!(end, characters.len(), "{text}");
            found
        })
    }

    #[test]
    fn texts_are_pythons() {
        for (prefix, text, expected) in [
            ("", r#""a b""#, "a b"),
            ("u", "'a\"b'", "a\"b"),
            ("", r"'a\'b'", "a'b"),
            ("", r"''", ""),
            ("", r"''''''", ""),
            ("", "'''a\n'b''c'''", "a\n'b''c"),
            ("", r#""""say "so".""""#, "say \"so\"."),
            ("", r"'\x6b\u006b\U0000006b\153\0'", "kkkk\0"),
            ("", r"'\a\b\f\n\r\t\v\\'", "\x07\x08\x0c\n\r\t\x0b\\"),
            ("", r"'\k\8'", r"\k\8"),
            ("", r"'\1234'", "S4"),
            ("", "'a\\\nb'", "ab"),
            ("R", r"'\n\''", r"\n\'"),
            ("", "'é\u{10ffff}'", "é\u{10ffff}"),
        ] {
            assert_eq!(read(prefix, text), Ok(Quoted::Text(expected.to_owned())), "{text}");
        }
        assert_eq!(read("b", r"'\xff\0a\N'"), Ok(Quoted::Bytes(b"\xff\0a\\N".to_vec())));
        assert_eq!(read("Rb", r"'\xff'"), Ok(Quoted::Bytes(br"\xff".to_vec())));
        assert!(Prefix::parse("ur").is_none() && Prefix::parse("f").is_none());
    }

    #[test]
    fn an_invalid_text_fails_at_its_place() {
        for (prefix, text, at) in [
            ("", "'abc", 0),
            ("", "'abc\"", 0),
            ("", "'a\nb'", 0),
            ("", "'''abc''", 0),
            ("", "'abc\\", 4),
            ("", r"'ab\x4'", 3),
            ("", r"'\u12'", 1),
            ("", r"'\ud800'", 1),
            ("", r"'\UFFFFFFFF'", 1),
            ("", r"'\N{BULLET}'", 1),
            ("b", "'aé'", 2),
            ("b", r"'\777'", 1),
        ] {
            assert_eq!(read(prefix, text).map_err(|problem| problem.at), Err(at), "{text}");
        }
    }
}
