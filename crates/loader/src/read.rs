//! Reads the blocks of an epoch in their order: the work of the reading thread.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow_array::{ArrayRef, RecordBatch};
use crossbeam_channel::{Receiver, Sender};
use densify::{AxisIndex, CooToCsr, CooView, OwnedCoo};
use shuffle::{BlockPlan, EpochPlan};
use soma_io::{CsrBuffers, ReadStats, ReadTimes, RowRanges, ThreadTime, clock};

use crate::block::{Block, BlockId};
use crate::dataset::Dataset;
use crate::error::Error;
use crate::memory::{Ahead, BlocksMade, Densest};
use crate::source::{Part, Source};
use crate::spec::Method;
use crate::stats::{Counters, add};

/// What the reading thread needs.
pub(crate) struct BlockReading {
    pub(crate) dataset: Dataset,
    pub(crate) method: Method,
    pub(crate) epoch: u64,
    /// Rows that are delivered; blocks behind them are not read.
    pub(crate) n_rows_wanted: u64,
    /// Where rows come in their own order: so many are read first, for the first batch not to wait for a block, then twice as many,
    /// and so on until the first block is read.
    pub(crate) first_rows: Option<u64>,
    /// The blocks that there may be.
    pub(crate) ahead: Ahead,
    /// The densest block that was ever read.
    pub(crate) densest: Arc<Densest>,
    /// Blocks to read into.
    pub(crate) free: Receiver<Block>,
    /// Takes the blocks that are read.
    pub(crate) full: Sender<Block>,
    /// Set when nobody wants blocks any more.
    pub(crate) stop: Arc<AtomicBool>,
    pub(crate) counters: Counters,
}

/// What reading uses again from block to block.
#[derive(Default)]
struct Scratch {
    to_csr: CooToCsr,
    /// By experiment, made when first needed.
    columns: Vec<Option<AxisIndex>>,
    /// The rows of a further experiment, before they stand behind those of the first.
    further: CsrBuffers,
}

impl BlockReading {
    /// Reads until the plan or the rows wanted end, or nobody takes blocks any more.
    pub(crate) fn run(self, mut plan: EpochPlan) -> Result<(), Error> {
        let mut scratch = Scratch::default();
        scratch.columns.resize_with(self.dataset.n_experiments(), || None);
        let mut blocks = BlocksMade::new(self.ahead, Arc::clone(&self.densest));
        self.keep_decoded(&blocks);
        let mut n_rows = 0;
        let first = self.first_rows.and_then(|first_rows| Some(pieces(plan.next()?, first_rows)));
        let mut plans = first.into_iter().flatten().chain(plan);
        loop {
            let start = clock::now();
            let Some(block_plan) = plans.next() else { break };
            self.counters.shuffled(clock::now() - start);
            if n_rows >= self.n_rows_wanted {
                break;
            }
            let Some(mut block) = self.block(&mut blocks) else { break };
            if self.stop.load(Ordering::Relaxed) {
                break;
            }
            match self.fill(&mut block, block_plan, &mut scratch) {
                // Told to stop, the reader gave up: that is no error.
                Err(_) if self.stop.load(Ordering::Relaxed) => break,
                result => result?,
            }
            blocks.filled(&mut block)?;
            self.keep_decoded(&blocks);
            n_rows += block.n_rows() as u64;
            if self.full.send(block).is_err() {
                break;
            }
        }
        Ok(())
    }

    fn keep_decoded(&self, blocks: &BlocksMade) {
        if let Some(limit) = blocks.decoded_limit() {
            self.dataset.keep_decoded(limit);
        }
    }

    /// A block to read into: one that is used up, a new one where there may be another, or the next that will be used up. `None`
    /// where nobody takes blocks any more.
    fn block(&self, blocks: &mut BlocksMade) -> Option<Block> {
        loop {
            let used = self.free.try_recv().ok();
            let block = used.or_else(|| blocks.make()).or_else(|| self.free.recv().ok())?;
            if let Some(block) = blocks.keep(block) {
                return Some(block);
            }
        }
    }

