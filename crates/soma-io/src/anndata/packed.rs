//! Packs rows after they were read whole, piece by piece.

use csr::{PackedValuesMut, pack_counts};
use rayon::prelude::*;

use crate::{CsrBuffers, PackedCsr};

/// Values that a thread packs at once.
const TASK_VALUES: usize = 64 << 10;

/// Writes the values of `piece` to begun rows of `out` from `start` on, on the threads of the
/// current rayon pool. Columns of `piece` are below [`PackedCsr::MAX_COLUMNS`]. Once a value is no
/// count, `out` keeps floats.
pub(super) fn put(piece: &CsrBuffers, start: usize, out: &mut PackedCsr) {
    if !try_put(piece, start, out) {
        out.widen();
        try_put(piece, start, out);
    }
}

/// Returns whether `out` can keep all values in its form.
fn try_put(piece: &CsrBuffers, start: usize, out: &mut PackedCsr) -> bool {
    let nnz = piece.nnz();
    let (_, columns, values) = out.parts_mut();
    let columns = columns[start..start + nnz].par_chunks_mut(TASK_VALUES);
    let columns = columns.zip(piece.columns[..nnz].par_chunks(TASK_VALUES));
    let from = piece.values[..nnz].par_chunks(TASK_VALUES);
    let put_columns = |(to, from): (&mut [u16], &[u32])| {
        to.iter_mut().zip(from).for_each(|(to, column)| *to = *column as u16);
    };
    match values {
        PackedValuesMut::Counts(counts) => {
            let values = counts[start..start + nnz].par_chunks_mut(TASK_VALUES).zip(from);
            let packed = columns.zip(values).map(|(columns, (to, from))| {
                put_columns(columns);
                pack_counts(from.iter().copied(), to)
            });
            packed.reduce(|| true, |one, other| one & other)
        }
        PackedValuesMut::Floats(floats) => {
            let values = floats[start..start + nnz].par_chunks_mut(TASK_VALUES).zip(from);
            columns.zip(values).for_each(|(columns, (to, from))| {
                put_columns(columns);
                to.copy_from_slice(from);
            });
            true
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A row of `n` values, of which the last is `last`.
    fn piece(n: usize, last: f32) -> CsrBuffers {
        let mut values: Vec<f32> = (0..n).map(|value| (value % 300) as f32).collect();
        values[n - 1] = last;
        let columns = (0..n as u32).map(|column| column % 65_536).collect();
        CsrBuffers { row_offsets: vec![0, n], columns, values, n_columns: PackedCsr::MAX_COLUMNS }
    }

    #[test]
    fn pieces_are_kept_as_counts_until_one_is_not() {
        let n = 3 * TASK_VALUES + 5;
        for (last, keeps_counts) in [(65_535.0, true), (0.5, false), (-1.0, false)] {
            let pieces = [piece(n, 7.0), piece(n, last), piece(9, 1.0)];
            let mut out = PackedCsr::default();
            out.set_n_columns(PackedCsr::MAX_COLUMNS).unwrap();
            out.begin(3, |lengths| lengths[1..].copy_from_slice(&[n, n, 9]));
            let mut start = 0;
            for piece in &pieces {
                put(piece, start, &mut out);
                start += piece.nnz();
            }
            assert_eq!(out.keeps_counts(), keeps_counts);
            let found = out.unpack();
            for (row, piece) in pieces.iter().enumerate() {
                assert!(found.row(row) == piece.row(0), "{last}, row {row}");
            }
        }
    }
}
