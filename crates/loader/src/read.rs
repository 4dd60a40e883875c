//! Reads the blocks of an epoch in their order: the work of the reading thread.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use arrow_array::{ArrayRef, RecordBatch};
use crossbeam_channel::{Receiver, Sender};
use densify::{AxisIndex, CooToCsr, CooView, OwnedCoo};
use shuffle::{BlockPlan, EpochPlan};
use soma_io::{GeneSelection, ReadStats, RowRanges};

use crate::block::Block;
use crate::dataset::Dataset;
use crate::error::Error;
use crate::spec::Method;
use crate::stats::Counters;

/// What the reading thread needs.
pub(crate) struct BlockReading {
    pub(crate) dataset: Dataset,
    pub(crate) method: Method,
    pub(crate) epoch: u64,
    /// Rows that are delivered; blocks behind them are not read.
    pub(crate) n_rows_wanted: u64,
    /// Blocks to read into.
    pub(crate) free: Receiver<Block>,
    /// Takes the blocks that are read.
    pub(crate) full: Sender<Block>,
    /// Set when nobody wants blocks any more.
    pub(crate) stop: Arc<AtomicBool>,
    pub(crate) counters: Counters,
}

/// The cells of a block before they are rows. Used again from block to block.
struct Coo {
    columns: AxisIndex,
    to_csr: CooToCsr,
}

impl BlockReading {
    /// Reads until the plan or the rows wanted end, or nobody takes blocks any more.
    pub(crate) fn run(self, plan: EpochPlan) -> Result<(), Error> {
        let mut coo: Option<Coo> = None;
        let mut n_rows = 0;
        for block_plan in plan {
            if n_rows >= self.n_rows_wanted {
                break;
            }
            let Ok(mut block) = self.free.recv() else { break };
            if self.stop.load(Ordering::Relaxed) {
                break;
            }
            match self.fill(&mut block, block_plan, &mut coo) {
                // Told to stop, the reader gave up: that is no error.
                Err(_) if self.stop.load(Ordering::Relaxed) => break,
                result => result?,
            }
            n_rows += block.n_rows() as u64;
            if self.full.send(block).is_err() {
                break;
            }
        }
        Ok(())
    }

    fn fill(&self, block: &mut Block, plan: BlockPlan, coo: &mut Option<Coo>) -> Result<(), Error> {
        let ranges = self.dataset.cells().joinid_ranges(&plan.chunks);
        block.epoch = self.epoch;
        block.idx = plan.block_idx;
        block.joinids = span(&ranges);
        block.n_columns = self.dataset.n_columns();
        block.rows.clear();
        block.rows.extend(plan.chunks.iter().cloned().flatten());
        block.order = plan.order;
        let rows = RowRanges::new(ranges).map_err(|source| block.read_error(source))?;

        let start = Instant::now();
        let (read, convert_time) = match self.method {
            Method::NpArray => self.read_dense(block, &rows, self.coo(coo, block)?)?,
            Method::ScipyCsr => self.read_coo(block, &rows, self.coo(coo, block)?)?,
            Method::Native => (self.read_csr(block, &rows)?, Duration::ZERO),
        };
        let read_time = start.elapsed().saturating_sub(convert_time);
        self.counters.block_read(block.n_rows(), &read, read_time, convert_time);
        Ok(())
    }

    fn read_csr(&self, block: &mut Block, rows: &RowRanges) -> Result<ReadStats, Error> {
        let read = self.dataset.x().read_csr(rows, self.dataset.genes(), block.csr_to_read());
        let read = read.map_err(|source| block.read_error(source))?;
        block.check_shape(read.reader)?;
        Ok(read)
    }

    /// Scatters each piece into a dense block as it comes.
    fn read_dense(
        &self,
        block: &mut Block,
        rows: &RowRanges,
        coo: &mut Coo,
    ) -> Result<(ReadStats, Duration), Error> {
        let start = Instant::now();
        let index = row_index(block, rows)?;
        let values = block.zeroed_dense()?;
        let begin_time = start.elapsed();
        let result = self
            .each_piece(rows, |piece| densify::scatter_coo(piece, &index, &coo.columns, values));
        let (read, convert_time) = result.map_err(|failure| failure.of(block))?;
        Ok((read, begin_time + convert_time))
    }

    /// Collects all pieces, then counts them into CSR.
    fn read_coo(
        &self,
        block: &mut Block,
        rows: &RowRanges,
        coo: &mut Coo,
    ) -> Result<(ReadStats, Duration), Error> {
        let index = row_index(block, rows)?;
        let Coo { columns, to_csr } = coo;
        to_csr.clear();
        let result = self.each_piece(rows, |piece| to_csr.add(piece, &index, columns));
        let (read, add_time) = result.map_err(|failure| failure.of(block))?;
        let start = Instant::now();
        let (n_rows, n_columns) = (block.n_rows(), block.n_columns);
        let counted = to_csr.finish(n_rows, n_columns, block.csr_to_count());
        counted.map_err(|source| block.densify_error(source))?;
        Ok((read, add_time + start.elapsed()))
    }

    /// Reads COO and gives each piece to `convert`; says how long that took in all.
    fn each_piece(
        &self,
        rows: &RowRanges,
        mut convert: impl FnMut(CooView<'_>) -> Result<(), densify::Error>,
    ) -> Result<(ReadStats, Duration), Failure> {
        let mut convert_time = Duration::ZERO;
        let mut broken = None;
        let reader = self.dataset.x();
        let read = reader.read_coo(rows, self.dataset.genes(), &mut |piece| {
            if self.stop.load(Ordering::Relaxed) {
                return Err(give_up("the epoch was dropped"));
            }
            let start = Instant::now();
            let [rows, columns, values] = coo_columns(piece)?;
            let converted =
                OwnedCoo::from_arrow(rows, columns, values).and_then(|coo| convert(coo.view()));
            convert_time += start.elapsed();
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

    /// The state that the methods by way of COO share, made when it is first needed.
    fn coo<'a>(&self, coo: &'a mut Option<Coo>, block: &Block) -> Result<&'a mut Coo, Error> {
        let made = match coo.take() {
            Some(made) => made,
            None => Coo { columns: self.column_index(block)?, to_csr: CooToCsr::new() },
        };
        Ok(coo.insert(made))
    }

    fn column_index(&self, block: &Block) -> Result<AxisIndex, Error> {
        let index = match self.dataset.genes() {
            GeneSelection::All => AxisIndex::ranges("gene", [0..block.n_columns as u64]),
            GeneSelection::Range(range) => AxisIndex::ranges("gene", [range.clone()]),
            GeneSelection::List(list) => AxisIndex::list("gene", list),
        };
        index.map_err(|source| block.densify_error(source))
    }
}

/// Why a block could not be read as COO.
enum Failure {
    Read(soma_io::Error),
    Convert(densify::Error),
}

impl Failure {
    fn of(self, block: &Block) -> Error {
        match self {
            Self::Read(source) => block.read_error(source),
            Self::Convert(source) => block.densify_error(source),
        }
    }
}

fn row_index(block: &Block, rows: &RowRanges) -> Result<AxisIndex, Error> {
    AxisIndex::ranges("cell", rows.ranges().iter().cloned())
        .map_err(|source| block.densify_error(source))
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

/// From the first joinid to behind the last.
fn span(ranges: &[Range<u64>]) -> Range<u64> {
    ranges.first().map_or(0, |first| first.start)..ranges.last().map_or(0, |last| last.end)
}
