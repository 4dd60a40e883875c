//! A tile: its cells, and its bytes in the three files.

use crate::filter::Pipeline;
use crate::filter::encode::Encoder;
use crate::schema::Layout;
use crate::write::footer::Rectangle;
use crate::write::statistics::Statistics;

/// The most cells of a chunk: 64 KiB of coordinates, as in libtiledb.
const MOST_CHUNK_CELLS: usize = 8192;
/// Cells after which a chunk ends with the row, if decoding a chunk costs little more than its
/// cells.
const SHORT_CHUNK_CELLS: usize = 2048;

/// The facts about an array that a writer needs.
#[derive(Debug)]
pub(super) struct Form {
    pub(super) version: u32,
    /// The last part of the schema's path.
    pub(super) schema_name: String,
    /// Cells per tile.
    pub(super) capacity: usize,
    pub(super) first_row: u64,
    pub(super) n_rows: u64,
    pub(super) n_columns: u64,
    /// Rows and columns of a space tile, if it does not have all columns.
    pub(super) tile: Option<(u64, u64)>,
    /// Cells after which a chunk of columns, or of values, ends with its row.
    pub(super) chunk_cells: [usize; 2],
    /// The pipelines of rows, columns and values.
    pub(super) pipelines: [Pipeline; 3],
}

/// Numbers of cells after which chunks of columns and of values end with the row.
pub(super) fn chunk_cells(layout: &Layout, wanted: Option<usize>) -> [usize; 2] {
    [&layout.columns, &layout.values].map(|stored| {
        let own = if stored.pipeline.compresses() { MOST_CHUNK_CELLS } else { SHORT_CHUNK_CELLS };
        wanted.unwrap_or(own).clamp(1, MOST_CHUNK_CELLS)
    })
}

/// The cells of a tile in order.
#[derive(Debug)]
pub(super) struct Cells<'a> {
    /// Rows, each with its number of cells in the tile.
    pub(super) runs: Vec<(u64, usize)>,
    pub(super) columns: &'a [u32],
    pub(super) values: &'a [f32],
}

/// An encoded tile.
#[derive(Debug, Default)]
pub(super) struct Tile {
    /// The bytes for the files of rows, columns and values.
    pub(super) bytes: [Vec<u8>; 3],
    pub(super) summary: Summary,
    /// Coordinates and values of a chunk.
    coordinates: Vec<u8>,
}

/// The metadata of a tile.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Summary {
    pub(super) n_cells: u64,
    /// The least and the greatest row, then column.
    pub(super) bounds: Rectangle<2>,
    /// Statistics of rows, columns and values; coordinates have only sums.
    pub(super) statistics: [Statistics; 3],
}

impl Tile {
    /// Encodes `cells`, which must not be empty.
    pub(super) fn encode(
        &mut self,
        cells: &Cells<'_>,
        form: &Form,
        encoder: &mut Encoder,
    ) -> Result<(), String> {
        let Self { bytes, summary, coordinates } = self;
        *summary = Summary::from_cells(cells);
        let [rows, columns, values] = bytes;
        let [row_pipeline, column_pipeline, value_pipeline] = &form.pipelines;
        begin(rows, cells.values.len().div_ceil(MOST_CHUNK_CELLS));
        let mut runs = cells.runs.iter().copied();
        let (mut row, mut left) = (0, 0);
        for start in (0..cells.values.len()).step_by(MOST_CHUNK_CELLS) {
            let n = MOST_CHUNK_CELLS.min(cells.values.len() - start);
            coordinates.clear();
            while coordinates.len() < 8 * n {
                if left == 0 {
                    (row, left) = runs.next().ok_or("fewer rows than cells")?;
                    continue;
                }
                let taken = left.min(n - coordinates.len() / 8);
                left -= taken;
                let at = coordinates.len();
                coordinates.resize(at + 8 * taken, 0);
                coordinates[at..].as_chunks_mut().0.fill(u64::to_le_bytes(row));
            }
            row_pipeline.encode(coordinates, 8, encoder, rows)?;
        }
        let ends = chunk_ends(&cells.runs, form.chunk_cells[0]);
        begin(columns, ends.len());
        each(&ends, |range| {
            coordinates.clear();
            coordinates.resize(8 * range.len(), 0);
            let (to, _) = coordinates.as_chunks_mut();
            to.iter_mut().zip(&cells.columns[range]).for_each(|(to, column)| {
                *to = u64::from(*column).to_le_bytes();
            });
            column_pipeline.encode(coordinates, 8, encoder, columns)
        })?;
        let ends = chunk_ends(&cells.runs, form.chunk_cells[1]);
        begin(values, ends.len());
        each(&ends, |range| {
            coordinates.clear();
            coordinates.resize(4 * range.len(), 0);
            let (to, _) = coordinates.as_chunks_mut();
            to.iter_mut().zip(&cells.values[range]).for_each(|(to, value)| {
                *to = value.to_le_bytes();
            });
            value_pipeline.encode(coordinates, 4, encoder, values)
        })
    }
}

