//! What a loader is asked to do: plain data, checked once when the loader is made.

use std::fmt;
use std::str::FromStr;

use densify::Transform;
use pipeline::{Budget, PipelineSpec, World};
use shuffle::sample::Sampling;
pub use shuffle::{Order, Remainder};

use crate::buffers::ElementType;
use crate::error::Error;

/// The form in which a block of X is in memory until its rows are copied into batches.
///
/// The forms differ in speed and memory. All deliver the same values, except that the last bit may
/// differ if values that are not whole numbers are scaled by their own sum. [`Display`](fmt::Display)
/// and [`FromStr`] use the names that the command line and the measurements have had from the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BlockForm {
    /// One dense array, scattered from the COO tables that the reader returns: 4 bytes for each row
    /// and gene of a block. Gives dense batches only. Its name is `np.array`.
    Dense,
    /// One CSR matrix, converted from the COO tables that the reader returns. Its name is
    /// `scipy.csr`.
    ConvertedCsr,
    /// CSR as the reader returns it, packed if the reader can. Its name is `native`.
    Csr,
}

impl BlockForm {
    /// Every form, in the order in which the sweep measures them.
    pub const ALL: [Self; 3] = [Self::Dense, Self::ConvertedCsr, Self::Csr];

    /// The name on the command line and in measurements: `np.array`, `scipy.csr`, `native`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Dense => "np.array",
            Self::ConvertedCsr => "scipy.csr",
            Self::Csr => "native",
        }
    }
}

impl fmt::Display for BlockForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for BlockForm {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        Self::ALL
            .into_iter()
            .find(|form| form.name() == name)
            .ok_or_else(|| Error::UnknownBlockForm { name: name.to_owned() })
    }
}

/// What a batch's X is delivered as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BatchForm {
    /// Row-major f32, one value for each cell and gene.
    Dense,
    /// The same in f16: half the memory, values rounded to 11 bits, those from 65,520 on infinite.
    F16,
    /// CSR with the values that are stored.
    Csr,
    /// COO with the values that are stored.
    Coo,
}

impl BatchForm {
    /// Every form.
    pub const ALL: [Self; 4] = [Self::Dense, Self::F16, Self::Csr, Self::Coo];

    /// The name on the command line and in measurements: `dense`, `f16`, `csr`, `coo`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Dense => "dense",
            Self::F16 => "f16",
            Self::Csr => "csr",
            Self::Coo => "coo",
        }
    }

    /// The type of the values of a dense form; none of a sparse one, whose values are f32.
    pub fn dense_type(self) -> Option<ElementType> {
        match self {
            Self::Dense => Some(ElementType::F32),
            Self::F16 => Some(ElementType::F16),
            Self::Csr | Self::Coo => None,
        }
    }
}

impl fmt::Display for BatchForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for BatchForm {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        Self::ALL
            .into_iter()
            .find(|form| form.name() == name)
            .ok_or_else(|| Error::UnknownBatchForm { name: name.to_owned() })
    }
}

