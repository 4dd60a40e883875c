//! CSR in half the memory: for who keeps many rows, as a loader that shuffles them.

use std::ops::Range;

use crate::csr::CsrBuffers;

/// Rows in CSR of at most 65,536 columns: a value with its column in 4 bytes where all values are whole numbers from 0 to 65,535, as
/// counts are, otherwise in 6. Nothing is rounded. Once a read has met another value of the array, wanted or beside what was wanted, it
/// and all later ones take 6.
///
/// Like [`CsrBuffers`], kept from read to read the buffers are filled without being allocated or faulted in again.
#[derive(Debug, Clone)]
pub struct PackedCsr {
    /// As in [`CsrBuffers`].
    pub(crate) row_offsets: Vec<usize>,
    /// These are as long as the largest read so far, or longer.
    pub(crate) columns: Vec<u16>,
    pub(crate) values: Values,
    pub(crate) n_columns: usize,
}

/// Values in one form or the other.
#[derive(Debug, Clone)]
pub(crate) enum Values {
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

impl Default for PackedCsr {
    fn default() -> Self {
        let values = Values::Counts(Vec::new());
        Self { row_offsets: vec![0], columns: Vec::new(), values, n_columns: 0 }
    }
}

impl PackedCsr {
    /// The most columns that rows can have.
    pub const MAX_COLUMNS: usize = 1 << 16;

    /// How many rows there are.
    pub fn n_rows(&self) -> usize {
        self.row_offsets.len() - 1
    }

    /// How many values there are.
    pub fn nnz(&self) -> usize {
        self.row_offsets.last().copied().unwrap_or(0)
    }

    /// Bytes that a value takes with its column: 4, or 6 where some value is no count.
    pub fn cell_bytes(&self) -> u64 {
        let value = match &self.values {
            Values::Counts(_) => size_of::<u16>(),
            Values::Floats(_) => size_of::<f32>(),
        };
        (size_of::<u16>() + value) as u64
    }

    /// Columns that there are.
    pub fn n_columns(&self) -> usize {
        self.n_columns
    }

    /// Where each row begins; one more than there are rows, from 0.
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

    /// No rows and no values; the memory stays.
    pub(crate) fn clear(&mut self) {
        self.row_offsets.clear();
        self.row_offsets.push(0);
    }

    /// Makes it hold values in this form from now on.
    pub(crate) fn set_form(&mut self, is_counts: bool) {
        self.clear();
        match (&self.values, is_counts) {
            (Values::Floats(_), true) => self.values = Values::Counts(Vec::new()),
            (Values::Counts(_), false) => self.values = Values::Floats(Vec::new()),
            _ => {}
        }
    }

    /// Makes room for `nnz` values, of any content.
    pub(crate) fn make_room(&mut self, nnz: usize) {
        make_room(&mut self.columns, nnz);
        match &mut self.values {
            Values::Counts(values) => make_room(values, nnz),
            Values::Floats(values) => make_room(values, nnz),
        }
    }

    /// Writes values into the room at `place`. Returns whether all can be held in its form.
    pub(crate) fn put(&mut self, place: Range<usize>, columns: &[u32], values: &[f32]) -> bool {
        let to = self.columns[place.clone()].iter_mut().zip(columns);
        to.for_each(|(to, column)| *to = *column as u16);
        match &mut self.values {
            Values::Counts(counts) => pack(values.iter().copied(), &mut counts[place]),
            Values::Floats(floats) => {
                floats[place].copy_from_slice(values);
                true
            }
        }
    }

    /// Appends rows of another of the same form, for whose values there is room.
    pub(crate) fn append_rows(&mut self, of: &Self, rows: Range<usize>) {
        let from = of.row_offsets[rows.start]..of.row_offsets[rows.end];
        let to = self.nnz()..self.nnz() + from.len();
        self.columns[to.clone()].copy_from_slice(&of.columns[from.clone()]);
        match (&mut self.values, &of.values) {
            (Values::Counts(values), Values::Counts(of)) => {
                values[to.clone()].copy_from_slice(&of[from.clone()]);
            }
            (Values::Floats(values), Values::Floats(of)) => {
                values[to.clone()].copy_from_slice(&of[from.clone()]);
            }
            _ => unreachable!("rows are taken from a read of the same form"),
        }
        let ends = &of.row_offsets[rows.start + 1..=rows.end];
        self.row_offsets.extend(ends.iter().map(|end| to.start + end - from.start));
    }
}

/// Makes `buffer` `len` long at least. Where it is too small it is made anew, zeroed by the system page by page as the threads that
/// fill it touch them, with an eighth to spare for the next read.
fn make_room<T: Copy + Default>(buffer: &mut Vec<T>, len: usize) {
    if buffer.len() < len {
        *buffer = Vec::new();
        *buffer = vec![T::default(); len + len / 8];
    }
}

/// Writes values as whole numbers. Returns whether all of them are such.
pub(crate) fn pack(values: impl Iterator<Item = f32>, out: &mut [u16]) -> bool {
    let mut lost = 0;
    for (to, value) in out.iter_mut().zip(values) {
        // A whole number up to 2^16 added to 2^23 stands in the sum's lower bits; others are found by comparing.
        *to = (value + 8_388_608.0).to_bits() as u16;
        lost |= f32::from(*to).to_bits() ^ value.to_bits();
    }
    lost == 0
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
        packed.clear();
        packed.make_room(rows.iter().map(Vec::len).sum());
        let mut fits = true;
        for row in rows {
            let nnz = packed.nnz();
            let columns: Vec<u32> = row.iter().map(|(column, _)| u32::from(*column)).collect();
            let values: Vec<f32> = row.iter().map(|(_, value)| *value).collect();
            fits &= packed.put(nnz..nnz + row.len(), &columns, &values);
            packed.row_offsets.push(nnz + row.len());
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
            packed.set_form(false);
            for rows in [&counts, &floats] {
                prop_assert!(fill(&mut packed, rows));
                prop_assert_eq!(bits(&packed), expected(rows));
            }
            let cut = cut.min(floats.len());
            let mut taken = PackedCsr::default();
            taken.set_form(false);
            taken.make_room(2 * packed.nnz());
            taken.append_rows(&packed, cut..floats.len());
            taken.append_rows(&packed, 0..cut);
            let expect: Rows = floats[cut..].iter().chain(&floats[..cut]).cloned().collect();
            prop_assert_eq!(bits(&taken), expected(&expect));
        }
    }

    #[test]
    fn what_is_no_count_does_not_fit() {
        for (value, fits) in [
            (0.0, true),
            (65_535.0, true),
            (-0.0, false),
            (0.5, false),
            (-1.0, false),
            (65_536.0, false),
            (f32::NAN, false),
            (f32::INFINITY, false),
        ] {
            assert_eq!(pack([3.0, value].into_iter(), &mut [0; 2]), fits, "{value}");
        }
    }
}
