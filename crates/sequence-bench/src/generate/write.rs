//! Writes the sequences of a file, in parts.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;

use bench_run::check_interrupted;
use sequences::{Record, write_record};

use super::ordered::in_order;
use super::random::{Decision, FourLetters, generator};
use super::{GenerateSpec, Kind};
use crate::Error;

/// Sequences of a part, which a thread makes and compresses by itself.
const PART: u64 = 4096;

/// Letters of a part at most: parts of long sequences have fewer.
const PART_LETTERS: u64 = 1 << 23;

/// The sequences of a file.
#[derive(Debug)]
pub(super) struct Content<'a> {
    kind: &'a Kind,
    seed: u64,
}

impl<'a> Content<'a> {
    /// Checks the settings.
    pub(super) fn new(kind: &'a Kind, seed: u64) -> Result<Self, Error> {
        match kind {
            Kind::Dragon(lines) if lines.n_lines() == 0 => {
                return Err(Error::settings("a size of less than 2 bytes has no sequences"));
            }
            Kind::Dragon(_) => {}
            Kind::Families(families) => families.check()?,
        }
        Ok(Self { kind, seed })
    }

    pub(super) fn n_sequences(&self) -> u64 {
        match self.kind {
            Kind::Dragon(lines) => lines.n_lines(),
            Kind::Families(families) => families.n_sequences(),
        }
    }

    /// Sequences of a part.
    fn part_sequences(&self) -> u64 {
        let longest = match self.kind {
            Kind::Dragon(lines) => lines.n_letters(0),
            Kind::Families(families) => families.n_letters as u64,
        };
        PART.min(PART_LETTERS / longest.max(1)).max(1)
    }

    /// Makes the letters of a sequence; returns its name.
    fn sequence(&self, idx: u64, letters: &mut Vec<u8>) -> String {
        match self.kind {
            Kind::Families(families) => families.sequence(self.seed, idx, letters),
            Kind::Dragon(lines) => {
                letters.clear();
                let alphabet = if lines.is_rna(idx) { FourLetters::RNA } else { FourLetters::DNA };
                let mut random = generator(self.seed, Decision::Letters(idx));
                alphabet.fill(&mut random, lines.n_letters(idx) as usize, letters);
                format!("design_id_{}", idx + 1)
            }
        }
    }
}

/// A part of the file.
struct Part {
    bytes: Vec<u8>,
    n_letters: u64,
}

/// Writes all sequences to `file`, which errors name by its path. Returns the number of letters.
/// Calls `progress` with the number of sequences written so far.
pub(super) fn write_parts(
    content: &Content<'_>,
    spec: &GenerateSpec,
    (file, path): (&mut File, &Path),
    progress: &mut dyn FnMut(u64),
) -> Result<u64, Error> {
    let (n, step) = (content.n_sequences(), content.part_sequences());
    let failed = |error: std::io::Error| Error::write(path, error);
    let make = |part: u64| {
        check_interrupted(spec.interrupted)?;
        let (mut bytes, mut letters, mut n_letters) = (Vec::new(), Vec::new(), 0);
        for idx in part * step..n.min((part + 1) * step) {
            let name = content.sequence(idx, &mut letters);
            n_letters += letters.len() as u64;
            let record = Record { letters: &letters, name: name.as_bytes() };
            write_record(&mut bytes, spec.format, &record).map_err(failed)?;
        }
        Ok(Part { bytes: spec.compression.part(bytes)?, n_letters })
    };
    let mut n_letters = 0;
    let take = &mut |part: u64, made: Part| {
        file.write_all(&made.bytes).map_err(failed)?;
        n_letters += made.n_letters;
        progress(n.min((part + 1) * step));
        Ok(())
    };
    in_order(n.div_ceil(step), spec.n_threads, make, take)?;
    file.write_all(&spec.compression.end()?).map_err(failed)?;
    Ok(n_letters)
}
