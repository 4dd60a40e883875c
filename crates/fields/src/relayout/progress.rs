//! The record of the parts that are written wholly, beside the data, for a run that goes on after
//! a kill.
//!
//! Each line names an array, the shape of its regions, and the number of blocks that are on disk. A
//! line counts once its end is there. With regions of another shape (from another amount of memory)
//! blocks are others, so an unfinished array begins anew; a finished one stays.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use super::target::write_error;
use crate::Error;

/// The number of blocks that stands for all.
const ALL: &str = "all";

/// What earlier runs have written, and the file that says so.
#[derive(Debug)]
pub(crate) struct Progress {
    path: PathBuf,
    file: File,
    known: HashMap<String, Known>,
}

#[derive(Debug, Default)]
struct Known {
    region: String,
    n_blocks: u64,
    is_finished: bool,
}

impl Progress {
    /// Reads the record at `path`, which may not exist yet, to continue it.
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(Error::bad_file(path, error)),
        };
        let whole = text.rfind('\n').map_or("", |end| &text[..=end]);
        let mut known: HashMap<String, Known> = HashMap::new();
        for line in whole.lines() {
            let [name, region, n_blocks] = line.split('\t').collect::<Vec<_>>()[..] else {
                continue;
            };
            let of_array = known.entry(name.to_owned()).or_default();
            if n_blocks == ALL {
                of_array.is_finished = true;
            } else if let Ok(n_blocks) = n_blocks.parse() {
                *of_array = Known { region: region.to_owned(), n_blocks, ..Known::default() };
            }
        }
        let open = || {
            let mut file = OpenOptions::new().create(true).append(true).open(path)?;
            if whole.len() < text.len() {
                // Makes the line that a kill has cut none of ours.
                file.write_all(b"\tcut\n")?;
            }
            Ok(file)
        };
        let file = open().map_err(|error: io::Error| write_error(path, error))?;
        Ok(Self { path: path.to_owned(), file, known })
    }

    /// Whether an array is written.
    pub(crate) fn is_finished(&self, name: &str) -> bool {
        self.known.get(name).is_some_and(|of_array| of_array.is_finished)
    }

    /// The number of blocks of an array that are written, if its regions have this shape.
    pub(crate) fn n_blocks(&self, name: &str, region: &[u64]) -> u64 {
        let of_array = self.known.get(name).filter(|of| of.region == format!("{region:?}"));
        of_array.map_or(0, |of_array| of_array.n_blocks)
    }

    /// Notes that as many blocks are written.
    pub(crate) fn note(&mut self, name: &str, region: &[u64], n_blocks: u64) -> Result<(), Error> {
        self.line(&format!("{name}\t{region:?}\t{n_blocks}\n"))
    }

    /// Notes that an array is written.
    pub(crate) fn note_finished(&mut self, name: &str) -> Result<(), Error> {
        self.line(&format!("{name}\t\t{ALL}\n"))
    }

    fn line(&mut self, text: &str) -> Result<(), Error> {
        self.file.write_all(text.as_bytes()).map_err(|error| write_error(&self.path, error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_count_once_they_are_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("progress");
        let mut progress = Progress::open(&path).unwrap();
        assert!(!progress.is_finished("a"));
        progress.note("a", &[1, 2], 1).unwrap();
        progress.note("a", &[1, 2], 2).unwrap();
        progress.note_finished("b").unwrap();
        fs::write(&path, [&fs::read(&path).unwrap()[..], b"a\t[1, 2]\t7"].concat()).unwrap();
        let mut again = Progress::open(&path).unwrap();
        assert_eq!((again.n_blocks("a", &[1, 2]), again.n_blocks("a", &[2, 2])), (2, 0));
        assert!(again.is_finished("b") && !again.is_finished("a"));
        again.note("a", &[2, 2], 1).unwrap();
        // What was cut is never whole later.
        let last = Progress::open(&path).unwrap();
        assert_eq!((last.n_blocks("a", &[1, 2]), last.n_blocks("a", &[2, 2])), (0, 1));
    }
}
