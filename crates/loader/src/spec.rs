//! The settings of a loader: plain data, checked once.

use std::fmt;
use std::str::FromStr;

use densify::Transform;
use pipeline::{Budget, PipelineSpec, World};
use shuffle::sample::Sampling;
pub use shuffle::{Order, Remainder};

use crate::element_type::ElementType;
use crate::error::Error;
use crate::tokens::TokenSpec;

/// The form in which a block of X is in memory until its rows are copied into batches.
///
/// The forms differ in speed and memory. All deliver the same values, except that the last bit may
/// differ if values that are not whole numbers are scaled by their own sum.
/// [`Display`](fmt::Display) and [`FromStr`] use the names of the command line and of measurements.
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

/// The form in which a batch's X is delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BatchForm {
    /// One f32 per cell and gene, row-major.
    Dense,
    /// One f16 per cell and gene, row-major: half the memory. Values are rounded to 11 significant
    /// bits; those of 65,520 and above become infinite.
    F16,
    /// The stored values in CSR, as f32.
    Csr,
    /// The stored values in COO, as f32.
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

    /// The type of the values of a dense form; `None` for a sparse form, whose values are f32.
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

/// The settings of a [`Loader`](crate::Loader): order, batches, forms, transforms, and how much is
/// read ahead.
#[derive(Clone, Debug, PartialEq)]
pub struct LoaderSpec {
    /// Consecutive rows that are read together. Must be 1 for [`Order::Listed`].
    pub chunk_rows: u64,
    /// Chunks that are in memory, and shuffled, together.
    pub chunks_per_block: u64,
    /// Blocks at the start of an epoch that grow, so that the first batch is there sooner
    /// ([`shuffle::PlanSpec::ramp_blocks`]): with 4, the first has a sixteenth of
    /// `chunks_per_block`.
    pub ramp_blocks: u32,
    /// Shuffled, in the order of the rows, or in the order of a list that `sampling` makes.
    pub order: Order,
    /// Seed of the shuffled order, which also depends on the epoch's number.
    pub seed: u64,
    /// Rows of a rank's batch; only the last batch may have fewer.
    pub batch_rows: u64,
    /// The form in which blocks of X are in memory.
    pub block_form: BlockForm,
    /// The form in which a batch's X is delivered.
    pub batch_form: BatchForm,
    /// Scaling, log1p and clipping of the values while batches are made.
    pub transform: Transform,
    /// Sequences of tokens that each batch has beside X ([`Batch::tokens`](crate::Batch::tokens)),
    /// for models that read them. Batches must be in CSR.
    pub tokens: Option<TokenSpec>,
    /// The totals that [`Transform::target_sum`] scales by, and that ranks of tokens divide by.
    pub totals: Totals,
    /// Rank and number of processes. All ranks share one order; each takes `batch_rows` rows of
    /// every global batch.
    pub world: World,
    /// Pieces of the order that are each shuffled separately ([`shuffle::BatchSpec`]). A rank keeps
    /// one block in memory for each lane that it delivers. `None` means one lane per rank, and one
    /// lane if rows come in stored or listed order; a loader that first resumes takes the lanes of
    /// the state.
    pub lanes: Option<u64>,
    /// Treatment of the rows that do not fill a global batch. Several ranks cannot deliver a short
    /// batch.
    pub remainder: Remainder,
    /// Which rows come, and how often; `None` means each row once. If it also decides which rows
    /// are in a batch together ([`Sampling::is_listed`]), `order` must be [`Order::Listed`].
    pub sampling: Option<Sampling>,
    /// Blocks to read ahead while one is cut into batches. At most `1 + prefetch_blocks` blocks are
    /// in memory; with 0, a block is read only after the one before it is used up.
    pub prefetch_blocks: usize,
    /// Blocks to read at the same time, one per thread; they are delivered in the order of the
    /// epoch. The native reader decodes each block on all processors, so more than one thread helps
    /// mainly if storage answers slowly.
    pub read_threads: usize,
    /// Finished batches that may wait while the consumer works on one. With 0, each batch is made
    /// on the consumer's thread when it asks for it. Sparse batches are small: 16 or more of them
    /// keep a consumer busy while a late block is read.
    pub prefetch_batches: usize,
    /// Threads that write one large dense batch together. The values do not depend on it. By
    /// default half of the processors, from 2 to 8: on 16 processors 2 threads write 18 GB/s and 8
    /// write twice that (`results/2026-11-26-gpu`).
    pub batch_threads: usize,
    /// Memory for blocks, batches and reading, not counting the data set. If it is too small for
    /// the requested read-ahead, less is read ahead. Loaders with clones of one budget share it.
    pub memory: Budget,
    /// Cache for decoded values of X across blocks and epochs, in bytes, if X's reader has one.
    /// `None` means the rest of a limited budget, and 0 without a limit. Loaders of one data set
    /// share its cache, whose limit is the sum of what they allow while they exist.
    pub keep_decoded_bytes: Option<u64>,
}