/// Everything that decides what a [`Loader`](crate::Loader) does, apart from the data.
#[derive(Clone, Debug, PartialEq)]
pub struct LoaderSpec {
    /// Consecutive rows that are read together.
    pub chunk_rows: u64,
    /// Chunks that are held, and shuffled, together.
    pub chunks_per_block: u64,
    /// Shuffled, or as the rows are stored.
    pub order: Order,
    /// What the shuffled order is made from, together with the epoch's number.
    pub seed: u64,
    /// Rows of a rank's batch; only the last one may have fewer.
    pub batch_rows: u64,
    /// The form in which blocks of X are in memory.
    pub block_form: BlockForm,
    /// The form in which a batch's X is delivered.
    pub batch_form: BatchForm,
    /// What is done to the values on their way into a batch.
    pub transform: Transform,
    /// The totals that [`Transform::target_sum`] scales by.
    pub totals: Totals,
    /// Which of how many processes this is. All of them take parts of the same order, `batch_rows` of every global batch.
    pub world: World,
    /// Pieces of the order that are shuffled each by itself ([`shuffle::BatchSpec`]): a block of each lane that it delivers is in a rank's
    /// memory. `None` is one for each rank, and one where rows come in order; a loader that first resumes takes those of the state.
    pub lanes: Option<u64>,
    /// What becomes of rows that do not fill a global batch; with several ranks they cannot be a short batch.
    pub remainder: Remainder,
    /// Which rows come, and how often; `None` is each once.
    pub sampling: Option<Sampling>,
    /// Blocks that are read ahead while one is cut into batches. At most `1 + prefetch_blocks` blocks are in memory; 0 reads a block
    /// only after the one before it is used up.
    pub prefetch_blocks: usize,
    /// Blocks that are read at the same time; they are delivered in the order of the epoch. The native reader decodes one block on
    /// all processors, so more than one are of use mainly where storage is slow to answer.
    pub read_threads: usize,
    /// Batches that wait, made, while the consumer works on one. 0 makes each batch on the consumer's thread when it
    /// asks for it. A sparse batch takes little memory: 16 or more of those cover what a late block would keep a consumer waiting.
    pub prefetch_batches: usize,
    /// Threads that write a large dense batch together. The values do not depend on it.
    pub batch_threads: usize,
    /// Memory that blocks, batches and reading may take together, beside what is in memory when the loader is made. If that is too
    /// little for everything that is to be read ahead, less is read ahead. Loaders that are given clones of one budget share it.
    pub memory: Budget,
    /// Cache for decoded values of X across blocks and epochs, in bytes, if X's reader has one. `None` is what a limited budget
    /// leaves, and nothing without a limit. Loaders of one data set share its cache; what they allow adds up, for as long as they exist.
    pub keep_decoded_bytes: Option<u64>,
}

/// Shuffled dense batches of 1,024 rows out of blocks of 1,024 chunks of 64 rows, the `native` way, one block and one batch ahead.
impl Default for LoaderSpec {
    fn default() -> Self {
        Self {
            chunk_rows: 64,
            chunks_per_block: 1024,
            order: Order::Shuffled,
            seed: 0,
            batch_rows: 1024,
            block_form: BlockForm::Csr,
            batch_form: BatchForm::Dense,
            transform: Transform::default(),
            totals: Totals::Genes,
            world: World::default(),
            lanes: None,
            remainder: Remainder::Short,
            sampling: None,
            prefetch_blocks: 1,
            read_threads: 1,
            prefetch_batches: 1,
            batch_threads: 2,
            memory: Budget::unlimited(),
            keep_decoded_bytes: None,
        }
    }
}

/// What the total of a row is, where its values are scaled to a target sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Totals {
    /// The sum of the row's values of the selected genes.
    Genes,
    /// The obs column that `DatasetSpec::totals` names, a total over all genes.
    Obs,
}

impl LoaderSpec {
    /// Refuses what no data could be loaded with: zero sizes, `np.array` with sparse batches, transforms that would change zeros.
    pub fn check(&self) -> Result<(), Error> {
        self.pipeline().check()?;
        if self.block_form == BlockForm::Dense && self.batch_form.dense_type().is_none() {
            return Err(Error::SparseFromDense);
        }
        self.transform.check().map_err(|source| Error::Transform { source })
    }

    /// The engine's part of this.
    pub(crate) fn pipeline(&self) -> PipelineSpec {
        PipelineSpec {
            chunk_rows: self.chunk_rows,
            chunks_per_block: self.chunks_per_block,
            order: self.order,
            seed: self.seed,
            batch_rows: self.batch_rows,
            world: self.world,
            lanes: self.lanes,
            remainder: self.remainder,
            sampling: self.sampling.clone(),
            prefetch_blocks: self.prefetch_blocks,
            read_threads: self.read_threads,
            prefetch_batches: self.prefetch_batches,
            memory: self.memory.clone(),
            keep_bytes: self.keep_decoded_bytes,
        }
    }

    /// The same as the engine ran it: what it chose in place of what was asked for.
    pub(crate) fn as_run(&self, run: &PipelineSpec) -> Self {
        Self {
            lanes: run.lanes,
            prefetch_blocks: run.prefetch_blocks,
            read_threads: run.read_threads,
            prefetch_batches: run.prefetch_batches,
            ..self.clone()
        }
    }
}
