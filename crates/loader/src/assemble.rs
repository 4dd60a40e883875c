//! Makes batches from rows of blocks, with their obs rows and joinids.

use std::sync::Arc;

use arrow_array::{RecordBatch, UInt64Array};
use arrow_select::take::take_record_batch;
use densify::{RowTransforms, Transform};
use pipeline::{Assemble, BatchPlace, BlockPart};
use worktime::ThreadTime;

use crate::batch::{Batch, Matrix, Modality};
use crate::beside::{Beside, BesideKind, DatasetMatrix};
use crate::block::Block;
use crate::buffers::{BatchBuffer, BatchBuffers};
use crate::dataset::Dataset;
use crate::error::LoaderError;
use crate::neighbours::{Neighbours, Table, TableMaker, Written};
use crate::spec::{LoaderSpec, Totals};
use crate::tokens::TokenMaker;
use crate::unfinished::{MatrixMaker, Rows, Unfinished};

/// Makes the batches of an epoch, on its own thread or on the consumer's.
pub(crate) struct Assembler<B: BatchBuffers> {
    dataset: Dataset,
    buffers: Arc<B>,
    x: MatrixMaker,
    beside: Vec<MatrixMaker>,
    /// Transform of the values of X; `None` if they stay as stored.
    transform: Option<Transform>,
    totals: Totals,
    tokens: Option<TokenMaker>,
    /// Time of the threads that helped to finish the last batch. It counts with the next rows that
    /// are added.
    helpers: ThreadTime,
    /// Most threads that write a batch.
    n_threads: usize,
    /// The table of the last batch, whose memory is used again.
    table: Option<Box<Table>>,
    /// The batch in the making.
    filling: Option<Filling<B::Buffer>>,
}

impl<B: BatchBuffers> Assemble for Assembler<B> {
    type Block = Block;
    type Batch = Batch<B::Buffer>;
    type Error = LoaderError;

    fn begin(&mut self, n_rows: usize) -> Result<(), LoaderError> {
        self.filling = Some(self.filling(n_rows)?);
        Ok(())
    }

    fn add(&mut self, block: &Block, part: BlockPart<'_>) -> Result<ThreadTime, LoaderError> {
        let mut filling = match self.filling.take() {
            Some(filling) => filling,
            None => self.filling(part.order.len())?,
        };
        let others = filling.add(self, block, part.order)?;
        self.filling = Some(filling);
        Ok(others + std::mem::take(&mut self.helpers))
    }

    fn finish(&mut self, place: BatchPlace) -> Result<Batch<B::Buffer>, LoaderError> {
        let Filling { x, beside, rows, .. } = match self.filling.take() {
            Some(filling) => filling,
            None => self.filling(0)?,
        };
        let BatchPlace { epoch, batch_idx, n_padding } = place;
        let (mut x, neighbours) = self.finish_x(x, rows.len())?;
        let tokens = match &mut self.tokens {
            Some(maker) => {
                let epoch_rows = (epoch, rows.as_slice());
                let (tokens, others) =
                    maker.make(&self.dataset, &*self.buffers, epoch_rows, &mut x)?;
                self.helpers += others;
                Some(tokens)
            }
            None => None,
        };
        let origins = rows.iter().map(|&row| self.dataset.origin(row));
        let (experiments, joinids): (Vec<u32>, Vec<i64>) =
            origins.map(|(experiment, joinid)| (experiment as u32, joinid as i64)).unzip();
        let rows = UInt64Array::from(rows);
        let gathered = |of: &RecordBatch| {
            take_record_batch(of, &rows).map_err(|source| LoaderError::Obs { batch_idx, source })
        };
        let (obs, codes) = (gathered(self.dataset.obs())?, gathered(&self.dataset.codes)?);
        let codes = crate::encode::widened(&codes)
            .map_err(|source| LoaderError::Obs { batch_idx, source })?;
        let cells = (&experiments[..], &joinids[..]);
        let Finished { layers, obsm, modalities } = self.finish_beside(beside, cells)?;
        Ok(Batch {
            batch_idx,
            x,
            neighbours,
            layers,
            obsm,
            present: present(&self.dataset.x_matrix(), cells),
            modalities,
            tokens,
            obs,
            codes,
            joinids,
            experiments,
            n_padding,
        })
    }

