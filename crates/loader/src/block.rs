//! Blocks: rows that were read together and are shuffled together.

use std::iter;
use std::ops::Range;
use std::thread;

use csr::{CsrBuffers, PackedCsr};
use densify::{Column, CsrRows, RowTransforms, csr_gather_counts_into, csr_gather_rows_into};
use pipeline::{BlockBytes, BlockPlace};
use worktime::ThreadTime;

use crate::element_type::ElementType;
use crate::elements::{ElementsMut, wrong_type};
use crate::error::LoaderError;
use crate::need::PACKED_CELL_BYTES;
use crate::neighbours::BlockNeighbours;

/// Number of values of dense rows per thread: about a millisecond of work, while starting a thread
/// takes about 20 µs.
const THREAD_VALUES: usize = 1 << 22;

/// Number of stored values of sparse rows per thread: about as much work.
const THREAD_STORED_VALUES: usize = 1 << 18;

/// The error of a kernel that ran on rows of this block.
pub(crate) fn densify_error(place: BlockPlace, source: densify::Error) -> LoaderError {
    let BlockPlace { epoch, block_idx } = place;
    LoaderError::Densify { epoch, block_idx, source }
}

/// Rows that were read together, of X and of the matrices beside it. Its memory is reused for later
/// blocks.
#[derive(Debug, Default)]
pub(crate) struct Block {
    /// The rows of the selection, ascending.
    pub(crate) rows: Vec<u64>,
    /// With neighbours, it has the rows of further cells, too, and another order.
    pub(crate) x: BlockMatrix,
    pub(crate) beside: Vec<BlockMatrix>,
    pub(crate) neighbours: BlockNeighbours,
}

/// One matrix of a block.
#[derive(Debug, Default)]
pub(crate) struct BlockMatrix {
    pub(crate) place: BlockPlace,
    pub(crate) n_rows: usize,
    pub(crate) n_columns: usize,
    pub(crate) values: Values,
}

/// The values of a matrix of a block, by [`BlockForm`](crate::BlockForm).
#[derive(Debug)]
pub(crate) enum Values {
    /// `np.array`: row-major, in the order of reading.
    Dense(Vec<f32>),
    /// `scipy.csr`: counted from COO. `csr`: read as CSR.
    Csr(CsrBuffers),
    /// `csr`: from a reader that packs.
    Packed(PackedCsr),
}

impl Default for Values {
    fn default() -> Self {
        Self::Dense(Vec::new())
    }
}

impl Block {
    /// The matrices: X, then those beside it.
    pub(crate) fn matrices(&self) -> impl Iterator<Item = &BlockMatrix> {
        iter::once(&self.x).chain(&self.beside)
    }

    /// The matrices to be filled: X, then `n_beside` beside it.
    pub(crate) fn matrices_mut(
        &mut self,
        n_beside: usize,
    ) -> impl Iterator<Item = &mut BlockMatrix> {
        self.beside.resize_with(n_beside, BlockMatrix::default);
        iter::once(&mut self.x).chain(&mut self.beside)
    }

    /// Bytes of the rows and values, now and at most.
    pub(crate) fn bytes(&self) -> BlockBytes {
        let rows = size_of_val(self.rows.as_slice()) as u64;
        let mut all = BlockBytes { now: rows, most: rows };
        let of_matrices = self.matrices().map(BlockMatrix::bytes);
        for BlockBytes { now, most } in of_matrices.chain([self.neighbours.bytes()]) {
            all.now += now;
            all.most += most;
        }
        all
    }

    /// The selection's row at a position in the block.
    pub(crate) fn selection_row(&self, row: u32) -> u64 {
        self.rows[row as usize]
    }
}

