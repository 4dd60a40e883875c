//! Reads blocks of cells, in the form that the settings ask for.
//!
//! All matrices of a block have the same rows. Those that are columns of one stored matrix, as the
//! feature types of a file of 10x Genomics, are a group: one read decodes the rows for all of them.

use std::ops::Range;
use std::thread;

use arrow_array::{ArrayRef, RecordBatch};
use densify::{AxisIndex, CooToCsr, CooView, OwnedCoo};
use pipeline::{BlockPlace, BlockRows, ReadStats, Stop};
use soma_io::{CsrBuffers, GeneSelection, RowRanges, XReader};
use worktime::ThreadTime;

use crate::beside::DatasetMatrix;
use crate::block::{Block, BlockMatrix, densify_error};
use crate::dataset::Dataset;
use crate::error::LoaderError;
use crate::neighbours::GraphReader;
use crate::selected::{Part, SelectedMatrix};
use crate::spec::BlockForm;

/// Threads that read matrices beside X.
const READ_BESIDE: &str = "loader-read-beside";

/// Memory of a reading thread, reused from block to block.
#[derive(Default)]
pub(crate) struct Scratch {
    /// For each matrix the index of each experiment's columns, made when first needed.
    columns: Vec<Vec<Option<AxisIndex>>>,
    /// For each group of matrices that is read at the same time.
    buffers: Vec<Buffers>,
    /// Rows of the graph of neighbours.
    graph: CsrBuffers,
}

/// Values on their way to a block.
#[derive(Default)]
struct Buffers {
    to_csr: CooToCsr,
    /// Rows of a further experiment, before they are appended to those of the first; for each
    /// matrix of a group.
    further: Vec<CsrBuffers>,
}

/// Reads blocks of a data set in one form.
pub(crate) struct BlockReader<'a> {
    pub(crate) dataset: &'a Dataset,
    pub(crate) form: BlockForm,
}

impl BlockReader<'_> {
    /// Reads rows of the selection into a block: X and the matrices beside it, one group after
    /// another in the same memory, or all at the same time if their readers wait for remote
    /// answers. With neighbours, X has their rows, too: the graph's rows are read before it.
    pub(crate) fn fill(
        &self,
        wanted: &BlockRows<'_>,
        block: &mut Block,
        scratch: &mut Scratch,
        stop: &Stop,
    ) -> Result<ReadStats, LoaderError> {
        let (rows, place) = (wanted.ranges, wanted.place);
        let mut parts = self.dataset.parts(rows);
        if self.dataset.asks_next_reads() {
            for part in &mut parts {
                part.next_reads = Some(self.dataset.next_reads(part.source, wanted.upcoming));
            }
        }
        self.announce(wanted.next);
        block.rows.clear();
        block.rows.extend(rows.iter().cloned().flatten());
        let n_rows = block.rows.len();
        let n_beside = self.dataset.beside.len();
        let at_once = self.dataset.reads_at_once();
        let groups = self.dataset.read_groups();
        let Scratch { columns, buffers, graph } = scratch;
        columns.resize_with(1 + n_beside, Vec::new);
        buffers.resize_with(if at_once { groups.len() } else { 1 }, Buffers::default);
        let mut all = ReadStats::nothing();
        let mut of_x = None;
        if let Some(spec) = &self.dataset.neighbours {
            let finder = GraphReader { dataset: self.dataset, spec, place, stop };
            let (parts, read) = finder.find(&parts, (n_rows, graph), &mut block.neighbours)?;
            all += read;
            of_x = Some((parts, block.neighbours.cells.len()));
        }
        let mut places: Vec<Option<_>> =
            block.matrices_mut(n_beside).zip(&mut *columns).map(Some).collect();
        let groups = groups.into_iter().map(|group| {
            let jobs = group.into_iter().filter_map(|(place_of_matrix, matrix)| {
                let (into, columns) = places[place_of_matrix].take()?;
                let (parts, n_rows) = match &of_x {
                    Some((parts, n_rows)) if place_of_matrix == 0 => (parts, *n_rows),
                    _ => (&parts, n_rows),
                };
                columns.resize_with(self.dataset.n_experiments(), || None);
                (into.place, into.n_rows, into.n_columns) = (place, n_rows, matrix.n_columns);
                let reader = MatrixReader { matrix, parts, place, stop };
                Some(Job { reader, into, columns })
            });
            Group { jobs: jobs.collect(), form: self.form }
        });
        if at_once {
            for read in read_at_once(groups.zip(&mut *buffers))? {
                all += read?;
            }
        } else {
            for mut group in groups {
                all += group.read(&mut buffers[0])?;
            }
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
            let Ok(ranges) = part.rows() else { continue };
            for matrix in self.dataset.sources[part.source].matrices() {
                matrix.reader.announce_next(&ranges, &matrix.columns.selection);
            }
        }
    }
}

/// One matrix to read, with its place in the block and the index of its columns.
struct Job<'a> {
    reader: MatrixReader<'a>,
    into: &'a mut BlockMatrix,
    columns: &'a mut Vec<Option<AxisIndex>>,
}

/// Matrices that one read serves, as CSR; in other forms one is read after another.
struct Group<'a> {
    jobs: Vec<Job<'a>>,
    form: BlockForm,
}

