//! Writes obs or var: rows in pieces, with consecutive joinids.

use std::collections::HashMap;

use arrow_array::RecordBatch;
use tiledb::MetadataValue;
use tiledb_native::TableWriter;

use super::cells::Cells;
use super::column::{ColumnKind, ColumnSpec};
use super::store::{self, Store};
use super::{Extent, layout};
use crate::Error;

/// A data frame being written.
#[derive(Debug)]
pub(super) struct FrameWriter {
    uri: String,
    /// `None` once all rows are written.
    sink: Option<Sink>,
    columns: Vec<ColumnSpec>,
    /// The code of each value, for each categorical column.
    codes: Vec<HashMap<String, i32>>,
    n_rows: u64,
    n_written: u64,
}

/// Writer of the rows.
#[derive(Debug)]
enum Sink {
    Native(Box<TableWriter>),
    #[cfg(feature = "libtiledb")]
    Libtiledb(tiledb::WriteQuery),
}

impl Sink {
    fn new(store: &Store, uri: &str) -> Result<Self, Error> {
        Ok(match store {
            Store::Folder { threads, .. } => {
                let writer = TableWriter::create(store::folder(uri)?, &store::options(threads))?;
                Self::Native(Box::new(writer))
            }
            #[cfg(feature = "libtiledb")]
            Store::Libtiledb { context, .. } => {
                Self::Libtiledb(super::through_libtiledb::open_write(context, uri)?)
            }
        })
    }

    /// Writes rows: joinids, then each column with its cells and their validity.
    fn write(
        &mut self,
        joinids: &[i64],
        columns: &[(&ColumnSpec, Cells, Option<Vec<u8>>)],
    ) -> Result<(), Error> {
        match self {
            Self::Native(writer) => {
                let columns = columns.iter().filter_map(|(column, cells, validity)| {
                    let cells = cells.native(&column.name, column.kind.datatype()?);
                    Some(match validity {
                        Some(validity) => cells.with_validity(validity),
                        None => cells,
                    })
                });
                Ok(writer.write(joinids, &columns.collect::<Vec<_>>())?)
            }
            #[cfg(feature = "libtiledb")]
            Self::Libtiledb(query) => {
                let joinids = tiledb::WriteColumn::fixed(crate::columns::JOINID, joinids);
                let columns = columns.iter().map(|(column, cells, validity)| {
                    let cells = cells.column(&column.name);
                    match validity {
                        Some(validity) => cells.with_validity(validity),
                        None => cells,
                    }
                });
                Ok(query.submit(&[joinids].into_iter().chain(columns).collect::<Vec<_>>())?)
            }
        }
    }

    fn finish(self) -> Result<(), Error> {
        match self {
            Self::Native(writer) => writer.finish().map(|_| ()).map_err(Error::from),
            #[cfg(feature = "libtiledb")]
            Self::Libtiledb(query) => Ok(query.finish()?),
        }
    }
}

impl FrameWriter {
    pub(super) fn create(
        store: &Store,
        uri: String,
        columns: &[ColumnSpec],
        n_rows: u64,
        extent: Extent,
    ) -> Result<Self, Error> {
        Self::marked(store, uri, columns, n_rows, extent, &[])
    }

    /// Creates the data frame with further metadata.
    pub(super) fn marked(
        store: &Store,
        uri: String,
        columns: &[ColumnSpec],
        n_rows: u64,
        extent: Extent,
        metadata: &[(&str, MetadataValue)],
    ) -> Result<Self, Error> {
        let schema = layout::frame(columns, n_rows, extent).map_err(|problem| Error::Write {
            what: "a data frame".into(),
            uri: uri.clone(),
            problem,
        })?;
        let n_written = store.create_array(&uri, &schema, "SOMADataFrame", metadata)?;
        let codes = columns
            .iter()
            .map(|column| match &column.kind {
                ColumnKind::Categorical { values, .. } => values.iter().cloned().zip(0..).collect(),
                _ => HashMap::new(),
            })
            .collect();
        let sink = if n_written == 0 { Some(Sink::new(store, &uri)?) } else { None };
        Ok(Self { uri, sink, columns: columns.to_vec(), codes, n_rows, n_written })
    }

    /// Rows written so far; all of them, if an unfinished writer wrote any that count.
    pub(super) fn n_written(&self) -> u64 {
        self.n_written
    }

    pub(super) fn write(&mut self, rows: &RecordBatch) -> Result<(), Error> {
        let n_after = self.n_written + rows.num_rows() as u64;
        if n_after > self.n_rows {
            return Err(self.failed(format!(
                "{n_after} rows were given, but the experiment has {}",
                self.n_rows
            )));
        }
        let joinids: Vec<i64> = (self.n_written as i64..n_after as i64).collect();
        let mut cells = Vec::with_capacity(self.columns.len());
        for (column, codes) in self.columns.iter().zip(&self.codes) {
            let array = rows
                .column_by_name(&column.name)
                .ok_or_else(|| self.failed(format!("column {} is missing", column.name)))?;
            // Includes the nulls that come from a dictionary's values.
            let nulls = array.logical_nulls();
            if nulls.as_ref().is_some_and(|nulls| nulls.null_count() > 0) && !column.nullable {
                return Err(
                    self.failed(format!("column {} has nulls, but is not nullable", column.name))
                );
            }
            let problem =
                |problem: String| self.failed(format!("column {}: {problem}", column.name));
            let is_valid = |row: usize| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
            let validity: Option<Vec<u8>> = column
                .nullable
                .then(|| (0..array.len()).map(|row| u8::from(is_valid(row))).collect());
            cells.push((
                column,
                Cells::from_array(array, column, codes).map_err(problem)?,
                validity,
            ));
        }
        if let Some(sink) = &mut self.sink {
            sink.write(&joinids, &cells)?;
        }
        self.n_written = n_after;
        if n_after == self.n_rows {
            self.end()?;
        }
        Ok(())
    }

    pub(super) fn finish(mut self) -> Result<(), Error> {
        if self.n_written != self.n_rows {
            return Err(
                self.failed(format!("{} of {} rows were written", self.n_written, self.n_rows))
            );
        }
        self.end()
    }

    /// Makes the rows count.
    fn end(&mut self) -> Result<(), Error> {
        self.sink.take().map_or(Ok(()), Sink::finish)
    }

    fn failed(&self, problem: String) -> Error {
        Error::Write { what: "a data frame".into(), uri: self.uri.clone(), problem }
    }
}