impl BlockMatrix {
    /// Bytes of the values, now and at most: packed values need more if some value is not a count,
    /// which may happen in a later block.
    fn bytes(&self) -> BlockBytes {
        let of_csr = |row_offsets: &[usize], nnz: usize| {
            size_of_val(row_offsets) + nnz * (size_of::<u32>() + size_of::<f32>())
        };
        let most = match &self.values {
            Values::Dense(values) => size_of_val(values.as_slice()),
            Values::Csr(csr) => of_csr(&csr.row_offsets, csr.nnz()),
            Values::Packed(csr) => {
                size_of_val(csr.row_offsets()) + csr.nnz() * PACKED_CELL_BYTES as usize
            }
        } as u64;
        let unpacked = match &self.values {
            Values::Packed(csr) => (csr.nnz() as u64) * (PACKED_CELL_BYTES - csr.cell_bytes()),
            _ => 0,
        };
        BlockBytes { now: most - unpacked, most }
    }

    /// The number of values of a dense block, if memory can address it.
    pub(crate) fn dense_len(n_rows: u64, n_columns: usize) -> Result<usize, LoaderError> {
        let bytes = u128::from(n_rows) * n_columns as u128 * size_of::<f32>() as u128;
        match isize::try_from(bytes) {
            Ok(bytes) => Ok(bytes as usize / size_of::<f32>()),
            Err(_) => Err(Self::too_large(n_rows, n_columns)),
        }
    }

    fn too_large(n_rows: u64, n_columns: usize) -> LoaderError {
        LoaderError::OutOfMemory {
            what: "a dense block",
            bytes: u128::from(n_rows) * n_columns as u128 * size_of::<f32>() as u128,
            n_rows,
            n_columns: n_columns as u64,
            advice: "make chunks or blocks smaller, select fewer genes, or take blocks of form \
                     scipy.csr or csr",
        }
    }

    /// Makes the values dense and all zero, in the memory of the last block if that was dense.
    pub(crate) fn zeroed_dense(&mut self) -> Result<&mut [f32], LoaderError> {
        let (n_rows, n_columns) = (self.n_rows as u64, self.n_columns);
        let n_values = Self::dense_len(n_rows, n_columns)?;
        if !matches!(self.values, Values::Dense(_)) {
            self.values = Values::Dense(Vec::new());
        }
        let Values::Dense(values) = &mut self.values else {
            unreachable!("it was just made dense")
        };
        values.clear();
        values.try_reserve_exact(n_values).map_err(|_| Self::too_large(n_rows, n_columns))?;
        values.resize(n_values, 0.0);
        Ok(values)
    }

    /// CSR to be filled, in the memory of the last block if that was CSR.
    pub(crate) fn csr_mut(&mut self) -> &mut CsrBuffers {
        if !matches!(self.values, Values::Csr(_)) {
            self.values = Values::Csr(CsrBuffers::empty(self.n_columns));
        }
        let Values::Csr(csr) = &mut self.values else { unreachable!("it was just made so") };
        csr
    }

    /// Makes the values CSR of no rows.
    pub(crate) fn clear_csr(&mut self) {
        let n_columns = self.n_columns;
        let csr = self.csr_mut();
        csr.clear();
        csr.n_columns = n_columns;
    }

    /// Packed CSR to be filled, in the memory of the last block if that was packed.
    pub(crate) fn packed_mut(&mut self) -> &mut PackedCsr {
        if !matches!(self.values, Values::Packed(_)) {
            self.values = Values::Packed(PackedCsr::default());
        }
        let Values::Packed(csr) = &mut self.values else { unreachable!("it was just made so") };
        csr
    }

    /// Writes the rows at these positions, in this order, row-major into all of `out`. Up to
    /// `n_threads` threads write parts of a large batch; returns the time of the other threads.
    pub(crate) fn rows_to_dense_on(
        &self,
        n_threads: usize,
        rows: &[u32],
        transforms: Option<RowTransforms<'_>>,
        out: ElementsMut<'_>,
    ) -> Result<ThreadTime, LoaderError> {
        let n_values = rows.len() * self.n_columns;
        let (mut parts, mut rest) = (Vec::new(), out);
        for part in parts_of(rows, n_threads.min(n_values / THREAD_VALUES)) {
            let (out, after) = rest.split_at(part.len() * self.n_columns);
            rest = after;
            let (rows, transforms) = (&rows[part.clone()], of_rows(transforms, part));
            parts.push(move || self.rows_to_dense(rows, transforms, out));
        }
        on_threads(parts).map(|(_, others)| others)
    }

