//! Writes a fragment of a table: an array of one dimension and any attributes.

mod column;
mod form;

use std::path::Path;
use std::sync::Arc;

use rayon::prelude::*;

use super::commit::Folder;
use super::encoders::Encoders;
use super::field::{Field, Kind};
use super::footer::{Fragment, Rectangle};
use super::statistics::Statistics;
use super::{WriteOptions, WrittenFragment, publish};
use crate::datatype::Number;
use crate::directory::Directory;
use crate::error::Error;
use crate::filter::Pipeline;
use crate::schema::Schema;
pub use column::ColumnCells;
use column::HeldColumn;
use form::Form;
use storage::{Files, LocalStorage};

/// Bytes per chunk of a tile, as in libtiledb.
const CHUNK_BYTES: usize = 1 << 16;

/// A fragment of a table that is being written: of a sparse array with one dimension of int64 and
/// any attributes. Dropping it before [`TableWriter::finish`] removes what was written.
#[derive(Debug)]
pub struct TableWriter {
    place: String,
    form: Form,
    folder: Folder,
    pool: Arc<rayon::ThreadPool>,
    encoders: Encoders,
    /// Rows that do not fill a tile yet.
    coordinates: Vec<i64>,
    held: Vec<HeldColumn>,
    /// The last coordinate that was written or held.
    last: Option<i64>,
    tiles: Tiles,
    /// Whether a part that was begun was not written to its end.
    is_broken: bool,
}

/// Metadata of the tiles written so far.
#[derive(Debug)]
struct Tiles {
    bounds: Vec<Rectangle<1>>,
    n_cells: Vec<u64>,
    coordinates: Field,
    attributes: Vec<Field>,
}

/// One of the files of a tile before it is filtered: bytes, in values of a size.
struct Part<'a> {
    bytes: &'a [u8],
    value_bytes: usize,
    pipeline: &'a Pipeline,
}

impl TableWriter {
    /// Begins a fragment of the array in `folder`, of the schema that is its latest.
    ///
    /// # Errors
    /// [`Error::Unwritable`] for an array that only libtiledb can write: with another dimension
    /// than one of int64 from 0 on; with attributes other than texts in UTF-8, bytes, and single
    /// numbers, times and booleans; or with other filters than zstd, LZ4, RLE, byteshuffle, delta,
    /// double delta, bit-width reduction and float scale. [`Error::NotAnArray`],
    /// [`Error::Storage`], [`Error::Damaged`], [`Error::Threads`].
    pub fn create(folder: impl AsRef<Path>, options: &WriteOptions) -> Result<Self, Error> {
        let root = folder.as_ref();
        let files = Files::new(Arc::new(LocalStorage::new(root)));
        let directory = Directory::load(&files, u64::MAX)?;
        let schema_file = &directory.schemas[directory.latest_schema];
        let schema = Schema::load(&files, schema_file)?;
        let place = files.place();
        let form = Form::from_schema(&schema, schema_file)
            .map_err(|reason| Error::Unwritable { place: place.clone(), reason })?;
        let times = (options.timestamp, options.timestamp);
        let attributes = form.attributes.iter();
        let tiles = Tiles {
            bounds: Vec::new(),
            n_cells: Vec::new(),
            coordinates: Field::new(Kind::Dimension { number: Number::I64 }),
            attributes: attributes.map(|attribute| Field::new(attribute.kind())).collect(),
        };
        Ok(Self {
            folder: Folder::new(root, times, form.version, form.file_names()),
            place,
            pool: options.threads.pool()?,
            encoders: Encoders::default(),
            coordinates: Vec::new(),
            held: form.attributes.iter().map(|_| HeldColumn::default()).collect(),
            form,
            last: None,
            tiles,
            is_broken: false,
        })
    }

