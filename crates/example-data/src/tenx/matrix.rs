//! A MatrixMarket file of genes by cells, entry by entry.

use std::path::Path;

use super::lines::Lines;
use crate::Error;

/// A value with its position, counted from 0, and its line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Entry {
    pub(super) cell: u32,
    pub(super) gene: u32,
    pub(super) value: f32,
    pub(super) line: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    Integer,
    Real,
}

/// A file whose header has been read.
pub(super) struct MatrixFile {
    lines: Lines,
    field: Field,
    pub(super) n_genes: u64,
    pub(super) n_cells: u64,
    /// Number of entries according to the header.
    pub(super) n_entries: u64,
    n_read: u64,
}

impl MatrixFile {
    pub(super) fn open(path: &Path) -> Result<Self, Error> {
        let mut lines = Lines::open(path)?;
        let banner = lines.next()?.map(|line| String::from_utf8_lossy(line).to_lowercase());
        let words: Vec<&str> = banner.as_deref().unwrap_or("").split_whitespace().collect();
        let field = match words[..] {
            ["%%matrixmarket", "matrix", "coordinate", "integer", "general"] => Field::Integer,
            ["%%matrixmarket", "matrix", "coordinate", "real", "general"] => Field::Real,
            _ => {
                return Err(lines.wrong(
                    "expected \"%%MatrixMarket matrix coordinate\" with \"integer general\" or \"real general\"",
                ));
            }
        };
        let Some(sizes) = next_line(&mut lines)? else {
            return Err(lines.wrong("the file ends before the line with its sizes"));
        };
        let sizes: Option<Vec<u64>> =
            sizes.split_whitespace().map(|word| word.parse().ok()).collect();
        let Some(&[n_genes, n_cells, n_entries]) = sizes.as_deref() else {
            return Err(lines.wrong("expected three numbers: genes, cells, entries"));
        };
        for (what, n) in [("genes", n_genes), ("cells", n_cells)] {
            if !(1..=u64::from(u32::MAX)).contains(&n) {
                let problem = format!("the matrix has {n} {what}; it must be 1 to {}", u32::MAX);
                return Err(lines.wrong(problem));
            }
        }
        if u128::from(n_entries) > u128::from(n_genes) * u128::from(n_cells) {
            let problem = format!("{n_entries} entries do not fit into {n_genes} x {n_cells}");
            return Err(lines.wrong(problem));
        }
        Ok(Self { lines, field, n_genes, n_cells, n_entries, n_read: 0 })
    }

    /// The next entry; `None` after the header's number of entries.
    pub(super) fn next_entry(&mut self) -> Result<Option<Entry>, Error> {
        loop {
            let Some(line) = self.lines.next()? else {
                return self.end();
            };
            let words = line.trim_ascii();
            if words.is_empty() || words[0] == b'%' {
                continue;
            }
            let entry = parse(words, self.field, self.n_genes, self.n_cells);
            let mut entry = entry.map_err(|problem| self.lines.wrong(problem))?;
            if self.n_read == self.n_entries {
                return Err(self.lines.wrong(format!(
                    "there are more entries than the {} of the header",
                    self.n_entries
                )));
            }
            self.n_read += 1;
            entry.line = self.lines.number();
            return Ok(Some(entry));
        }
    }

    fn end(&self) -> Result<Option<Entry>, Error> {
        if self.n_read == self.n_entries {
            return Ok(None);
        }
        Err(self.lines.wrong(format!(
            "the file ends after {} of {} entries: is it truncated?",
            self.n_read, self.n_entries
        )))
    }
}

/// The next line that is neither empty nor a comment.
fn next_line(lines: &mut Lines) -> Result<Option<String>, Error> {
    while let Some(line) = lines.next()? {
        let text = String::from_utf8_lossy(line.trim_ascii());
        if !text.is_empty() && !text.starts_with('%') {
            return Ok(Some(text.into_owned()));
        }
    }
    Ok(None)
}

fn parse(line: &[u8], field: Field, n_genes: u64, n_cells: u64) -> Result<Entry, String> {
    let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let (Some(gene), Some(cell), Some(value), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err("expected three numbers: gene, cell, value".to_owned());
    };
    Ok(Entry {
        gene: place("gene", gene, n_genes)?,
        cell: place("cell", cell, n_cells)?,
        value: number(value, field)?,
        line: 0,
    })
}

/// Converts a number from 1 to `n` to one counted from 0.
fn place(what: &str, word: &[u8], n: u64) -> Result<u32, String> {
    match digits(word) {
        Some(place) if (1..=n).contains(&place) => Ok((place - 1) as u32),
        Some(place) => Err(format!("{what} {place} is not among 1 to {n}")),
        None => Err(format!("{:?} is not the number of a {what}", String::from_utf8_lossy(word))),
    }
}

/// Parses plain digits, which nearly all of a file consists of; the standard parser takes several
/// times as long.
fn digits(word: &[u8]) -> Option<u64> {
    if word.is_empty() || 19 < word.len() {
        return None;
    }
    word.iter().try_fold(0_u64, |sum, digit| {
        digit.is_ascii_digit().then(|| sum * 10 + u64::from(digit - b'0'))
    })
}

