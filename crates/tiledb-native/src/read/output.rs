//! The buffers that a read fills.

use std::ops::Range;

use csr::{CsrBuffers, PackedCsr};

use crate::error::Error;

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

    pub(super) fn set_n_columns(&mut self, n_columns: usize) -> Result<(), Error> {
        match self {
            Self::Wide(csr) => csr.n_columns = n_columns,
            Self::Packed(csr) => csr
                .set_n_columns(n_columns)
                .map_err(|_| Error::TooManyToPack { n_columns: n_columns as u64 })?,
        }
        Ok(())
    }

    pub(super) fn nnz(&self) -> usize {
        match self {
            Self::Wide(csr) => csr.nnz(),
            Self::Packed(csr) => csr.nnz(),
        }
    }

    /// Makes packed rows store values as counts, or in full.
    pub(super) fn keep_counts(&mut self, is_counts: bool) {
        if let Self::Packed(csr) = self {
            csr.keep_counts(is_counts);
        }
    }

    /// Where each row begins, and where the last ends.
    pub(super) fn row_offsets(&self) -> &[usize] {
        match self {
            Self::Wide(csr) => &csr.row_offsets,
            Self::Packed(csr) => csr.row_offsets(),
        }
    }

    /// Begins rows whose lengths `put_counts` writes, each at the place of its row's end.
    pub(super) fn begin(&mut self, n_rows: usize, put_counts: impl FnOnce(&mut [usize])) {
        match self {
            Self::Wide(csr) => csr.begin(n_rows, put_counts),
            Self::Packed(csr) => csr.begin(n_rows, put_counts),
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

    /// Calls `read` with other buffers of the same kind, and copies `rows` from them, a row as
    /// often as it is among `rows`.
    pub(super) fn fill_from<T, E>(
        &mut self,
        rows: &[Range<usize>],
        read: impl FnOnce(Output<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        match self {
            Self::Wide(csr) => {
                let mut distinct = CsrBuffers::new();
                let done = read(Output::Wide(&mut distinct))?;
                csr.clear();
                for row in rows.iter().flat_map(Clone::clone) {
                    let (columns, values) = distinct.row(row);
                    csr.columns.extend_from_slice(columns);
                    csr.values.extend_from_slice(values);
                    csr.row_offsets.push(csr.columns.len());
                }
                Ok(done)
            }
            Self::Packed(csr) => {
                let mut distinct = PackedCsr::default();
                distinct.keep_counts(csr.keeps_counts());
                let done = read(Output::Packed(&mut distinct))?;
                csr.copy_rows(&distinct, rows);
                Ok(done)
            }
        }
    }
}
