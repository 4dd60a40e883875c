//! obs of a MuData: the columns of the whole, and those of each modality's own obs.

use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow_schema::{ArrowError, Field, Schema, SchemaRef};
use arrow_select::concat::concat_batches;
use arrow_select::take::take;

use super::table::AnnDataTable;
use crate::Error;
use crate::columns::JOINID;
use crate::table::Table;

/// The columns of a modality's obs, `name:column`.
#[derive(Debug)]
pub(super) struct ModalityColumns {
    prefix: String,
    table: AnnDataTable,
    /// The row of each cell, counted from 1; 0 for a cell that the modality lacks. `None` if it has
    /// all in order.
    rows: Option<Arc<[u32]>>,
}

impl ModalityColumns {
    pub(super) fn new(name: &str, table: AnnDataTable, rows: Option<Arc<[u32]>>) -> Self {
        Self { prefix: format!("{name}:"), table, rows }
    }

    /// The fields of its columns; null for cells that it lacks.
    fn fields(&self) -> impl Iterator<Item = Field> {
        let lacks_cells = self.rows.as_ref().is_some_and(|rows| rows.contains(&0));
        self.table.schema().fields().iter().filter(|of| of.name() != JOINID).map(move |field| {
            let name = format!("{}{}", self.prefix, field.name());
            let nullable = field.is_nullable() || lacks_cells;
            field.as_ref().clone().with_name(name).with_nullable(nullable)
        })
    }

    /// The values of a column for these cells; null for those that it lacks.
    fn values(&self, column: &ArrayRef, joinids: &[i64]) -> Result<ArrayRef, ArrowError> {
        let row = |joinid: &i64| match &self.rows {
            Some(rows) => rows[*joinid as usize].checked_sub(1),
            None => Some(*joinid as u32),
        };
        take(column, &joinids.iter().map(row).collect::<UInt32Array>(), None)
    }
}

/// A table with the columns of the whole first. Those of a modality have its name and a colon in
/// front, as MuData calls columns that it copies from a modality; such a copy hides the original.
#[derive(Debug)]
pub(super) struct MuDataTable {
    whole: AnnDataTable,
    parts: Vec<ModalityColumns>,
    schema: SchemaRef,
    uri: String,
}

impl MuDataTable {
    pub(super) fn new(whole: AnnDataTable, parts: Vec<ModalityColumns>, uri: &str) -> Self {
        let mut fields: Vec<Field> =
            whole.schema().fields().iter().map(|field| field.as_ref().clone()).collect();
        for field in parts.iter().flat_map(ModalityColumns::fields) {
            if !fields.iter().any(|of| of.name() == field.name()) {
                fields.push(field);
            }
        }
        let schema = Arc::new(Schema::new(fields));
        Self { whole, parts, schema, uri: uri.to_owned() }
    }

    /// The modality that has a column, and the name of the column there; `None` for a column of the
    /// whole.
    fn part_of<'a>(&self, name: &'a str) -> Option<(&ModalityColumns, &'a str)> {
        if self.whole.schema().column_with_name(name).is_some() {
            return None;
        }
        let has = |(part, column): &(&ModalityColumns, &str)| {
            part.table.schema().column_with_name(column).is_some()
        };
        self.parts
            .iter()
            .filter_map(|part| Some((part, name.strip_prefix(&*part.prefix)?)))
            .find(has)
    }

    fn not_arrow(&self, source: ArrowError) -> Error {
        Error::Arrow { uri: self.uri.clone(), what: "the columns".to_owned(), source }
    }

    /// A whole column of a modality.
    fn column(&self, part: &ModalityColumns, name: &str) -> Result<ArrayRef, Error> {
        let mut batches = Vec::new();
        part.table.read_each(&[name], &[], &mut |batch| {
            batches.push(batch.clone());
            Ok(())
        })?;
        let field = part.table.schema().field_with_name(name).map_err(|e| self.not_arrow(e))?;
        let schema = batches.first().map_or_else(
            || Arc::new(Schema::new(vec![field.clone()])),
            |first: &RecordBatch| first.schema(),
        );
        let joined = concat_batches(&schema, &batches).map_err(|e| self.not_arrow(e))?;
        Ok(Arc::clone(joined.column(0)))
    }
}

impl Table for MuDataTable {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn joinid_bounds(&self) -> Result<Option<(u64, u64)>, Error> {
        self.whole.joinid_bounds()
    }

    fn extent(&self) -> u64 {
        self.whole.extent()
    }

    fn n_rows(&self) -> Result<u64, Error> {
        self.whole.n_rows()
    }

    fn categories(&self, column: &str) -> Result<Option<ArrayRef>, Error> {
        match self.part_of(column) {
            Some((part, column)) => part.table.categories(column),
            None => self.whole.categories(column),
        }
    }

    fn read_each(
        &self,
        names: &[&str],
        ranges: &[(i64, i64)],
        each: &mut dyn FnMut(&RecordBatch) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut of_whole = vec![JOINID];
        let mut of_parts = Vec::new();
        for name in names {
            match self.part_of(name) {
                Some((part, column)) => of_parts.push((*name, part, self.column(part, column)?)),
                None if *name != JOINID => of_whole.push(name),
                None => {}
            }
        }
        let fields = names.iter().map(|name| self.schema.field_with_name(name).cloned());
        let fields = fields.collect::<Result<Vec<_>, _>>().map_err(|e| self.not_arrow(e))?;
        let schema = Arc::new(Schema::new(fields));
        self.whole.read_each(&of_whole, ranges, &mut |batch| {
            let joinids = batch.column(0).as_primitive::<Int64Type>().values();
            let arrays = names.iter().map(|name| {
                let found = of_parts.iter().find(|(of, ..)| of == name);
                match found {
                    Some((_, part, column)) => part.values(column, joinids),
                    None => Ok(Arc::clone(batch.column(batch.schema_ref().index_of(name)?))),
                }
            });
            let arrays = arrays.collect::<Result<Vec<_>, _>>();
            let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
            let made = arrays.and_then(|arrays| {
                RecordBatch::try_new_with_options(Arc::clone(&schema), arrays, &options)
            });
            each(&made.map_err(|source| self.not_arrow(source))?)
        })
    }

    fn unread_columns(&self) -> Vec<(String, String)> {
        let mut unread = self.whole.unread_columns();
        for part in &self.parts {
            let of_part = part.table.unread_columns().into_iter();
            unread.extend(of_part.map(|(name, why)| (format!("{}{name}", part.prefix), why)));
        }
        unread
    }
}