    fn fill(&self, block: &mut Block, plan: BlockPlan, scratch: &mut Scratch) -> Result<(), Error> {
        let start = clock::now();
        let parts = self.dataset.parts(&plan.chunks);
        block.id = BlockId { epoch: self.epoch, idx: plan.block_idx };
        block.n_columns = self.dataset.n_columns();
        block.rows.clear();
        block.rows.extend(plan.chunks.iter().cloned().flatten());
        block.order = plan.order;
        self.counters.shuffled(clock::now() - start);

        let start = clock::now();
        let (read, convert_time) = match self.method {
            Method::NpArray => self.read_dense(block, &parts, scratch)?,
            Method::ScipyCsr => self.read_coo(block, &parts, scratch)?,
            Method::Native => match &parts[..] {
                [part] if self.dataset.packs() => self.read_packed(block, part)?,
                _ => self.read_csr(block, &parts, scratch)?,
            },
        };
        let read_time = clock::now() - start - convert_time;
        let rows = (block.id.idx, block.rows.len());
        self.counters.block_read(rows, &read, read_time, convert_time);
        Ok(())
    }

    /// Reads packed CSR straight into the block.
    fn read_packed(
        &self,
        block: &mut Block,
        part: &Part,
    ) -> Result<(BlockReads, ThreadTime), Error> {
        let mut all = BlockReads::default();
        let of = block.id;
        let csr = block.packed_to_read();
        let source = self.dataset.source(part.source);
        let failed = |error| part.read_error(of, error);
        let rows = RowRanges::new(part.joinids.clone()).map_err(failed)?;
        all.add(&source.x.read_packed(&rows, &source.genes.selection, csr).map_err(failed)?);
        part.check_shape(source, (csr.n_rows(), csr.n_columns()), of.idx)?;
        Ok((all, ThreadTime::default()))
    }

    /// Reads CSR, the first part straight into the block.
    fn read_csr(
        &self,
        block: &mut Block,
        parts: &[Part],
        scratch: &mut Scratch,
    ) -> Result<(BlockReads, ThreadTime), Error> {
        let (mut all, mut convert_time) = (BlockReads::default(), ThreadTime::default());
        let (of, n_columns) = (block.id, block.n_columns);
        let csr = block.csr_to_read();
        if parts.is_empty() {
            csr.clear();
            csr.n_columns = n_columns;
        }
        for (part_idx, part) in parts.iter().enumerate() {
            let source = self.dataset.source(part.source);
            let failed = |error| part.read_error(of, error);
            let rows = RowRanges::new(part.joinids.clone()).map_err(failed)?;
            let out = if part_idx == 0 { &mut *csr } else { &mut scratch.further };
            all.add(&source.x.read_csr(&rows, &source.genes.selection, out).map_err(failed)?);
            let start = clock::now();
            part.check_shape(source, (out.n_rows(), out.n_columns), of.idx)?;
            source.genes.place(out).map_err(|column| part.column_error(source, column, of.idx))?;
            if part_idx > 0 {
                append(csr, &scratch.further);
            }
            // Otherwise there is nothing to convert.
            if part_idx > 0 || source.genes.is_placed() {
                convert_time += clock::now() - start;
            }
        }
        Ok((all, convert_time))
    }

    /// Scatters each piece into a dense block as it comes.
    fn read_dense(
        &self,
        block: &mut Block,
        parts: &[Part],
        scratch: &mut Scratch,
    ) -> Result<(BlockReads, ThreadTime), Error> {
        let start = clock::now();
        block.zeroed_dense()?;
        let begin_time = clock::now() - start;
        let (of, n_columns) = (block.id, block.n_columns);
        let values = block.dense_mut();
        let (all, convert_time) =
            self.each_part(of, parts, &mut scratch.columns, |piece, rows, columns| {
                let up_to_here = &mut values[..rows.len() * n_columns];
                densify::scatter_coo(piece, rows, columns, up_to_here)
            })?;
        Ok((all, begin_time + convert_time))
    }

