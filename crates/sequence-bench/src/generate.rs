//! Files of random sequences, from a seed.
//!
//! [`generate()`] writes what the generator of [Dragon's Doc2Vec example] writes: half DNA, half
//! RNA, uniform letters, in the same number of lines of the same lengths with the same names
//! ([`DragonLines`]). Unlike there, the letters depend on a seed, and several threads make them. It
//! can also plant families: copies of random ancestors with a share of their letters exchanged
//! ([`Families`]), so that a model can show whether it finds relatives.
//!
//! The bytes of a file depend on the specification alone: each sequence has random numbers of its
//! own, and what is compressed is cut into parts of a fixed number of sequences.
//!
//! [Dragon's Doc2Vec example]: https://github.com/DragonHPC/dragon/tree/main/examples/dragon_ai/dna_rna_dataloader

mod compression;
mod families;
mod lines;
mod ordered;
mod random;
mod write;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use sequences::RecordFormat;
use storage::{Destination, Existing};

use crate::Error;
pub use compression::Compression;
pub use families::Families;
pub use lines::DragonLines;
use write::{Content, write_parts};

/// What a generated file contains.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    /// Random DNA and RNA, in the lines of Dragon's generator.
    Dragon(DragonLines),
    /// Families of mutated copies.
    Families(Families),
}

/// Specifies a file to generate.
#[derive(Debug, Clone)]
pub struct GenerateSpec {
    /// Which sequences are written.
    pub kind: Kind,
    /// How they are written.
    pub format: RecordFormat,
    /// How the file is compressed.
    pub compression: Compression,
    /// Seed of the letters.
    pub seed: u64,
    /// Threads that make and compress sequences; 0 for one per processor. The file does not depend
    /// on their number.
    pub n_threads: usize,
    /// Ends the run with [`Error::Interrupted`] soon after this is set.
    pub interrupted: Option<&'static AtomicBool>,
}

impl GenerateSpec {
    /// Specifies a file of lines that is not compressed, with seed 0.
    pub fn new(kind: Kind) -> Self {
        Self {
            kind,
            format: RecordFormat::Lines,
            compression: Compression::None,
            seed: 0,
            n_threads: 0,
            interrupted: None,
        }
    }
}

/// The result of [`generate()`].
#[derive(Debug, Clone, PartialEq)]
pub struct GenerateReport {
    /// Number of sequences.
    pub n_sequences: u64,
    /// Number of their letters.
    pub n_letters: u64,
    /// Size of the file in bytes.
    pub n_bytes: u64,
    /// Duration in seconds.
    pub seconds: f64,
    /// A killed run's leftover that was removed.
    pub leftover: Option<PathBuf>,
}

/// Generates a file, which does not exist yet. It appears when it is complete.
///
/// Each thread needs memory for two parts of 4,096 sequences. `progress` is called with the number
/// of sequences written so far.
///
/// # Errors
/// A setting is invalid, something exists at `file`, writing fails, or the run is interrupted.
pub fn generate(
    file: &Path,
    spec: &GenerateSpec,
    progress: &mut dyn FnMut(u64),
) -> Result<GenerateReport, Error> {
    let started = Instant::now();
    let content = Content::new(&spec.kind, spec.seed)?;
    let destination = Destination::claim(&file.to_string_lossy(), Existing::Keep, &[])?;
    let leftover = destination.leftover().map(Into::into);
    let path = Path::new(destination.uri());
    let failed = |error: std::io::Error| Error::write(file, error);
    let mut written = File::create_new(path).map_err(failed)?;
    let n_letters = write_parts(&content, spec, (&mut written, file), progress)?;
    drop(written);
    let n_bytes = destination.publish()?.unwrap_or_default();
    let seconds = started.elapsed().as_secs_f64();
    let n_sequences = content.n_sequences();
    Ok(GenerateReport { n_sequences, n_letters, n_bytes, seconds, leftover })
}
