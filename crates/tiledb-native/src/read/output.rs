//! The buffers that a read fills.

use std::ops::Range;

use crate::csr::CsrBuffers;
use crate::packed_csr::{PackedCsr, Values};

/// The caller's buffers.
#[derive(Debug)]
pub(crate) enum Output<'a> {
    Wide(&'a mut CsrBuffers),
    Packed(&'a mut PackedCsr),
}

impl Output<'_> {
    /// The same buffers, for a part of the work.
    pub(super) fn reborrow(&mut self) -> Output<'_> {
        match self {
            Self::Wide(csr) => Output::Wide(csr),
            Self::Packed(csr) => Output::Packed(csr),
        }
    }

    /// Removes all rows and values; the memory stays.
    pub(super) fn clear(&mut self) {
        match self {
            Self::Wide(csr) => csr.clear(),
            Self::Packed(csr) => csr.clear(),
        }
    }

    pub(super) fn set_n_columns(&mut self, n_columns: usize) {
        match self {
            Self::Wide(csr) => csr.n_columns = n_columns,
            Self::Packed(csr) => csr.n_columns = n_columns,
        }
    }

    pub(super) fn nnz(&self) -> usize {
        match self {
            Self::Wide(csr) => csr.nnz(),
            Self::Packed(csr) => csr.nnz(),
        }
    }

    /// Makes packed rows store values as counts, or in full.
    pub(super) fn set_form(&mut self, is_counts: bool) {
        if let Self::Packed(csr) = self {
            csr.set_form(is_counts);
        }
    }

    /// The end of each row; the first row begins at 0.
    pub(super) fn row_offsets(&mut self) -> &mut Vec<usize> {
        match self {
            Self::Wide(csr) => &mut csr.row_offsets,
            Self::Packed(csr) => &mut csr.row_offsets,
        }
    }

    /// Turns the numbers of values of the rows, which `put_counts` writes to the places of their
    /// end offsets, into those offsets, and makes room for the values.
    pub(super) fn begin(&mut self, n_rows: usize, put_counts: impl FnOnce(&mut [usize])) {
        let row_offsets = self.row_offsets();
        row_offsets.clear();
        row_offsets.resize(n_rows + 1, 0);
        put_counts(row_offsets);
        let mut nnz = 0;
        for end in row_offsets {
            nnz += *end;
            *end = nnz;
        }
        match self {
            Self::Wide(csr) => csr.set_nnz(nnz),
            Self::Packed(csr) => csr.make_room(nnz),
        }
    }

    /// Writes values to their place. Returns false if a value does not fit the buffers' type.
    pub(super) fn put(&mut self, place: Range<usize>, columns: &[u32], values: &[f32]) -> bool {
        match self {
            Self::Wide(csr) => {
                csr.columns[place.clone()].copy_from_slice(columns);
                csr.values[place].copy_from_slice(values);
                true
            }
            Self::Packed(csr) => csr.put(place, columns, values),
        }
    }

    /// Calls `read` with new buffers of the same kind, then copies `rows` of the result, which may
    /// repeat rows.
    pub(super) fn fill_from<T, E>(
        &mut self,
        rows: &[Range<usize>],
        read: impl FnOnce(Output<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        let rows = rows.iter().filter(|rows| rows.start < rows.end);
        match self {
            Self::Wide(csr) => {
                let mut distinct = CsrBuffers::new();
                let done = read(Output::Wide(&mut distinct))?;
                csr.clear();
                for row in rows.flat_map(Clone::clone) {
                    let (columns, values) = distinct.row(row);
                    csr.columns.extend_from_slice(columns);
                    csr.values.extend_from_slice(values);
                    csr.row_offsets.push(csr.columns.len());
                }
                Ok(done)
            }
            Self::Packed(csr) => {
                let mut distinct = PackedCsr::default();
                distinct.set_form(matches!(csr.values, Values::Counts(_)));
                let done = read(Output::Packed(&mut distinct))?;
                csr.set_form(matches!(distinct.values, Values::Counts(_)));
                let offsets = distinct.row_offsets();
                csr.make_room(
                    rows.clone().map(|rows| offsets[rows.end] - offsets[rows.start]).sum(),
                );
                rows.for_each(|rows| csr.append_rows(&distinct, rows.clone()));
                Ok(done)
            }
        }
    }
}
