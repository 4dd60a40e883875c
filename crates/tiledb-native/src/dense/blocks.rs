//! Splitting a request at the borders of tiles, and the cells of a tile that it wants.

use std::ops::Range;

use super::layout::{Axis, DenseLayout};

/// Consecutive wanted coordinates of one tile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) coordinates: Range<u64>,
    /// The place of the first in the result.
    pub(super) at: usize,
}

/// The wanted coordinates of one tile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TileParts {
    pub(super) tile: u64,
    pub(super) parts: Vec<Part>,
}

impl TileParts {
    /// Number of wanted coordinates.
    pub(super) fn len(&self) -> usize {
        self.parts.iter().map(|part| (part.coordinates.end - part.coordinates.start) as usize).sum()
    }

    /// The place of the first in the result.
    pub(super) fn start(&self) -> usize {
        self.parts.first().map_or(0, |part| part.at)
    }

    /// The wanted coordinates within `bounds`, each run with its place after the tile's first.
    fn within(&self, bounds: &Range<u64>) -> impl Iterator<Item = Part> + Clone {
        let (bounds, start) = (bounds.clone(), self.start());
        self.parts.iter().filter_map(move |Part { coordinates, at }| {
            let first = coordinates.start.max(bounds.start);
            let end = coordinates.end.min(bounds.end);
            let at = at - start + first.saturating_sub(coordinates.start) as usize;
            (first < end).then_some(Part { coordinates: first..end, at })
        })
    }

    /// Whether all wanted coordinates lie within `bounds`.
    pub(super) fn lie_within(&self, bounds: &Range<u64>) -> bool {
        self.parts.iter().all(|part| {
            bounds.start <= part.coordinates.start && part.coordinates.end <= bounds.end
        })
    }

    /// Whether any wanted coordinate lies within `bounds`.
    pub(super) fn meet(&self, bounds: &Range<u64>) -> bool {
        self.within(bounds).next().is_some()
    }
}

/// Splits ascending ranges at the borders of tiles.
pub(super) fn by_tile(ranges: &[Range<u64>], axis: &Axis) -> Vec<TileParts> {
    let mut tiles: Vec<TileParts> = Vec::new();
    let mut at = 0;
    for range in ranges {
        let mut first = range.start;
        while first < range.end {
            let tile = axis.tile(first);
            let end = range.end.min(axis.tile_start(tile + 1));
            let part = Part { coordinates: first..end, at };
            match tiles.last_mut() {
                Some(last) if last.tile == tile => last.parts.push(part),
                _ => tiles.push(TileParts { tile, parts: vec![part] }),
            }
            at += (end - first) as usize;
            first = end;
        }
    }
    tiles
}

/// Consecutive wanted cells of a tile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) cells: Range<u32>,
    /// The row and the column of the first in the block.
    pub(super) row: usize,
    pub(super) column: usize,
}

/// The wanted cells of a tile that lie within a fragment's bounds, in the order of the tile. Along
/// a run the column grows if the tile is stored by rows, otherwise the row.
pub(super) fn runs(
    layout: &DenseLayout,
    [rows, columns]: [&TileParts; 2],
    bounds: &[Range<u64>; 2],
) -> Vec<Run> {
    let [down, across] = &layout.axes;
    let of_rows = (rows, &bounds[0], down);
    let of_columns = (columns, &bounds[1], across);
    let (outer, inner) =
        if layout.cells_by_row { (of_rows, of_columns) } else { (of_columns, of_rows) };
    let starts = [outer, inner].map(|(parts, _, axis)| axis.tile_start(parts.tile));
    let inner_parts: Vec<Part> = inner.0.within(inner.1).collect();
    let mut runs = Vec::new();
    for part in outer.0.within(outer.1) {
        for (place, coordinate) in (part.at..).zip(part.coordinates) {
            let line = (coordinate - starts[0]) * inner.2.extent;
            runs.extend(inner_parts.iter().map(|inner| {
                let cell = |coordinate: u64| (line + coordinate - starts[1]) as u32;
                let cells = cell(inner.coordinates.start)..cell(inner.coordinates.end);
                let (row, column) =
                    if layout.cells_by_row { (place, inner.at) } else { (inner.at, place) };
                Run { cells, row, column }
            }));
        }
    }
    runs
}