    /// Writes the rows at these positions, in this order, row-major into all of `out`.
    fn rows_to_dense(
        &self,
        rows: &[u32],
        transforms: Option<RowTransforms<'_>>,
        out: ElementsMut<'_>,
    ) -> Result<(), LoaderError> {
        match out {
            ElementsMut::F32(out) => self.rows_to(rows, transforms, out),
            ElementsMut::F16(out) => self.rows_to(rows, transforms, out),
            other => return Err(wrong_type(ElementType::F32, other.element_type()).into()),
        }
        .map_err(|source| densify_error(self.place, source))
    }

    fn rows_to<V: densify::Value>(
        &self,
        rows: &[u32],
        transforms: Option<RowTransforms<'_>>,
        out: &mut [V],
    ) -> Result<(), densify::Error> {
        match &self.values {
            Values::Dense(values) => {
                densify::dense_rows_to_dense(values, self.n_columns, rows, transforms, out)
            }
            Values::Csr(csr) => densify::csr_rows_to_dense(csr.view(), rows, transforms, out),
            Values::Packed(csr) => densify::csr_rows_to_dense(csr.view(), rows, transforms, out),
        }
    }

    /// Number of values of the rows at these positions. Fails for a dense block.
    pub(crate) fn nnz_of(&self, rows: &[u32]) -> Result<usize, LoaderError> {
        match &self.values {
            Values::Dense(_) => return Err(LoaderError::SparseFromDense),
            Values::Csr(csr) => csr.view().nnz_of(rows),
            Values::Packed(csr) => csr.view().nnz_of(rows),
        }
        .map_err(|source| densify_error(self.place, source))
    }

    /// Writes the columns and values of the rows at these positions, in this order, into all of
    /// `out`, and appends the end of each row to `row_offsets`. Up to `n_threads` threads write
    /// parts of a large batch. Returns whether the type of the values has each of them, otherwise
    /// nothing is appended, and the time of the other threads. Fails for a dense block.
    pub(crate) fn rows_to_csr_on(
        &self,
        n_threads: usize,
        rows: &[u32],
        transforms: Option<RowTransforms<'_>>,
        row_offsets: &mut Vec<usize>,
        out: (ElementsMut<'_>, ElementsMut<'_>),
    ) -> Result<(bool, ThreadTime), LoaderError> {
        let n_threads = n_threads.min(out.0.as_elements().len() / THREAD_STORED_VALUES);
        if n_threads <= 1 {
            let has_each = self.rows_to_csr(rows, transforms, row_offsets, out)?;
            return Ok((has_each, ThreadTime::default()));
        }
        let mut begin = row_offsets.last().copied().unwrap_or(0);
        let (mut parts, mut rest) = (Vec::new(), out);
        for part in parts_of(rows, n_threads) {
            let (rows, transforms) = (&rows[part.clone()], of_rows(transforms, part));
            let nnz = self.nnz_of(rows)?;
            let (columns, other_columns) = rest.0.split_at(nnz);
            let (values, other_values) = rest.1.split_at(nnz);
            rest = (other_columns, other_values);
            let mut ends = vec![begin];
            begin += nnz;
            parts.push(move || {
                let out = (columns, values);
                self.rows_to_csr(rows, transforms, &mut ends, out).map(|has_each| (ends, has_each))
            });
        }
        let (parts, others) = on_threads(parts)?;
        let has_each = parts.iter().all(|(_, has_each)| *has_each);
        if has_each {
            row_offsets.extend(parts.iter().flat_map(|(ends, _)| &ends[1..]));
        }
        Ok((has_each, others))
    }

    /// Writes the columns and values of the rows at these positions, in this order, into all of
    /// `out`, and appends the end of each row to `row_offsets`. `false` if the type of the values
    /// lacks one of them. Fails for a dense block.
    fn rows_to_csr(
        &self,
        rows: &[u32],
        transforms: Option<RowTransforms<'_>>,
        row_offsets: &mut Vec<usize>,
        out: (ElementsMut<'_>, ElementsMut<'_>),
    ) -> Result<bool, LoaderError> {
        match &self.values {
            Values::Dense(_) => Err(LoaderError::SparseFromDense),
            Values::Csr(csr) => self.gather(csr.view(), (rows, transforms), row_offsets, out),
            Values::Packed(csr) => self.gather(csr.view(), (rows, transforms), row_offsets, out),
        }
    }