    fn prepare(&mut self, n_batches: usize, n_rows: usize, is_enough: &dyn Fn() -> bool) {
        let mut prepared = Vec::new();
        while prepared.len() < n_batches && !is_enough() {
            // If memory is short, the batch that needs it reports the error.
            let Ok(filling) = self.filling(n_rows) else { break };
            prepared.push(filling);
        }
    }
}

impl<B: BatchBuffers> Assembler<B> {
    /// Makes an assembler. `nnz` is the expected number of values of each matrix in a sparse batch.
    pub(crate) fn new(
        dataset: Dataset,
        spec: &LoaderSpec,
        buffers: Arc<B>,
        mut nnz: impl Iterator<Item = usize>,
    ) -> Self {
        let transform = Some(spec.transform).filter(|transform| !transform.is_identity());
        let mut maker = |matrix: DatasetMatrix<'_>| {
            let (form, nnz) = (matrix.batch_form(spec), nnz.next().unwrap_or(0));
            let is_transformed = transform.is_some() && matrix.beside.is_none();
            MatrixMaker::new(form, matrix.n_columns, nnz, is_transformed)
        };
        let x = maker(dataset.x_matrix());
        let beside = dataset.matrices_beside().map(maker).collect();
        Self {
            dataset,
            buffers,
            x,
            beside,
            transform,
            totals: spec.totals,
            tokens: TokenMaker::new(spec),
            helpers: ThreadTime::default(),
            n_threads: spec.n_batch_threads(),
            table: None,
            filling: None,
        }
    }

    /// An empty batch with room for `n_rows` rows.
    fn filling(&mut self, n_rows: usize) -> Result<Filling<B::Buffer>, LoaderError> {
        let table = self.table.take().unwrap_or_default();
        let begin = |maker: &MatrixMaker| maker.begin(&*self.buffers, n_rows);
        Ok(Filling {
            x: match self.dataset.neighbours() {
                Some(_) => FillingX::Table { table, written: None },
                None => FillingX::Rows(begin(&self.x)?),
            },
            beside: self.beside.iter().map(begin).collect::<Result<_, _>>()?,
            rows: Vec::with_capacity(n_rows),
            n_rows,
        })
    }

    /// Makes X with neighbours.
    fn table_maker(&self) -> TableMaker<'_, B> {
        let transform = self.transform.as_ref();
        TableMaker {
            buffers: &*self.buffers,
            x: &self.x,
            k: self.dataset.neighbours().map_or(0, |of| of.k),
            transforms: transform.map(|transform| RowTransforms { transform, totals: None }),
            n_threads: self.n_threads,
        }
    }

    /// X of a full batch of `n_rows` cells, and their neighbours.
    fn finish_x(
        &mut self,
        x: FillingX<B::Buffer>,
        n_rows: usize,
    ) -> Result<(Matrix<B::Buffer>, Option<Neighbours>), LoaderError> {
        match x {
            FillingX::Rows(x) => Ok((self.x.finish(&*self.buffers, (x, n_rows))?, None)),
            FillingX::Table { mut table, written } => {
                let (x, neighbours, others) = match written {
                    Some(written) => written,
                    None => table.write(&self.table_maker())?,
                };
                self.helpers += others;
                self.table = Some(table);
                let n_rows = neighbours.joinids.len();
                Ok((self.x.finish(&*self.buffers, (x, n_rows))?, Some(neighbours)))
            }
        }
    }

    /// The matrices beside X of a full batch, whose cells have these experiments and joinids.
    fn finish_beside(
        &mut self,
        full: Vec<Unfinished<B::Buffer>>,
        cells: (&[u32], &[i64]),
    ) -> Result<Finished<B::Buffer>, LoaderError> {
        let mut finished =
            Finished { layers: Vec::new(), obsm: Vec::new(), modalities: Vec::new() };
        let makers = self.beside.iter_mut().zip(full).zip(self.dataset.matrices_beside());
        for ((maker, full), matrix) in makers {
            let Some(Beside { kind, name, .. }) = matrix.beside else { continue };
            let (x, name) = (maker.finish(&*self.buffers, (full, cells.1.len()))?, name.clone());
            match kind {
                BesideKind::Layer => finished.layers.push((name, x)),
                BesideKind::Obsm => finished.obsm.push((name, x)),
                BesideKind::Modality => {
                    let present = present(&matrix, cells);
                    finished.modalities.push((name, Modality { x, present }));
                }
            }
        }
        Ok(finished)
    }
}

