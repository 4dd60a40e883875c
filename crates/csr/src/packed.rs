//! Rows in CSR in half the memory, for whoever keeps many of them.

use std::ops::Range;

use crate::buffers::{CsrBuffers, sum_lengths};
use crate::count::pack_counts;
use crate::error::Error;
use crate::insert::{Inserted, grow};

/// Rows in CSR of at most 65,536 columns: a value with its column takes 4 bytes if values are kept
/// as counts (whole numbers from 0 to 65,535), otherwise 6. Nothing is rounded.
///
/// Like [`CsrBuffers`], its memory is filled again from read to read. A reader begins rows
/// ([`begin`](Self::begin)) and fills their parts ([`parts_mut`](Self::parts_mut),
/// [`put`](Self::put)); once a value does not fit counts, it reads again into floats
/// ([`keep_counts`](Self::keep_counts)).
#[derive(Debug, Clone)]
pub struct PackedCsr {
    row_offsets: Vec<usize>,
    /// As long as the most values so far, or longer; so are the values.
    columns: Vec<u16>,
    values: Values,
    n_columns: usize,
}

/// Values in one form or the other.
#[derive(Debug, Clone)]
enum Values {
    Counts(Vec<u16>),
    Floats(Vec<f32>),
}

/// Values of packed rows, borrowed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PackedValues<'a> {
    /// As whole numbers.
    Counts(&'a [u16]),
    /// As they are.
    Floats(&'a [f32]),
}

/// Values of packed rows, to be filled.
#[derive(Debug)]
pub enum PackedValuesMut<'a> {
    /// As whole numbers.
    Counts(&'a mut [u16]),
    /// As they are.
    Floats(&'a mut [f32]),
}

/// Packed rows, borrowed.
///
/// Row `i` has its columns and values at `row_offsets[i]..row_offsets[i + 1]`.
#[derive(Debug, Clone, Copy)]
pub struct PackedView<'a> {
    /// Where each row begins, and where the last ends: one more than there are rows.
    pub row_offsets: &'a [usize],
    /// The column of each value.
    pub columns: &'a [u16],
    /// The values.
    pub values: PackedValues<'a>,
    /// The number of columns.
    pub n_columns: usize,
}

impl Default for PackedCsr {
    fn default() -> Self {
        let values = Values::Counts(Vec::new());
        Self { row_offsets: vec![0], columns: Vec::new(), values, n_columns: 0 }
    }
}

impl PackedCsr {
    /// The most columns that rows can have.
    pub const MAX_COLUMNS: usize = 1 << 16;

    /// The same rows packed: as counts if all values are, otherwise as floats.
    ///
    /// # Errors
    /// Those of [`CsrBuffers::check`], and [`Error::TooManyColumns`].
    pub fn pack(csr: &CsrBuffers) -> Result<Self, Error> {
        csr.check()?;
        if csr.n_columns > Self::MAX_COLUMNS {
            return Err(Error::TooManyColumns { n_columns: csr.n_columns });
        }
        let row_offsets = csr.row_offsets.clone();
        let mut packed = Self { row_offsets, n_columns: csr.n_columns, ..Self::default() };
        packed.make_room(csr.nnz());
        if !packed.put(0..csr.nnz(), &csr.columns, &csr.values) {
            packed.values = Values::Floats(csr.values.clone());
        }
        Ok(packed)
    }

    /// The same rows with whole columns and values.
    pub fn unpack(&self) -> CsrBuffers {
        CsrBuffers {
            row_offsets: self.row_offsets.clone(),
            columns: self.columns().iter().copied().map(u32::from).collect(),
            values: match self.values() {
                PackedValues::Counts(values) => values.iter().copied().map(f32::from).collect(),
                PackedValues::Floats(values) => values.to_vec(),
            },
            n_columns: self.n_columns,
        }
    }

    /// The number of rows.
    pub fn n_rows(&self) -> usize {
        self.row_offsets.len() - 1
    }

    /// The number of values.
    pub fn nnz(&self) -> usize {
        self.row_offsets.last().copied().unwrap_or(0)
    }

    /// The number of columns.
    pub fn n_columns(&self) -> usize {
        self.n_columns
    }

    /// Bytes that a value takes with its column: 4 as a count, 6 as a float.
    pub fn cell_bytes(&self) -> u64 {
        let value = if self.keeps_counts() { size_of::<u16>() } else { size_of::<f32>() };
        (size_of::<u16>() + value) as u64
    }

    /// Where each row begins, from 0, and at last the number of values.
    pub fn row_offsets(&self) -> &[usize] {
        &self.row_offsets
    }

    /// Columns of the values, ascending within a row; with a selection of columns, positions in it.
    pub fn columns(&self) -> &[u16] {
        &self.columns[..self.nnz()]
    }

    /// The values.
    pub fn values(&self) -> PackedValues<'_> {
        match &self.values {
            Values::Counts(values) => PackedValues::Counts(&values[..self.nnz()]),
            Values::Floats(values) => PackedValues::Floats(&values[..self.nnz()]),
        }
    }

    /// The rows, borrowed.
    pub fn view(&self) -> PackedView<'_> {
        PackedView {
            row_offsets: &self.row_offsets,
            columns: self.columns(),
            values: self.values(),
            n_columns: self.n_columns,
        }
    }

    /// Whether values are kept as counts.
    pub fn keeps_counts(&self) -> bool {
        matches!(self.values, Values::Counts(_))
    }

    /// Removes all rows and keeps the memory.
    pub fn clear(&mut self) {
        self.row_offsets.clear();
        self.row_offsets.push(0);
    }

    /// Removes all rows, and keeps values as counts, or else as floats, from now on.
    pub fn keep_counts(&mut self, is_counts: bool) {
        self.clear();
        match (&self.values, is_counts) {
            (Values::Floats(_), true) => self.values = Values::Counts(Vec::new()),
            (Values::Counts(_), false) => self.values = Values::Floats(Vec::new()),
            _ => {}
        }
    }

    /// Sets the number of columns, for rows that are still to be filled.
    ///
    /// # Errors
    /// [`Error::TooManyColumns`].
    pub fn set_n_columns(&mut self, n_columns: usize) -> Result<(), Error> {
        if n_columns > Self::MAX_COLUMNS {
            return Err(Error::TooManyColumns { n_columns });
        }
        self.n_columns = n_columns;
        Ok(())
    }

    /// Begins `n_rows` rows for a reader to fill: `lengths` writes how many values each row has at
    /// the row's place behind the first offset. Columns and values then have any content.
    pub fn begin(&mut self, n_rows: usize, lengths: impl FnOnce(&mut [usize])) {
        let nnz = sum_lengths(&mut self.row_offsets, n_rows, lengths);
        self.make_room(nnz);
    }

    /// Row offsets, columns and values of begun rows, to be filled.
    pub fn parts_mut(&mut self) -> (&[usize], &mut [u16], PackedValuesMut<'_>) {
        let nnz = self.nnz();
        let values = match &mut self.values {
            Values::Counts(values) => PackedValuesMut::Counts(&mut values[..nnz]),
            Values::Floats(values) => PackedValuesMut::Floats(&mut values[..nnz]),
        };
        (&self.row_offsets, &mut self.columns[..nnz], values)
    }

    /// Writes values to their place in begun rows. Returns whether all can be kept in its form.
    pub fn put(&mut self, place: Range<usize>, columns: &[u32], values: &[f32]) -> bool {
        let to = self.columns[place.clone()].iter_mut().zip(columns);
        to.for_each(|(to, column)| *to = *column as u16);
        match &mut self.values {
            Values::Counts(counts) => pack_counts(values.iter().copied(), &mut counts[place]),
            Values::Floats(floats) => {
                floats[place].copy_from_slice(values);
                true
            }
        }
    }

    /// Keeps the values of the rows that are there as floats.
    pub fn widen(&mut self) {
        if let Values::Counts(counts) = &self.values {
            self.values = Values::Floats(counts.iter().copied().map(f32::from).collect());
        }
    }

    /// Inserts rows like [`CsrBuffers::insert_rows`].
    ///
    /// # Panics
    /// If there are more or fewer rows than `None`s.
    pub fn insert_rows(&mut self, lengths: &[Option<usize>]) {
        let inserted = Inserted::new(&self.row_offsets, lengths);
        grow(&mut self.columns, inserted.nnz());
        inserted.apply(&mut self.columns);
        match &mut self.values {
            Values::Counts(values) => {
                grow(values, inserted.nnz());
                inserted.apply(values);
            }
            Values::Floats(values) => {
                grow(values, inserted.nnz());
                inserted.apply(values);
            }
        }
        self.row_offsets = inserted.row_offsets;
    }

    /// Replaces all rows by ranges of rows of `other`, in this order, in the form of `other`. A row
    /// may come several times.
    pub fn copy_rows(&mut self, other: &Self, rows: &[Range<usize>]) {
        self.keep_counts(other.keeps_counts());
        let offsets = &other.row_offsets;
        self.make_room(rows.iter().map(|rows| offsets[rows.end] - offsets[rows.start]).sum());
        for rows in rows {
            self.append_rows(other, rows.clone());
        }
    }

    /// Appends rows of another of the same form, for whose values there is room.
    fn append_rows(&mut self, other: &Self, rows: Range<usize>) {
        let from = other.row_offsets[rows.start]..other.row_offsets[rows.end];
        let to = self.nnz()..self.nnz() + from.len();
        self.columns[to.clone()].copy_from_slice(&other.columns[from.clone()]);
        match (&mut self.values, &other.values) {
            (Values::Counts(values), Values::Counts(other)) => {
                values[to.clone()].copy_from_slice(&other[from.clone()]);
            }
            (Values::Floats(values), Values::Floats(other)) => {
                values[to.clone()].copy_from_slice(&other[from.clone()]);
            }
            _ => unreachable!("`copy_rows` gave both the same form"),
        }
        let ends = &other.row_offsets[rows.start + 1..=rows.end];
        self.row_offsets.extend(ends.iter().map(|end| to.start + end - from.start));
    }

    /// Makes room for `nnz` values, of any content.
    fn make_room(&mut self, nnz: usize) {
        make_room(&mut self.columns, nnz);
        match &mut self.values {
            Values::Counts(values) => make_room(values, nnz),
            Values::Floats(values) => make_room(values, nnz),
        }
    }
}

