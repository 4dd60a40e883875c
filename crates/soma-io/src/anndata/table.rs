//! Tables of an AnnData, as data frames see them.

use std::ops::Range;
use std::sync::Arc;

use ::anndata::Frame;
use arrow_array::cast::AsArray as _;
use arrow_array::{
    AnyDictionaryArray, Array as _, ArrayRef, BooleanArray, RecordBatch, make_array,
};
use arrow_buffer::BooleanBufferBuilder;
use arrow_schema::{ArrowError, DataType, Field};
use arrow_select::filter::filter_record_batch;
use tiledb_schema::{Attribute, Enumeration, EnumerationValues, MetadataValue, Schema};

use super::matrix::{datatype, dimension, schema};
use crate::Error;
use crate::columns::JOINID;
use crate::soma_object::{StoredArray, StoredColumn, StoredTable};

/// Rows that are in memory at once. Chunks of a column are about as long, and are decoded again for
/// each batch that has a part of them.
const BATCH_ROWS: u64 = 1 << 20;

/// The name of an index that had none in Python.
const UNNAMED: &str = "_index";

/// A table, whose rows are indexed by their positions.
#[derive(Debug)]
pub(super) struct StoredFrame {
    frame: Frame,
    uri: String,
    schema: Schema,
    /// Of each attribute the column in the table.
    columns: Vec<String>,
    enumerations: Vec<Enumeration>,
}

impl StoredFrame {
    /// Describes a table, and reads all categories. An index without a name becomes the column
    /// `id`.
    pub(super) fn new(frame: Frame, id: &str, uri: &str) -> Result<Self, Error> {
        let fields = frame.schema().fields().iter();
        let has = |name: &str| frame.schema().column_with_name(name).is_some();
        let index_name = match frame.index_name() {
            // A table that came from SOMA may have the column besides an index.
            UNNAMED | "index" if !has(id) => id,
            named => named,
        };
        let (mut attributes, mut columns, mut categorical) = (Vec::new(), Vec::new(), Vec::new());
        for field in fields {
            let is_index = field.name() == frame.index_name();
            let name = if is_index { index_name } else { field.name().as_str() };
            // Joinids are the positions here, whatever they were where the table came from.
            if name == JOINID {
                continue;
            }
            if matches!(field.data_type(), DataType::Dictionary(..)) {
                categorical.push((name, field.name().as_str()));
            }
            let attribute = attribute(name, field).ok_or_else(|| {
                let problem = format!("values of type {} are not read", field.data_type());
                Error::broken_column(uri, name, problem)
            })?;
            attributes.push(attribute);
            columns.push(field.name().clone());
        }
        // Reads no rows, but all categories together.
        let stored: Vec<&str> = categorical.iter().map(|(_, stored)| *stored).collect();
        let known = frame.read(&stored, 0..0)?;
        let enumerations = known
            .schema()
            .fields()
            .iter()
            .zip(known.columns())
            .zip(categorical)
            .map(|((field, column), (name, _))| enumeration(name, field, column, uri))
            .collect::<Result<_, Error>>()?;
        let schema = schema(vec![dimension(JOINID)], attributes, &[frame.n_rows()]);
        Ok(Self { frame, uri: uri.to_owned(), schema, columns, enumerations })
    }

    /// The columns with these names of a range of rows, as they are stored.
    fn read(&self, names: &[&str], rows: Range<u64>) -> Result<RecordBatch, Error> {
        let attributes = self.schema.attributes.iter().zip(&self.columns);
        let stored = |name: &&str| {
            let mut attributes = attributes.clone();
            attributes.find(|(attribute, _)| attribute.name == *name).map(|(_, of)| of.as_str())
        };
        let stored: Vec<&str> = names.iter().filter_map(stored).collect();
        Ok(self.frame.read(&stored, rows)?)
    }

    fn attribute(&self, name: &str) -> Option<&Attribute> {
        self.schema.attributes.iter().find(|attribute| attribute.name == name)
    }

    fn no_column(&self, name: &str) -> Error {
        let existing = self.schema.attributes.iter().map(|of| of.name.clone()).collect();
        Error::NoColumn { uri: self.uri.clone(), name: name.to_owned(), existing }
    }

    fn not_arrow(&self, what: &str, source: ArrowError) -> Error {
        Error::Arrow { uri: self.uri.clone(), what: what.to_owned(), source }
    }
}

impl StoredArray for StoredFrame {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn metadata(&self) -> Result<Vec<(String, MetadataValue)>, Error> {
        Ok(Vec::new())
    }

    fn enumeration(&self, name: &str) -> Result<Enumeration, Error> {
        let found = self.enumerations.iter().find(|enumeration| enumeration.name == name);
        found.cloned().ok_or_else(|| Error::Missing { uri: format!("{}/{name}", self.uri) })
    }

    fn non_empty_domain(&self) -> Result<Option<Vec<(i128, i128)>>, Error> {
        Ok(super::matrix::non_empty(&self.schema))
    }

    fn n_cells(&self) -> Result<u64, Error> {
        Ok(self.frame.n_rows())
    }

    fn why_not_native(&self) -> Option<&str> {
        None
    }
}

impl StoredTable for StoredFrame {
    fn unread_columns(&self) -> Vec<(String, String)> {
        let owned = |(name, reason): (&str, &str)| (name.to_owned(), reason.to_owned());
        self.frame.unsupported().map(owned).collect()
    }

