//! Codes in few bytes: in the narrowest signed integers that have all codes of an encoder.
//!
//! Rows are encoded in windows, so that what an encoder needs for each row is needed for one window
//! only.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int8Type, Int16Type, Int32Type, Int64Type};
use arrow_array::{
    Array, ArrayRef, Int8Array, Int16Array, Int32Array, Int64Array, RecordBatch, RecordBatchOptions,
};
use arrow_schema::{ArrowError, DataType, Schema};

/// Rows that are encoded at once.
pub(crate) const WINDOW_ROWS: usize = 1 << 20;

/// The rows of `obs` in windows, each with its first row; one without rows if there are none.
pub(crate) fn windows(obs: &RecordBatch) -> impl Iterator<Item = (usize, RecordBatch)> + '_ {
    bounds(obs.num_rows()).map(|(first, n_rows)| (first, obs.slice(first, n_rows)))
}

/// The first row and the number of rows of each window of `n_rows` rows.
pub(crate) fn bounds(n_rows: usize) -> impl Iterator<Item = (usize, usize)> {
    let n_windows = n_rows.div_ceil(WINDOW_ROWS).max(1);
    (0..n_windows).map(move |window| {
        let first = window * WINDOW_ROWS;
        (first, WINDOW_ROWS.min(n_rows - first))
    })
}

/// Codes that are collected window by window.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NarrowCodes {
    Int8(Vec<i8>),
    Int16(Vec<i16>),
    Int32(Vec<i32>),
    Int64(Vec<i64>),
}

impl NarrowCodes {
    /// No codes, with room for `n_rows` narrow ones.
    pub(super) fn new(n_rows: usize) -> Self {
        Self::Int8(Vec::with_capacity(n_rows))
    }

    /// Appends codes, and changes to wider integers if these are needed.
    pub(super) fn append(&mut self, codes: &[i64]) {
        let needed = width(codes);
        if needed > self.width() {
            self.widen(needed);
        }
        match self {
            Self::Int8(narrow) => narrow.extend(codes.iter().map(|code| *code as i8)),
            Self::Int16(narrow) => narrow.extend(codes.iter().map(|code| *code as i16)),
            Self::Int32(narrow) => narrow.extend(codes.iter().map(|code| *code as i32)),
            Self::Int64(all) => all.extend(codes),
        }
    }

    /// Bytes of a code.
    fn width(&self) -> usize {
        match self {
            Self::Int8(_) => 1,
            Self::Int16(_) => 2,
            Self::Int32(_) => 4,
            Self::Int64(_) => 8,
        }
    }

    fn widen(&mut self, width: usize) {
        fn copied<Narrow: Copy, Wide: From<Narrow>>(
            narrow: &[Narrow],
            capacity: usize,
        ) -> Vec<Wide> {
            let mut wide = Vec::with_capacity(capacity);
            wide.extend(narrow.iter().map(|code| Wide::from(*code)));
            wide
        }
        *self = match (&*self, width) {
            (Self::Int8(codes), 2) => Self::Int16(copied(codes, codes.capacity())),
            (Self::Int8(codes), 4) => Self::Int32(copied(codes, codes.capacity())),
            (Self::Int8(codes), _) => Self::Int64(copied(codes, codes.capacity())),
            (Self::Int16(codes), 4) => Self::Int32(copied(codes, codes.capacity())),
            (Self::Int16(codes), _) => Self::Int64(copied(codes, codes.capacity())),
            (Self::Int32(codes), _) => Self::Int64(copied(codes, codes.capacity())),
            (Self::Int64(_), _) => return,
        };
    }

    pub(super) fn finish(self) -> ArrayRef {
        match self {
            Self::Int8(codes) => Arc::new(Int8Array::from(codes)),
            Self::Int16(codes) => Arc::new(Int16Array::from(codes)),
            Self::Int32(codes) => Arc::new(Int32Array::from(codes)),
            Self::Int64(codes) => Arc::new(Int64Array::from(codes)),
        }
    }
}

