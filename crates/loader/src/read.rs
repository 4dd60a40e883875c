//! Reads blocks of cells, in the form that the settings ask for.

use arrow_array::{ArrayRef, RecordBatch};
use densify::{AxisIndex, CooToCsr, CooView, OwnedCoo};
use pipeline::{BlockPlace, BlockRows, ReadStats, Stop};
use soma_io::{CsrBuffers, RowRanges};
use worktime::{ReadTimes, ThreadTime};

use crate::block::{Block, densify_error};
use crate::dataset::Dataset;
use crate::error::Error;
use crate::selected_x::{Part, SelectedX};
use crate::spec::BlockForm;

/// Memory of a reading thread, reused from block to block.
#[derive(Default)]
pub(crate) struct Scratch {
    to_csr: CooToCsr,
    /// The index of each experiment's genes, made when first needed.
    columns: Vec<Option<AxisIndex>>,
    /// Rows of a further experiment, before they are appended to those of the first.
    further: CsrBuffers,
}

/// Reads blocks of a data set in one form.
pub(crate) struct BlockReader<'a> {
    pub(crate) dataset: &'a Dataset,
    pub(crate) form: BlockForm,
}

impl BlockReader<'_> {
    /// Reads rows of the selection into a block.
    pub(crate) fn fill(
        &self,
        wanted: &BlockRows<'_>,
        block: &mut Block,
        scratch: &mut Scratch,
        stop: &Stop,
    ) -> Result<ReadStats, Error> {
        scratch.columns.resize_with(self.dataset.n_experiments(), || None);
        let rows = wanted.ranges;
        let parts = self.dataset.parts(rows);
        block.place = wanted.place;
        block.n_columns = self.dataset.n_columns();
        block.rows.clear();
        block.rows.extend(rows.iter().cloned().flatten());
        match self.form {
            BlockForm::Dense => self.read_dense(block, &parts, scratch, stop),
            BlockForm::ConvertedCsr => self.read_coo(block, &parts, scratch, stop),
            BlockForm::Csr => match &parts[..] {
                [part] if self.dataset.packs() => self.read_packed(block, part),
                _ => self.read_csr(block, &parts, scratch),
            },
        }
    }

    /// Reads packed CSR straight into the block.
    fn read_packed(&self, block: &mut Block, part: &Part) -> Result<ReadStats, Error> {
        let mut all = nothing_read();
        let of = block.place;
        let csr = block.packed_mut();
        let source = self.dataset.source(part.source);
        let failed = |error| part.read_error(of, error);
        let rows = RowRanges::new(part.joinids.clone()).map_err(failed)?;
        all.add(&counted(
            &source.x.read_packed(&rows, &source.genes.selection, csr).map_err(failed)?,
        ));
        part.check_shape(source, (csr.n_rows(), csr.n_columns()), of.block_idx)?;
        Ok(all)
    }

    /// Reads CSR: the first part straight into the block, the others through `scratch`.
    fn read_csr(
        &self,
        block: &mut Block,
        parts: &[Part],
        scratch: &mut Scratch,
    ) -> Result<ReadStats, Error> {
        let mut all = nothing_read();
        let (of, n_columns) = (block.place, block.n_columns);
        let csr = block.csr_mut();
        if parts.is_empty() {
            csr.clear();
            csr.n_columns = n_columns;
        }
        for (part_idx, part) in parts.iter().enumerate() {
            let source = self.dataset.source(part.source);
            let failed = |error| part.read_error(of, error);
            let rows = RowRanges::new(part.joinids.clone()).map_err(failed)?;
            let out = if part_idx == 0 { &mut *csr } else { &mut scratch.further };
            all.add(&counted(
                &source.x.read_csr(&rows, &source.genes.selection, out).map_err(failed)?,
            ));
            let start = worktime::now();
            part.check_shape(source, (out.n_rows(), out.n_columns), of.block_idx)?;
            source
                .genes
                .place(out)
                .map_err(|column| part.column_error(source, column, of.block_idx))?;
            if part_idx > 0 {
                append(csr, &scratch.further);
            }
            // Otherwise nothing was converted.
            if part_idx > 0 || source.genes.is_placed() {
                all.convert += worktime::now() - start;
            }
        }
        Ok(all)
    }

    /// Reads COO and scatters each piece into a dense block as it comes.
    fn read_dense(
        &self,
        block: &mut Block,
        parts: &[Part],
        scratch: &mut Scratch,
        stop: &Stop,
    ) -> Result<ReadStats, Error> {
        let start = worktime::now();
        let (of, n_columns) = (block.place, block.n_columns);
        let values = block.zeroed_dense()?;
        let begin_time = worktime::now() - start;
        let mut each = |piece: CooView<'_>, rows: &AxisIndex, columns: &AxisIndex| {
            let up_to_here = &mut values[..rows.len() * n_columns];
            densify::scatter_coo(piece, rows, columns, up_to_here)
        };
        let mut all = self.each_part((of, parts), &mut scratch.columns, stop, &mut each)?;
        all.convert += begin_time;
        Ok(all)
    }

    /// Reads COO, collects all pieces, and converts them to CSR.
    fn read_coo(
        &self,
        block: &mut Block,
        parts: &[Part],
        scratch: &mut Scratch,
        stop: &Stop,
    ) -> Result<ReadStats, Error> {
        let Scratch { to_csr, columns, .. } = scratch;
        to_csr.clear();
        let mut each = |piece: CooView<'_>, rows: &AxisIndex, columns: &AxisIndex| {
            to_csr.add(piece, rows, columns)
        };
        let mut all = self.each_part((block.place, parts), columns, stop, &mut each)?;
        let start = worktime::now();
        let (n_rows, n_columns) = (block.rows.len(), block.n_columns);
        let counted = to_csr.finish(n_rows, n_columns, block.csr_mut());
        counted.map_err(|source| densify_error(block.place, source))?;
        all.convert += worktime::now() - start;
        Ok(all)
    }

    /// Reads the parts of a block as COO and passes each piece to `convert`, with the index of the
    /// block's rows up to the end of the part, and the index of the columns.
    fn each_part(
        &self,
        (of, parts): (BlockPlace, &[Part]),
        indices: &mut [Option<AxisIndex>],
        stop: &Stop,
        convert: &mut dyn FnMut(CooView<'_>, &AxisIndex, &AxisIndex) -> Result<(), densify::Error>,
    ) -> Result<ReadStats, Error> {
        let mut all = nothing_read();
        let mut first_row = 0;
        for part in parts {
            let rows = AxisIndex::ranges("cell", part.joinids.iter().cloned())
                .map_err(|source| densify_error(of, source))?
                .from_position(first_row);
            let place = &mut indices[part.source];
            let columns = match place.take() {
                Some(columns) => columns,
                None => self
                    .dataset
                    .source(part.source)
                    .genes
                    .index()
                    .map_err(|source| densify_error(of, source))?,
            };
            let columns = place.insert(columns);
            let result = self.each_piece(part, stop, |piece| convert(piece, &rows, columns));
            all.add(&result.map_err(|failure| failure.of(of, part))?);
            first_row += part.n_rows;
        }
        Ok(all)
    }

    /// Reads one part as COO and passes each piece to `convert`.
    fn each_piece(
        &self,
        part: &Part,
        stop: &Stop,
        mut convert: impl FnMut(CooView<'_>) -> Result<(), densify::Error>,
    ) -> Result<ReadStats, Failure> {
        let mut convert_time = ThreadTime::default();
        let mut broken = None;
        let SelectedX { x, genes, .. } = self.dataset.source(part.source);
        let rows = RowRanges::new(part.joinids.clone()).map_err(Failure::Read)?;
        let read = x.read_coo(&rows, &genes.selection, &mut |piece| {
            if stop.is_set() {
                return Err(give_up("the epoch was dropped"));
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
            (Ok(read), None) => Ok(ReadStats { convert: convert_time, ..counted(&read) }),
        }
    }
}

/// The counts before any read: 0, and known.
fn nothing_read() -> ReadStats {
    let known = Some(0);
    ReadStats {
        values_decoded: known,
        bytes_read: known,
        requests: known,
        bytes_decoded: known,
        bytes_needed: known,
        times: Some(ReadTimes::default()),
        ..ReadStats::default()
    }
}

/// A reader's counts under the engine's names.
fn counted(read: &soma_io::ReadStats) -> ReadStats {
    ReadStats {
        values: read.nnz,
        values_decoded: read.cells_decoded,
        bytes_read: read.bytes_read,
        requests: read.requests,
        bytes_decoded: read.bytes_decoded,
        bytes_needed: read.bytes_needed,
        times: read.times,
        convert: ThreadTime::default(),
    }
}

/// The reason why a block could not be read as COO.
enum Failure {
    Read(soma_io::Error),
    Convert(densify::Error),
}

impl Failure {
    fn of(self, block: BlockPlace, part: &Part) -> Error {
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

fn give_up(message: &str) -> soma_io::Error {
    soma_io::Error::Consumer { message: message.to_owned() }
}
