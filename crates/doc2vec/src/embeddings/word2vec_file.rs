//! word2vec's text and binary files, which gensim's `KeyedVectors.load_word2vec_format` opens.
//!
//! Both begin with a line of the number of vectors and their dimension. In text a vector is a line:
//! its name and its numbers, separated by spaces. In binary it is its name, a space, its numbers as
//! little-endian 32-bit floats, and a newline, which readers skip. The format has no other
//! definition than the programs word2vec and gensim.

use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, Write};
use std::path::Path;
use std::str::FromStr;

use super::NamedVectors;
use super::whole_file::write_whole;
use crate::error::Error;

impl NamedVectors {
    /// Writes word2vec's text form. Numbers have as many digits as reading them back exactly needs.
    ///
    /// # Errors
    /// - [`Error::Name`]: a name is empty or has white space.
    /// - [`Error::Write`]: the file cannot be written.
    pub fn write_word2vec_text(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        self.write_word2vec(path.as_ref(), |writer, vector| {
            // `Debug` writes tiny numbers with an exponent.
            vector.iter().try_for_each(|value| write!(writer, " {value:?}"))
        })
    }

    /// Writes word2vec's binary form.
    ///
    /// # Errors
    /// Those of [`write_word2vec_text`](Self::write_word2vec_text).
    pub fn write_word2vec_binary(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        self.write_word2vec(path.as_ref(), |writer, vector| {
            writer.write_all(b" ")?;
            vector.iter().try_for_each(|value| writer.write_all(&value.to_le_bytes()))
        })
    }

    fn write_word2vec(
        &self,
        path: &Path,
        write_vector: impl Fn(&mut dyn Write, &[f32]) -> io::Result<()>,
    ) -> Result<(), Error> {
        check_word2vec_names(&self.names)?;
        write_whole(path, |writer| {
            let mut write = || {
                writeln!(writer, "{} {}", self.len(), self.dimension)?;
                for (name, vector) in self.names.iter().zip(self.vectors()) {
                    writer.write_all(name.as_bytes())?;
                    write_vector(writer, vector)?;
                    writer.write_all(b"\n")?;
                }
                Ok(())
            };
            write().map_err(Error::write(path))
        })
    }

    /// Reads word2vec's text form.
    ///
    /// # Errors
    /// - [`Error::Read`]: the file cannot be read.
    /// - [`Error::Format`]: a line is not as expected, or lines are missing or surplus.
    /// - [`Error::NotFinite`]: a number is infinite or not a number.
    pub fn read_word2vec_text(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let mut lines = BufReader::new(File::open(path).map_err(Error::read(path))?).lines();
        let header = lines.next().transpose().map_err(Error::read(path))?.unwrap_or_default();
        let wrong = |line: usize, problem: String| Error::Format {
            path: path.to_owned(),
            place: format!("line {line}"),
            problem,
        };
        let Header { n_vectors, dimension } =
            parse_header(header.as_bytes()).map_err(|problem| wrong(1, problem))?;
        let (mut names, mut values) = (Vec::new(), Vec::new());
        for (idx, line) in lines.enumerate() {
            let line = line.map_err(Error::read(path))?;
            if names.len() == n_vectors {
                return Err(wrong(
                    idx + 2,
                    format!("the header announces {n_vectors} vectors only"),
                ));
            }
            let name = parse_line(&line, dimension, &mut values)
                .map_err(|problem| wrong(idx + 2, problem))?;
            names.push(name);
        }
        if names.len() < n_vectors {
            let problem = format!("the file ends here, of {n_vectors} vectors");
            return Err(wrong(names.len() + 2, problem));
        }
        Self::new(names, values, dimension)
    }

