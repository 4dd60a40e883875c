//! Tiles with filter pipelines, and the row index built from row coordinates.

use super::{first_byte, split_at_most};
use crate::cursor::Cursor;
use crate::datatype::{Datatype, Number};
use crate::error::Fault;
use crate::filter::{self, Decoded, Decoder, Pipeline};
use crate::row_index::{Builder, TileIndex};
use crate::tile::{Chunks, decode_chunk, decode_whole, runs_of_chunk};

/// The most values of a tile, which bounds its memory.
const MAX_VALUES: usize = 1 << 13;
/// Bounds of the coordinates for an index.
const BOUNDS: (u64, u64) = (0, 100_000);

/// Input: datatype, format version, number of values (u16), length of the pipeline's bytes; then
/// the pipeline, and the tile.
pub(super) fn tile(input: &[u8]) {
    let (datatype, rest) = first_byte(input);
    let (version, rest) = first_byte(rest);
    let Some((n_values, rest)) = rest.split_first_chunk::<2>() else { return };
    let n_values = usize::from(u16::from_le_bytes(*n_values)) % (MAX_VALUES + 1);
    let (pipeline_len, rest) = first_byte(rest);
    let (pipeline, tile) = split_at_most(rest, usize::from(pipeline_len));
    let (datatype, version) = (Datatype(datatype), 5 + u32::from(version) % 19);
    let Ok(filters) = filter::parse(&mut Cursor::new(pipeline), version) else { return };
    let (Ok(pipeline), Some(number)) =
        (filter::bind(&filters, datatype, version), datatype.number())
    else {
        return;
    };
    let len = n_values * number.size();
    let chunk_by_chunk = decode_chunks(tile, &pipeline, n_values, number.size());
    let whole = decode_whole(tile, &pipeline, number.size(), len);
    if let Ok(chunks) = chunk_by_chunk {
        // The reverse need not hold: only chunks that are read separately must end with a value.
        let whole = whole.unwrap_or_else(|fault| panic!("{pipeline:?}: {fault:?}"));
        assert_eq!(chunks, whole, "{pipeline:?}");
    }
    if datatype.coordinate_number().is_some() {
        index(tile, &pipeline, n_values, number);
    }
}

fn decode_chunks(
    tile: &[u8],
    pipeline: &Pipeline,
    n_values: usize,
    size: usize,
) -> Result<Vec<u8>, Fault> {
    let chunks = Chunks::find(tile, n_values, size)?;
    let mut decoder = Decoder::default();
    let mut out = Vec::new();
    for chunk in 0..chunks.n_chunks() {
        let values = chunks.values(chunk);
        if !values.is_empty() {
            assert!(values.contains(&chunks.values(chunks.holding(values.start)).start));
        }
        let bytes = chunks.bytes(chunk);
        let bytes = &tile[bytes.start as usize..bytes.end as usize];
        let before = out.len();
        match decode_chunk(bytes, pipeline, size, &mut decoder)? {
            Decoded::Plain(plain) => out.extend_from_slice(plain),
            Decoded::Planes(planes) => {
                let n = planes.len() / size;
                out.extend((0..n * size).map(|at| planes[at % size * n + at / size]));
            }
            Decoded::LowFour(low) => {
                for low in low.chunks_exact(4) {
                    out.extend_from_slice(low);
                    out.resize(out.len() + size - 4, 0);
                }
            }
        }
        assert_eq!(out.len() - before, values.len() * size, "{pipeline:?}");
    }
    Ok(out)
}

/// The index built value by value equals the one built from run lengths, if there are any.
fn index(tile: &[u8], pipeline: &Pipeline, n_values: usize, number: Number) {
    let by_value = build(tile, pipeline, (n_values, number), false);
    let by_run = build(tile, pipeline, (n_values, number), true);
    if let (Ok(Some(by_value)), Ok(Some(by_run))) = (&by_value, &by_run) {
        assert_eq!(cells(by_value, n_values), cells(by_run, n_values));
    }
}

fn build(
    tile: &[u8],
    pipeline: &Pipeline,
    (n_values, number): (usize, Number),
    by_run: bool,
) -> Result<Option<TileIndex>, Fault> {
    let chunks = Chunks::find(tile, n_values, number.size())?;
    let mut decoder = Decoder::default();
    let mut builder = Builder::new(BOUNDS);
    for chunk in 0..chunks.n_chunks() {
        let bytes = chunks.bytes(chunk);
        let bytes = &tile[bytes.start as usize..bytes.end as usize];
        if by_run {
            let each = |row: &[u8], n| builder.add_run(row, n);
            if !runs_of_chunk(bytes, pipeline, number.size(), each)? {
                return Ok(None);
            }
        } else {
            builder.add(decode_chunk(bytes, pipeline, number.size(), &mut decoder)?, number)?;
        }
    }
    Ok(Some(builder.finish()))
}

/// The row of each cell; every cell has exactly one.
fn cells(index: &TileIndex, n_values: usize) -> Vec<u64> {
    let mut rows = vec![u64::MAX; n_values];
    let wanted = BOUNDS.0..BOUNDS.1 + 1;
    index.find(std::slice::from_ref(&wanted), |_, found| {
        for (row, starts) in (found.first_row..).zip(index.starts(found).windows(2)) {
            for cell in &mut rows[starts[0] as usize..starts[1] as usize] {
                assert_eq!(*cell, u64::MAX, "a cell of two rows");
                *cell = row;
            }
        }
    });
    assert!(rows.iter().all(|row| *row <= BOUNDS.1), "a cell without a row");
    rows
}
