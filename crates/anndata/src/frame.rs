//! Tables: obs and var.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{ArrowError, Schema, SchemaRef};
use serde_json::Value;

use crate::categories::check_categories;
use crate::column::{Column, Stored, read_columns};
use crate::elements::Elements;
use crate::error::Error;
use crate::frame_column::FrameColumn;
use crate::parts::{of_parts, starts};

/// Why an element is not read that only some data sets of a collection have.
pub(crate) const NOT_IN_ALL: &str = "some data sets do not have it";

/// A table (`encoding-type: dataframe`): obs, var, or the var of raw. A collection has the tables
/// of its data sets, one after another.
#[derive(Debug)]
pub struct Frame {
    elements: Arc<Elements>,
    path: String,
    index_name: String,
    columns: Vec<FrameColumn>,
    /// Where the rows of each data set begin, and where the last ends.
    starts: Vec<u64>,
    schema: SchemaRef,
    unsupported: Vec<(String, String)>,
}

/// The table of one data set.
#[derive(Debug)]
struct Table {
    index_name: String,
    /// The index, and the columns in the order of `column-order`.
    columns: Vec<Column>,
    n_rows: u64,
}

impl Table {
    fn open(elements: &Elements, path: &str) -> Result<Self, Error> {
        let node = elements.readable(path)?;
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
            Some(_) => Some(Vec::new()),
            None => None,
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
        Ok(Self { index_name: index_name.to_owned(), columns, n_rows })
    }
}

impl Frame {
    /// Opens the tables `name` of all data sets.
    pub(crate) fn open(elements: &Arc<Elements>, name: &str) -> Result<Self, Error> {
        Self::open_paths(elements, name, &elements.paths(name))
    }

    /// Opens the table `name` of the first data set.
    pub(crate) fn open_first(elements: &Arc<Elements>, name: &str) -> Result<Self, Error> {
        Self::open_paths(elements, name, &[elements.first(name)])
    }

    fn open_paths(elements: &Arc<Elements>, name: &str, paths: &[String]) -> Result<Self, Error> {
        let tables = paths.iter().map(|path| Table::open(elements, path));
        let tables: Vec<Table> = tables.collect::<Result<_, _>>()?;
        let starts = starts(tables.iter().map(|table| table.n_rows));
        let mut tables = tables.into_iter();
        let Some(first) = tables.next() else {
            return Err(elements.damaged(name, "there is no data set"));
        };
        let index_name = first.index_name;
        let mut columns: Vec<FrameColumn> =
            first.columns.into_iter().map(FrameColumn::new).collect();
        for table in tables {
            let mut others = table.columns;
            // The index is the index, whatever a data set calls it.
            if let Some(index) = columns.first_mut() {
                index.add(Some(others.remove(0)));
            }
            for column in columns.iter_mut().skip(1) {
                let same = others.iter().position(|other| other.name == column.name());
                column.add(same.map(|at| others.remove(at)));
            }
            columns.extend(others.into_iter().map(FrameColumn::of_later));
        }
        let (mut fields, mut unsupported) = (Vec::new(), Vec::new());
        for column in &columns {
            match column.field() {
                Ok(field) => fields.push(field),
                Err(reason) => unsupported.push((column.name().to_owned(), reason)),
            }
        }
        let (elements, path) = (Arc::clone(elements), name.to_owned());
        let schema = Arc::new(Schema::new(fields));
        Ok(Self { elements, path, index_name, columns, starts, schema, unsupported })
    }

    /// The first row of each data set, and the number of all rows.
    pub fn starts(&self) -> &[u64] {
        &self.starts
    }

    /// The first data set whose index is not that of the first.
    pub(crate) fn part_with_other_index(&self) -> Result<Option<usize>, Error> {
        if self.starts.len() <= 2 {
            return Ok(None);
        }
        let index = self.read(&[&self.index_name], 0..self.n_rows())?;
        let of_part = |ends: &[u64]| {
            let (start, len) = (ends[0] as usize, (ends[1] - ends[0]) as usize);
            index.column(0).slice(start, len)
        };
        let mut parts = self.starts.windows(2).map(of_part);
        let first = parts.next();
        Ok(parts.position(|part| Some(&part) != first.as_ref()).map(|after_first| after_first + 1))
    }