impl Group<'_> {
    fn read(&mut self, buffers: &mut Buffers) -> Result<ReadStats, LoaderError> {
        if self.form == BlockForm::Csr {
            return self.read_csr(&mut buffers.further);
        }
        let mut all = ReadStats::nothing();
        for Job { reader, into, columns } in &mut self.jobs {
            reader.check_stop()?;
            all += match self.form {
                BlockForm::Dense => reader.read_dense(into, columns),
                _ => reader.read_coo(into, columns, &mut buffers.to_csr),
            }?;
        }
        Ok(all)
    }

    /// Reads CSR: the first part straight into the block, the others through `further`.
    fn read_csr(&mut self, further: &mut Vec<CsrBuffers>) -> Result<ReadStats, LoaderError> {
        further.resize_with(self.jobs.len(), CsrBuffers::default);
        let n_jobs = self.jobs.len();
        let Some(Job { reader, into, .. }) = self.jobs.first_mut() else {
            return Ok(ReadStats::nothing());
        };
        reader.check_stop()?;
        let parts = reader.parts;
        match (parts, n_jobs) {
            ([part], 1) if reader.matrix.packs() => return reader.read_packed(into, part),
            ([], _) => self.jobs.iter_mut().for_each(|job| job.into.clear_csr()),
            _ => {}
        }
        let mut all = ReadStats::nothing();
        for (part_idx, part) in parts.iter().enumerate() {
            all += self.read_part(part_idx, part, further)?;
        }
        Ok(all)
    }

    fn read_part(
        &mut self,
        part_idx: usize,
        part: &Part,
        further: &mut [CsrBuffers],
    ) -> Result<ReadStats, LoaderError> {
        let place = self.jobs[0].reader.place;
        let failed = |error| part.read_error(place, error);
        let rows = part.rows().map_err(failed)?;
        let mut x_reader = None;
        let mut selections = Vec::with_capacity(self.jobs.len());
        for (Job { reader, into, .. }, further) in self.jobs.iter_mut().zip(&mut *further) {
            let matrix = reader.matrix.of_each[part.source];
            x_reader = Some(&matrix.reader);
            let out = if part_idx == 0 { into.csr_mut() } else { further };
            selections.push((&matrix.columns.selection, out));
        }
        let Some(x_reader) = x_reader else { return Ok(ReadStats::nothing()) };
        let mut all = read_selections(&**x_reader, &rows, &mut selections).map_err(failed)?;
        for (Job { reader, into, .. }, further) in self.jobs.iter_mut().zip(further) {
            let further = (part_idx > 0).then_some(further);
            all.convert += reader.place_part(part, into, further)?;
        }
        Ok(all)
    }
}

/// Reads rows for all selections, whose rows are decoded once if the reader decodes whole rows.
fn read_selections(
    reader: &dyn XReader,
    rows: &RowRanges,
    selections: &mut [(&GeneSelection, &mut CsrBuffers)],
) -> Result<ReadStats, soma_io::Error> {
    match (selections, reader.whole_rows()) {
        (several @ [_, _, ..], Some(reader)) => reader.read_selections(rows, several),
        (each, _) => {
            let mut all = ReadStats::nothing();
            for (genes, out) in each {
                all += reader.read_csr(rows, genes, out)?;
            }
            Ok(all)
        }
    }
}

/// Reads all groups at the same time, the first one on this thread.
fn read_at_once<'a>(
    groups: impl Iterator<Item = (Group<'a>, &'a mut Buffers)>,
) -> Result<Vec<Result<ReadStats, LoaderError>>, LoaderError> {
    let read = move |(mut group, buffers): (Group<'a>, &'a mut Buffers)| group.read(buffers);
    let mut jobs = groups;
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
    fn check_stop(&self) -> Result<(), LoaderError> {
        match self.parts.first() {
            Some(part) if self.stop.is_set() => Err(part.read_error(self.place, dropped())),
            _ => Ok(()),
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
        let rows = part.rows().map_err(failed)?;
        let selection = &matrix.columns.selection;
        all += matrix.reader.read_packed(&rows, selection, csr).map_err(failed)?;
        part.check_shape(matrix, (csr.n_rows(), csr.n_columns()), self.place.block_idx)?;
        Ok(all)
    }

    /// Maps the columns of a part that was read, into the block or into `further`, whose rows are
    /// then appended to those in the block. Returns the time that this took.
    fn place_part(
        &self,
        part: &Part,
        into: &mut BlockMatrix,
        further: Option<&mut CsrBuffers>,
    ) -> Result<ThreadTime, LoaderError> {
        let (start, block_idx) = (worktime::now(), self.place.block_idx);
        let matrix = self.selected(part);
        let is_converted = further.is_some() || matrix.columns.is_placed();
        let csr = into.csr_mut();
        let place = |read: &mut CsrBuffers| {
            part.check_shape(matrix, (read.n_rows(), read.n_columns), block_idx)?;
            let placed = matrix.columns.place(read);
            placed.map_err(|column| part.column_error(matrix, column, block_idx))
        };
        match further {
            Some(further) => {
                place(further)?;
                append(csr, further);
            }
            None => place(csr)?,
        }
        Ok(if is_converted { worktime::now() - start } else { ThreadTime::default() })
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
        let SelectedMatrix { reader, columns, .. } = self.selected(part);
        let rows = part.rows().map_err(Failure::Read)?;
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
pub(crate) fn dropped() -> soma_io::Error {
    give_up("the epoch was dropped")
}

fn give_up(message: &str) -> soma_io::Error {
    soma_io::Error::Consumer { message: message.to_owned() }
}
