//! The settings, events and report of a relayout.

use std::fmt;
use std::path::Path;
use std::str::FromStr;
use std::sync::atomic::AtomicBool;

use arrays::{ElementType, Indices, Label};

use crate::Error;
use crate::generate::Codec;

/// How to lay out a store of fields anew.
#[derive(Debug, Clone)]
pub struct RelayoutSpec {
    /// The variables to copy, with the coordinates of their dimensions and what their attributes
    /// name; `None` for all arrays.
    pub variables: Option<Vec<String>>,
    /// Indices of dimensions, in the order of the target.
    pub isel: Vec<(String, Indices)>,
    /// Coordinates of dimensions, in the order of the target; each equals one exactly.
    pub sel: Vec<(String, Vec<Label>)>,
    /// Lengths of chunks along dimensions. The others keep those of the source.
    pub chunks: Vec<(String, Length)>,
    /// Lengths of shards along dimensions, whole chunks; along the others a shard has one chunk.
    /// None at all for no shards.
    pub shards: Vec<(String, Length)>,
    /// The compression of chunks.
    pub codec: Codec,
    /// Smaller types for floating point numbers: of a variable by its name, or of all others.
    pub dtype: Vec<(Option<String>, StoredAs)>,
    /// Memory for chunks on their way, in bytes.
    pub memory_bytes: u64,
    /// Threads that read and write; 0 for one per processor, fewer where memory is short. The
    /// target does not depend on their number.
    pub n_threads: usize,
    /// Ends the run with [`Error::Interrupted`] soon after this is set.
    pub interrupted: Option<&'static AtomicBool>,
}

impl Default for RelayoutSpec {
    fn default() -> Self {
        Self {
            variables: None,
            isel: Vec::new(),
            sel: Vec::new(),
            chunks: Vec::new(),
            shards: Vec::new(),
            codec: Codec::Blosc(5),
            dtype: Vec::new(),
            memory_bytes: 1 << 30,
            n_threads: 0,
            interrupted: None,
        }
    }
}

impl RelayoutSpec {
    /// Fails if a setting is out of range.
    pub(crate) fn check(&self) -> Result<(), Error> {
        self.codec.check()
    }

    /// The settings that the target depends on, as text.
    pub(crate) fn task(&self) -> String {
        let Self { variables, isel, sel, chunks, shards, codec, dtype, .. } = self;
        format!("{variables:?} {isel:?} {sel:?} {chunks:?} {shards:?} {codec} {dtype:?}")
    }
}

/// A length along a dimension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Length {
    /// The whole dimension.
    All,
    /// A number of indices.
    Indices(u64),
}

impl FromStr for Length {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse() {
            Ok(n) if 0 < n => Ok(Self::Indices(n)),
            _ if text == "all" => Ok(Self::All),
            _ => Err(format!("{text:?} is no length: a number from 1 or `all` is expected")),
        }
    }
}

impl Length {
    pub(crate) fn of(self, len: u64) -> u64 {
        match self {
            Self::All => len.max(1),
            Self::Indices(n) => n,
        }
    }
}

/// The type in which floating point numbers are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoredAs {
    /// The source's.
    Source,
    /// This one, if it is smaller than the source's.
    Element(ElementType),
}

impl FromStr for StoredAs {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "float16" => Ok(Self::Element(ElementType::F16)),
            "float32" => Ok(Self::Element(ElementType::F32)),
            "source" => Ok(Self::Source),
            _ => Err(format!("{text:?} is no type: float16, float32 or source is expected")),
        }
    }
}

impl fmt::Display for StoredAs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Source => f.write_str("source"),
            Self::Element(element) => write!(f, "{element}"),
        }
    }
}

/// A step of a relayout.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum RelayoutEvent<'a> {
    /// A killed run's leftover, of which nothing could be used, was removed here.
    Leftover(&'a Path),
    /// The copy goes on with what an earlier run left here.
    Resumed(&'a Path),
    /// From now on, what is written stays here if the run ends early.
    KeptOnFailure(&'a Path),
    /// The store is open.
    Opened {
        /// The number of arrays.
        n_arrays: usize,
        /// Chunks of all of them that the target will have.
        n_chunks: u64,
        /// Names of groups in the source, which are not copied.
        groups: &'a [String],
    },
    /// An array begins.
    Array(&'a ArrayPlan),
    /// As many chunks of the target are written, or were by earlier runs.
    Written {
        /// The number of chunks.
        n_chunks: u64,
    },
}

/// How an array is copied.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ArrayPlan {
    /// Its name.
    pub name: String,
    /// The dimensions' names; empty where they have none.
    pub dimensions: Vec<String>,
    /// The length of each dimension in the target.
    pub shape: Vec<u64>,
    /// Lengths of the source's chunks; of those within its shards.
    pub source_chunk: Vec<u64>,
    /// Lengths of the target's chunks.
    pub chunk: Vec<u64>,
    /// Lengths of the target's shards, if it has any.
    pub shard: Option<Vec<u64>>,
    /// The type of the source's numbers, and of the target's if that is another one.
    pub cast: Option<(ElementType, ElementType)>,
    /// Source chunks that are decoded, each as often as it is.
    pub n_decoded: u64,
    /// Source chunks that are needed.
    pub n_source_chunks: u64,
    /// Memory with which fewer would be decoded, in bytes; `None` if there is enough.
    pub memory_for_fewest: Option<u64>,
    /// Threads that copy it.
    pub n_threads: usize,
}

impl ArrayPlan {
    /// How often a source chunk is decoded, on average.
    pub fn times_decoded(&self) -> f64 {
        self.n_decoded as f64 / self.n_source_chunks.max(1) as f64
    }
}

/// The result of a relayout.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct RelayoutReport {
    /// How the arrays were copied.
    pub arrays: Vec<ArrayPlan>,
    /// Bytes of all values as they are in the target, uncompressed.
    pub n_bytes: u64,
    /// The size of the source's files in bytes, if it is a local folder that was copied as a whole.
    pub source_bytes: Option<u64>,
    /// The size of the target's files in bytes.
    pub bytes_on_disk: u64,
    /// Source chunks that this run decoded.
    pub n_decoded: u64,
    /// Numbers other than 0 that this run rounded to 0, by variable, if there are any.
    pub rounded_to_zero: Vec<(String, u64)>,
    /// Duration of this run in seconds.
    pub seconds: f64,
    /// Whether it went on with what an earlier run had left.
    pub resumed: bool,
}
