//! The filtered bytes of tiles, fetched together, and their decoding.

use std::collections::HashMap;
use std::ops::Range;

use storage::Piece;

use super::form::{DIMENSION, FieldKind, OFFSET_BYTES, StoredField, VarFilters};
use super::fragment::{Part, main_bytes};
use super::snapshot::{Column, Snapshot};
use super::window::WantedTile;
use crate::datatype::Number;
use crate::deletes::{DeletableCells, FieldCells, Places};
use crate::error::{Error, Fault};
use crate::read::fetch::fetch;
use crate::tile;
use crate::unsupported::Unsupported;

/// A part of a field of a tile, by the indices of field and tile.
type Key = (usize, Part, u32);

/// Fetched tiles.
#[derive(Debug)]
pub(super) struct Fetched<'a> {
    snapshot: &'a Snapshot,
    tiles: &'a [WantedTile],
    bytes: &'a [u8],
    places: HashMap<Key, Range<usize>>,
}

/// A decoded tile of one column.
#[derive(Debug)]
pub(super) enum DecodedTile {
    /// The tile's fragment was written before the column was added.
    Missing,
    Stored {
        bytes: Vec<u8>,
        /// The places of the cells in `bytes`, and the end of the last, if the column is var-sized.
        offsets: Option<Vec<usize>>,
        validity: Option<Vec<u8>>,
    },
}

impl DecodedTile {
    /// The cells, of a column of this kind; `None` if the fragment does not have them.
    pub(super) fn cells(&self, kind: FieldKind) -> Option<FieldCells<'_>> {
        let Self::Stored { bytes, offsets, validity } = self else { return None };
        let places = match kind {
            FieldKind::Fixed(n_bytes) => Places::Fixed(n_bytes),
            FieldKind::VarSized => Places::VarSized(offsets.as_deref().unwrap_or_default()),
        };
        Some(FieldCells { bytes, places, validity: validity.as_deref() })
    }
}

impl<'a> Fetched<'a> {
    /// Fetches all parts of the tiles and fields `wanted` into `buffer`; the field that counts
    /// cells instead of fields that a tile's fragment does not have. Their places must be loaded.
    pub(super) fn read(
        snapshot: &'a Snapshot,
        tiles: &'a [WantedTile],
        wanted: &[(u32, usize)],
        buffer: &'a mut Vec<u8>,
    ) -> Result<Self, Error> {
        let mut keys: Vec<Key> = Vec::new();
        for &(tile, field) in wanted {
            let fragment = snapshot.fragment(&tiles[tile as usize]);
            match &fragment.form.fields[field] {
                Some(stored) => keys.extend(stored.parts().map(|part| (field, part, tile))),
                // It shows how many cells there are.
                None => keys.push((fragment.form.counting, Part::Main, tile)),
            }
        }
        // Neighbours in a file, which are fetched as one, become neighbours in the list.
        keys.sort_unstable_by_key(|&(field, part, tile)| {
            let WantedTile { fragment, tile, .. } = tiles[tile as usize];
            (field, part, fragment, tile)
        });
        keys.dedup();
        let found: Vec<(Key, String, Range<u64>)> = keys
            .into_iter()
            .filter_map(|key @ (field, part, tile)| {
                let wanted = &tiles[tile as usize];
                let fragment = snapshot.fragment(wanted);
                let stored = fragment.form.fields[field].as_ref()?;
                let range = fragment.bytes(field, part, wanted.tile as usize);
                Some((key, fragment.path(stored, part), range))
            })
            .filter(|(_, _, range)| range.start < range.end)
            .collect();
        let pieces: Vec<_> = found
            .iter()
            .map(|(_, file, range)| Piece { file: file.as_str(), range: range.clone() })
            .collect();
        let (places, _) = fetch(&snapshot.files, &pieces, buffer)?;
        let places = found.iter().map(|(key, ..)| *key).zip(places).collect();
        Ok(Self { snapshot, tiles, bytes: buffer, places })
    }

    /// The name of a column for an error.
    pub(super) fn name_of(&self, column: &Column) -> String {
        format!("column {} of {}", column.name, self.snapshot.files.place())
    }

    /// An error in the main file of a field of a tile.
    fn damaged(&self, fault: Fault, tile: u32, field: usize) -> Error {
        self.damaged_part(fault, (field, Part::Main, tile))
    }