    /// Collects all pieces, then counts them into CSR.
    fn read_coo(
        &self,
        block: &mut Block,
        parts: &[Part],
        scratch: &mut Scratch,
    ) -> Result<(BlockReads, ThreadTime), Error> {
        let Scratch { to_csr, columns, .. } = scratch;
        to_csr.clear();
        let (all, add_time) =
            self.each_part(block.id, parts, columns, |piece, rows, columns| {
                to_csr.add(piece, rows, columns)
            })?;
        let start = clock::now();
        let (n_rows, n_columns) = (block.rows.len(), block.n_columns);
        let counted = to_csr.finish(n_rows, n_columns, block.csr_to_count());
        counted.map_err(|source| block.id.densify_error(source))?;
        Ok((all, add_time + (clock::now() - start)))
    }

    /// Reads the parts of a block as COO and gives each piece to `convert`, with where the block's rows up to the end of the part and
    /// the columns are; says how long that took in all.
    fn each_part(
        &self,
        of: BlockId,
        parts: &[Part],
        indices: &mut [Option<AxisIndex>],
        mut convert: impl FnMut(CooView<'_>, &AxisIndex, &AxisIndex) -> Result<(), densify::Error>,
    ) -> Result<(BlockReads, ThreadTime), Error> {
        let (mut all, mut convert_time) = (BlockReads::default(), ThreadTime::default());
        let mut first_row = 0;
        for part in parts {
            let rows = AxisIndex::ranges("cell", part.joinids.iter().cloned())
                .map_err(|source| of.densify_error(source))?
                .from_position(first_row);
            let place = &mut indices[part.source];
            let columns = match place.take() {
                Some(columns) => columns,
                None => self
                    .dataset
                    .source(part.source)
                    .genes
                    .index()
                    .map_err(|source| of.densify_error(source))?,
            };
            let columns = place.insert(columns);
            let result = self.each_piece(part, |piece| convert(piece, &rows, columns));
            let (read, time) = result.map_err(|failure| failure.of(of, part))?;
            all.add(&read);
            convert_time += time;
            first_row += part.n_rows;
        }
        Ok((all, convert_time))
    }

    /// Reads COO and gives each piece to `convert`; says how long that took in all.
    fn each_piece(
        &self,
        part: &Part,
        mut convert: impl FnMut(CooView<'_>) -> Result<(), densify::Error>,
    ) -> Result<(ReadStats, ThreadTime), Failure> {
        let mut convert_time = ThreadTime::default();
        let mut broken = None;
        let Source { x, genes, .. } = self.dataset.source(part.source);
        let rows = RowRanges::new(part.joinids.clone()).map_err(Failure::Read)?;
        let read = x.read_coo(&rows, &genes.selection, &mut |piece| {
            if self.stop.load(Ordering::Relaxed) {
                return Err(give_up("the epoch was dropped"));
            }
            let start = clock::now();
            let [rows, columns, values] = coo_columns(piece)?;
            let converted =
                OwnedCoo::from_arrow(rows, columns, values).and_then(|coo| convert(coo.view()));
            convert_time += clock::now() - start;
            converted.map_err(|error| {
                let message = error.to_string();
                broken = Some(error);
                soma_io::Error::Consumer { message }
            })
        });
        match (read, broken) {
            (_, Some(source)) => Err(Failure::Convert(source)),
            (Err(source), None) => Err(Failure::Read(source)),
            (Ok(read), None) => Ok((read, convert_time)),
        }
    }
}

/// Cuts a block whose rows come in their own order: `first_rows`, then twice as many, and so on.
fn pieces(plan: BlockPlan, first_rows: u64) -> Vec<BlockPlan> {
    let mut pieces: Vec<BlockPlan> = Vec::new();
    // Rows that repeat others come out of their order.
    if plan.order.iter().zip(0..).any(|(at, idx)| *at != idx) {
        return vec![plan];
    }
    let (mut wanted, mut chunks, mut n_rows) = (first_rows, Vec::new(), 0);
    let mut cut = |chunks: &mut Vec<Range<u64>>, n_rows: &mut u64| {
        let order = (0..std::mem::take(n_rows) as u32).collect();
        let chunks = std::mem::take(chunks);
        pieces.push(BlockPlan { block_idx: plan.block_idx, chunks, order });
    };
    for chunk in &plan.chunks {
        let mut start = chunk.start;
        while start < chunk.end {
            let end = chunk.end.min(start + (wanted - n_rows));
            chunks.push(start..end);
            n_rows += end - start;
            start = end;
            if n_rows == wanted {
                cut(&mut chunks, &mut n_rows);
                wanted = wanted.saturating_mul(2);
            }
        }
    }
    if n_rows > 0 {
        cut(&mut chunks, &mut n_rows);
    }
    pieces
}

/// What the reads of a block did.
#[derive(Debug)]
pub(crate) struct BlockReads {
    pub(crate) nnz: u64,
    pub(crate) bytes: Option<u64>,
    pub(crate) requests: Option<u64>,
    pub(crate) cells_decoded: Option<u64>,
    pub(crate) bytes_decoded: Option<u64>,
    pub(crate) bytes_needed: Option<u64>,
    /// None as soon as one part's reader does not tell.
    pub(crate) times: Option<ReadTimes>,
}

impl Default for BlockReads {
    fn default() -> Self {
        Self {
            nnz: 0,
            bytes: Some(0),
            requests: Some(0),
            cells_decoded: Some(0),
            bytes_decoded: Some(0),
            bytes_needed: Some(0),
            times: Some(ReadTimes::default()),
        }
    }
}

impl BlockReads {
    fn add(&mut self, one: &ReadStats) {
        self.nnz += one.nnz;
        self.bytes = add(self.bytes, one.bytes_read);
        self.requests = add(self.requests, one.requests);
        self.cells_decoded = add(self.cells_decoded, one.cells_decoded);
        self.bytes_decoded = add(self.bytes_decoded, one.bytes_decoded);
        self.bytes_needed = add(self.bytes_needed, one.bytes_needed);
        self.times = self.times.zip(one.times).map(|(mut all, one)| {
            all += one;
            all
        });
    }
}

/// Why a block could not be read as COO.
enum Failure {
    Read(soma_io::Error),
    Convert(densify::Error),
}

impl Failure {
    fn of(self, block: BlockId, part: &Part) -> Error {
        match self {
            Self::Read(source) => part.read_error(block, source),
            Self::Convert(source) => block.densify_error(source),
        }
    }
}

/// Puts the rows of `further` behind those of `csr`.
fn append(csr: &mut CsrBuffers, further: &CsrBuffers) {
    let n_before = csr.values.len();
    csr.columns.extend_from_slice(&further.columns);
    csr.values.extend_from_slice(&further.values);
    csr.row_offsets.extend(further.row_offsets.iter().skip(1).map(|offset| n_before + offset));
}

/// Cells, genes and values of a table as SOMA names them.
fn coo_columns(piece: &RecordBatch) -> Result<[&ArrayRef; 3], soma_io::Error> {
    let column = |name: &str| {
        piece
            .column_by_name(name)
            .ok_or_else(|| give_up(&format!("the reader gave a table without column {name}")))
    };
    Ok([column("soma_dim_0")?, column("soma_dim_1")?, column("soma_data")?])
}

fn give_up(message: &str) -> soma_io::Error {
    soma_io::Error::Consumer { message: message.to_owned() }
}