    /// Writes the next rows: their coordinates, ascending also from call to call, and each
    /// attribute of the array once, in any order.
    ///
    /// # Errors
    /// [`Error::Column`] for an attribute that is missing, is not of its type, or has another
    /// number of cells than there are coordinates; for coordinates that do not ascend or lie
    /// outside of the array. [`Error::Storage`], [`Error::Encode`]: after these, finishing the
    /// fragment is an [`Error::Unfinished`].
    pub fn write(&mut self, coordinates: &[i64], columns: &[ColumnCells<'_>]) -> Result<(), Error> {
        let failed = |(column, problem): (String, String)| Error::Column {
            place: self.place.clone(),
            column,
            problem,
        };
        self.form.check_coordinates(coordinates, self.last).map_err(failed)?;
        let columns = self.form.in_order(columns, coordinates.len()).map_err(failed)?;
        self.unbroken()?;
        self.is_broken = true;
        self.last = coordinates.last().copied().or(self.last);
        let mut start = 0;
        while start < coordinates.len() {
            let room = self.form.capacity - self.coordinates.len();
            let end = start + room.min(coordinates.len() - start);
            self.coordinates.extend_from_slice(&coordinates[start..end]);
            for (held, column) in self.held.iter_mut().zip(&columns) {
                held.extend(column, start..end);
            }
            if self.coordinates.len() == self.form.capacity {
                self.write_tile()?;
            }
            start = end;
        }
        self.is_broken = false;
        Ok(())
    }

    /// Writes what is left, makes sure that all is on the disk, and makes the fragment count.
    ///
    /// # Errors
    /// [`Error::Storage`], [`Error::Encode`]; [`Error::Unfinished`] after one of these.
    pub fn finish(mut self) -> Result<WrittenFragment, Error> {
        self.unbroken()?;
        if !self.coordinates.is_empty() {
            self.write_tile()?;
        }
        let Tiles { bounds, n_cells, coordinates, attributes } = self.tiles;
        let n_all = n_cells.iter().sum();
        if n_all == 0 {
            return Ok(WrittenFragment { n_cells: 0, n_bytes: 0 });
        }
        let mut fields = attributes;
        fields.push(Field::obsolete(1, bounds.len()));
        fields.push(coordinates);
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

    fn unbroken(&self) -> Result<(), Error> {
        if self.is_broken { Err(Error::Unfinished { place: self.place.clone() }) } else { Ok(()) }
    }

    /// Encodes the rows held, and appends them to the files.
    fn write_tile(&mut self) -> Result<(), Error> {
        let coordinates: Vec<u8> =
            self.coordinates.iter().flat_map(|coordinate| coordinate.to_le_bytes()).collect();
        let coordinates =
            Part { bytes: &coordinates, value_bytes: 8, pipeline: &self.form.coordinates };
        let mut parts = vec![coordinates];
        for (attribute, held) in self.form.attributes.iter().zip(&self.held) {
            parts.extend(self.form.parts(attribute, held));
        }
        let encoded = self.encode(&parts)?;
        let mut encoded = encoded.into_iter().enumerate();
        let mut append = |folder: &mut Folder| -> Result<u64, Error> {
            let Some((file, pieces)) = encoded.next() else { return Ok(0) };
            let at = folder.file_bytes(file);
            folder.append(file, pieces.iter().map(Vec::as_slice))?;
            Ok(at)
        };
        let Tiles { bounds, n_cells, coordinates, attributes } = &mut self.tiles;
        let at = append(&mut self.folder)?;
        let sum = Statistics::from_values(self.coordinates.iter().copied()).sum;
        coordinates.add([at, 0, 0], 0, Statistics { sum, ..Statistics::default() });
        coordinates.file_bytes[0] = self.folder.file_bytes(0);
        let mut file = 0;
        for ((attribute, held), field) in
            self.form.attributes.iter().zip(&self.held).zip(attributes)
        {
            let mut places = [0; 3];
            for (which, place) in places.iter_mut().enumerate() {
                if attribute.has_file(which) {
                    file += 1;
                    *place = append(&mut self.folder)?;
                    field.file_bytes[which] = self.folder.file_bytes(file);
                }
            }
            field.add(places, held.var_bytes(attribute), held.statistics(attribute));
        }
        let ends = self.coordinates.first().zip(self.coordinates.last());
        bounds.push([ends.map_or((0, 0), |(a, b)| (a.cast_unsigned(), b.cast_unsigned()))]);
        n_cells.push(self.coordinates.len() as u64);
        self.coordinates.clear();
        self.held.iter_mut().for_each(HeldColumn::clear);
        Ok(())
    }

    /// The bytes of each part's tile, in pieces: the number of chunks, then the chunks.
    fn encode(&self, parts: &[Part<'_>]) -> Result<Vec<Vec<Vec<u8>>>, Error> {
        let chunks: Vec<(usize, &[u8])> = parts
            .iter()
            .enumerate()
            .flat_map(|(idx, part)| {
                let size = (CHUNK_BYTES / part.value_bytes).max(1) * part.value_bytes;
                part.bytes.chunks(size).map(move |chunk| (idx, chunk))
            })
            .collect();
        let encode = |(idx, chunk): &(usize, &[u8])| {
            let part = &parts[*idx];
            let mut out = Vec::new();
            self.encoders
                .with(|encoder| part.pipeline.encode(chunk, part.value_bytes, encoder, &mut out))
                .map(|()| out)
        };
        let encoded: Vec<Vec<u8>> = self
            .pool
            .install(|| chunks.par_iter().with_max_len(1).map(encode).collect::<Result<_, _>>())
            .map_err(|problem| Error::Encode { place: self.place.clone(), problem })?;
        let mut tiles: Vec<Vec<Vec<u8>>> = parts
            .iter()
            .enumerate()
            .map(|(idx, _)| {
                let n_chunks = chunks.iter().filter(|(part, _)| *part == idx).count() as u64;
                vec![n_chunks.to_le_bytes().to_vec()]
            })
            .collect();
        for ((idx, _), bytes) in chunks.iter().zip(encoded) {
            tiles[*idx].push(bytes);
        }
        Ok(tiles)
    }
}