/// The matrices beside X of a full batch, with their names.
struct Finished<V> {
    layers: Vec<(String, Matrix<V>)>,
    obsm: Vec<(String, Matrix<V>)>,
    modalities: Vec<(String, Modality<V>)>,
}

/// Whether a matrix has each of the cells with these experiments and joinids.
fn present(matrix: &DatasetMatrix<'_>, (experiments, joinids): (&[u32], &[i64])) -> Vec<bool> {
    let has_cell = |(experiment, joinid): (&u32, &i64)| {
        matrix.of_each[*experiment as usize].has_cell(*joinid as u64)
    };
    experiments.iter().zip(joinids).map(has_cell).collect()
}

/// X of a batch that is not yet full.
enum FillingX<V> {
    Rows(Unfinished<V>),
    /// With neighbours. It is written early if one block has all cells of the batch.
    Table {
        table: Box<Table>,
        written: Option<Written<V>>,
    },
}

/// A batch that is not yet full.
struct Filling<V> {
    x: FillingX<V>,
    beside: Vec<Unfinished<V>>,
    /// Rows of the selection, in the batch's order.
    rows: Vec<u64>,
    /// Number of rows of the full batch; fewer follow if some cannot be read.
    n_rows: usize,
}

impl<V: BatchBuffer> Filling<V> {
    /// Appends rows of a block. Returns the time of the threads that helped to write them.
    fn add<B: BatchBuffers<Buffer = V>>(
        &mut self,
        assembler: &Assembler<B>,
        block: &Block,
        order: &[u32],
    ) -> Result<ThreadTime, LoaderError> {
        let first = self.rows.len();
        self.rows.extend(order.iter().map(|&row| block.selection_row(row)));
        let totals: Option<Vec<f64>> = match (assembler.totals, assembler.dataset.totals()) {
            (Totals::Obs, Some(totals)) if assembler.transform.is_some() => {
                Some(self.rows[first..].iter().map(|&row| totals[row as usize]).collect())
            }
            _ => None,
        };
        let transforms = assembler
            .transform
            .as_ref()
            .map(|transform| RowTransforms { transform, totals: totals.as_deref() });
        let rows = Rows { first, order, transforms, n_threads: assembler.n_threads };
        let added = match &mut self.x {
            FillingX::Rows(x) => x.add(&*assembler.buffers, &block.x, rows),
            FillingX::Table { table, written } => {
                let is_whole = order.len() == self.n_rows;
                let added = table.add(&assembler.table_maker(), block, (order, is_whole));
                added.map(|made| *written = made).map(|()| ThreadTime::default())
            }
        };
        let mut others = added.map_err(|error| match error {
            LoaderError::Densify { source: densify::Error::Total { row_idx, total }, .. } => {
                let (experiment, joinid) =
                    assembler.dataset.origin(block.selection_row(row_idx as u32));
                LoaderError::Total { experiment, joinid, total }
            }
            error => error,
        })?;
        let rows = Rows { transforms: None, ..rows };
        for (unfinished, of_block) in self.beside.iter_mut().zip(&block.beside) {
            others += unfinished.add(&*assembler.buffers, of_block, rows)?;
        }
        Ok(others)
    }
}
