//! Finds the wanted cells of each row if a tile has columns inside and outside a range of wanted
//! columns.
//!
//! Within a tile the cells of a row ascend by column, so the wanted ones are adjacent. Their
//! columns are decoded to count them; afterwards they can be written as directly as if all columns
//! were wanted. Only tiles on the border of the range need this.

use std::ops::Range;

use super::chunks;
use super::work::{Kept, TileWork};
use super::{ReadStats, Reader, Scratch};
use crate::error::Error;
use crate::fragment::Field;

/// Keeps those cells of `works` whose columns lie in `range`. Returns false if those of a row are
/// not adjacent; the result is then meaningless.
pub(super) fn keep(
    reader: &Reader,
    works: &mut Vec<TileWork>,
    range: &Range<u32>,
    scratch: &mut Scratch,
    stats: &mut ReadStats,
) -> Result<bool, Error> {
    let mut on_border = Vec::new();
    let mut within = Vec::new();
    for work in works.drain(..) {
        let fragment = &reader.fragments[work.fragment];
        let (first, last) = fragment.tiles(&reader.files)?.bounds(work.tile).columns;
        let is_within = range.contains(&first) && range.contains(&last);
        if is_within { within.push(work) } else { on_border.push(work) }
    }
    let (kept, are_runs) = find(reader, &on_border, range, scratch, stats)?;
    if are_runs {
        for (work, kept) in on_border.iter_mut().zip(kept) {
            work.parts.retain(|part| kept.ranges(part).iter().any(|cells| !cells.is_empty()));
            work.kept = Some(kept);
        }
        on_border.retain(|work| !work.parts.is_empty());
    }
    works.extend(within);
    works.extend(on_border);
    works.sort_unstable_by_key(|work| (work.fragment, work.tile));
    Ok(are_runs)
}

/// The cells of each of `works` whose columns lie in `range`, and whether those of every row are
/// adjacent.
fn find(
    reader: &Reader,
    works: &[TileWork],
    range: &Range<u32>,
    scratch: &mut Scratch,
    stats: &mut ReadStats,
) -> Result<(Vec<Kept>, bool), Error> {
    let n_rows = |work: &TileWork| {
        work.parts.last().map_or(0, |part| part.n_rows_before + part.found.n_rows as usize)
    };
    let mut kept: Vec<Kept> = works.iter().map(|work| Kept::new(n_rows(work))).collect();
    let mut are_runs = true;
    let mut next_part = vec![0; works.len()];
    let Scratch { bytes, decoding, columns, .. } = scratch;
    chunks::for_each(reader, works, &[Field::Columns], (bytes, decoding), stats, |chunk| {
        let work = &works[chunk.work];
        let kept = &mut kept[chunk.work];
        let stored = chunk.columns(reader, work)?;
        chunks::overlaps(&work.parts, &mut next_part[chunk.work], &chunk.cells, |idx, cells| {
            let place = chunk.place(&cells);
            stored.check(&place)?;
            columns.clear();
            columns.resize(place.len(), 0);
            stored.copy(place, 0, columns);
            let (first_cell, part) = (cells.start, &work.parts[idx]);
            work.rows(part, cells, |row, of_row| {
                let at = (of_row.start - first_cell) as usize..(of_row.end - first_cell) as usize;
                if let Some((wanted, is_run)) = span(&columns[at], range) {
                    let wanted = of_row.start + wanted.start..of_row.start + wanted.end;
                    are_runs &= kept.add(part, row, wanted) && is_run;
                }
            });
            Ok(())
        })
    })?;
    Ok((kept, are_runs))
}

/// The span from the first of `columns` in `range` to the last, and whether all between are in it.
/// `None` if none is.
fn span(columns: &[u32], range: &Range<u32>) -> Option<(Range<u32>, bool)> {
    let first = columns.iter().position(|column| range.contains(column))?;
    let last = columns.iter().rposition(|column| range.contains(column))?;
    let is_run = columns[first..=last].iter().all(|column| range.contains(column));
    Some((first as u32..last as u32 + 1, is_run))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_says_whether_it_is_a_run() {
        assert_eq!(span(&[], &(2..5)), None);
        assert_eq!(span(&[0, 1, 5, 9], &(2..5)), None);
        assert_eq!(span(&[0, 2, 4, 5], &(2..5)), Some((1..3, true)));
        assert_eq!(span(&[3, 3], &(2..5)), Some((0..2, true)));
        assert_eq!(span(&[4, 7, 2], &(2..5)), Some((0..3, false)));
    }
}