/// Half of the processors that this process may use, from 2 to 8.
fn half_of_the_processors() -> usize {
    std::thread::available_parallelism().map_or(2, |n| (n.get() / 2).clamp(2, 8))
}

/// Shuffled dense batches of 1,024 rows, cut from CSR blocks of 1,024 chunks of 64 rows. One block
/// and one batch are read ahead, without a memory limit.
impl Default for LoaderSpec {
    fn default() -> Self {
        Self {
            chunk_rows: 64,
            chunks_per_block: 1024,
            ramp_blocks: 0,
            order: Order::Shuffled,
            seed: 0,
            batch_rows: 1024,
            block_form: BlockForm::Csr,
            batch_form: BatchForm::Dense,
            transform: Transform::default(),
            tokens: None,
            totals: Totals::Genes,
            world: World::default(),
            lanes: None,
            remainder: Remainder::Short,
            sampling: None,
            prefetch_blocks: 1,
            read_threads: 1,
            prefetch_batches: 1,
            batch_threads: half_of_the_processors(),
            memory: Budget::unlimited(),
            keep_decoded_bytes: None,
        }
    }
}

/// The total of a row, for scaling its values to a target sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Totals {
    /// The sum of the row's values of the selected genes.
    Genes,
    /// The total of all genes in the obs column that
    /// [`DatasetSpec::totals`](crate::DatasetSpec::totals) names.
    Obs,
}

impl LoaderSpec {
    /// Checks that the settings fit together, whatever the data.
    ///
    /// # Errors
    /// A size is zero; rank, lanes and remainder do not fit together; batches are sparse and blocks
    /// are dense; the transform would change zeros.
    pub fn check(&self) -> Result<(), Error> {
        self.pipeline().check()?;
        if self.block_form == BlockForm::Dense && self.batch_form.dense_type().is_none() {
            return Err(Error::SparseFromDense);
        }
        self.transform.check().map_err(|source| Error::Transform { source })
    }

    /// The engine's settings.
    ///
    /// The fields are repeated here so that users write one flat struct. `PipelineSpec` is written
    /// out in full, so a new field of it does not compile until this function sets it.
    pub fn pipeline(&self) -> PipelineSpec {
        PipelineSpec {
            chunk_rows: self.chunk_rows,
            chunks_per_block: self.chunks_per_block,
            ramp_blocks: self.ramp_blocks,
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

    /// These settings with the values that the engine ran with in place of the requested ones.
    ///
    /// `PipelineSpec` is taken apart in full, so a new field of it does not compile until this
    /// function passes it on.
    pub(crate) fn as_run(&self, run: &PipelineSpec) -> Self {
        let PipelineSpec {
            chunk_rows,
            chunks_per_block,
            ramp_blocks,
            order,
            seed,
            batch_rows,
            world,
            lanes,
            remainder,
            sampling,
            prefetch_blocks,
            read_threads,
            prefetch_batches,
            memory,
            keep_bytes,
        } = run.clone();
        let Self { block_form, batch_form, transform, totals, batch_threads, .. } = *self;
        Self {
            chunk_rows,
            chunks_per_block,
            ramp_blocks,
            order,
            seed,
            batch_rows,
            block_form,
            batch_form,
            transform,
            tokens: self.tokens.clone(),
            totals,
            world,
            lanes,
            remainder,
            sampling,
            prefetch_blocks,
            read_threads,
            prefetch_batches,
            batch_threads,
            memory,
            keep_decoded_bytes: keep_bytes,
        }
    }
}
