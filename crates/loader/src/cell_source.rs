//! Cells as the samples of the engine: the implementation of its `Source`.

use std::sync::{Arc, OnceLock};

use pipeline::{BlockBytes, BlockRows, Need, ReadStats, Source, Stop};

use crate::assemble::Assembler;
use crate::batch::Batch;
use crate::beside::DatasetMatrix;
use crate::block::Block;
use crate::buffers::BatchBuffers;
use crate::dataset::Dataset;
use crate::error::LoaderError;
use crate::need;
use crate::neighbours::RowCounts;
use crate::read::{BlockReader, Scratch};
use crate::spec::LoaderSpec;

/// Reads and assembles the selected cells of a data set by the settings of a [`LoaderSpec`].
pub(crate) struct CellSource<B: BatchBuffers> {
    pub(crate) dataset: Dataset,
    pub(crate) spec: LoaderSpec,
    pub(crate) buffers: Arc<B>,
    /// Rows that were read for neighbours.
    pub(crate) row_counts: RowCounts,
    row_nnz: OnceLock<Vec<f64>>,
}

impl<B: BatchBuffers> CellSource<B> {
    pub(crate) fn new(dataset: Dataset, spec: LoaderSpec, buffers: Arc<B>) -> Self {
        let row_counts = RowCounts::default();
        Self { dataset, spec, buffers, row_counts, row_nnz: OnceLock::new() }
    }

    /// Expected number of values in a row of each matrix's batches, if they are sparse; 0 if they
    /// are dense. Computed once, because the reader may have to read metadata.
    fn row_nnz(&self) -> Result<&[f64], LoaderError> {
        if let Some(known) = self.row_nnz.get() {
            return Ok(known);
        }
        let mean_nnz = |matrix: DatasetMatrix<'_>| match matrix.batch_form(&self.spec) {
            form if form.dense_type().is_some() => Ok(0.0),
            _ => self.dataset.mean_row_nnz(&matrix),
        };
        let found = self.dataset.matrices().map(mean_nnz).collect::<Result<_, _>>()?;
        Ok(self.row_nnz.get_or_init(|| found))
    }
}

impl<B: BatchBuffers> Source for CellSource<B> {
    type Block = Block;
    type Batch = Batch<B::Buffer>;
    type Error = LoaderError;
    type Scratch = Scratch;
    type Assembler = Assembler<B>;

    fn n_rows(&self) -> u64 {
        self.dataset.n_rows()
    }

    fn fingerprint(&self) -> String {
        self.dataset.fingerprint()
    }

    fn need(&self, block_rows: u64, batch_rows: u64) -> Result<Need, LoaderError> {
        need::memory_need(&self.dataset, &self.spec, block_rows, batch_rows)
    }

    fn block_bytes(&self, block: &Block) -> BlockBytes {
        block.bytes()
    }

    fn read(
        &self,
        rows: &BlockRows<'_>,
        into: &mut Block,
        scratch: &mut Scratch,
        stop: &Stop,
    ) -> Result<ReadStats, LoaderError> {
        let reader = BlockReader { dataset: &self.dataset, form: self.spec.block_form };
        let read = reader.fill(rows, into, scratch, stop)?;
        if self.dataset.neighbours.is_some() {
            let n_further = into.neighbours.cells.len() - into.rows.len();
            self.row_counts.add(rows.place.epoch, into.rows.len(), n_further);
        }
        Ok(read)
    }

    fn row_name(&self, row: u64) -> String {
        let (experiment, joinid) = self.dataset.origin(row);
        match self.dataset.n_experiments() {
            1 => format!("cell {joinid}"),
            _ => format!("cell {joinid} of experiment {experiment}"),
        }
    }

    fn is_damage(&self, error: &LoaderError) -> bool {
        // The settings are wrong for other rows, too.
        let is_of_rows = matches!(error, LoaderError::Read { .. } | LoaderError::Densify { .. });
        is_of_rows && pipeline::system_failure(error).is_none()
    }

    fn assembler(&self, batch_rows: u64) -> Result<Assembler<B>, LoaderError> {
        let n_rows = batch_rows.min(self.n_rows()) as f64;
        let nnz = self.row_nnz()?.iter().map(|row_nnz| (row_nnz * n_rows) as usize);
        let Self { dataset, spec, buffers, .. } = self;
        Ok(Assembler::new(dataset.clone(), spec, Arc::clone(buffers), nnz))
    }

    fn keep(&self, holder: u64, bytes: u64) {
        self.dataset.keep_decoded(holder, bytes);
    }

    fn keeps(&self) -> bool {
        self.dataset.asks_next_reads()
    }
}
