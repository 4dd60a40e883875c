//! Writes a layer of X or an array of obsm in the array's own order, so that nothing is sorted: as
//! one fragment, or as several of whole rows of tiles.

#[cfg(feature = "libtiledb")]
mod through_libtiledb;

use std::path::PathBuf;

use csr::CsrView;
use tiledb_native::{FragmentWriter, Threads, WriteOptions};

use super::store::{self, Store};
use super::{ExperimentSpec, XLayout, layout, unfinished};
use crate::Error;
#[cfg(feature = "libtiledb")]
use through_libtiledb::LibtiledbSink;

/// A layer being written.
#[derive(Debug)]
pub(super) struct MatrixWriter {
    uri: String,
    sink: Sink,
    n_obs: u64,
    n_columns: u64,
    /// Whole rows of tiles.
    fragment_rows: u64,
    /// Rows and values written so far.
    n_written: u64,
    nnz: u64,
}

/// Writer of the cells.
#[derive(Debug)]
enum Sink {
    Native(NativeSink),
    #[cfg(feature = "libtiledb")]
    Libtiledb(LibtiledbSink),
}

/// Writes fragments natively.
#[derive(Debug)]
struct NativeSink {
    folder: PathBuf,
    threads: Threads,
    /// The fragment being written.
    writer: Option<Box<FragmentWriter>>,
}

impl NativeSink {
    /// Begins with a fragment from `first_row` on. Fails if this process cannot write the array.
    fn new(
        folder: PathBuf,
        threads: Threads,
        first_row: u64,
    ) -> Result<Self, tiledb_native::Error> {
        let options = WriteOptions { first_row, ..store::options(&threads) };
        let writer = FragmentWriter::create(&folder, &options)?;
        Ok(Self { folder, threads, writer: Some(Box::new(writer)) })
    }

    fn write(&mut self, first_row: u64, rows: CsrView<'_>) -> Result<(), Error> {
        let writer = match &mut self.writer {
            Some(writer) => writer,
            none => {
                let options = WriteOptions { first_row, ..store::options(&self.threads) };
                none.insert(Box::new(FragmentWriter::create(&self.folder, &options)?))
            }
        };
        Ok(writer.write(rows.row_offsets, rows.columns, rows.values)?)
    }

    fn end_fragment(&mut self) -> Result<(), Error> {
        if let Some(writer) = self.writer.take() {
            writer.finish()?;
        }
        Ok(())
    }
}

impl Sink {
    fn new(
        store: &Store,
        uri: &str,
        n_columns: u64,
        x_layout: &XLayout,
        first_row: u64,
    ) -> Result<Self, Error> {
        match store {
            #[cfg(not(feature = "libtiledb"))]
            Store::Folder { threads, .. } => {
                let _ = (n_columns, x_layout);
                let sink = NativeSink::new(store::folder(uri)?, threads.clone(), first_row);
                sink.map(Self::Native).map_err(|error| match error {
                    tiledb_native::Error::Unwritable { reason, .. } => {
                        store::needs_libtiledb(uri, &reason.to_string())
                    }
                    other => other.into(),
                })
            }
            #[cfg(feature = "libtiledb")]
            Store::Folder { threads, config, .. } => {
                match NativeSink::new(store::folder(uri)?, threads.clone(), first_row) {
                    Ok(sink) => Ok(Self::Native(sink)),
                    Err(tiledb_native::Error::Unwritable { .. }) => {
                        let context = super::through_libtiledb::context(uri, config)?;
                        Ok(Self::Libtiledb(LibtiledbSink::new(context, uri, n_columns, x_layout)))
                    }
                    Err(other) => Err(other.into()),
                }
            }
            #[cfg(feature = "libtiledb")]
            Store::Libtiledb { context, .. } => {
                Ok(Self::Libtiledb(LibtiledbSink::new(context.clone(), uri, n_columns, x_layout)))
            }
        }
    }

    /// Writes rows, the first of which is `first_row`.
    fn write(&mut self, first_row: u64, rows: CsrView<'_>) -> Result<(), Error> {
        match self {
            Self::Native(sink) => sink.write(first_row, rows),
            #[cfg(feature = "libtiledb")]
            Self::Libtiledb(sink) => sink.write(first_row, rows),
        }
    }

    fn end_fragment(&mut self) -> Result<(), Error> {
        match self {
            Self::Native(sink) => sink.end_fragment(),
            #[cfg(feature = "libtiledb")]
            Self::Libtiledb(sink) => sink.end_fragment(),
        }
    }
}

