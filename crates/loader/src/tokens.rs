//! Tokens of a batch's cells, made of its X on the way.

use std::fmt;
use std::sync::Arc;

use tokens::{Cells, Layout, Places, Tokenizer, Workspace};
use worktime::ThreadTime;

use crate::batch::{CsrBatch, Matrix};
use crate::buffers::{BatchBuffer, BatchBuffers, HeapBuffer, ReadableBuffer};
use crate::dataset::Dataset;
use crate::element_type::ElementType;
use crate::elements::{ElementTypeError, ElementsMut};
use crate::error::{LoaderError, TokenError};
use crate::spec::{BatchForm, LoaderSpec, Totals};
use crate::unfinished::take;

/// Tokens to be made of each batch ([`LoaderSpec::tokens`]).
#[derive(Clone, Debug, PartialEq)]
pub struct TokenSpec {
    /// Makes the tokens; its columns are the selected genes.
    pub tokenizer: Arc<Tokenizer>,
    /// Where the sequences of a batch are.
    pub layout: Layout,
}

/// Sequences of tokens, one per cell of a batch, in its order.
#[non_exhaustive]
pub struct TokenBatch<B = HeapBuffer> {
    /// Token ids, as u32 below 2^31. Padded sequences are rows of [`Places::width`] tokens; ragged
    /// ones follow one another.
    pub tokens: B,
    /// A value beside each token, as f32; `None` if the tokenizer has none.
    pub values: Option<B>,
    /// The place and length of each sequence.
    pub places: Places,
}

impl<B: ReadableBuffer> TokenBatch<B> {
    /// The token ids.
    ///
    /// # Errors
    /// The buffer's elements are not u32, so no loader made the batch.
    pub fn tokens(&self) -> Result<&[u32], ElementTypeError> {
        self.tokens.elements().into_u32()
    }

    /// The values beside the tokens; empty if there are none.
    ///
    /// # Errors
    /// The buffer's elements are not f32, so no loader made the batch.
    pub fn values(&self) -> Result<&[f32], ElementTypeError> {
        self.values.as_ref().map_or(Ok(&[]), |values| values.elements().into_f32())
    }
}

impl<B> fmt::Debug for TokenBatch<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (n_cells, n_tokens) = (self.places.n_cells(), self.places.n_tokens());
        write!(f, "TokenBatch({n_cells} cells, {n_tokens} tokens)")
    }
}

impl TokenSpec {
    /// Fails if batches of these settings and this data cannot have tokens.
    pub(crate) fn check(&self, spec: &LoaderSpec, dataset: &Dataset) -> Result<(), LoaderError> {
        if spec.batch_form != BatchForm::Csr {
            return Err(TokenError::Form { form: spec.batch_form }.into());
        }
        let (found, expected) = (self.tokenizer.genes().n_columns(), dataset.n_columns());
        if found != expected {
            return Err(TokenError::Columns { found, expected }.into());
        }
        if let (Tokenizer::Ranks(_), false) = (&*self.tokenizer, spec.transform.is_identity()) {
            return Err(TokenError::Transform { transform: spec.transform.to_string() }.into());
        }
        if self.uses_totals() && spec.totals == Totals::Obs && dataset.totals().is_none() {
            return Err(LoaderError::NoTotals);
        }
        Ok(())
    }

    fn uses_totals(&self) -> bool {
        matches!(*self.tokenizer, Tokenizer::Ranks(_))
    }

    /// Bytes that the tokens of `n_rows` cells need at most, if a cell has `row_nnz` values.
    pub(crate) fn need(&self, n_rows: u64, row_nnz: f64) -> u64 {
        let length = match self.layout {
            // The longest cell of a batch may have all genes.
            Layout::PaddedToLongest => self.tokenizer.most_tokens(usize::MAX),
            Layout::Ragged => self.tokenizer.most_tokens(row_nnz.ceil() as usize),
            _ => self.tokenizer.max_length(),
        };
        let n_values = if self.tokenizer.pad_value().is_some() { 2 } else { 1 };
        n_rows.saturating_mul(length as u64).saturating_mul(n_values * 4)
    }
}

