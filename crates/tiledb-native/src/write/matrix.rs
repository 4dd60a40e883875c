//! Writes a fragment of a matrix: an array of two dimensions and one attribute.

mod form;
mod metadata;
mod runs;
mod tile;
mod tile_row;

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use rayon::prelude::*;

use super::commit::Folder;
use super::encoders::Encoders;
use super::footer::Fragment;
use super::{WriteOptions, WrittenFragment, publish};
use crate::directory::Directory;
use crate::error::Error;
use crate::schema::Schema;
use runs::{Numbers, Runs};
use storage::{Files, LocalStorage};
use tile::{Cells, Form, Tile};
pub use tile_row::TileRow;

/// Approximate number of cells in tiles that are encoded together. A cell takes at most about 10
/// bytes, and 20 while it is encoded.
const CELLS_AT_ONCE: usize = 2 << 20;
/// The files of rows, columns and values.
const FILES: [&str; 3] = ["d0.tdb", "d1.tdb", "a0.tdb"];

/// A fragment that is being written. Dropping it before [`FragmentWriter::finish`] removes what was
/// written.
#[derive(Debug)]
pub struct FragmentWriter {
    place: String,
    form: Arc<Form>,
    folder: Folder,
    pool: Arc<rayon::ThreadPool>,
    tiles: metadata::Tiles,
    /// Rows that are written or held.
    n_rows: u64,
    /// Rows that do not fill a row of space tiles yet, if these have only some columns.
    tile_row: Option<TileRow>,
    /// Cells that do not fill a tile yet.
    held: Held,
    encoders: Encoders,
    /// Encoded tiles, kept for their memory.
    encoded: Vec<Tile>,
    /// Whether a part that was begun was not written to its end.
    is_broken: bool,
}

/// The beginning of a tile.
#[derive(Debug, Default)]
struct Held {
    runs: Vec<(u64, usize)>,
    columns: Vec<u32>,
    values: Vec<f32>,
}

impl FragmentWriter {
    /// Begins a fragment of the array in `folder`, of the schema that is its latest.
    ///
    /// # Errors
    /// [`Error::Unwritable`] for an array that only libtiledb can write: of other types than int64
    /// and float32, of other filters than zstd, LZ4, RLE, byteshuffle, delta, double delta,
    /// bit-width reduction and float scale, or in another order than row by row, space tile by
    /// space tile; [`Error::NotAnArray`], [`Error::Storage`], [`Error::Damaged`],
    /// [`Error::Threads`].
    pub fn create(folder: impl AsRef<Path>, options: &WriteOptions) -> Result<Self, Error> {
        let root = folder.as_ref();
        let files = Files::new(Arc::new(LocalStorage::new(root)));
        let directory = Directory::load(&files, u64::MAX)?;
        let schema_file = &directory.schemas[directory.latest_schema];
        let schema = Schema::load(&files, schema_file)?;
        let place = files.place();
        let form = form::form(&schema, schema_file, options)
            .map_err(|reason| Error::Unwritable { place: place.clone(), reason })?;
        Ok(Self {
            folder: Folder::new(
                root,
                (options.timestamp, options.timestamp),
                form.version,
                FILES.map(str::to_owned),
            ),
            place,
            pool: options.threads.pool()?,
            tiles: metadata::Tiles::default(),
            n_rows: options.first_row,
            tile_row: form.tile.map(|(_, tile_columns)| TileRow::new(tile_columns)),
            form: Arc::new(form),
            held: Held::default(),
            encoders: Encoders::default(),
            encoded: Vec::new(),
            is_broken: false,
        })
    }

