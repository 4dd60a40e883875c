//! What can be asked for, what is told on the way, and what it came to.

use std::path::{Path, PathBuf};

use soma_io::{Config, Existing, Extent, ReaderChoice};

use crate::codec::{CodecChoice, Codecs, MeasuredCodecs};
use crate::{Error, ReadSpeed};

/// How an experiment is laid out anew. The default is its `RNA` with the layer `raw`, for chunks of 64 cells, in the order of the source.
#[derive(Debug, Clone, PartialEq)]
pub struct RelayoutSpec {
    /// The measurement that the new experiment has, as `RNA`.
    pub measurement: String,
    /// The layer of X that it has, as `raw`; its values must be of a type that 32-bit floats hold exactly.
    pub layer: String,
    /// The rows that training will read together.
    pub chunk_rows: u64,
    /// How X is compressed.
    pub codec: CodecChoice,
    /// Puts all cells into the random order of this seed, each order as likely.
    pub shuffle_seed: Option<u64>,
    /// The column of obs, and of var, that keeps the joinids of the source where they differ from the new ones.
    pub joinid_column: String,
    /// What reads X.
    pub reader: ReaderChoice,
    /// How much memory rows on their way may take, in bytes. Beside it there are 8 bytes for each cell that is shuffled, and what the
    /// reader keeps.
    pub memory_bytes: u64,
    /// A local folder for what is needed for a while: the sample, and at most 8 bytes for each value that is shuffled. Beside the new experiment
    /// unless that is not local.
    pub temporary: Option<PathBuf>,
    /// What becomes of an experiment that is where the new one goes.
    pub existing: Existing,
    /// How arrays say how large they are.
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

    /// Values that a piece on its way has, about. Three pieces go round at 8 bytes a value, one of them grows by as much while it is
    /// read, and writing takes 12 for what is held and 20 for what is handed over, up to 4 Mi values, and libtiledb's own of both.
    pub(crate) fn piece_values(&self) -> u64 {
        (self.memory_bytes / 4 / 48).clamp(1, 4 << 20)
    }

    /// Bytes of a bucket: it is in memory as a whole.
    pub(crate) fn bucket_bytes(&self) -> u64 {
        self.memory_bytes / 4
    }

    /// Rows of obs that are put in order together: twice as many are in memory, beside pieces and buckets' buffers, and are believed to take
    /// less than a kilobyte each.
    pub(crate) fn obs_rows(&self) -> usize {
        (self.memory_bytes / 4 / 1024) as usize
    }
}

/// What a relayout is doing.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum RelayoutEvent<'a> {
    /// A run that was killed had left something here, which is gone now.
    Leftover(&'a Path),
    /// The source is known.
    Opened {
        /// The number of cells.
        n_cells: u64,
        /// The number of genes.
        n_genes: u64,
        /// What reads X.
        reader: &'a str,
        /// Why that is libtiledb, where that was left to choose.
        why_not_native: Option<&'a str>,
    },
    /// The codecs are chosen.
    Chosen(Codecs),
    /// The chosen codecs keep whole numbers only, and there are others: writing starts again with the next best.
    NotWhole(Codecs),
    /// Rows were scattered to temporary files.
    Scattered {
        /// The number of rows so far.
        n_rows: u64,
        /// What was written to the files so far; the rest waits in memory.
        spilled: Spilled,
    },
    /// Values were checked before anything is written to an object store, where writing cannot
    /// start again.
    Checked {
        /// The number of rows so far.
        n_rows: u64,
    },
    /// So many rows are written.
    Written {
        /// The number of rows.
        n_rows: u64,
    },
    /// All is written, and is read to compare.
    Measuring,
}

/// Rows that waited in temporary files for their places, because they did not fit into memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Spilled {
    /// Number of files.
    pub n_files: u64,
    /// Number of times that one of them was written to.
    pub n_writes: u64,
    /// Bytes of all files.
    pub n_bytes: u64,
}

/// What it came to.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct RelayoutReport {
    /// The number of cells.
    pub n_cells: u64,
    /// The number of genes.
    pub n_genes: u64,
    /// The number of values.
    pub nnz: u64,
    /// Rows of X that went through temporary files, in the attempt that succeeded; nothing unless
    /// they were shuffled.
    pub spilled: Spilled,
    /// Number of times that obs was read as a whole; once unless it was shuffled in parts.
    pub obs_passes: u64,
    /// How X is compressed.
    pub codecs: Codecs,
    /// What was measured to choose that, the best first; empty where it was named.
    pub measured: Vec<MeasuredCodecs>,
    /// The size of the source's X, where it is local.
    pub source_x_bytes: Option<u64>,
    /// The size of the new X, where it is local.
    pub x_bytes: Option<u64>,
    /// The size of all files, where the new experiment is local.
    pub bytes_on_disk: Option<u64>,
    /// How quickly the source is read.
    pub before: ReadSpeed,
    /// How quickly the new X is read.
    pub after: ReadSpeed,
    /// How long it took, from the choice of a codec to the last byte.
    pub seconds: f64,
    /// Of that, how long reading to compare took.
    pub measuring_seconds: f64,
}

impl RelayoutReport {
    /// How many epochs over all cells in chunks, read alone, are quicker by as much as the rewriting took; `None` where they are not quicker.
    pub fn epochs_until_paid(&self) -> Option<f64> {
        let n_cells = self.n_cells as f64;
        let saved = n_cells / self.before.chunk_rows_per_second
            - n_cells / self.after.chunk_rows_per_second;
        (saved > 0.0).then(|| (self.seconds - self.measuring_seconds) / saved)
    }
}
