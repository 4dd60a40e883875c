//! Writes obs or var: rows in pieces, joinids counted on.

use std::collections::HashMap;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array, ArrayRef, LargeStringArray, RecordBatch};
use arrow_schema::DataType;
use tiledb::{Context, Datatype, WriteColumn, WriteQuery};

use super::{ColumnKind, ColumnSpec, Extent, layout, mark, open_write};
use crate::Error;
use crate::dataframe::JOINID;

/// A data frame that is being written.
#[derive(Debug)]
pub(super) struct FrameWriter {
    uri: String,
    query: WriteQuery,
    columns: Vec<ColumnSpec>,
    /// For each categorical column the code of each value.
    codes: Vec<HashMap<String, i32>>,
    n_rows: u64,
    n_written: u64,
}

/// A column's cells as TileDB takes them.
enum Cells {
    Bytes(Vec<u8>),
    Int8(Vec<i8>),
    Int16(Vec<i16>),
    Int32(Vec<i32>),
    Int64(Vec<i64>),
    Float64(Vec<f64>),
    Text { bytes: Vec<u8>, offsets: Vec<u64> },
}

impl FrameWriter {
    pub(super) fn create(
        context: &Context,
        uri: String,
        columns: &[ColumnSpec],
        n_rows: u64,
        extent: Extent,
    ) -> Result<Self, Error> {
        tiledb::Array::create(context, &uri, &layout::frame(columns, n_rows, extent))?;
        mark(context, &uri, "SOMADataFrame")?;
        let codes = columns
            .iter()
            .map(|column| match &column.kind {
                ColumnKind::Categorical { values, .. } => values.iter().cloned().zip(0..).collect(),
                _ => HashMap::new(),
            })
            .collect();
        let query = open_write(context, &uri)?;
        Ok(Self { uri, query, columns: columns.to_vec(), codes, n_rows, n_written: 0 })
    }

    pub(super) fn write(&mut self, rows: &RecordBatch) -> Result<(), Error> {
        let n_after = self.n_written + rows.num_rows() as u64;
        if n_after > self.n_rows {
            return Err(self.failed(format!(
                "{n_after} rows were given, the experiment is to have {}",
                self.n_rows
            )));
        }
        let joinids: Vec<i64> = (self.n_written as i64..n_after as i64).collect();
        let mut cells = Vec::with_capacity(self.columns.len());
        for (column, codes) in self.columns.iter().zip(&self.codes) {
            let array = rows
                .column_by_name(&column.name)
                .ok_or_else(|| self.failed(format!("column {} is missing", column.name)))?;
            // As against its own, the nulls that follow from a dictionary's values as well.
            let nulls = array.logical_nulls();
            if nulls.as_ref().is_some_and(|nulls| nulls.null_count() > 0) && !column.nullable {
                return Err(self.failed(format!(
                    "column {} has rows without a value, and is not nullable",
                    column.name
                )));
            }
            let problem =
                |problem: String| self.failed(format!("column {}: {problem}", column.name));
            let is_valid = |row: usize| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
            let validity: Option<Vec<u8>> = column
                .nullable
                .then(|| (0..array.len()).map(|row| u8::from(is_valid(row))).collect());
            cells.push((convert(array, column, codes).map_err(problem)?, validity));
        }
        let mut columns = vec![WriteColumn::fixed(JOINID, &joinids)];
        for (column, (cells, validity)) in self.columns.iter().zip(&cells) {
            let name = &column.name;
            let write = match cells {
                Cells::Bytes(values) => WriteColumn::fixed(name, values),
                Cells::Int8(values) => WriteColumn::fixed(name, values),
                Cells::Int16(values) => WriteColumn::fixed(name, values),
                Cells::Int32(values) => WriteColumn::fixed(name, values),
                Cells::Int64(values) => WriteColumn::fixed(name, values),
                Cells::Float64(values) => WriteColumn::fixed(name, values),
                Cells::Text { bytes, offsets } => WriteColumn::var_sized(name, bytes, offsets),
            };
            columns.push(match validity {
                Some(validity) => write.with_validity(validity),
                None => write,
            });
        }
        self.query.submit(&columns)?;
        self.n_written = n_after;
        Ok(())
    }