    /// Writes the next rows, [`WriteOptions::first_row`] at first: row `i` has the columns
    /// `columns[row_offsets[i]..row_offsets[i + 1]]`, strictly ascending, and the values at the
    /// same places.
    ///
    /// # Errors
    /// [`Error::RowsOutOfBounds`], [`Error::ColumnOutOfBounds`], [`Error::NoRow`] if the array
    /// cannot have such rows; [`Error::Storage`] if they cannot be written, [`Error::Encode`] for
    /// values that the array's filters do not hold: after these, finishing the fragment is an
    /// [`Error::Unfinished`].
    pub fn write(
        &mut self,
        row_offsets: &[usize],
        columns: &[u32],
        values: &[f32],
    ) -> Result<(), Error> {
        self.check(row_offsets, columns, values)?;
        self.unbroken()?;
        self.is_broken = true;
        self.write_rows(row_offsets, columns, values)?;
        self.is_broken = false;
        Ok(())
    }

    fn unbroken(&self) -> Result<(), Error> {
        if self.is_broken { Err(Error::Unfinished { place: self.place.clone() }) } else { Ok(()) }
    }

    fn write_rows(
        &mut self,
        row_offsets: &[usize],
        columns: &[u32],
        values: &[f32],
    ) -> Result<(), Error> {
        let n_rows = row_offsets.len().saturating_sub(1) as u64;
        let numbers = Numbers::From(self.form.first_row + self.n_rows);
        if self.tile_row.is_none() {
            self.n_rows += n_rows;
            return self.write_runs(&Runs { numbers, offsets: row_offsets, columns, values });
        }
        for pair in row_offsets.windows(2) {
            if let Some(tile_row) = &mut self.tile_row {
                tile_row.push(&columns[pair[0]..pair[1]], &values[pair[0]..pair[1]]);
            }
            self.n_rows += 1;
            if self.form.tile.is_some_and(|(tile_rows, _)| self.n_rows.is_multiple_of(tile_rows)) {
                self.write_tile_row()?;
            }
        }
        Ok(())
    }

    /// Writes the rows that were kept for a row of space tiles.
    fn write_tile_row(&mut self) -> Result<(), Error> {
        let Some(mut tile_row) = self.tile_row.take() else { return Ok(()) };
        let first_row = self.form.first_row + self.n_rows - tile_row.n_rows() as u64;
        let (mut numbers, mut offsets) = (Vec::new(), vec![0]);
        let mut columns = Vec::with_capacity(tile_row.nnz());
        let mut values = Vec::with_capacity(tile_row.nnz());
        tile_row.for_each(|row, of_row, values_of_row| {
            numbers.push(first_row + row as u64);
            columns.extend_from_slice(of_row);
            values.extend_from_slice(values_of_row);
            offsets.push(values.len());
        });
        tile_row.clear();
        self.tile_row = Some(tile_row);
        let numbers = Numbers::Each(&numbers);
        self.write_runs(&Runs { numbers, offsets: &offsets, columns: &columns, values: &values })
    }

    /// Writes cells in the array's order.
    fn write_runs(&mut self, runs: &Runs<'_>) -> Result<(), Error> {
        let offsets = runs.offsets;
        let (mut start, end) =
            (offsets.first().copied().unwrap_or(0), offsets.last().copied().unwrap_or(0));
        if !self.held.values.is_empty() {
            let taken = (self.form.capacity - self.held.values.len()).min(end - start);
            self.hold(runs, start..start + taken);
            start += taken;
            if self.held.values.len() < self.form.capacity {
                return Ok(());
            }
            let held = std::mem::take(&mut self.held);
            let written = self.encode(&[held.cells()]);
            self.held = held;
            self.held.clear();
            written?;
        }
        let n_whole = (end - start) / self.form.capacity * self.form.capacity;
        let starts: Vec<usize> = (start..start + n_whole).step_by(self.form.capacity).collect();
        for starts in starts.chunks((CELLS_AT_ONCE / self.form.capacity).max(1)) {
            let cells = starts.iter().map(|start| runs.cells(*start..*start + self.form.capacity));
            let cells: Vec<Cells<'_>> = cells.collect();
            self.encode(&cells)?;
        }
        self.hold(runs, start + n_whole..end);
        Ok(())
    }