/// Makes `buffer` at least `len` long. A buffer that is too small is made anew, zeroed by the
/// system page by page as the threads that fill it touch them, with an eighth to spare for the next
/// read.
fn make_room<T: Copy + Default>(buffer: &mut Vec<T>, len: usize) {
    if buffer.len() < len {
        *buffer = Vec::new();
        *buffer = vec![T::default(); len + len / 8];
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Rows of cells: column and value.
    type Rows = Vec<Vec<(u16, f32)>>;

    fn rows(value: BoxedStrategy<f32>) -> impl Strategy<Value = Rows> {
        prop::collection::vec(prop::collection::vec((any::<u16>(), value), 0..20), 1..8)
    }

    fn expected(rows: &Rows) -> (Vec<usize>, Vec<u32>, Vec<u32>) {
        let mut offsets = vec![0];
        for row in rows {
            offsets.push(offsets[offsets.len() - 1] + row.len());
        }
        let cells = rows.iter().flatten();
        let (columns, values) =
            cells.map(|&(column, value)| (u32::from(column), value.to_bits())).unzip();
        (offsets, columns, values)
    }

    fn bits(packed: &PackedCsr) -> (Vec<usize>, Vec<u32>, Vec<u32>) {
        let csr = packed.unpack();
        let values = csr.values.iter().map(|value| value.to_bits()).collect();
        (csr.row_offsets, csr.columns, values)
    }

    fn fill(packed: &mut PackedCsr, rows: &Rows) -> bool {
        packed.begin(rows.len(), |lengths| {
            lengths[1..].iter_mut().zip(rows).for_each(|(to, row)| *to = row.len());
        });
        let (mut fits, mut nnz) = (true, 0);
        for row in rows {
            let columns: Vec<u32> = row.iter().map(|(column, _)| u32::from(*column)).collect();
            let values: Vec<f32> = row.iter().map(|(_, value)| *value).collect();
            fits &= packed.put(nnz..nnz + row.len(), &columns, &values);
            nnz += row.len();
        }
        fits
    }

    proptest! {
        #[test]
        fn what_fits_comes_back_to_the_bit(
            counts in rows(any::<u16>().prop_map(f32::from).boxed()),
            floats in rows(prop::num::f32::ANY.boxed()),
            cut in 0_usize..8,
        ) {
            let mut packed = PackedCsr::default();
            prop_assert!(fill(&mut packed, &counts));
            prop_assert_eq!(bits(&packed), expected(&counts));
            let are_counts = floats.iter().flatten().all(|(_, value)| {
                (0..=u16::MAX).any(|count| f32::from(count).to_bits() == value.to_bits())
            });
            prop_assert_eq!(fill(&mut packed, &floats), are_counts);
            packed.keep_counts(false);
            for rows in [&counts, &floats] {
                prop_assert!(fill(&mut packed, rows));
                prop_assert_eq!(bits(&packed), expected(rows));
            }
            let cut = cut.min(floats.len());
            let mut taken = PackedCsr::default();
            taken.copy_rows(&packed, &[cut..floats.len(), 0..cut]);
            let expect: Rows = floats[cut..].iter().chain(&floats[..cut]).cloned().collect();
            prop_assert_eq!(bits(&taken), expected(&expect));
        }
    }

    #[test]
    fn packing_chooses_the_form_and_refuses_what_is_no_matrix() {
        let csr = |values: &[f32], n_columns| CsrBuffers {
            row_offsets: vec![0, 1, 2],
            columns: vec![7, 1],
            values: values.to_vec(),
            n_columns,
        };
        let counts = csr(&[3.0, 0.0], 8);
        let packed = PackedCsr::pack(&counts).unwrap();
        assert_eq!(packed.values(), PackedValues::Counts(&[3, 0]));
        assert_eq!((packed.unpack(), packed.cell_bytes()), (counts, 4));
        let floats = csr(&[3.0, 0.5], 1 << 16);
        let packed = PackedCsr::pack(&floats).unwrap();
        assert_eq!((packed.unpack(), packed.cell_bytes()), (floats, 6));
        let wide = PackedCsr::pack(&csr(&[1.0, 1.0], (1 << 16) + 1));
        assert!(matches!(wide, Err(Error::TooManyColumns { n_columns: 65_537 })));
        let broken = PackedCsr::pack(&csr(&[1.0, 1.0], 3));
        assert!(matches!(broken, Err(Error::Column { row: 0, column: 7, n_columns: 3 })));
        assert!(PackedCsr::default().set_n_columns(1 << 17).is_err());
    }
}