    fn damaged_part(&self, fault: Fault, (field, part, tile): Key) -> Error {
        let wanted = &self.tiles[tile as usize];
        let fragment = self.snapshot.fragment(wanted);
        let path = fragment.form.fields[field].as_ref().map(|stored| fragment.path(stored, part));
        let offset = fragment.bytes(field, part, wanted.tile as usize).start;
        fault.in_unfiltered(self.snapshot.files.name(&path.unwrap_or_default()), offset)
    }

    /// Decodes the values of a field, or its offsets if it is var-sized; no bytes if the tile's
    /// fragment does not have the field.
    pub(super) fn main(&self, tile: u32, field: usize) -> Result<Vec<u8>, Error> {
        let wanted = &self.tiles[tile as usize];
        match &self.snapshot.fragment(wanted).form.fields[field] {
            Some(stored) => self.decode_main(tile, field, stored),
            None => Ok(Vec::new()),
        }
    }

    /// Decodes the times of a tile's cells, or the times at which they were deleted.
    pub(super) fn times(&self, tile: u32, field: usize) -> Result<Vec<u64>, Error> {
        let bytes = self.main(tile, field)?;
        Ok(bytes.as_chunks::<8>().0.iter().map(|time| u64::from_le_bytes(*time)).collect())
    }

    /// Whether each cell of a tile was not deleted; `None` if none can have been.
    pub(super) fn undeleted(&self, tile: u32, times: &[u64]) -> Result<Option<Vec<bool>>, Error> {
        let wanted = &self.tiles[tile as usize];
        let concerning = &self.snapshot.fragment(wanted).deletes;
        if !concerning.is_any() {
            return Ok(None);
        }
        let mut decoded: Vec<(usize, DecodedTile)> = Vec::new();
        for &field in concerning.fields() {
            decoded.push((field, self.decode_as_stored(tile, field)?));
        }
        let mut fields = vec![None; self.snapshot.columns.len()];
        for (field, of_field) in &decoded {
            fields[*field] = of_field.cells(self.snapshot.columns[*field].kind);
        }
        let delete_times = if concerning.has_delete_times() {
            self.times(tile, self.snapshot.delete_times_field())?
        } else {
            Vec::new()
        };
        let n_cells = wanted.n_cells as usize;
        let cells = DeletableCells { n_cells, fields: &fields, times, delete_times: &delete_times };
        Ok(Some(self.snapshot.deletes.kept(concerning, self.snapshot.timestamp, cells)))
    }

    /// Decodes the coordinates of a tile.
    pub(super) fn coordinates(&self, tile: u32) -> Result<Vec<u64>, Error> {
        let bytes = self.main(tile, DIMENSION)?;
        let fragment = self.snapshot.fragment(&self.tiles[tile as usize]);
        let Some((_, number)) = &fragment.form.position else { return Ok(Vec::new()) };
        let found = coordinates(&bytes, *number);
        self.check_coordinates(tile, &found)?;
        Ok(found)
    }

    /// Fails if a coordinate lies outside the bounds of its tile, or if they do not ascend where
    /// the array's order says so.
    fn check_coordinates(&self, tile: u32, found: &[u64]) -> Result<(), Error> {
        let (low, high) = self.tiles[tile as usize].bounds;
        let outside = found.iter().position(|&coordinate| coordinate < low || coordinate > high);
        let what = match outside {
            Some(cell) => format!("cell {cell} is at {}, outside {low} to {high}", found[cell]),
            None if self.snapshot.cells_ascend && !found.is_sorted() => {
                "its coordinates do not ascend".to_owned()
            }
            None => return Ok(()),
        };
        Err(self.damaged(Fault::new(what), tile, DIMENSION))
    }

    fn decode_main(&self, tile: u32, field: usize, stored: &StoredField) -> Result<Vec<u8>, Error> {
        let n_cells = self.tiles[tile as usize].n_cells as usize;
        let value_bytes = match stored.kind {
            FieldKind::Fixed(_) => stored.value_bytes,
            FieldKind::VarSized => OFFSET_BYTES,
        };
        let len = main_bytes(stored.kind, n_cells);
        let key = (field, Part::Main, tile);
        tile::decode_whole(self.part(key), &stored.main, value_bytes, len)
            .map_err(|fault| self.damaged_part(fault, key))
    }

