//! A MatrixMarket file of genes by cells, entry by entry.

use std::path::Path;

use super::lines::Lines;
use crate::Error;

/// A value with its place, counted from 0, and its line.
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
    /// The number of entries that the header promises.
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

    /// The next entry; `None` after as many as the header promises.
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
            "the file ends after {} of {} entries: is it cut off?",
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

/// A number from 1 to `n` as one from 0.
fn place(what: &str, word: &[u8], n: u64) -> Result<u32, String> {
    match digits(word) {
        Some(place) if (1..=n).contains(&place) => Ok((place - 1) as u32),
        Some(place) => Err(format!("{what} {place} is not among 1 to {n}")),
        None => Err(format!("{:?} is not the number of a {what}", String::from_utf8_lossy(word))),
    }
}

/// Decimal digits alone: nothing else stands in nearly all of a file, and a standard parse takes several times as long.
fn digits(word: &[u8]) -> Option<u64> {
    if word.is_empty() || 19 < word.len() {
        return None;
    }
    word.iter().try_fold(0_u64, |sum, digit| {
        digit.is_ascii_digit().then(|| sum * 10 + u64::from(digit - b'0'))
    })
}

fn number(word: &[u8], field: Field) -> Result<f32, String> {
    let text = || String::from_utf8_lossy(word);
    let wrong = |wanted: &str| format!("{:?} is not {wanted}", text());
    if let Some(whole) = digits(word) {
        let value = whole as f32;
        if field == Field::Integer && value as u64 != whole {
            return Err(format!("{whole} cannot be held exactly by a 32-bit float"));
        }
        return Ok(value);
    }
    match field {
        Field::Integer => {
            let whole: i64 = text().parse().map_err(|_| wrong("a whole number"))?;
            if whole as f32 as i64 == whole {
                Ok(whole as f32)
            } else {
                Err(format!("{whole} cannot be held exactly by a 32-bit float"))
            }
        }
        Field::Real => match text().parse::<f32>() {
            Ok(value) if value.is_finite() => Ok(value),
            _ => Err(wrong("a finite number")),
        },
    }
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
        let inexact = "16777217 cannot be held exactly by a 32-bit float";
        check("16777217", Field::Integer, Err(inexact));
        check("16777217", Field::Real, Ok(16_777_216.0));
        check("2.5", Field::Integer, Err("\"2.5\" is not a whole number"));
        check("2.5e-1", Field::Real, Ok(0.25));
        check("inf", Field::Real, Err("\"inf\" is not a finite number"));
        check("1e99", Field::Real, Err("\"1e99\" is not a finite number"));
        check("x", Field::Real, Err("\"x\" is not a finite number"));
        check(
            "99999999999999999999",
            Field::Integer,
            Err("\"99999999999999999999\" is not a whole number"),
        );
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
