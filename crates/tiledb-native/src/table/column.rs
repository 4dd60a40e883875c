//! Columns of the result, filled run by run.

use rayon::prelude::*;

use super::fetched::{DecodedTile, Fetched};
use super::form::FieldKind;
use super::select::Run;
use super::snapshot::Column;
use crate::error::{Error, Fault};
use crate::memory::reserve;

/// The values of one column, row by row.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TableColumn {
    /// The values, one after another, little-endian. A null row has what is stored for it, of the
    /// type's size if that is fixed.
    pub bytes: Vec<u8>,
    /// The place in `bytes` where each row begins, and the end of the last: one more than there are
    /// rows. Only if the column is var-sized.
    pub offsets: Option<Vec<i64>>,
    /// Whether each row has a value. Only if the column is nullable.
    pub validity: Option<Vec<bool>>,
}

impl TableColumn {
    /// The column without rows.
    pub(super) fn empty(column: &Column) -> Self {
        Self {
            bytes: Vec::new(),
            offsets: (column.kind == FieldKind::VarSized).then(|| vec![0]),
            validity: column.is_nullable.then(Vec::new),
        }
    }

    /// Appends the rows of `runs`, whose tiles were fetched, on the current thread pool.
    pub(super) fn append(
        &mut self,
        (column, field): (&Column, usize),
        runs: &[Run],
        fetched: &Fetched<'_>,
    ) -> Result<(), Error> {
        let mut tiles: Vec<u32> = runs.iter().map(|run| run.tile).collect();
        tiles.sort_unstable();
        tiles.dedup();
        let decode = |tile: &u32| fetched.decode(*tile, field);
        let decoded: Vec<DecodedTile> =
            tiles.par_iter().with_max_len(1).map(decode).collect::<Result<_, _>>()?;
        for run in runs {
            let tile = tiles.binary_search(&run.tile).ok().and_then(|idx| decoded.get(idx));
            let cells = run.cells.start as usize..run.cells.end as usize;
            match tile {
                Some(DecodedTile::Stored { bytes, offsets, validity }) => {
                    let marks = (offsets.as_deref(), validity.as_deref());
                    self.append_stored(column, cells, bytes, marks)
                }
                Some(DecodedTile::Missing) | None => self.append_fill(column, cells.len()),
            }
            .map_err(|fault| fault.in_file(fetched.name_of(column), 0))?;
        }
        Ok(())
    }

    /// Makes room for `n_rows` rows with `n_bytes` bytes of values.
    fn reserve(&mut self, n_rows: usize, n_bytes: usize) -> Result<(), Fault> {
        reserve(&mut self.bytes, n_bytes)?;
        self.offsets.as_mut().map_or(Ok(()), |offsets| reserve(offsets, n_rows))?;
        self.validity.as_mut().map_or(Ok(()), |valid| reserve(valid, n_rows))
    }

    /// Appends `cells` of a tile.
    fn append_stored(
        &mut self,
        column: &Column,
        cells: std::ops::Range<usize>,
        bytes: &[u8],
        (offsets, validity): (Option<&[usize]>, Option<&[u8]>),
    ) -> Result<(), Fault> {
        let range = match (column.kind, offsets) {
            (FieldKind::VarSized, Some(offsets)) => offsets[cells.start]..offsets[cells.end],
            (FieldKind::VarSized, None) => 0..0,
            (FieldKind::Fixed(cell_bytes), _) => cells.start * cell_bytes..cells.end * cell_bytes,
        };
        self.reserve(cells.len(), range.len())?;
        if let (Some(ends), Some(offsets)) = (&mut self.offsets, offsets) {
            let before = self.bytes.len();
            let place = |offset: &usize| (before + offset - range.start) as i64;
            ends.extend(offsets[cells.start + 1..=cells.end].iter().map(place));
        }
        self.bytes.extend_from_slice(&bytes[range]);
        if let (Some(valid), Some(validity)) = (&mut self.validity, validity) {
            valid.extend(validity[cells].iter().map(|byte| *byte != 0));
        }
        Ok(())
    }

    /// Appends `n` times the value of rows from before the column was added.
    fn append_fill(&mut self, column: &Column, n: usize) -> Result<(), Fault> {
        self.reserve(n, n.saturating_mul(column.fill.len()))?;
        for _ in 0..n {
            self.bytes.extend_from_slice(&column.fill);
            if let Some(offsets) = &mut self.offsets {
                offsets.push(self.bytes.len() as i64);
            }
        }
        if let Some(valid) = &mut self.validity {
            valid.resize(valid.len() + n, column.fill_is_valid);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_beyond_memory_are_an_error() {
        let column = Column {
            name: "text".to_owned(),
            kind: FieldKind::VarSized,
            is_nullable: true,
            fill: vec![b'-'; 3],
            fill_is_valid: false,
        };
        let mut out = TableColumn::empty(&column);
        out.append_fill(&column, 2).unwrap();
        assert_eq!((&out.bytes[..], &out.offsets), (&b"------"[..], &Some(vec![0, 3, 6])));
        assert!(out.append_fill(&column, usize::MAX / 2).is_err());
        assert_eq!(out.validity, Some(vec![false; 2]));
    }
}