/// Makes the tokens of one batch after another.
pub(crate) struct TokenMaker {
    spec: TokenSpec,
    totals: Totals,
    n_threads: usize,
    workspace: Workspace,
}

impl TokenMaker {
    pub(crate) fn new(spec: &LoaderSpec) -> Option<Self> {
        let (totals, n_threads) = (spec.totals, spec.n_batch_threads());
        let workspace = Workspace::default();
        spec.tokens.clone().map(|spec| Self { spec, totals, n_threads, workspace })
    }

    /// The tokens of a batch with these rows of the selection, and the time of other threads than
    /// the caller's.
    pub(crate) fn make<B: BatchBuffers>(
        &mut self,
        dataset: &Dataset,
        buffers: &B,
        (epoch, rows): (u64, &[u64]),
        x: &mut Matrix<B::Buffer>,
    ) -> Result<(TokenBatch<B::Buffer>, ThreadTime), LoaderError> {
        let Matrix::Csr(CsrBatch { row_offsets, columns, values, n_columns }) = x else {
            return Err(TokenError::Form { form: BatchForm::Coo }.into());
        };
        let (mut columns, mut values) = (columns.elements_mut(), values.elements_mut());
        let (ElementsMut::U32(columns), ElementsMut::F32(values)) = (&mut columns, &mut values)
        else {
            return Err(TokenError::Form { form: BatchForm::F16 }.into());
        };
        let csr = csr::CsrView { row_offsets, columns, values, n_columns: *n_columns };
        let totals: Option<Vec<f64>> = match (self.totals, dataset.totals()) {
            (Totals::Obs, Some(totals)) if self.spec.uses_totals() => {
                Some(rows.iter().map(|&row| totals[row as usize]).collect())
            }
            _ => None,
        };
        let tokenizer = &*self.spec.tokenizer;
        let numbers: Vec<u64> = if tokenizer.is_random() {
            rows.iter().map(|&row| number(dataset.origin(row))).collect()
        } else {
            Vec::new()
        };
        let cells = Cells { rows: csr, totals: totals.as_deref(), numbers: &numbers, epoch };
        let of_cell = |source| located(dataset, rows, source);
        let mut places = Places::default();
        let mut others = tokenizer
            .places(&cells, self.spec.layout, self.n_threads, &mut places)
            .map_err(of_cell)?;
        let mut tokens = take(buffers, places.n_tokens(), ElementType::U32)?;
        let n_values = tokenizer.pad_value().map(|_| places.n_tokens());
        let mut beside = n_values.map(|n| take(buffers, n, ElementType::F32)).transpose()?;
        let of_values = match &mut beside {
            Some(beside) => beside.elements_mut().into_f32()?,
            None => &mut [],
        };
        let out = (tokens.elements_mut().into_u32()?, of_values);
        others += tokenizer
            .fill(&cells, &places, self.n_threads, &mut self.workspace, out)
            .map_err(of_cell)?;
        Ok((TokenBatch { tokens, values: beside, places }, others))
    }
}

/// A number of a cell that no other cell of the data set has: the same in every batch, on every
/// rank and in every part of the data set. Joinids are below 2^48, or cells of different
/// experiments may draw the same random numbers.
fn number((experiment, joinid): (usize, u64)) -> u64 {
    joinid ^ (experiment as u64).rotate_right(16)
}

/// An error of tokens that names the cell instead of its row in the batch.
fn located(dataset: &Dataset, rows: &[u64], source: tokens::Error) -> LoaderError {
    use tokens::Error as E;
    let row_idx = match source {
        E::Value { row_idx, .. } | E::Column { row_idx, .. } | E::Total { row_idx, .. } => row_idx,
        source => return TokenError::Batch { source }.into(),
    };
    let Some(&row) = rows.get(row_idx) else { return TokenError::Batch { source }.into() };
    let (experiment, joinid) = dataset.origin(row);
    match source {
        E::Total { total, .. } => {
            LoaderError::Total { experiment, joinid, total: total.to_string() }
        }
        source => TokenError::Cell { experiment, joinid, source }.into(),
    }
}