/// Bytes of the narrowest integers that have all these codes.
fn width(codes: &[i64]) -> usize {
    let least = codes.iter().copied().min().unwrap_or(0);
    let most = codes.iter().copied().max().unwrap_or(0);
    let has = |low: i64, high: i64| low <= least && most <= high;
    if has(i8::MIN.into(), i8::MAX.into()) {
        1
    } else if has(i16::MIN.into(), i16::MAX.into()) {
        2
    } else if has(i32::MIN.into(), i32::MAX.into()) {
        4
    } else {
        8
    }
}

/// The code at a row of a column of narrow codes.
///
/// # Panics
/// If there are fewer rows.
pub(crate) fn code_at(codes: &ArrayRef, row: usize) -> i64 {
    match codes.data_type() {
        DataType::Int8 => codes.as_primitive::<Int8Type>().value(row).into(),
        DataType::Int16 => codes.as_primitive::<Int16Type>().value(row).into(),
        DataType::Int32 => codes.as_primitive::<Int32Type>().value(row).into(),
        _ => codes.as_primitive::<Int64Type>().value(row),
    }
}

/// The same codes as 64-bit integers.
pub(crate) fn widened(codes: &RecordBatch) -> Result<RecordBatch, ArrowError> {
    of_types(codes, &vec![DataType::Int64; codes.num_columns()])
}

/// Batches of codes whose columns have one type in all of them, the widest.
pub(crate) fn unified(parts: &[&RecordBatch]) -> Result<Vec<RecordBatch>, ArrowError> {
    let n_columns = parts.iter().map(|part| part.num_columns()).max().unwrap_or(0);
    let types: Vec<DataType> = (0..n_columns)
        .map(|column| {
            let types = parts.iter().filter_map(|part| part.columns().get(column));
            let types = types.map(|codes| codes.data_type().clone());
            types.max_by_key(DataType::primitive_width).unwrap_or(DataType::Int64)
        })
        .collect();
    parts.iter().map(|part| of_types(part, &types)).collect()
}

fn of_types(codes: &RecordBatch, types: &[DataType]) -> Result<RecordBatch, ArrowError> {
    let columns = codes.columns().iter().zip(types);
    let columns: Vec<ArrayRef> = columns
        .map(|(column, data_type)| arrow_cast::cast(column, data_type))
        .collect::<Result<_, _>>()?;
    let fields = codes.schema_ref().fields().iter().zip(types);
    let fields =
        fields.map(|(field, data_type)| field.as_ref().clone().with_data_type(data_type.clone()));
    let options = RecordBatchOptions::new().with_row_count(Some(codes.num_rows()));
    let schema = Schema::new(fields.collect::<Vec<_>>());
    RecordBatch::try_new_with_options(Arc::new(schema), columns, &options)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn codes_stay_the_same_in_any_width(
            parts in prop::collection::vec((0_u32..64, prop::collection::vec(any::<i64>(), 0..20)), 0..6),
        ) {
            let mut narrow = NarrowCodes::new(3);
            let mut all: Vec<i64> = Vec::new();
            for (shift, codes) in parts {
                let codes: Vec<i64> = codes.into_iter().map(|code| code >> shift).collect();
                narrow.append(&codes);
                all.extend(codes);
            }
            let narrow = narrow.finish();
            prop_assert_eq!(narrow.data_type().primitive_width(), Some(width(&all)));
            prop_assert!((0..narrow.len()).map(|row| code_at(&narrow, row)).eq(all.iter().copied()));
            let batch = RecordBatch::try_from_iter([("codes", narrow)]).unwrap();
            let one = RecordBatch::try_from_iter([("codes", Arc::new(Int8Array::from(vec![-1])) as ArrayRef)]).unwrap();
            for wide in [widened(&batch).unwrap(), widened(&unified(&[&one, &batch]).unwrap()[1]).unwrap()] {
                prop_assert_eq!(wide.column(0).as_primitive::<Int64Type>(), &Int64Array::from(all.clone()));
            }
        }
    }

    #[test]
    fn windows_have_every_row_once() {
        for n_rows in [0, 1, WINDOW_ROWS, WINDOW_ROWS + 1, 3 * WINDOW_ROWS - 1] {
            let mut next = 0;
            for (first, n) in bounds(n_rows) {
                assert_eq!(first, next);
                assert!(n > 0 || n_rows == 0);
                next += n;
            }
            assert_eq!(next, n_rows);
        }
    }
}