    fn read_each(
        &self,
        names: &[&str],
        ranges: &[(i64, i64)],
        each: &mut dyn FnMut(Vec<StoredColumn>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let n_rows = self.frame.n_rows();
        let whole = [0..n_rows];
        let ranges: Vec<Range<u64>> = match ranges {
            [] => whole.into(),
            some => some.iter().map(|(first, last)| *first as u64..*last as u64 + 1).collect(),
        };
        let parts: Vec<Range<u64>> = ranges.iter().cloned().flat_map(at_borders).collect();
        let batches = parts.chunk_by(|one, next| one.start / BATCH_ROWS == next.start / BATCH_ROWS);
        for parts in batches {
            let (Some(first), Some(last)) = (parts.first(), parts.last()) else { continue };
            // Chunks hold many rows, so those between ranges cost little.
            let mut columns = self.read(names, first.start..last.end)?;
            if parts.len() > 1 {
                let mut keep = BooleanBufferBuilder::new(columns.num_rows());
                for part in parts {
                    keep.append_n((part.start - first.start) as usize - keep.len(), false);
                    keep.append_n((part.end - part.start) as usize, true);
                }
                let keep = BooleanArray::new(keep.finish(), None);
                columns = filter_record_batch(&columns, &keep)
                    .map_err(|source| self.not_arrow("the rows of a selection", source))?;
            }
            let mut read = columns.columns().iter();
            let mut stored = Vec::with_capacity(names.len());
            for name in names {
                stored.push(if *name == JOINID {
                    joinids(parts)
                } else {
                    let column = read.next().ok_or_else(|| self.no_column(name))?;
                    let attribute = self.attribute(name).ok_or_else(|| self.no_column(name))?;
                    stored_column(column, attribute)
                        .map_err(|source| self.not_arrow(name, source))?
                });
            }
            each(stored)?;
        }
        Ok(())
    }
}

/// Cuts a range at the borders of batches.
fn at_borders(range: Range<u64>) -> impl Iterator<Item = Range<u64>> {
    let batches = range.start / BATCH_ROWS..range.end.div_ceil(BATCH_ROWS);
    batches.map(move |batch| {
        let start = batch * BATCH_ROWS;
        range.start.max(start)..range.end.min(start + BATCH_ROWS)
    })
}

/// The joinids of rows, as they are stored.
fn joinids(parts: &[Range<u64>]) -> StoredColumn {
    let bytes = parts.iter().cloned().flatten().flat_map(u64::to_le_bytes).collect();
    StoredColumn { bytes, ..StoredColumn::default() }
}

/// The attribute for a column; `None` if TileDB has no such type.
fn attribute(name: &str, field: &Field) -> Option<Attribute> {
    let (of_values, is_categorical) = match field.data_type() {
        DataType::Dictionary(keys, _) => (keys.as_ref(), true),
        other => (other, false),
    };
    Some(Attribute {
        nullable: field.is_nullable(),
        enumeration: is_categorical.then(|| name.to_owned()),
        ..Attribute::new(name, datatype(of_values)?)
    })
}

/// The enumeration with the categories of a column, which has this name here.
fn enumeration(
    name: &str,
    field: &Field,
    column: &ArrayRef,
    uri: &str,
) -> Result<Enumeration, Error> {
    let categories = column.as_any_dictionary().values();
    let broken = |problem: String| Error::broken_column(uri, name, problem);
    let datatype = datatype(categories.data_type()).ok_or_else(|| {
        broken(format!("categories of type {} are not read", categories.data_type()))
    })?;
    let attribute = Attribute::new(name, datatype);
    let stored =
        stored_column(categories, &attribute).map_err(|error| broken(error.to_string()))?;
    let values = match stored.offsets {
        None => EnumerationValues::Fixed(stored.bytes),
        Some(offsets) => EnumerationValues::VarSized(
            offsets
                .windows(2)
                .map(|ends| stored.bytes[ends[0] as usize..ends[1] as usize].to_vec())
                .collect(),
        ),
    };
    let ordered = field.dict_is_ordered().unwrap_or(false);
    Ok(Enumeration { name: name.to_owned(), datatype, ordered, values })
}

/// The values of an Arrow array as TileDB stores them.
fn stored_column(array: &ArrayRef, attribute: &Attribute) -> Result<StoredColumn, ArrowError> {
    let n_rows = array.len();
    let validity = attribute.nullable.then(|| match array.logical_nulls() {
        Some(nulls) => nulls.iter().collect(),
        None => vec![true; n_rows],
    });
    if let Some(texts) = array.as_string_opt::<i64>() {
        let ends = texts.value_offsets();
        let (first, last) = (ends[0], ends[n_rows]);
        let bytes = texts.value_data()[first as usize..last as usize].to_vec();
        let offsets = Some(ends.iter().map(|end| end - first).collect());
        return Ok(StoredColumn { bytes, offsets, validity });
    }
    if let Some(truths) = array.as_boolean_opt() {
        let bytes = truths.values().iter().map(u8::from).collect();
        return Ok(StoredColumn { bytes, offsets: None, validity });
    }
    let keys = array.as_any_dictionary_opt().map(AnyDictionaryArray::keys);
    let mut values = keys.map_or_else(|| Arc::clone(array), |keys| make_array(keys.to_data()));
    if *values.data_type() == DataType::Float16 {
        values = arrow_cast::cast(&values, &DataType::Float32)?;
    }
    let width = values.data_type().primitive_width().unwrap_or(1);
    let data = values.to_data();
    let start = data.offset() * width;
    let bytes = data.buffers()[0].as_slice()[start..start + n_rows * width].to_vec();
    Ok(StoredColumn { bytes, offsets: None, validity })
}
