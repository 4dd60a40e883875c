//! Concatenates the obs columns and codes of several experiments.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{
    Array, ArrayRef, DictionaryArray, Int32Array, LargeStringArray, RecordBatch, RecordBatchOptions,
};
use arrow_schema::{ArrowError, DataType, Field, Schema};

use crate::error::{ColumnsError, ConcatError, columns_error};

/// Concatenates the rows of all `parts`, which must have the same column names in the same order.
///
/// A column of texts may be plain in some parts and a dictionary in others: it becomes a dictionary
/// with 32-bit keys, whose categories have no order. Any other column must have one type.
pub(crate) fn concat(parts: &[&RecordBatch]) -> Result<RecordBatch, ConcatError> {
    let Some(first) = parts.first() else { return Err(ConcatError::NoDatasets) };
    let names = |part: &RecordBatch| -> Vec<String> {
        part.schema_ref().fields().iter().map(|field| field.name().clone()).collect()
    };
    let first_names = names(first);
    for (idx, part) in parts.iter().enumerate() {
        let found = names(part);
        if found != first_names {
            return Err(ConcatError::Obs {
                idx,
                problem: format!(
                    "its columns are {}, the first has {}",
                    found.join(", "),
                    first_names.join(", ")
                ),
            });
        }
    }
    let mut fields = Vec::with_capacity(first_names.len());
    let mut columns = Vec::with_capacity(first_names.len());
    for (position, name) in first_names.iter().enumerate() {
        let of_parts: Vec<&ArrayRef> = parts.iter().map(|part| part.column(position)).collect();
        let data_type = common_type(name, &of_parts)?;
        let column = concat_columns(&of_parts, &data_type).map_err(columns_error("obs"))?;
        let nullable = parts.iter().any(|part| part.schema_ref().field(position).is_nullable());
        fields.push(Field::new(name, data_type, nullable));
        columns.push(column);
    }
    let n_rows = parts.iter().map(|part| part.num_rows()).sum();
    let options = RecordBatchOptions::new().with_row_count(Some(n_rows));
    Ok(RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options)
        .map_err(columns_error("obs"))?)
}

/// A record batch without columns.
pub(crate) fn without_columns(
    of: &'static str,
    n_rows: usize,
) -> Result<RecordBatch, ColumnsError> {
    let options = RecordBatchOptions::new().with_row_count(Some(n_rows));
    RecordBatch::try_new_with_options(Arc::new(Schema::empty()), Vec::new(), &options)
        .map_err(columns_error(of))
}

fn is_text(data_type: &DataType) -> bool {
    match data_type {
        DataType::Utf8 | DataType::LargeUtf8 => true,
        DataType::Dictionary(_, values) => is_text(values),
        _ => false,
    }
}

/// The type of a concatenated column.
fn common_type(name: &str, columns: &[&ArrayRef]) -> Result<DataType, ConcatError> {
    let first = columns[0].data_type();
    let of_categories = |column: &&ArrayRef| matches!(column.data_type(), DataType::Dictionary(..));
    let other = columns.iter().position(|column| column.data_type() != first);
    if columns.iter().all(|column| is_text(column.data_type())) {
        if columns.iter().any(of_categories) {
            // All parts together may have more categories than the keys of one part can count.
            let (keys, values) = (DataType::Int32, DataType::LargeUtf8);
            return Ok(DataType::Dictionary(Box::new(keys), Box::new(values)));
        }
        return Ok(if other.is_none() { first.clone() } else { DataType::LargeUtf8 });
    }
    match other {
        None => Ok(first.clone()),
        Some(idx) => Err(ConcatError::Obs {
            idx,
            problem: format!(
                "column {name} has type {}, in the first data set {first}",
                columns[idx].data_type()
            ),
        }),
    }
}

fn concat_columns(columns: &[&ArrayRef], data_type: &DataType) -> Result<ArrayRef, ArrowError> {
    let cast: Vec<ArrayRef> = columns
        .iter()
        .map(|column| arrow_cast::cast(column, data_type))
        .collect::<Result<_, _>>()?;
    if matches!(data_type, DataType::Dictionary(..)) {
        return concat_dictionaries(&cast);
    }
    let parts: Vec<&dyn Array> = cast.iter().map(AsRef::as_ref).collect();
    arrow_select::concat::concat(&parts)
}

/// Concatenates dictionaries. The categories are those of the first, then the new ones of the
/// second, and so on, each once, including those that no row has. Arrow's own concatenation can
/// repeat categories, and drops those without rows.
fn concat_dictionaries(parts: &[ArrayRef]) -> Result<ArrayRef, ArrowError> {
    let mut code_of: HashMap<String, i32> = HashMap::new();
    let mut all: Vec<String> = Vec::new();
    let mut keys: Vec<Option<i32>> = Vec::new();
    for part in parts {
        let part = part.as_dictionary::<Int32Type>();
        let mut codes = Vec::with_capacity(part.values().len());
        for text in part.values().as_string::<i64>() {
            codes.push(text.map(|text| {
                *code_of.entry(text.to_owned()).or_insert_with(|| {
                    all.push(text.to_owned());
                    all.len() as i32 - 1
                })
            }));
        }
        keys.extend(part.keys().iter().map(|key| codes[key? as usize]));
    }
    let values = Arc::new(LargeStringArray::from(all));
    Ok(Arc::new(DictionaryArray::try_new(Int32Array::from(keys), values)?))
}
