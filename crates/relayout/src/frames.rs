//! Copies obs and var to the new experiment, unchanged or with obs in another order.

use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::{Array as _, ArrayRef, RecordBatch, UInt32Array, UInt64Array};
use arrow_select::concat::concat_batches;
use arrow_select::take::take_record_batch;
use soma_io::{ExperimentWriter, FrameCopy, RowRanges};

use crate::Error;
use crate::order::Order;
use crate::source::cut;

/// Rows of obs or var per read.
const READ_ROWS: u64 = 1 << 16;

/// Copies var unchanged.
pub(crate) fn write_var(
    writer: &mut ExperimentWriter,
    var: &FrameCopy,
    genes: &RowRanges,
) -> Result<(), Error> {
    for part in FrameCopy::parts(genes, READ_ROWS) {
        writer.write_var(&var.read(&part)?)?;
    }
    Ok(())
}

/// Writes obs in `order`, keeping at most about twice `most_rows` rows in memory. Reads all of obs
/// once for each `most_rows` new rows, and returns the number of these passes.
pub(crate) fn write_obs(
    writer: &mut ExperimentWriter,
    obs: &FrameCopy,
    cells: &RowRanges,
    order: &Order,
    most_rows: usize,
) -> Result<u64, Error> {
    let Some(permutation) = order.permutation() else {
        for part in FrameCopy::parts(cells, READ_ROWS) {
            writer.write_obs(&obs.read(&part)?)?;
        }
        return Ok(1);
    };
    let mut n_passes = 0;
    for wanted in permutation.chunks(most_rows.max(1)) {
        let rows = in_order(obs, cells, wanted, most_rows)?;
        // Small pieces: libtiledb needs less memory for them.
        for start in (0..rows.num_rows()).step_by(READ_ROWS as usize) {
            writer
                .write_obs(&rows.slice(start, (rows.num_rows() - start).min(READ_ROWS as usize)))?;
        }
        n_passes += 1;
    }
    Ok(n_passes)
}

/// Returns the rows of obs at these positions among `cells`, in this order.
fn in_order(
    obs: &FrameCopy,
    cells: &RowRanges,
    wanted: &[u32],
    most_rows: usize,
) -> Result<RecordBatch, Error> {
    // The positions, ascending, each with its index in the list.
    let mut ascending: Vec<u32> = (0..wanted.len() as u32).collect();
    ascending.sort_unstable_by_key(|idx| wanted[*idx as usize]);
    let failed = |source| Error::Arrow { uri: obs.frame().uri().to_owned(), source };
    let mut found: Vec<RecordBatch> = Vec::new();
    let (mut before, mut rest) = (0_u64, ascending.as_slice());
    for part in cut(cells, most_rows as u64) {
        let end = before + part.n_rows();
        let n_here = rest.partition_point(|idx| u64::from(wanted[*idx as usize]) < end);
        let (here, after) = rest.split_at(n_here);
        if !here.is_empty() {
            let batch = obs.read(&part)?;
            let picks: UInt64Array =
                here.iter().map(|idx| u64::from(wanted[*idx as usize]) - before).collect();
            let mut picked = take_record_batch(&batch, &picks).map_err(failed)?;
            if let Some(first) = found.first() {
                picked = with_dictionaries_of(first, &picked).map_err(failed)?;
            }
            found.push(picked);
        }
        (before, rest) = (end, after);
    }
    let Some(first) = found.first() else {
        return Err(Error::Empty { uri: obs.frame().uri().to_owned(), what: "cells" });
    };
    let all = concat_batches(first.schema_ref(), &found).map_err(failed)?;
    let mut places = vec![0; wanted.len()];
    for (row, idx) in (0..).zip(&ascending) {
        places[*idx as usize] = row;
    }
    take_record_batch(&all, &UInt32Array::from(places)).map_err(failed)
}

/// Returns `batch` with the dictionaries of `first`, which hold the same values. Otherwise Arrow
/// would concatenate the dictionaries and run out of codes.
fn with_dictionaries_of(
    first: &RecordBatch,
    batch: &RecordBatch,
) -> Result<RecordBatch, arrow_schema::ArrowError> {
    let columns = first.columns().iter().zip(batch.columns()).map(|(first, column)| {
        match (first.as_any_dictionary_opt(), column.as_any_dictionary_opt()) {
            (Some(first), Some(dictionary))
                if first.values().len() == dictionary.values().len() =>
            {
                dictionary.with_values(Arc::clone(first.values()))
            }
            _ => Arc::clone(column),
        }
    });
    let columns: Vec<ArrayRef> = columns.collect();
    RecordBatch::try_new(first.schema(), columns)
}
