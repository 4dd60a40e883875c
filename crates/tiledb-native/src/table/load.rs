//! Loading the bounds and the places of a fragment's tiles from its metadata file.

use std::ops::Range;

use storage::{Files, Piece};

use super::form::StoredField;
use super::fragment::{FieldPlaces, Part, TableFragment};
use crate::error::{Error, Fault};
use crate::fragment::{last_level, metadata_file, position_range, tile_numbers, var_tile_offsets};
use crate::generic_tile::Source;
use crate::schema;

/// The most metadata of a fragment that is read in one piece.
const HELD_BYTES: u64 = 8 << 20;
/// Fragments whose tiles are read together.
const AT_ONCE: usize = 32;

impl TableFragment {
    /// The range of the metadata file with all that is missing: to its end, since only the
    /// beginnings of structures are known. Empty if that is too much, to be read piece by piece.
    fn metadata_range(&self, wanted: &[usize]) -> Range<u64> {
        let footer = &self.footer;
        let at = |list: &[u64], file: usize| list.get(file).copied().unwrap_or(0);
        let of_field = |(_, field): (usize, &StoredField)| {
            let file = self.file_number(field);
            let parts = field.parts().flat_map(move |part| match part {
                Part::Main => vec![at(&footer.tile_offsets_at, file)],
                Part::Var => vec![at(&footer.var_offsets_at, file), at(&footer.var_sizes_at, file)],
                Part::Validity => vec![at(&footer.validity_offsets_at, file)],
            });
            parts.min().unwrap_or(0)
        };
        let tree = self.tiles.get().is_none().then_some(footer.rtree_at);
        let first = self.missing(wanted).into_iter().map(of_field).chain(tree).min();
        let end = footer.metadata_bytes;
        match first.filter(|first| footer.n_tiles > 0 && end.saturating_sub(*first) <= HELD_BYTES) {
            Some(first) => first.min(end)..end,
            None => end..end,
        }
    }

    /// Reads the tiles' bounds and the places of the fields `wanted`, as far as they are missing,
    /// with few calls of the storage for all `fragments`.
    pub(super) fn load(files: &Files, fragments: &[&Self], wanted: &[usize]) -> Result<(), Error> {
        let missing = |fragment: &&&Self| {
            fragment.tiles.get().is_none() || !fragment.missing(wanted).is_empty()
        };
        let fragments: Vec<&Self> = fragments.iter().filter(missing).copied().collect();
        for fragments in fragments.chunks(AT_ONCE) {
            Self::load_some(files, fragments, wanted)?;
        }
        Ok(())
    }

    fn load_some(files: &Files, fragments: &[&Self], wanted: &[usize]) -> Result<(), Error> {
        let mut paths = Vec::new();
        for fragment in fragments {
            for (_, field) in fragment.missing(wanted) {
                paths.extend(field.parts().map(|part| fragment.path(field, part)));
            }
        }
        let sizes = files.sizes(&paths.iter().map(String::as_str).collect::<Vec<_>>())?;
        let mut sizes = sizes.into_iter();
        let metadata: Vec<String> =
            fragments.iter().map(|fragment| metadata_file(&fragment.folder)).collect();
        let ranges = fragments.iter().map(|fragment| fragment.metadata_range(wanted));
        let pieces: Vec<_> =
            metadata.iter().zip(ranges).map(|(file, range)| Piece { file, range }).collect();
        let loaded = files.read_each(&pieces)?;
        for ((fragment, piece), loaded) in fragments.iter().zip(&pieces).zip(&loaded) {
            let source = Source::new(files, piece.file, fragment.footer.metadata_bytes)
                .with_loaded(piece.range.start, loaded);
            fragment.load_one(files, &source, wanted, &mut sizes)?;
        }
        Ok(())
    }

    /// Loads what is missing; `sizes` are those of the missing fields' files.
    fn load_one(
        &self,
        files: &Files,
        source: &Source<'_>,
        wanted: &[usize],
        sizes: &mut impl Iterator<Item = u64>,
    ) -> Result<(), Error> {
        let damaged = |fault: Fault, at: u64| {
            fault.in_unfiltered(files.name(&metadata_file(&self.folder)), at)
        };
        if self.tiles.get().is_none() {
            let at = self.footer.rtree_at;
            let tiles = if self.footer.n_tiles == 0 {
                Vec::new()
            } else {
                self.rectangles(&source.read(at)?).map_err(|fault| damaged(fault, at))?
            };
            // Two threads may both have read them; either result serves.
            self.tiles.get_or_init(|| tiles);
        }
        for (field, stored) in self.missing(wanted) {
            let mut places = FieldPlaces::default();
            for part in stored.parts() {
                let size = sizes.next().unwrap_or(0);
                self.load_part((stored, part), source, size, &mut places, &damaged)?;
            }
            self.places[field].get_or_init(|| places);
        }
        Ok(())
    }

    fn load_part(
        &self,
        (field, part): (&StoredField, Part),
        source: &Source<'_>,
        size: u64,
        places: &mut FieldPlaces,
        damaged: &dyn Fn(Fault, u64) -> Error,
    ) -> Result<(), Error> {
        let (footer, file) = (&self.footer, self.file_number(field));
        let of = |list: &[u64]| list.get(file).copied();
        let (list, bytes) = match part {
            Part::Main => (&footer.tile_offsets_at, &footer.file_bytes),
            Part::Var => (&footer.var_offsets_at, &footer.var_bytes),
            Part::Validity => (&footer.validity_offsets_at, &footer.validity_bytes),
        };
        let (Some(at), Some(file_bytes)) = (of(list), of(bytes)) else {
            return Err(damaged(Fault::new(format!("no places of `{}`", field.name)), 0));
        };
        let offsets = var_tile_offsets(&source.read(at)?, footer.n_tiles, size.min(file_bytes))
            .map_err(|fault| damaged(fault, at))?;
        match part {
            Part::Main => places.main = offsets,
            Part::Validity => places.validity = offsets,
            Part::Var => {
                places.var = offsets;
                let at = of(&footer.var_sizes_at).unwrap_or(0);
                places.var_sizes = tile_numbers(&source.read(at)?, footer.n_tiles, "tile sizes")
                    .map_err(|fault| damaged(fault, at))?;
            }
        }
        Ok(())
    }

    /// The bounds of the tiles from the tree in `bytes`.
    fn rectangles(&self, bytes: &[u8]) -> Result<Vec<(u64, u64)>, Fault> {
        let dimension = &self.form.dimension;
        let n_tiles = self.footer.n_tiles;
        let mut cursor = last_level(bytes, n_tiles, 2 * self.form.number.size())?;
        let rectangle = |_| {
            let at = cursor.at();
            let found = schema::range(&mut cursor, dimension)?;
            position_range(found, &dimension.name).map_err(|fault| Fault::at(at, fault.what))
        };
        (0..n_tiles).map(rectangle).collect()
    }
}
