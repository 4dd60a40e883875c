//! The settings of a loader: plain data, checked once.

use std::collections::BTreeMap;
use std::fmt;
use std::iter;
use std::num::NonZeroUsize;
use std::str::FromStr;

use densify::Transform;
use pipeline::PipelineSpec;
use serde::ser::Error as _;
use serde::{Deserialize, Serialize, Serializer};
pub use shuffle::{Order, Remainder};

use crate::element_type::ElementType;
use crate::error::LoaderError;
use crate::tokens::TokenSpec;

/// The form in which a block of X is in memory until its rows are copied into batches.
///
/// The forms differ in speed and memory. All deliver the same values, except that the last bit may
/// differ if values that are not whole numbers are scaled by their own sum.
/// [`Display`](fmt::Display) and [`FromStr`] use the names of the command line and of measurements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum BlockForm {
    /// One dense array, scattered from the COO tables that the reader returns: 4 bytes for each row
    /// and gene of a block. Gives dense batches only. Its name is `np.array`.
    #[serde(rename = "np.array")]
    Dense,
    /// One CSR matrix, converted from the COO tables that the reader returns. Its name is
    /// `scipy.csr`.
    #[serde(rename = "scipy.csr")]
    ConvertedCsr,
    /// CSR as the reader returns it, packed if the reader can. Its name is `csr`.
    #[serde(rename = "csr")]
    Csr,
}

impl BlockForm {
    /// Every form, in the order in which the sweep measures them.
    pub const ALL: [Self; 3] = [Self::Dense, Self::ConvertedCsr, Self::Csr];

    /// Another name of `csr`, which older command lines and measurements have.
    pub const NATIVE: &str = "native";

    /// The name on the command line and in measurements: `np.array`, `scipy.csr`, `csr`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Dense => "np.array",
            Self::ConvertedCsr => "scipy.csr",
            Self::Csr => "csr",
        }
    }
}

impl fmt::Display for BlockForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// No form of blocks or batches has this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no form of {of} is called {name:?}: take {known}")]
pub struct UnknownForm {
    /// Blocks or batches.
    pub of: &'static str,
    /// The unknown name.
    pub name: String,
    /// The forms that there are.
    pub known: &'static str,
}

/// Takes [`BlockForm::NATIVE`], too.
impl FromStr for BlockForm {
    type Err = UnknownForm;

    fn from_str(name: &str) -> Result<Self, UnknownForm> {
        Self::ALL
            .into_iter()
            .find(|form| form.name() == name || (*form == Self::Csr && name == Self::NATIVE))
            .ok_or_else(|| UnknownForm {
                of: "blocks",
                name: name.to_owned(),
                known: "np.array, scipy.csr or csr",
            })
    }
}

/// The form in which a batch's X is delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
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
    /// The stored values in CSR with narrow numbers, for a device that widens them: columns as u16
    /// if there are at most 65,536; values as u8 or u16 if all of the batch, and of those before it
    /// in the epoch, are such counts. What does not fit is as in `Csr`.
    Packed,
}

impl BatchForm {
    /// Every form.
    pub const ALL: [Self; 5] = [Self::Dense, Self::F16, Self::Csr, Self::Coo, Self::Packed];

    /// The name on the command line (of all but `packed`), in Python and in measurements: `dense`,
    /// `f16`, `csr`, `coo`, `packed`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Dense => "dense",
            Self::F16 => "f16",
            Self::Csr => "csr",
            Self::Coo => "coo",
            Self::Packed => "packed",
        }
    }

    /// The type of the values of a dense form; `None` for a sparse form.
    pub fn dense_type(self) -> Option<ElementType> {
        match self {
            Self::Dense => Some(ElementType::F32),
            Self::F16 => Some(ElementType::F16),
            Self::Csr | Self::Coo | Self::Packed => None,
        }
    }
}

impl fmt::Display for BatchForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for BatchForm {
    type Err = UnknownForm;

    fn from_str(name: &str) -> Result<Self, UnknownForm> {
        Self::ALL.into_iter().find(|form| form.name() == name).ok_or_else(|| UnknownForm {
            of: "batches",
            name: name.to_owned(),
            known: "dense, f16, csr, coo or packed",
        })
    }
}

