//! The settings, events and report of a relayout.

use std::path::{Path, PathBuf};

use soma_io::{Config, Existing, Extent, ReaderChoice};

use crate::codec::{CodecChoice, Codecs, MeasuredCodecs};
use crate::{Error, ReadSpeed};

/// How to lay out an experiment. The default takes `RNA` and its layer `raw`, for chunks of 64
/// cells, in the source's order.
#[derive(Debug, Clone, PartialEq)]
pub struct RelayoutSpec {
    /// The measurement of the new experiment, for example `RNA`.
    pub measurement: String,
    /// The layer of X to write, for example `raw`. It is written as 32-bit floats; a value that
    /// these do not have is an error.
    pub layer: String,
    /// Rows that training will read together.
    pub chunk_rows: u64,
    /// How X is compressed.
    pub codec: CodecChoice,
    /// Seed of a uniformly random order of all cells; `None` keeps the source's order.
    pub shuffle_seed: Option<u64>,
    /// The column of obs, and of var, for the source's joinids if they differ from the new ones.
    pub joinid_column: String,
    /// The reader of X.
    pub reader: ReaderChoice,
    /// Memory for rows on their way, in bytes. Not included: 8 bytes per cell that is shuffled, and
    /// the reader's own memory.
    pub memory_bytes: u64,
    /// A local folder for temporary files: the sample, and at most 8 bytes for each value that is
    /// shuffled. `None` means beside the new experiment, which must then be local.
    pub temporary: Option<PathBuf>,
    /// How to treat an existing experiment at the destination.
    pub existing: Existing,
    /// How arrays record their extent.
    pub extent: Extent,
    /// TileDB's parameters for writing.
    pub config: Config,
}

impl Default for RelayoutSpec {
    fn default() -> Self {
        Self {
            measurement: "RNA".to_owned(),
            layer: "raw".to_owned(),
            chunk_rows: 64,
            codec: CodecChoice::Measured { storage_bytes_per_second: 2e9 },
            shuffle_seed: None,
            joinid_column: "source_joinid".to_owned(),
            reader: ReaderChoice::Auto,
            memory_bytes: 1 << 30,
            temporary: None,
            existing: Existing::Keep,
            extent: Extent::CurrentDomain,
            config: Config::new(),
        }
    }
}

const LEAST_MEMORY: u64 = 4 << 20;
const MOST_CHUNK_ROWS: u64 = 1 << 20;

impl RelayoutSpec {
    pub(crate) fn check(&self) -> Result<(), Error> {
        let sizes = [
            ("the number of rows of a chunk", self.chunk_rows, 1, MOST_CHUNK_ROWS),
            ("the memory in bytes", self.memory_bytes, LEAST_MEMORY, u64::MAX),
        ];
        for (what, value, least, most) in sizes {
            if !(least..=most).contains(&value) {
                return Err(Error::Size { what, value, least, most });
            }
        }
        match self.codec {
            CodecChoice::Measured { storage_bytes_per_second: rate }
                if rate.is_nan() || rate < 1.0 =>
            {
                let what = "the bytes in a second of the storage";
                Err(Error::Size { what, value: 0, least: 1, most: u64::MAX })
            }
            _ => Ok(()),
        }
    }

    /// About how many values a piece of rows has. Three pieces circulate at 8 bytes a value; one of
    /// them needs twice that while it is read. Writing takes 12 bytes a value for the piece and 20
    /// for the cells passed on, up to 4 Mi values, plus libtiledb's own copies of both.
    pub(crate) fn piece_values(&self) -> u64 {
        (self.memory_bytes / 4 / 48).clamp(1, 4 << 20)
    }

    /// Bytes of a bucket, which must fit into memory as a whole.
    pub(crate) fn bucket_bytes(&self) -> u64 {
        self.memory_bytes / 4
    }

    /// Rows of obs that are reordered together. Twice as many are in memory, beside pieces and
    /// bucket buffers; a row is assumed to take less than a kilobyte.
    pub(crate) fn obs_rows(&self) -> usize {
        (self.memory_bytes / 4 / 1024) as usize
    }
}

/// A step of a relayout.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum RelayoutEvent<'a> {
    /// A killed run left this folder, which was removed now.
    Leftover(&'a Path),
    /// The source is open.
    Opened {
        /// The number of cells.
        n_cells: u64,
        /// The number of genes.
        n_genes: u64,
        /// The reader of X.
        reader: &'a str,
        /// Why libtiledb reads it, if the choice was automatic.
        why_not_native: Option<&'a str>,
    },
    /// The codecs are chosen.
    Chosen(Codecs),
    /// The chosen codecs keep only whole numbers, and the data have others: writing starts again
    /// with the next best.
    NotWhole(Codecs),
    /// Rows were scattered to temporary files.
    Scattered {
        /// Number of rows so far.
        n_rows: u64,
        /// Written to the files so far; other rows wait in memory.
        spilled: Spilled,
    },
    /// Values were checked before writing to an object store, where writing cannot start over.
    Checked {
        /// Number of rows so far.
        n_rows: u64,
    },
    /// Rows were written.
    Written {
        /// Number of rows so far.
        n_rows: u64,
    },
    /// Everything is written; now it is compared with the source, and both are timed.
    Measuring,
}

/// Rows that waited for their places in temporary files because they did not fit into memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Spilled {
    /// Number of files.
    pub n_files: u64,
    /// Number of writes to these files.
    pub n_writes: u64,
    /// Bytes of all files.
    pub n_bytes: u64,
}

/// The result of a relayout.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct RelayoutReport {
    /// Number of cells.
    pub n_cells: u64,
    /// Number of genes.
    pub n_genes: u64,
    /// Number of values.
    pub nnz: u64,
    /// Rows of X that went through temporary files in the successful attempt; zero unless rows were
    /// shuffled.
    pub spilled: Spilled,
    /// Number of passes over obs: one, unless it was shuffled in parts.
    pub obs_passes: u64,
    /// How X is compressed.
    pub codecs: Codecs,
    /// Measurements behind the choice of codecs, the best first; empty if they were named.
    pub measured: Vec<MeasuredCodecs>,
    /// The size of the source's X in bytes, if it is in a local folder of its own.
    pub source_x_bytes: Option<u64>,
    /// The size of the new X in bytes, if it is local.
    pub x_bytes: Option<u64>,
    /// The size of all files in bytes, if the new experiment is local.
    pub bytes_on_disk: Option<u64>,
    /// Read speed of the source.
    pub before: ReadSpeed,
    /// Read speed of the new X.
    pub after: ReadSpeed,
    /// Seconds from the choice of a codec to the last byte.
    pub seconds: f64,
    /// Seconds of these spent comparing the new experiment with the source and timing both.
    pub measuring_seconds: f64,
}

impl RelayoutReport {
    /// Number of epochs over all cells in chunks after which the faster reads have saved the time
    /// of the relayout. `None` if reads are not faster.
    pub fn epochs_until_paid(&self) -> Option<f64> {
        let n_cells = self.n_cells as f64;
        let saved = n_cells / self.before.chunk_rows_per_second
            - n_cells / self.after.chunk_rows_per_second;
        (saved > 0.0).then(|| (self.seconds - self.measuring_seconds) / saved)
    }
}
