//! Reads blocks of cells, in the form that the settings ask for.

use std::ops::Range;
use std::thread;

use arrow_array::{ArrayRef, RecordBatch};
use densify::{AxisIndex, CooToCsr, CooView, OwnedCoo};
use pipeline::{BlockPlace, BlockRows, ReadStats, Stop};
use soma_io::{CsrBuffers, RowRanges};
use worktime::ThreadTime;

use crate::beside::DatasetMatrix;
use crate::block::{Block, BlockMatrix, densify_error};
use crate::dataset::Dataset;
use crate::error::LoaderError;
use crate::selected::{Part, SelectedMatrix};
use crate::spec::BlockForm;

/// Threads that read matrices beside X.
const READ_BESIDE: &str = "loader-read-beside";

/// Memory of a reading thread, reused from block to block.
#[derive(Default)]
pub(crate) struct Scratch {
    /// For each matrix the index of each experiment's columns, made when first needed.
    columns: Vec<Vec<Option<AxisIndex>>>,
    /// For each matrix that is read at the same time.
    buffers: Vec<Buffers>,
}

/// Values on their way to a block.
#[derive(Default)]
struct Buffers {
    to_csr: CooToCsr,
    /// Rows of a further experiment, before they are appended to those of the first.
    further: CsrBuffers,
}

/// Reads blocks of a data set in one form.
pub(crate) struct BlockReader<'a> {
    pub(crate) dataset: &'a Dataset,
    pub(crate) form: BlockForm,
}

impl BlockReader<'_> {
    /// Reads rows of the selection into a block: X and each matrix beside it, one after another in
    /// the same memory, or all at the same time if their readers wait for remote answers.
    pub(crate) fn fill(
        &self,
        wanted: &BlockRows<'_>,
        block: &mut Block,
        scratch: &mut Scratch,
        stop: &Stop,
    ) -> Result<ReadStats, LoaderError> {
        let (rows, place) = (wanted.ranges, wanted.place);
        let parts = self.dataset.parts(rows);
        self.announce(wanted.next);
        block.rows.clear();
        block.rows.extend(rows.iter().cloned().flatten());
        let n_rows = block.rows.len();
        let n_beside = self.dataset.beside.len();
        let at_once = self.dataset.reads_at_once();
        let Scratch { columns, buffers } = scratch;
        columns.resize_with(1 + n_beside, Vec::new);
        buffers.resize_with(if at_once { 1 + n_beside } else { 1 }, Buffers::default);
        let into = block.matrices_mut(n_beside);
        let jobs =
            self.dataset.matrices().zip(into).zip(columns).map(|((matrix, into), columns)| {
                columns.resize_with(self.dataset.n_experiments(), || None);
                (into.place, into.n_rows, into.n_columns) = (place, n_rows, matrix.n_columns);
                let reader = MatrixReader { matrix, parts: &parts, place, stop };
                (reader, into, columns)
            });
        let mut all = ReadStats::nothing();
        if at_once {
            for read in read_at_once(self.form, jobs.zip(buffers))? {
                all += read?;
            }
            return Ok(all);
        }
        for (reader, into, columns) in jobs {
            all += reader.read(self.form, into, columns, &mut buffers[0])?;
        }
        Ok(all)
    }

    /// Announces the rows of the block after the one that is read next.
    fn announce(&self, rows: &[Range<u64>]) {
        if rows.is_empty() {
            return;
        }
        for part in self.dataset.parts(rows) {
            // The read itself reports rows that cannot be.
            let Ok(ranges) = RowRanges::new(part.joinids) else { continue };
            for matrix in self.dataset.matrices() {
                let matrix = matrix.of_each[part.source];
                matrix.reader.announce_next(&ranges, &matrix.columns.selection);
            }
        }
    }
}

/// One matrix to read: its reader, its place in the block, and memory of its own.
type Job<'a> =
    ((MatrixReader<'a>, &'a mut BlockMatrix, &'a mut Vec<Option<AxisIndex>>), &'a mut Buffers);

/// Reads all matrices at the same time, the first one on this thread.
fn read_at_once<'a>(
    form: BlockForm,
    jobs: impl Iterator<Item = Job<'a>>,
) -> Result<Vec<Result<ReadStats, LoaderError>>, LoaderError> {
    let read = move |((reader, into, columns), buffers): Job<'a>| {
        reader.read(form, into, columns, buffers)
    };
    let mut jobs = jobs;
    let first = jobs.next();
    thread::scope(|scope| {
        let mut others = Vec::new();
        for job in jobs {
            let spawned = thread::Builder::new().name(READ_BESIDE.to_owned());
            let spawned = spawned.spawn_scoped(scope, move || read(job));
            let failed = |source| pipeline::Error::Spawn { thread: READ_BESIDE, source };
            others.push(spawned.map_err(failed)?);
        }
        let mut all: Vec<_> = first.into_iter().map(read).collect();
        for other in others {
            all.push(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        Ok(all)
    })
}

/// Reads one matrix of a block.
struct MatrixReader<'a> {
    matrix: DatasetMatrix<'a>,
    parts: &'a [Part],
    place: BlockPlace,
    stop: &'a Stop,
}