/// Begins a tile of `n_chunks` chunks.
fn begin(tile: &mut Vec<u8>, n_chunks: usize) {
    tile.clear();
    tile.extend_from_slice(&(n_chunks as u64).to_le_bytes());
}

fn each(
    ends: &[usize],
    mut chunk: impl FnMut(std::ops::Range<usize>) -> Result<(), String>,
) -> Result<(), String> {
    let starts = std::iter::once(0).chain(ends.iter().copied());
    starts.zip(ends).try_for_each(|(start, end)| chunk(start..*end))
}

/// The ends of chunks: after the first row that ends after `wanted` cells, and before a chunk
/// exceeds the limit.
fn chunk_ends(runs: &[(u64, usize)], wanted: usize) -> Vec<usize> {
    let mut ends = Vec::new();
    let (mut start, mut end) = (0, 0);
    for (_, n) in runs {
        // A row that fits a chunk but not the present one begins a new one.
        if end > start && end - start + n > MOST_CHUNK_CELLS {
            ends.push(end);
            start = end;
        }
        end += n;
        while end - start > MOST_CHUNK_CELLS {
            start += MOST_CHUNK_CELLS;
            ends.push(start);
        }
        if end - start >= wanted {
            ends.push(end);
            start = end;
        }
    }
    if end > start {
        ends.push(end);
    }
    ends
}

impl Summary {
    fn from_cells(cells: &Cells<'_>) -> Self {
        let rows = cells.runs.iter().map(|run| run.0);
        let (first, last) =
            rows.fold((u64::MAX, 0), |(first, last), row| (first.min(row), last.max(row)));
        let columns = cells.columns.iter().copied();
        let bounds =
            |(least, greatest): (u32, u32), column: u32| (least.min(column), greatest.max(column));
        let (least_column, greatest_column) = columns.clone().fold((u32::MAX, 0), bounds);
        let rows = cells.runs.iter().map(|(row, n)| i128::from(*row) * *n as i128).sum::<i128>();
        let sum = |sum: i64| Statistics { sum: sum.cast_unsigned(), ..Statistics::default() };
        let rows = sum(i64::try_from(rows).unwrap_or(i64::MAX));
        let values = Statistics::from_values(cells.values.iter().copied());
        Self {
            n_cells: cells.values.len() as u64,
            bounds: [(first, last), (least_column.into(), greatest_column.into())],
            statistics: [rows, sum(columns.map(i64::from).sum()), values],
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn chunks_end_with_rows_and_hold_all(lengths in prop::collection::vec(1_usize..20_000, 1..20), wanted in 1_usize..=MOST_CHUNK_CELLS) {
            let runs: Vec<(u64, usize)> = (0..).zip(lengths).collect();
            let ends = chunk_ends(&runs, wanted);
            prop_assert_eq!(*ends.last().unwrap(), runs.iter().map(|run| run.1).sum::<usize>());
            let mut row_ends = Vec::new();
            let mut end = 0;
            for (_, n) in &runs { end += n; row_ends.push(end); }
            let mut start = 0;
            for end in ends {
                prop_assert!(end > start && end - start <= MOST_CHUNK_CELLS);
                // Only a row longer than a chunk is split.
                prop_assert!(row_ends.contains(&end) || end - start == MOST_CHUNK_CELLS);
                start = end;
            }
        }
    }
}