    pub(super) fn finish(self) -> Result<(), Error> {
        if self.n_written != self.n_rows {
            return Err(
                self.failed(format!("{} rows were written of {}", self.n_written, self.n_rows))
            );
        }
        Ok(self.query.finish()?)
    }

    fn failed(&self, problem: String) -> Error {
        Error::Write { what: "a data frame".into(), uri: self.uri.clone(), problem }
    }
}

fn convert(
    array: &ArrayRef,
    column: &ColumnSpec,
    codes: &HashMap<String, i32>,
) -> Result<Cells, String> {
    let unfit = || format!("an array of type {} is no {:?} column", array.data_type(), column.kind);
    match &column.kind {
        ColumnKind::Text => {
            let texts = texts(array)?;
            let offsets = texts.value_offsets();
            let start = offsets.first().copied().unwrap_or(0);
            let end = offsets.last().copied().unwrap_or(0);
            Ok(Cells::Text {
                bytes: texts.value_data()[start as usize..end as usize].to_vec(),
                offsets: offsets[..texts.len()]
                    .iter()
                    .map(|offset| (offset - start) as u64)
                    .collect(),
            })
        }
        ColumnKind::Categorical { values, .. } => {
            let numbers = category_codes(array, codes)?;
            // The enumeration has room for every code in the type that was chosen for it.
            Ok(match layout::code_type(values.len()) {
                Datatype::Int8 => Cells::Int8(numbers.into_iter().map(|code| code as i8).collect()),
                Datatype::Int16 => {
                    Cells::Int16(numbers.into_iter().map(|code| code as i16).collect())
                }
                _ => Cells::Int32(numbers),
            })
        }
        ColumnKind::Bool => {
            let truths = array.as_boolean_opt().ok_or_else(unfit)?;
            Ok(Cells::Bytes(truths.iter().map(|truth| u8::from(truth.unwrap_or(false))).collect()))
        }
        ColumnKind::Int64 => {
            let numbers = array.as_primitive_opt::<Int64Type>().ok_or_else(unfit)?;
            Ok(Cells::Int64(numbers.values().to_vec()))
        }
        ColumnKind::Float64 => {
            let numbers = array.as_primitive_opt::<Float64Type>().ok_or_else(unfit)?;
            Ok(Cells::Float64(numbers.values().to_vec()))
        }
    }
}

fn texts(array: &ArrayRef) -> Result<LargeStringArray, String> {
    let values = match array.data_type() {
        DataType::Dictionary(_, values) => values,
        other => other,
    };
    if !matches!(values, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Null)
    {
        return Err(format!("an array of type {} holds no texts", array.data_type()));
    }
    let cast = arrow_cast::cast(array, &DataType::LargeUtf8).map_err(|error| error.to_string())?;
    Ok(cast.as_string::<i64>().clone())
}

/// The code of each row's value; 0 for rows without a value.
fn category_codes(array: &ArrayRef, codes: &HashMap<String, i32>) -> Result<Vec<i32>, String> {
    let code = |text: &str| {
        codes.get(text).copied().ok_or_else(|| format!("{text:?} is not among its values"))
    };
    if let Some(dictionary) = array.as_any_dictionary_opt() {
        let values = texts(dictionary.values())?;
        if values.is_empty() {
            // Every row is without a value.
            return Ok(vec![0; array.len()]);
        }
        let keys = dictionary.normalized_keys();
        let by_key: Vec<Result<i32, String>> =
            values.iter().map(|text| text.map_or(Ok(0), code)).collect();
        return (0..array.len())
            .map(|row| if array.is_valid(row) { by_key[keys[row]].clone() } else { Ok(0) })
            .collect();
    }
    texts(array)?.iter().map(|text| text.map_or(Ok(0), code)).collect()
}