    /// The filtered bytes of a part.
    fn part(&self, key: Key) -> &'a [u8] {
        self.places.get(&key).and_then(|place| self.bytes.get(place.clone())).unwrap_or_default()
    }

    /// Decodes all parts of a field of a tile whose cells count.
    pub(super) fn decode(&self, tile: u32, field: usize) -> Result<DecodedTile, Error> {
        let fragment = self.snapshot.fragment(&self.tiles[tile as usize]);
        if let Some(what) = fragment.form.other_type(field) {
            let (fragment, what) = (fragment.folder.name.clone(), what.to_owned());
            let reason = Unsupported::SchemaEvolution { fragment, what };
            return Err(Error::Unsupported { place: self.snapshot.files.place(), reason });
        }
        self.decode_as_stored(tile, field)
    }

    /// Decodes all parts of a field of a tile; missing if the fragment has it with another type.
    pub(super) fn decode_as_stored(&self, tile: u32, field: usize) -> Result<DecodedTile, Error> {
        let wanted = &self.tiles[tile as usize];
        let fragment = self.snapshot.fragment(wanted);
        let Some(stored) = &fragment.form.fields[field] else {
            // A damaged footer must not fill memory with rows that are not there.
            self.main(tile, fragment.form.counting)?;
            return Ok(DecodedTile::Missing);
        };
        let (bytes, offsets) = match &stored.var {
            None => (self.decode_main(tile, field, stored)?, None),
            Some(filters) => {
                let (bytes, offsets) = self.decode_var(tile, field, (stored, filters))?;
                (bytes, Some(offsets))
            }
        };
        if let Some((_, number)) = fragment.form.position.as_ref().filter(|_| field == DIMENSION) {
            self.check_coordinates(tile, &coordinates(&bytes, *number))?;
        }
        let validity = stored.validity.as_ref().map(|pipeline| {
            let key = (field, Part::Validity, tile);
            tile::decode_whole(self.part(key), pipeline, 1, wanted.n_cells as usize)
                .map_err(|fault| self.damaged_part(fault, key))
        });
        Ok(DecodedTile::Stored { bytes, offsets, validity: validity.transpose()? })
    }

    /// Decodes var-sized values, and their offsets.
    fn decode_var(
        &self,
        tile: u32,
        field: usize,
        (stored, filters): (&StoredField, &VarFilters),
    ) -> Result<(Vec<u8>, Vec<usize>), Error> {
        let wanted = &self.tiles[tile as usize];
        let len = self.snapshot.fragment(wanted).var_size(field, wanted.tile as usize);
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        let key = (field, Part::Var, tile);
        let pipeline = match filters {
            VarFilters::Values(pipeline) => pipeline,
            VarFilters::Texts(pipeline) => {
                let n_texts = wanted.n_cells as usize;
                let texts = tile::decode_texts(self.part(key), pipeline, n_texts, len)
                    .map_err(|fault| self.damaged_part(fault, key))?;
                return Ok((texts.bytes, texts.offsets));
            }
        };
        let offsets = self.decode_main(tile, field, stored)?;
        // A tile without any values may take no bytes.
        let values = match self.part(key) {
            [] if len == 0 => Vec::new(),
            part => tile::decode_var_sized(part, pipeline, stored.value_bytes, len)
                .map_err(|fault| self.damaged_part(fault, key))?,
        };
        let offsets = cell_offsets(&offsets, values.len())
            .map_err(|fault| self.damaged(fault, tile, field))?;
        Ok((values, offsets))
    }
}

/// The coordinates in `bytes`. A negative one becomes one beyond any bounds.
fn coordinates(bytes: &[u8], number: Number) -> Vec<u64> {
    match number.size() {
        8 => bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect(),
        _ => bytes.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word).into()).collect(),
    }
}

/// The offsets of a tile's cells, which ascend up to `end`, followed by `end`.
fn cell_offsets(bytes: &[u8], end: usize) -> Result<Vec<usize>, Fault> {
    let stored = bytes.as_chunks::<OFFSET_BYTES>().0;
    let mut offsets = Vec::with_capacity(stored.len() + 1);
    let place =
        |offset: &[u8; 8]| usize::try_from(u64::from_le_bytes(*offset)).unwrap_or(usize::MAX);
    offsets.extend(stored.iter().map(place));
    offsets.push(end);
    match offsets.windows(2).position(|pair| pair[0] > pair[1]) {
        Some(cell) => Err(Fault::new(format!(
            "cell {cell} goes from byte {} to {} of {end}",
            offsets[cell],
            offsets[cell + 1]
        ))),
        None => Ok(offsets),
    }
}
