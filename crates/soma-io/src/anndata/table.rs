//! Tables of an AnnData, as data frames see them.

use std::ops::Range;
use std::sync::Arc;

use ::anndata::Frame;
use arrow_array::cast::AsArray as _;
use arrow_array::{ArrayRef, BooleanArray, Int64Array, RecordBatch, RecordBatchOptions};
use arrow_buffer::BooleanBufferBuilder;
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use arrow_select::filter::filter_record_batch;

use crate::Error;
use crate::columns::JOINID;
use crate::table::Table;

/// Rows that are in memory at once. Chunks of a column are about as long, and are decoded again for
/// each batch that has a part of them.
const BATCH_ROWS: u64 = 1 << 20;

/// The name of an index that had none in Python.
const UNNAMED: &str = "_index";

/// A table, whose rows are indexed by their positions.
#[derive(Debug)]
pub(super) struct AnnDataTable {
    frame: Frame,
    uri: String,
    schema: SchemaRef,
    /// The name in the table of each column but the first.
    stored: Vec<String>,
}

impl AnnDataTable {
    /// Describes a table. An index without a name becomes the column `id`.
    pub(super) fn new(frame: Frame, id: &str, uri: &str) -> Self {
        let has = |name: &str| frame.schema().column_with_name(name).is_some();
        let index_name = match frame.index_name() {
            // A table that came from SOMA may have the column besides an index.
            UNNAMED | "index" if !has(id) => id,
            named => named,
        };
        let mut fields = vec![Field::new(JOINID, DataType::Int64, false)];
        let mut stored = Vec::new();
        for field in frame.schema().fields() {
            let is_index = field.name() == frame.index_name();
            let name = if is_index { index_name } else { field.name().as_str() };
            // Joinids are the positions here, whatever they were where the table came from.
            if name != JOINID {
                let data_type = without_f16(field.data_type());
                fields.push(field.as_ref().clone().with_name(name).with_data_type(data_type));
                stored.push(field.name().clone());
            }
        }
        Self { frame, uri: uri.to_owned(), schema: Arc::new(Schema::new(fields)), stored }
    }

    /// The columns of a range of rows, as they are stored; `None` for the joinid.
    fn read(
        &self,
        columns: &[Option<(&Field, &str)>],
        rows: Range<u64>,
    ) -> Result<RecordBatch, Error> {
        let stored: Vec<&str> = columns.iter().flatten().map(|(_, stored)| *stored).collect();
        Ok(self.frame.read(&stored, rows)?)
    }

    /// A column, and its name in the table; `None` for the joinid.
    fn column(&self, name: &str) -> Result<Option<(&Field, &str)>, Error> {
        match self.schema.column_with_name(name) {
            Some((0, _)) => Ok(None),
            Some((place, field)) => Ok(Some((field, self.stored[place - 1].as_str()))),
            None => {
                let existing = self.schema.fields().iter().map(|of| of.name().clone()).collect();
                Err(Error::NoColumn { uri: self.uri.clone(), name: name.to_owned(), existing })
            }
        }
    }

    fn not_arrow(&self, source: ArrowError) -> Error {
        Error::Arrow { uri: self.uri.clone(), what: "the columns".to_owned(), source }
    }
}

impl Table for AnnDataTable {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn joinid_bounds(&self) -> Result<Option<(u64, u64)>, Error> {
        Ok(self.frame.n_rows().checked_sub(1).map(|last| (0, last)))
    }

    fn extent(&self) -> u64 {
        self.frame.n_rows()
    }

    fn n_rows(&self) -> Result<u64, Error> {
        Ok(self.frame.n_rows())
    }

    fn categories(&self, column: &str) -> Result<Option<ArrayRef>, Error> {
        let Some((field, stored)) = self.column(column)? else { return Ok(None) };
        if !matches!(field.data_type(), DataType::Dictionary(..)) {
            return Ok(None);
        }
        // Reads no rows, but all categories.
        let none = self.frame.read(&[stored], 0..0)?;
        let cast = arrow_cast::cast(none.column(0), field.data_type());
        let cast = cast.map_err(|source| self.not_arrow(source))?;
        Ok(cast.as_any_dictionary_opt().map(|dictionary| Arc::clone(dictionary.values())))
    }

    fn read_each(
        &self,
        names: &[&str],
        ranges: &[(i64, i64)],
        each: &mut dyn FnMut(&RecordBatch) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let columns = names.iter().map(|name| self.column(name));
        let columns = columns.collect::<Result<Vec<_>, _>>()?;
        let joinid = self.schema.field(0);
        let fields = columns.iter().map(|of| of.map_or(joinid, |(field, _)| field).clone());
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let whole = [0..self.frame.n_rows()];
        let ranges: Vec<Range<u64>> = match ranges {
            [] => whole.into(),
            some => some.iter().map(|(first, last)| *first as u64..*last as u64 + 1).collect(),
        };
        let parts: Vec<Range<u64>> = ranges.iter().cloned().flat_map(at_borders).collect();
        let batches = parts.chunk_by(|one, next| one.start / BATCH_ROWS == next.start / BATCH_ROWS);
        for parts in batches {
            let (Some(first), Some(last)) = (parts.first(), parts.last()) else { continue };
            // Chunks hold many rows, so those between ranges cost little.
            let mut read = self.read(&columns, first.start..last.end)?;
            if parts.len() > 1 {
                read = filter_record_batch(&read, &mask(parts))
                    .map_err(|source| self.not_arrow(source))?;
            }
            let mut stored = read.columns().iter();
            let arrays = columns.iter().map(|column| match column {
                Some((field, _)) => stored.next().map_or_else(
                    || Err(ArrowError::SchemaError("a column is missing".to_owned())),
                    |stored| arrow_cast::cast(stored, field.data_type()),
                ),
                None => Ok(joinids(parts)),
            });
            let arrays = arrays.collect::<Result<_, _>>();
            let options = RecordBatchOptions::new().with_row_count(Some(read.num_rows()));
            let batch = arrays.and_then(|arrays| {
                RecordBatch::try_new_with_options(Arc::clone(&schema), arrays, &options)
            });
            each(&batch.map_err(|source| self.not_arrow(source))?)?;
        }
        Ok(())
    }

    fn unread_columns(&self) -> Vec<(String, String)> {
        let owned = |(name, reason): (&str, &str)| (name.to_owned(), reason.to_owned());
        self.frame.unsupported().map(owned).collect()
    }
}

/// The type of a column here: TileDB has no 16-bit floats.
fn without_f16(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Float16 => DataType::Float32,
        DataType::Dictionary(keys, values) => {
            DataType::Dictionary(keys.clone(), Box::new(without_f16(values)))
        }
        other => other.clone(),
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

/// Which of the rows from the first to the last of `parts` are in one of these.
fn mask(parts: &[Range<u64>]) -> BooleanArray {
    let start = parts.first().map_or(0, |first| first.start);
    let mut keep = BooleanBufferBuilder::new(0);
    for part in parts {
        keep.append_n((part.start - start) as usize - keep.len(), false);
        keep.append_n((part.end - part.start) as usize, true);
    }
    BooleanArray::new(keep.finish(), None)
}

fn joinids(parts: &[Range<u64>]) -> ArrayRef {
    let rows = parts.iter().cloned().flatten().map(|row| row as i64);
    Arc::new(rows.collect::<Int64Array>())
}