impl MatrixWriter {
    /// Creates a matrix with a row for each cell.
    pub(super) fn create(
        store: &Store,
        uri: String,
        n_columns: u64,
        spec: &ExperimentSpec,
    ) -> Result<Self, Error> {
        let schema = layout::matrix(spec.n_obs, n_columns, spec.extent, &spec.x_layout);
        let end = store.create_array(&uri, &schema, "SOMASparseNDArray", &[])?;
        let tile_rows = spec.x_layout.tile_rows;
        let fragment_rows = spec.fragment_rows.unwrap_or(u64::MAX);
        let fragment_rows = fragment_rows.checked_next_multiple_of(tile_rows).unwrap_or(u64::MAX);
        // Fragments are complete, also those whose last rows are empty.
        let n_written = end.checked_next_multiple_of(fragment_rows).unwrap_or(u64::MAX);
        let n_written = n_written.min(spec.n_obs);
        let nnz = if end > 0 { unfinished::n_values(&store::folder(&uri)?)? } else { 0 };
        Ok(Self {
            sink: Sink::new(store, &uri, n_columns, &spec.x_layout, n_written)?,
            uri,
            n_obs: spec.n_obs,
            n_columns,
            fragment_rows,
            n_written,
            nnz,
        })
    }

    /// Rows written so far, those of an unfinished writer among them.
    pub(super) fn n_written(&self) -> u64 {
        self.n_written
    }

    /// Values in these rows.
    pub(super) fn nnz(&self) -> u64 {
        self.nnz
    }

    /// Makes all rows be written natively, by this many threads.
    pub(super) fn write_natively(&mut self, n_threads: usize) -> Result<(), Error> {
        let Some(folder) = storage::local_path(&self.uri) else {
            return Err(self.failed("only libtiledb writes to an object store".to_owned()));
        };
        if self.n_written > 0 {
            return Err(self.failed("writing it has already begun".to_owned()));
        }
        self.sink = Sink::Native(NativeSink::new(folder.to_owned(), Threads::Own(n_threads), 0)?);
        Ok(())
    }

    pub(super) fn write(
        &mut self,
        row_offsets: &[usize],
        columns: &[u32],
        values: &[f32],
    ) -> Result<(), Error> {
        self.check(row_offsets, columns, values)?;
        let n_rows = row_offsets.len().saturating_sub(1);
        let n_columns = usize::try_from(self.n_columns).unwrap_or(usize::MAX);
        let mut start = 0;
        while start < n_rows {
            let fragment_end = self.fragment_end();
            let n_left = usize::try_from(fragment_end - self.n_written).unwrap_or(usize::MAX);
            let end = start + n_left.min(n_rows - start);
            let row_offsets = &row_offsets[start..=end];
            self.sink.write(self.n_written, CsrView { row_offsets, columns, values, n_columns })?;
            self.n_written += (end - start) as u64;
            self.nnz += (row_offsets[end - start] - row_offsets[0]) as u64;
            if self.n_written == fragment_end {
                self.sink.end_fragment()?;
            }
            start = end;
        }
        Ok(())
    }

    /// Completes the layer, and returns its URI.
    pub(super) fn finish(mut self) -> Result<String, Error> {
        if self.n_written != self.n_obs {
            return Err(
                self.failed(format!("{} of {} rows were written", self.n_written, self.n_obs))
            );
        }
        self.sink.end_fragment()?;
        Ok(self.uri)
    }

    /// The row before which the present fragment ends.
    fn fragment_end(&self) -> u64 {
        let next = self.n_written.saturating_add(1);
        next.checked_next_multiple_of(self.fragment_rows).unwrap_or(u64::MAX).min(self.n_obs)
    }

    fn check(&self, row_offsets: &[usize], columns: &[u32], values: &[f32]) -> Result<(), Error> {
        let n_rows = row_offsets.len().saturating_sub(1) as u64;
        let n_after = self.n_written + n_rows;
        if n_after > self.n_obs {
            return Err(self.failed(format!(
                "{n_after} rows were given, but the experiment has {}",
                self.n_obs
            )));
        }
        if !row_offsets.is_sorted()
            || columns.len() != values.len()
            || row_offsets.last().is_some_and(|last| *last > values.len())
        {
            return Err(self.failed("row offsets, columns and values do not match".into()));
        }
        for (row_idx, pair) in row_offsets.windows(2).enumerate() {
            let row = &columns[pair[0]..pair[1]];
            let joinid = self.n_written + row_idx as u64;
            if !row.is_sorted_by(|a, b| a < b) {
                return Err(self.failed(format!("the columns of row {joinid} do not ascend")));
            }
            if let Some(last) = row.last().filter(|last| u64::from(**last) >= self.n_columns) {
                return Err(self.failed(format!(
                    "row {joinid} has column {last}, there are {}",
                    self.n_columns
                )));
            }
        }
        Ok(())
    }

    fn failed(&self, problem: String) -> Error {
        Error::Write { what: "rows of X".into(), uri: self.uri.clone(), problem }
    }
}