/// The settings of a [`Loader`](crate::Loader): those of the engine, forms and transforms.
///
/// Can be written and read with serde like a [`PipelineSpec`], unless it has tokens.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LoaderSpec {
    /// The engine's settings: order, batches and ranks, and how much is read ahead. The native
    /// reader decodes each block on all processors, so more than one of its `read_threads` helps
    /// mainly if storage answers slowly. Sparse batches are small: 16 or more `prefetch_batches`
    /// keep a consumer busy while a late block is read. `keep_bytes` is for decoded values of X, if
    /// X's reader keeps any; loaders of one data set share its cache, whose limit is the sum of
    /// what they allow while they exist.
    pub pipeline: PipelineSpec,
    /// The form in which blocks of X are in memory.
    pub block_form: BlockForm,
    /// The form in which a batch's X is delivered.
    pub batch_form: BatchForm,
    /// The forms of modalities beside X ([`Batch::modalities`](crate::Batch::modalities)), by their
    /// names. A modality that is not listed has `batch_form`.
    pub modality_forms: BTreeMap<String, BatchForm>,
    /// Scaling, log1p and clipping of the values of X while batches are made.
    pub transform: Transform,
    /// Sequences of tokens that each batch has beside X ([`Batch::tokens`](crate::Batch::tokens)),
    /// for models that read them. Batches must be in CSR.
    #[serde(
        skip_deserializing,
        skip_serializing_if = "Option::is_none",
        serialize_with = "refused"
    )]
    pub tokens: Option<TokenSpec>,
    /// The totals that [`Transform::target_sum`] scales by, and that ranks of tokens divide by.
    pub totals: Totals,
    /// Threads that write one large batch together. The values do not depend on it. `None`
    /// means half of the processors, from 2 to 8: on 16 processors 2 threads write 18 GB/s and 8
    /// write twice that (`results/2026-11-26-gpu`).
    pub batch_threads: Option<usize>,
}

#[expect(clippy::ref_option, reason = "serde passes a reference")]
fn refused<S: Serializer>(_: &Option<TokenSpec>, _: S) -> Result<S::Ok, S::Error> {
    Err(S::Error::custom("a tokenizer cannot be written: write what it is made of"))
}

/// Shuffled dense batches of 1,024 rows, cut from CSR blocks of 1,024 chunks of 64 rows. One block
/// and one batch are read ahead, without a memory limit.
impl Default for LoaderSpec {
    fn default() -> Self {
        Self {
            pipeline: PipelineSpec::default(),
            block_form: BlockForm::Csr,
            batch_form: BatchForm::Dense,
            modality_forms: BTreeMap::new(),
            transform: Transform::default(),
            tokens: None,
            totals: Totals::Genes,
            batch_threads: None,
        }
    }
}

/// The total of a row, for scaling its values to a target sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Totals {
    /// The sum of the row's values of the selected genes.
    Genes,
    /// The total of all genes in the obs column that
    /// [`DatasetSpec::totals`](crate::DatasetSpec::totals) names.
    Obs,
}

impl LoaderSpec {
    /// Threads that write a batch: those asked for, or half of the processors of this process.
    pub(crate) fn n_batch_threads(&self) -> usize {
        let half = |n: NonZeroUsize| (n.get() / 2).clamp(2, 8);
        let usual = || std::thread::available_parallelism().map_or(2, half);
        self.batch_threads.unwrap_or_else(usual)
    }

    /// Checks that the settings fit together, whatever the data.
    ///
    /// # Errors
    /// A size is zero; rank, lanes and remainder do not fit together; batches are sparse and blocks
    /// are dense; the transform would change zeros.
    pub fn check(&self) -> Result<(), LoaderError> {
        self.pipeline.check()?;
        let mut forms = iter::once(&self.batch_form).chain(self.modality_forms.values());
        if self.block_form == BlockForm::Dense && forms.any(|form| form.dense_type().is_none()) {
            return Err(LoaderError::SparseFromDense);
        }
        self.transform.check().map_err(|source| LoaderError::Transform { source })
    }
}