    /// Reads word2vec's binary form.
    ///
    /// # Errors
    /// Those of [`read_word2vec_text`](Self::read_word2vec_text).
    pub fn read_word2vec_binary(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let bytes = fs::read(path).map_err(Error::read(path))?;
        let wrong = |place: String, problem: String| Error::Format {
            path: path.to_owned(),
            place,
            problem,
        };
        let (header, mut rest) = split_at(&bytes, b'\n')
            .ok_or_else(|| wrong("line 1".to_owned(), "it does not end".to_owned()))?;
        let Header { n_vectors, dimension } =
            parse_header(header).map_err(|problem| wrong("line 1".to_owned(), problem))?;
        let (mut names, mut values) = (Vec::new(), Vec::new());
        for row in 0..n_vectors {
            let vector = parse_vector(rest, dimension, &mut values);
            let (name, after) =
                vector.map_err(|problem| wrong(format!("vector {row}"), problem))?;
            names.push(name);
            rest = after;
        }
        if !rest.trim_ascii().is_empty() {
            let problem = format!("{} bytes follow the last of {n_vectors} vectors", rest.len());
            return Err(wrong("the end".to_owned(), problem));
        }
        Self::new(names, values, dimension)
    }

    fn vectors(&self) -> impl Iterator<Item = &[f32]> {
        self.values.chunks_exact(self.dimension)
    }
}

/// Fails if a name cannot be written in word2vec's forms: to be called before training.
///
/// # Errors
/// [`Error::Name`]: a name is empty or has white space.
pub fn check_word2vec_names(names: &[String]) -> Result<(), Error> {
    let is_wrong = |name: &String| name.is_empty() || name.contains(char::is_whitespace);
    match names.iter().position(is_wrong) {
        None => Ok(()),
        Some(row) => Err(Error::Name { row, name: names[row].clone() }),
    }
}

/// The first line.
struct Header {
    n_vectors: usize,
    dimension: usize,
}

fn parse_header(line: &[u8]) -> Result<Header, String> {
    let text = String::from_utf8_lossy(line);
    let mut numbers = text.split_ascii_whitespace().map(usize::from_str);
    match (numbers.next(), numbers.next(), numbers.next()) {
        (Some(Ok(n_vectors)), Some(Ok(dimension)), None) if 0 < dimension => {
            Ok(Header { n_vectors, dimension })
        }
        _ => Err(format!("{text:?} is not a number of vectors and their dimension")),
    }
}

/// The name of a line of text; adds its numbers to `values`.
fn parse_line(line: &str, dimension: usize, values: &mut Vec<f32>) -> Result<String, String> {
    let mut fields = line.split_ascii_whitespace();
    let name = fields.next().ok_or("the line is empty")?;
    let n_before = values.len();
    for field in fields {
        let value = field.parse().map_err(|_| format!("{field:?} of {name:?} is not a number"))?;
        values.push(value);
    }
    let n_numbers = values.len() - n_before;
    if n_numbers != dimension {
        return Err(format!("{name:?} has {n_numbers} numbers instead of {dimension}"));
    }
    Ok(name.to_owned())
}

/// The name of a binary vector and the bytes after it; adds its numbers to `values`.
fn parse_vector<'a>(
    bytes: &'a [u8],
    dimension: usize,
    values: &mut Vec<f32>,
) -> Result<(String, &'a [u8]), String> {
    let bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
    let (name, rest) = split_at(bytes, b' ').ok_or("the file ends before or in its name")?;
    let name = std::str::from_utf8(name).map_err(|_| "its name is not UTF-8")?;
    let n_bytes = dimension.checked_mul(4).filter(|n_bytes| *n_bytes <= rest.len());
    let Some((numbers, rest)) = n_bytes.map(|n_bytes| rest.split_at(n_bytes)) else {
        return Err(format!("the file ends within the {dimension} numbers of {name:?}"));
    };
    values.extend(numbers.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)));
    Ok((name.to_owned(), rest))
}

/// The bytes before and after the first `at`.
fn split_at(bytes: &[u8], at: u8) -> Option<(&[u8], &[u8])> {
    let place = bytes.iter().position(|byte| *byte == at)?;
    Some((&bytes[..place], &bytes[place + 1..]))
}