    /// Writes what is left, makes sure that all is on the disk, and makes the fragment count.
    ///
    /// # Errors
    /// [`Error::Storage`], [`Error::Encode`]; [`Error::Unfinished`] after one of these.
    pub fn finish(mut self) -> Result<WrittenFragment, Error> {
        self.unbroken()?;
        self.write_tile_row()?;
        let held = std::mem::take(&mut self.held);
        if !held.values.is_empty() {
            self.encode(&[held.cells()])?;
        }
        let (bounds, n_cells, fields) = std::mem::take(&mut self.tiles).into_fields();
        let n_all = n_cells.iter().sum();
        if n_all == 0 {
            return Ok(WrittenFragment { n_cells: 0, n_bytes: 0 });
        }
        let fragment = Fragment {
            version: self.form.version,
            schema_name: &self.form.schema_name,
            bounds: &bounds,
            n_cells: &n_cells,
            fields: &fields,
        };
        let n_bytes = publish(&mut self.folder, &fragment)?;
        Ok(WrittenFragment { n_cells: n_all, n_bytes })
    }

    fn check(&self, row_offsets: &[usize], columns: &[u32], values: &[f32]) -> Result<(), Error> {
        let n_rows = row_offsets.len().saturating_sub(1) as u64;
        let end = self.n_rows.saturating_add(n_rows);
        if end > self.form.n_rows {
            return Err(Error::RowsOutOfBounds {
                start: self.n_rows,
                end,
                n_rows: self.form.n_rows,
            });
        }
        let wrong = |row: usize, problem| {
            Err(Error::NoRow { place: self.place.clone(), row: self.n_rows + row as u64, problem })
        };
        if columns.len() != values.len() {
            return wrong(0, "there are not as many columns as values");
        }
        if let Some(row) = row_offsets.windows(2).position(|pair| pair[0] > pair[1]) {
            return wrong(row, "it ends before it begins");
        }
        if row_offsets.last().is_some_and(|end| *end > values.len()) {
            return wrong(n_rows as usize, "it ends after the last value");
        }
        let rows = row_offsets.windows(2).map(|pair| &columns[pair[0]..pair[1]]);
        for (idx, row) in rows.enumerate() {
            if !row.is_sorted_by(|a, b| a < b) {
                return wrong(idx, "its columns do not ascend");
            }
            if let Some(&column) =
                row.last().filter(|last| u64::from(**last) >= self.form.n_columns)
            {
                let n_columns = self.form.n_columns;
                return Err(Error::ColumnOutOfBounds { column: column.into(), n_columns });
            }
        }
        Ok(())
    }

    /// Keeps cells until there are enough for a tile.
    fn hold(&mut self, runs: &Runs<'_>, range: Range<usize>) {
        let cells = runs.cells(range);
        for (row, n) in cells.runs {
            match self.held.runs.last_mut() {
                Some(last) if last.0 == row => last.1 += n,
                _ => self.held.runs.push((row, n)),
            }
        }
        self.held.columns.extend_from_slice(cells.columns);
        self.held.values.extend_from_slice(cells.values);
    }

    /// Encodes tiles, and appends them to the files.
    fn encode(&mut self, cells: &[Cells<'_>]) -> Result<(), Error> {
        if self.encoded.len() < cells.len() {
            self.encoded.resize_with(cells.len(), Tile::default);
        }
        let (form, encoders) = (&self.form, &self.encoders);
        let tiles = &mut self.encoded[..cells.len()];
        let encode = |(cells, tile): (&Cells<'_>, &mut Tile)| {
            encoders.with(|encoder| tile.encode(cells, form, encoder))
        };
        self.pool
            .install(|| cells.par_iter().zip(&mut *tiles).with_max_len(1).try_for_each(encode))
            .map_err(|problem| Error::Encode { place: self.place.clone(), problem })?;
        self.tiles.add(tiles);
        for file in 0..FILES.len() {
            self.folder.append(file, tiles.iter().map(|tile| tile.bytes[file].as_slice()))?;
        }
        Ok(())
    }
}

impl Held {
    fn cells(&self) -> Cells<'_> {
        Cells { runs: self.runs.clone(), columns: &self.columns, values: &self.values }
    }

    fn clear(&mut self) {
        self.runs.clear();
        self.columns.clear();
        self.values.clear();
    }
}