    /// The error of a table whose content is not what it should be.
    pub(crate) fn damaged(&self, what: String) -> Error {
        self.elements.damaged(&self.path, what)
    }

    /// The columns that can be read, the index first.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The number of rows.
    pub fn n_rows(&self) -> u64 {
        self.starts.last().copied().unwrap_or(0)
    }

    /// The name of the column that is the index, `_index` if it had none in Python. In a
    /// collection, the first data set names it.
    pub fn index_name(&self) -> &str {
        &self.index_name
    }

    /// The columns that cannot be read, each with the reason.
    pub fn unsupported(&self) -> impl Iterator<Item = (&str, &str)> {
        self.unsupported.iter().map(|(name, reason)| (name.as_str(), reason.as_str()))
    }

    /// Reads a range of rows of columns, in the order given.
    ///
    /// Categorical columns become dictionaries with all their categories; of a collection with the
    /// categories of all data sets.
    ///
    /// # Errors
    /// [`Error::NoColumn`], [`Error::Unsupported`] for a column that cannot be read,
    /// [`Error::Rows`], and those of reading.
    pub fn read(&self, columns: &[&str], rows: Range<u64>) -> Result<RecordBatch, Error> {
        self.elements.check_rows(&self.path, std::slice::from_ref(&rows), self.n_rows())?;
        let mut wanted: Vec<&FrameColumn> = Vec::with_capacity(columns.len());
        let mut fields = Vec::with_capacity(columns.len());
        for name in columns {
            let found = self.columns.iter().find(|column| column.name() == *name);
            let column = found.ok_or_else(|| Error::NoColumn {
                place: self.elements.place(),
                element: self.path.clone(),
                column: (*name).to_owned(),
            })?;
            let field = column.field();
            let path = format!("{}/{name}", self.path);
            fields.push(field.map_err(|reason| self.elements.unsupported(&path, reason))?);
            wanted.push(column);
        }
        self.learn_categories(&wanted)?;
        // The data sets that have some of the rows, or the first if there are none.
        let parts = of_parts(&self.starts, std::slice::from_ref(&rows)).into_iter();
        let mut parts: Vec<(usize, Range<u64>)> =
            parts.flat_map(|(part, ranges)| ranges.into_iter().map(move |of| (part, of))).collect();
        if parts.is_empty() {
            parts.push((0, 0..0));
        }
        let asked: Vec<(&Column, Range<u64>)> = wanted
            .iter()
            .flat_map(|column| parts.iter().map(|(part, rows)| (column.part(*part), rows.clone())))
            .collect();
        let read = read_columns(&self.elements, &asked)?;
        let broken = |error: ArrowError| self.elements.damaged(&self.path, error.to_string());
        let mut arrays: Vec<ArrayRef> = Vec::with_capacity(wanted.len());
        for (column, read) in wanted.iter().zip(read.chunks(parts.len().max(1))) {
            let of_parts = parts.iter().map(|(part, _)| *part).zip(read);
            arrays.push(column.joined(of_parts.collect()).map_err(broken)?);
        }
        let n_rows = usize::try_from(rows.end - rows.start).unwrap_or(usize::MAX);
        let options = RecordBatchOptions::new().with_row_count(Some(n_rows));
        RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), arrays, &options)
            .map_err(broken)
    }

    /// Reads the categories of columns that were not read yet.
    ///
    /// # Errors
    /// Those of reading; [`Error::Damaged`] if a category is missing or there twice.
    fn learn_categories(&self, wanted: &[&FrameColumn]) -> Result<(), Error> {
        let parts = wanted.iter().flat_map(|column| column.parts());
        let of_columns = parts.filter_map(|column| match &column.stored {
            Stored::Categorical(of) if of.known.get().is_none() => Some(of),
            _ => None,
        });
        let of_columns: Vec<_> = of_columns.collect();
        let whole = |column| Column::n_rows(column).map(|n_rows| (column, 0..n_rows));
        let lists: Vec<_> = of_columns.iter().filter_map(|of| whole(&of.categories)).collect();
        for (of, list) in of_columns.iter().zip(read_columns(&self.elements, &lists)?) {
            check_categories(&list)
                .map_err(|what| self.elements.damaged(&of.categories.path, what))?;
            // Another thread may have read them meanwhile: they are the same.
            drop(of.known.set(list));
        }
        Ok(())
    }
}
