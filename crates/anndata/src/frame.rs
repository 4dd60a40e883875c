//! Tables: obs and var.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{Field, Schema, SchemaRef};
use serde_json::Value;

use crate::column::{Column, Stored, read_columns};
use crate::elements::Elements;
use crate::error::Error;

/// A table (`encoding-type: dataframe`): obs, var, or the var of raw.
#[derive(Debug)]
pub struct Frame {
    elements: Arc<Elements>,
    path: String,
    index_name: String,
    /// The index, and the columns in the order of `column-order`.
    columns: Vec<Column>,
    n_rows: u64,
    schema: SchemaRef,
}

impl Frame {
    /// Opens the table at `path`.
    pub(crate) fn open(elements: &Arc<Elements>, path: &str) -> Result<Self, Error> {
        let node = elements.get(path)?;
        let version = node.text("encoding-version").unwrap_or_default();
        if node.encoding() != "dataframe" || !["0.1.0", "0.2.0"].contains(&version) {
            let encoding = node.encoding();
            let reason = format!(
                "its encoding is `{encoding}` `{version}`; dataframe 0.1.0 and 0.2.0 are read"
            );
            return Err(elements.unsupported(path, reason));
        }
        let Some(index_name) = node.text("_index") else {
            return Err(elements.damaged(path, "the attribute `_index` is missing"));
        };
        let order = match node.attributes.get("column-order") {
            Some(Value::Array(names)) => names.iter().map(Value::as_str).collect(),
            // An empty list was once written as an empty array of floats.
            _ => Some(Vec::new()),
        };
        let Some(order) = order else {
            return Err(elements.damaged(path, "the attribute `column-order` is no list of names"));
        };
        let others = order.into_iter().filter(|name| *name != index_name);
        let names: Vec<&str> = std::iter::once(index_name).chain(others).collect();
        let paths: Vec<String> = names.iter().map(|name| format!("{path}/{name}")).collect();
        elements.gather(&paths)?;
        let mut within = Vec::new();
        for path in &paths {
            if elements.get(path)?.array.is_none() {
                within.extend(Column::paths_within(path));
            }
        }
        elements.gather(&within)?;
        let opened = names.iter().map(|name| Column::open(elements, path, name));
        let columns: Vec<Column> = opened.collect::<Result<_, _>>()?;
        let n_rows = columns.first().and_then(Column::n_rows);
        let n_rows = n_rows.ok_or_else(|| {
            let reason = columns.first().and_then(|index| index.field().err());
            elements.unsupported(&format!("{path}/{index_name}"), reason.unwrap_or_default())
        })?;
        for column in &columns {
            let leaves = column.leaves();
            let other = leaves.iter().find(|array| array.n_rows() != n_rows);
            if let Some(other) = other {
                let what = format!("it has {} rows, and the index {n_rows}", other.n_rows());
                return Err(elements.damaged(other.path(), what));
            }
        }
        let fields: Vec<Field> = columns.iter().filter_map(|column| column.field().ok()).collect();
        let (elements, path) = (Arc::clone(elements), path.to_owned());
        let (index_name, schema) = (index_name.to_owned(), Arc::new(Schema::new(fields)));
        Ok(Self { elements, path, index_name, columns, n_rows, schema })
    }

    /// The columns that can be read, the index first.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The number of rows.
    pub fn n_rows(&self) -> u64 {
        self.n_rows
    }

    /// The name of the column that is the index, `_index` if it had none in Python.
    pub fn index_name(&self) -> &str {
        &self.index_name
    }

    /// The columns that cannot be read, each with the reason.
    pub fn unsupported(&self) -> impl Iterator<Item = (&str, &str)> {
        self.columns.iter().filter_map(|column| match &column.stored {
            Stored::Unsupported(reason) => Some((column.name.as_str(), reason.as_str())),
            _ => None,
        })
    }

    /// Reads a range of rows of columns, in the order given.
    ///
    /// Categorical columns become dictionaries with all their categories.
    ///
    /// # Errors
    /// [`Error::NoColumn`], [`Error::Unsupported`] for a column that cannot be read,
    /// [`Error::Rows`], and those of reading.
    pub fn read(&self, columns: &[&str], rows: Range<u64>) -> Result<RecordBatch, Error> {
        self.elements.check_rows(&self.path, std::slice::from_ref(&rows), self.n_rows)?;
        let mut wanted = Vec::with_capacity(columns.len());
        let mut fields = Vec::with_capacity(columns.len());
        for name in columns {
            let found = self.columns.iter().find(|column| column.name == *name);
            let column = found.ok_or_else(|| Error::NoColumn {
                place: self.elements.place(),
                element: self.path.clone(),
                column: (*name).to_owned(),
            })?;
            let field = column.field();
            fields.push(field.map_err(|reason| self.elements.unsupported(&column.path, reason))?);
            wanted.push((column, rows.clone()));
        }
        self.learn_categories(&wanted)?;
        let arrays: Vec<ArrayRef> = read_columns(&self.elements, &wanted)?;
        let n_rows = usize::try_from(rows.end - rows.start).unwrap_or(usize::MAX);
        let options = RecordBatchOptions::new().with_row_count(Some(n_rows));
        RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), arrays, &options)
            .map_err(|error| self.elements.damaged(&self.path, error.to_string()))
    }

    /// Reads the categories of columns that were not read yet.
    fn learn_categories(&self, wanted: &[(&Column, Range<u64>)]) -> Result<(), Error> {
        let of_columns = wanted.iter().filter_map(|(column, _)| match &column.stored {
            Stored::Categorical(of) if of.known.get().is_none() => Some(of),
            _ => None,
        });
        let of_columns: Vec<_> = of_columns.collect();
        let whole = |column| Column::n_rows(column).map(|n_rows| (column, 0..n_rows));
        let lists: Vec<_> = of_columns.iter().filter_map(|of| whole(&of.categories)).collect();
        for (of, list) in of_columns.iter().zip(read_columns(&self.elements, &lists)?) {
            // Another thread may have read them meanwhile: they are the same.
            drop(of.known.set(list));
        }
        Ok(())
    }
}