/// Parses a value. Whole numbers, however written, are kept exactly or rejected; other real numbers
/// are rounded to the nearest float.
fn number(word: &[u8], field: Field) -> Result<f32, String> {
    let text = String::from_utf8_lossy(word);
    let inexact = || format!("{text} is not exactly representable as a 32-bit float");
    // Nearly all values are small counts.
    if let Some(whole) = digits(word) {
        return exact(whole.into()).ok_or_else(inexact);
    }
    if field == Field::Integer {
        let whole: i128 = text.parse().map_err(|_| format!("{text:?} is not a whole number"))?;
        return exact(whole).ok_or_else(inexact);
    }
    let value = match text.parse::<f32>() {
        Ok(value) if value.is_finite() => value,
        _ => return Err(format!("{text:?} is not a finite number")),
    };
    let is_exact = match decimal_whole(&text) {
        Some(Ok(whole)) => exact(whole).is_some(),
        // More digits than any float has.
        Some(Err(())) => false,
        None => {
            text.parse::<f64>().is_ok_and(|wide| wide.fract() != 0.0 || wide == f64::from(value))
        }
    };
    if is_exact { Ok(value) } else { Err(inexact()) }
}

/// The whole number that a decimal without exponent represents: `None` if it is not whole, `Err` if
/// it is too long.
fn decimal_whole(text: &str) -> Option<Result<i128, ()>> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let is_whole =
        whole.bytes().skip_while(|byte| b"+-".contains(byte)).all(|b| b.is_ascii_digit())
            && fraction.bytes().all(|digit| digit == b'0');
    if !is_whole {
        return None;
    }
    // The integer part before a point may be empty.
    let bare = whole.trim_start_matches(['+', '-']).is_empty();
    Some(if bare { Ok(0) } else { whole.parse().map_err(|_| ()) })
}

/// The float that equals this number exactly, if any: its significant bits must fit into 24.
fn exact(whole: i128) -> Option<f32> {
    let size = whole.unsigned_abs();
    let is_exact = size == 0 || size.ilog2() - size.trailing_zeros() < f32::MANTISSA_DIGITS;
    is_exact.then_some(whole as f32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_exact_or_refused() {
        #[track_caller]
        fn check(word: &str, field: Field, expect: Result<f32, &str>) {
            let found = number(word.as_bytes(), field);
            assert_eq!(found.as_ref().map_err(String::as_str), expect.as_ref().map_err(|e| *e));
        }
        check("0", Field::Integer, Ok(0.0));
        check("16777216", Field::Integer, Ok(16_777_216.0));
        check("-3", Field::Integer, Ok(-3.0));
        check("+3", Field::Integer, Ok(3.0));
        let inexact = "16777217 is not exactly representable as a 32-bit float";
        check("16777217", Field::Integer, Err(inexact));
        // Each of these is rounded once.
        for (word, field) in [
            ("16777217", Field::Real),
            ("16777217.", Field::Real),
            ("-16777217.00", Field::Real),
            ("+16777217", Field::Real),
            ("1.6777217e7", Field::Real),
            ("9007199254740993.0", Field::Real),
            ("+9223372036854775807", Field::Integer),
            ("-9223372036854775807", Field::Integer),
            ("340282366920938463463374607431768211457.0", Field::Real),
            ("1000000000000000000000000000000000000000000", Field::Integer),
        ] {
            let found = number(word.as_bytes(), field);
            assert!(found.is_err(), "{word} became {found:?}");
        }
        check(
            "1.6777217e7",
            Field::Real,
            Err("1.6777217e7 is not exactly representable as a 32-bit float"),
        );
        check("+9223372036854775808", Field::Integer, Ok(9_223_372_036_854_775_808.0));
        check("16777218.000", Field::Real, Ok(16_777_218.0));
        check("-1.6777216E7", Field::Real, Ok(-16_777_216.0));
        check("0.1", Field::Real, Ok(0.1));
        check("16777217.5", Field::Real, Ok(16_777_218.0));
        check(".0", Field::Real, Ok(0.0));
        check(".", Field::Real, Err("\".\" is not a finite number"));
        check("2.5", Field::Integer, Err("\"2.5\" is not a whole number"));
        check("2.5e-1", Field::Real, Ok(0.25));
        check("inf", Field::Real, Err("\"inf\" is not a finite number"));
        check("1e99", Field::Real, Err("\"1e99\" is not a finite number"));
        check("x", Field::Real, Err("\"x\" is not a finite number"));
        check(
            "99999999999999999999",
            Field::Integer,
            Err("99999999999999999999 is not exactly representable as a 32-bit float"),
        );
    }

    #[test]
    fn exact_numbers_are_those_that_come_back() {
        for shift in 0..126 {
            for near in [-2, -1, 0, 1, 2] {
                let whole = (1_i128 << shift) + near;
                let value = whole as f32;
                assert_eq!(exact(whole), (value as i128 == whole).then_some(value), "{whole}");
                assert_eq!(exact(-whole), exact(whole).map(|value| -value), "{whole}");
            }
        }
        assert_eq!(exact(i128::MAX), None);
        assert_eq!(exact(i128::MIN), Some(i128::MIN as f32));
    }

    #[test]
    fn places_count_from_one() {
        assert_eq!(place("gene", b"1", 5), Ok(0));
        assert_eq!(place("gene", b"5", 5), Ok(4));
        assert_eq!(place("gene", b"0", 5), Err("gene 0 is not among 1 to 5".to_owned()));
        assert_eq!(place("cell", b"6", 5), Err("cell 6 is not among 1 to 5".to_owned()));
        assert_eq!(place("cell", b"-1", 5), Err("\"-1\" is not the number of a cell".to_owned()));
    }
}