impl MatrixReader<'_> {
    fn read(
        &self,
        form: BlockForm,
        into: &mut BlockMatrix,
        columns: &mut [Option<AxisIndex>],
        buffers: &mut Buffers,
    ) -> Result<ReadStats, LoaderError> {
        if let Some(part) = self.parts.first()
            && self.stop.is_set()
        {
            return Err(part.read_error(self.place, dropped()));
        }
        match form {
            BlockForm::Dense => self.read_dense(into, columns),
            BlockForm::ConvertedCsr => self.read_coo(into, columns, &mut buffers.to_csr),
            BlockForm::Csr => match self.parts {
                [part] if self.matrix.packs() => self.read_packed(into, part),
                _ => self.read_csr(into, &mut buffers.further),
            },
        }
    }

    /// The matrix in the experiment of a part.
    fn selected(&self, part: &Part) -> &SelectedMatrix {
        self.matrix.of_each[part.source]
    }

    /// Reads packed CSR straight into the block.
    fn read_packed(&self, into: &mut BlockMatrix, part: &Part) -> Result<ReadStats, LoaderError> {
        let mut all = ReadStats::nothing();
        let csr = into.packed_mut();
        let matrix = self.selected(part);
        let failed = |error| part.read_error(self.place, error);
        let rows = RowRanges::new(part.joinids.clone()).map_err(failed)?;
        let selection = &matrix.columns.selection;
        all += matrix.reader.read_packed(&rows, selection, csr).map_err(failed)?;
        part.check_shape(matrix, (csr.n_rows(), csr.n_columns()), self.place.block_idx)?;
        Ok(all)
    }

    /// Reads CSR: the first part straight into the block, the others through `further`.
    fn read_csr(
        &self,
        into: &mut BlockMatrix,
        further: &mut CsrBuffers,
    ) -> Result<ReadStats, LoaderError> {
        let mut all = ReadStats::nothing();
        let (block_idx, n_columns) = (self.place.block_idx, into.n_columns);
        let csr = into.csr_mut();
        if self.parts.is_empty() {
            csr.clear();
            csr.n_columns = n_columns;
        }
        for (part_idx, part) in self.parts.iter().enumerate() {
            let matrix = self.selected(part);
            let failed = |error| part.read_error(self.place, error);
            let rows = RowRanges::new(part.joinids.clone()).map_err(failed)?;
            let out = if part_idx == 0 { &mut *csr } else { &mut *further };
            let selection = &matrix.columns.selection;
            all += matrix.reader.read_csr(&rows, selection, out).map_err(failed)?;
            let start = worktime::now();
            part.check_shape(matrix, (out.n_rows(), out.n_columns), block_idx)?;
            matrix
                .columns
                .place(out)
                .map_err(|column| part.column_error(matrix, column, block_idx))?;
            if part_idx > 0 {
                append(csr, further);
            }
            // Otherwise nothing was converted.
            if part_idx > 0 || matrix.columns.is_placed() {
                all.convert += worktime::now() - start;
            }
        }
        Ok(all)
    }

    /// Reads COO and scatters each piece into a dense block as it comes.
    fn read_dense(
        &self,
        into: &mut BlockMatrix,
        columns: &mut [Option<AxisIndex>],
    ) -> Result<ReadStats, LoaderError> {
        let start = worktime::now();
        let n_columns = into.n_columns;
        let values = into.zeroed_dense()?;
        let begin_time = worktime::now() - start;
        let mut each = |piece: CooView<'_>, rows: &AxisIndex, columns: &AxisIndex| {
            let up_to_here = &mut values[..rows.len() * n_columns];
            densify::scatter_coo(piece, rows, columns, up_to_here)
        };
        let mut all = self.each_part(columns, &mut each)?;
        all.convert += begin_time;
        Ok(all)
    }

    /// Reads COO, collects all pieces, and converts them to CSR.
    fn read_coo(
        &self,
        into: &mut BlockMatrix,
        columns: &mut [Option<AxisIndex>],
        to_csr: &mut CooToCsr,
    ) -> Result<ReadStats, LoaderError> {
        to_csr.clear();
        let mut each = |piece: CooView<'_>, rows: &AxisIndex, columns: &AxisIndex| {
            to_csr.add(piece, rows, columns)
        };
        let mut all = self.each_part(columns, &mut each)?;
        let start = worktime::now();
        let (n_rows, n_columns) = (into.n_rows, into.n_columns);
        let counted = to_csr.finish(n_rows, n_columns, into.csr_mut());
        counted.map_err(|source| densify_error(self.place, source))?;
        all.convert += worktime::now() - start;
        Ok(all)
    }

    /// Reads the parts of a block as COO and passes each piece to `convert`, with the index of the
    /// block's rows up to the end of the part, and the index of the columns.
    fn each_part(
        &self,
        indices: &mut [Option<AxisIndex>],
        convert: &mut dyn FnMut(CooView<'_>, &AxisIndex, &AxisIndex) -> Result<(), densify::Error>,
    ) -> Result<ReadStats, LoaderError> {
        let mut all = ReadStats::nothing();
        let mut first_row = 0;
        let failed = |source| densify_error(self.place, source);
        for part in self.parts {
            let rows = AxisIndex::ranges("cell", part.joinids.iter().cloned())
                .map_err(failed)?
                .from_position(first_row);
            let place = &mut indices[part.source];
            let columns = match place.take() {
                Some(columns) => columns,
                None => self.selected(part).columns.index().map_err(failed)?,
            };
            let columns = place.insert(columns);
            let result = self.each_piece(part, |piece| convert(piece, &rows, columns));
            all += result.map_err(|failure| failure.into_error(self.place, part))?;
            first_row += part.n_rows;
        }
        Ok(all)
    }

    /// Reads one part as COO and passes each piece to `convert`.
    fn each_piece(
        &self,
        part: &Part,
        mut convert: impl FnMut(CooView<'_>) -> Result<(), densify::Error>,
    ) -> Result<ReadStats, Failure> {
        let mut convert_time = ThreadTime::default();
        let mut broken = None;
        let SelectedMatrix { reader, columns } = self.selected(part);
        let rows = RowRanges::new(part.joinids.clone()).map_err(Failure::Read)?;
        let read = reader.read_coo(&rows, &columns.selection, &mut |piece| {
            if self.stop.is_set() {
                return Err(dropped());
            }
            let start = worktime::now();
            let [rows, columns, values] = coo_columns(piece)?;
            let converted =
                OwnedCoo::from_arrow(rows, columns, values).and_then(|coo| convert(coo.view()));
            convert_time += worktime::now() - start;
            converted.map_err(|error| {
                let message = error.to_string();
                broken = Some(error);
                soma_io::Error::Consumer { message }
            })
        });
        match (read, broken) {
            (_, Some(source)) => Err(Failure::Convert(source)),
            (Err(source), None) => Err(Failure::Read(source)),
            (Ok(read), None) => Ok(ReadStats { convert: convert_time, ..read }),
        }
    }
}

/// The reason why a block could not be read as COO.
enum Failure {
    Read(soma_io::Error),
    Convert(densify::Error),
}

impl Failure {
    fn into_error(self, block: BlockPlace, part: &Part) -> LoaderError {
        match self {
            Self::Read(source) => part.read_error(block, source),
            Self::Convert(source) => densify_error(block, source),
        }
    }
}

/// Appends the rows of `further` to those of `csr`.
fn append(csr: &mut CsrBuffers, further: &CsrBuffers) {
    let n_before = csr.values.len();
    csr.columns.extend_from_slice(&further.columns);
    csr.values.extend_from_slice(&further.values);
    csr.row_offsets.extend(further.row_offsets.iter().skip(1).map(|offset| n_before + offset));
}

/// The columns of cells, genes and values in a table of SOMA.
fn coo_columns(piece: &RecordBatch) -> Result<[&ArrayRef; 3], soma_io::Error> {
    let column = |name: &str| {
        piece
            .column_by_name(name)
            .ok_or_else(|| give_up(&format!("the reader returned a table without column {name}")))
    };
    Ok([column("soma_dim_0")?, column("soma_dim_1")?, column("soma_data")?])
}

/// The error of a read that nobody waits for any more.
fn dropped() -> soma_io::Error {
    give_up("the epoch was dropped")
}

fn give_up(message: &str) -> soma_io::Error {
    soma_io::Error::Consumer { message: message.to_owned() }
}