    /// Gathers rows into columns of any type.
    fn gather(
        &self,
        csr: impl CsrRows,
        (rows, transforms): (&[u32], Option<RowTransforms<'_>>),
        row_offsets: &mut Vec<usize>,
        (columns, values): (ElementsMut<'_>, ElementsMut<'_>),
    ) -> Result<bool, LoaderError> {
        let rows = (rows, transforms);
        match columns {
            ElementsMut::U16(columns) => {
                self.gather_values(csr, rows, row_offsets, (columns, values))
            }
            columns => self.gather_values(csr, rows, row_offsets, (columns.into_u32()?, values)),
        }
    }

    /// Gathers rows into values of any type. `false` if it lacks one of them, or those that a
    /// transform may give.
    fn gather_values<C: Column>(
        &self,
        csr: impl CsrRows,
        (rows, transforms): (&[u32], Option<RowTransforms<'_>>),
        row_offsets: &mut Vec<usize>,
        (columns, values): (&mut [C], ElementsMut<'_>),
    ) -> Result<bool, LoaderError> {
        match values {
            ElementsMut::U8(_) | ElementsMut::U16(_) if transforms.is_some() => Ok(false),
            ElementsMut::U8(counts) => {
                csr_gather_counts_into(csr, rows, row_offsets, (columns, counts))
            }
            ElementsMut::U16(counts) => {
                csr_gather_counts_into(csr, rows, row_offsets, (columns, counts))
            }
            values => {
                let out = (columns, values.into_f32()?);
                csr_gather_rows_into(csr, rows, transforms, row_offsets, out).map(|()| true)
            }
        }
        .map_err(|source| densify_error(self.place, source))
    }
}

/// Splits rows into `n` parts of about equal length; fewer if there are fewer rows.
fn parts_of(rows: &[u32], n: usize) -> impl Iterator<Item = Range<usize>> + use<> {
    let (n_rows, of_part) = (rows.len(), rows.len().div_ceil(n.max(1)).max(1));
    // Without rows there is one part, so that buffers of a wrong length are found.
    (0..n_rows.max(1)).step_by(of_part).map(move |first| first..n_rows.min(first + of_part))
}

/// Does parts of a batch at the same time, the first on this thread. Returns their results in
/// order, and the time of the other threads; of several errors, the first.
fn on_threads<T: Send>(
    parts: Vec<impl FnOnce() -> Result<T, LoaderError> + Send>,
) -> Result<(Vec<T>, ThreadTime), LoaderError> {
    let mut parts = parts.into_iter();
    let Some(first) = parts.next() else { return Ok((Vec::new(), ThreadTime::default())) };
    thread::scope(|scope| {
        let mut others = Vec::with_capacity(parts.len());
        for (idx, part) in parts.enumerate() {
            let work = move || {
                let start = worktime::now();
                part().map(|done| (done, worktime::now() - start))
            };
            let name = format!("somafeed-batch-{}", idx + 1);
            let other = thread::Builder::new().name(name).spawn_scoped(scope, work);
            let spawn = |source| pipeline::Error::Spawn { thread: "somafeed-batch", source };
            others.push(other.map_err(spawn)?);
        }
        let (mut all, mut time) = (vec![first()?], ThreadTime::default());
        for other in others {
            let done = other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            let (done, of_thread) = done?;
            all.push(done);
            time += of_thread;
        }
        Ok((all, time))
    })
}

/// The transforms of these rows of a batch.
fn of_rows(transforms: Option<RowTransforms<'_>>, rows: Range<usize>) -> Option<RowTransforms<'_>> {
    transforms.map(|RowTransforms { transform, totals }| RowTransforms {
        transform,
        totals: totals.map(|totals| &totals[rows]),
    })
}
