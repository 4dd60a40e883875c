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
/// Fragments whose tiles are read together, as long as their metadata do not exceed the bytes.
const AT_ONCE: usize = 32;
const AT_ONCE_BYTES: u64 = 32 << 20;

/// What one read has to load of a fragment. Listed once: another read of the same table may load
/// some of it meanwhile, and sizes of files are assigned by this list.
struct Missing<'a> {
    fragment: &'a TableFragment,
    tiles: bool,
    fields: Vec<(usize, &'a StoredField)>,
}

impl<'a> Missing<'a> {
    /// `None` if the bounds of tiles and the places of the fields `wanted` are loaded.
    fn find(fragment: &'a TableFragment, wanted: &[usize]) -> Option<Self> {
        let tiles = fragment.tiles.get().is_none();
        let fields = fragment.missing(wanted);
        (tiles || !fields.is_empty()).then_some(Self { fragment, tiles, fields })
    }

    /// The range of the metadata file with all that is missing: to its end, since only the
    /// beginnings of structures are known. Empty if that is too much, to be read piece by piece.
    fn metadata_range(&self) -> Range<u64> {
        let footer = &self.fragment.footer;
        let at = |list: &[u64], file: usize| list.get(file).copied().unwrap_or(0);
        let of_field = |(_, field): &(usize, &StoredField)| {
            let file = self.fragment.file_number(field);
            let parts = field.parts().flat_map(move |part| match part {
                Part::Main => vec![at(&footer.tile_offsets_at, file)],
                Part::Var => vec![at(&footer.var_offsets_at, file), at(&footer.var_sizes_at, file)],
                Part::Validity => vec![at(&footer.validity_offsets_at, file)],
            });
            parts.min().unwrap_or(0)
        };
        let tree = self.tiles.then(|| self.fragment.tiles_at());
        let first = self.fields.iter().map(of_field).chain(tree).min();
        let end = footer.metadata_bytes;
        match first.filter(|first| footer.n_tiles > 0 && end.saturating_sub(*first) <= HELD_BYTES) {
            Some(first) => first.min(end)..end,
            None => end..end,
        }
    }

    /// Loads the missing parts; `sizes` are those of the missing fields' files, in their order.
    fn load(
        &self,
        files: &Files,
        source: &Source<'_>,
        sizes: &mut impl Iterator<Item = u64>,
    ) -> Result<(), Error> {
        let fragment = self.fragment;
        let damaged = |fault: Fault, at: u64| {
            fault.in_unfiltered(files.name(&metadata_file(&fragment.folder)), at)
        };
        if self.tiles {
            let at = fragment.tiles_at();
            let tiles = if fragment.footer.n_tiles == 0 {
                Vec::new()
            } else {
                fragment.rectangles(&source.read(at)?).map_err(|fault| damaged(fault, at))?
            };
            // Two threads may both have read them; either result serves.
            fragment.tiles.get_or_init(|| tiles);
        }
        for (field, stored) in &self.fields {
            let mut places = FieldPlaces::default();
            for part in stored.parts() {
                let size = sizes.next().unwrap_or(0);
                fragment.load_part((*stored, part), source, size, &mut places, &damaged)?;
            }
            fragment.places[*field].get_or_init(|| places);
        }
        Ok(())
    }
}

impl TableFragment {
    /// Reads the tiles' bounds and the places of the fields `wanted`, as far as they are missing,
    /// with few calls of the storage for all `fragments`.
    pub(super) fn load(files: &Files, fragments: &[&Self], wanted: &[usize]) -> Result<(), Error> {
        let missing = fragments.iter().filter_map(|fragment| Missing::find(fragment, wanted));
        let missing: Vec<Missing<'_>> = missing.collect();
        let mut rest = missing.as_slice();
        while !rest.is_empty() {
            let bytes = rest.iter().map(|missing| {
                let range = missing.metadata_range();
                range.end - range.start
            });
            let (now, later) = rest.split_at(n_at_once(bytes));
            load_together(files, now)?;
            rest = later;
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
        let entry = |list: &[u64]| list.get(file).copied();
        let (list, bytes) = match part {
            Part::Main => (&footer.tile_offsets_at, &footer.file_bytes),
            Part::Var => (&footer.var_offsets_at, &footer.var_bytes),
            Part::Validity => (&footer.validity_offsets_at, &footer.validity_bytes),
        };
        let (Some(at), Some(file_bytes)) = (entry(list), entry(bytes)) else {
            return Err(damaged(Fault::new(format!("no places of `{}`", field.name)), 0));
        };
        let offsets = var_tile_offsets(&source.read(at)?, footer.n_tiles, size.min(file_bytes))
            .map_err(|fault| damaged(fault, at))?;
        match part {
            Part::Main => places.main = offsets,
            Part::Validity => places.validity = offsets,
            Part::Var => {
                places.var = offsets;
                let at = entry(&footer.var_sizes_at).unwrap_or(0);
                places.var_sizes = tile_numbers(&source.read(at)?, footer.n_tiles, "tile sizes")
                    .map_err(|fault| damaged(fault, at))?;
            }
        }
        Ok(())
    }

    /// The bounds of the tiles from the tree in `bytes`, or from a list of their places.
    fn rectangles(&self, bytes: &[u8]) -> Result<Vec<(u64, u64)>, Fault> {
        let n_tiles = self.footer.n_tiles;
        let Some((dimension, number)) = &self.form.position else {
            // Read for their number alone, which a damaged footer must not fill memory with.
            tile_numbers(bytes, n_tiles, "tile offsets")?;
            return Ok(self.numbered_tiles());
        };
        let mut cursor = last_level(bytes, n_tiles, 2 * number.size())?;
        let rectangle = |_| {
            let at = cursor.at();
            let found = schema::range(&mut cursor, dimension)?;
            position_range(found, &dimension.name).map_err(|fault| Fault::at(at, fault.what))
        };
        (0..n_tiles).map(rectangle).collect()
    }
}

/// How many of the fragments, whose metadata take these bytes, are loaded together; at least one.
fn n_at_once(bytes: impl Iterator<Item = u64>) -> usize {
    let mut sum = 0_u64;
    let fit = bytes.take(AT_ONCE).take_while(|bytes| {
        sum = sum.saturating_add(*bytes);
        sum <= AT_ONCE_BYTES
    });
    fit.count().max(1)
}

/// Loads the missing parts of some fragments: all sizes with one call of the storage, and all
/// metadata with another.
fn load_together(files: &Files, missing: &[Missing<'_>]) -> Result<(), Error> {
    let mut paths = Vec::new();
    for Missing { fragment, fields, .. } in missing {
        for (_, field) in fields {
            paths.extend(field.parts().map(|part| fragment.path(field, part)));
        }
    }
    let sizes = files.sizes(&paths.iter().map(String::as_str).collect::<Vec<_>>())?;
    let mut sizes = sizes.into_iter();
    let metadata: Vec<String> =
        missing.iter().map(|missing| metadata_file(&missing.fragment.folder)).collect();
    let ranges = missing.iter().map(Missing::metadata_range);
    let pieces: Vec<_> =
        metadata.iter().zip(ranges).map(|(file, range)| Piece { file, range }).collect();
    let loaded = files.read_each(&pieces)?;
    for ((missing, piece), loaded) in missing.iter().zip(&pieces).zip(&loaded) {
        let source = Source::new(files, piece.file, missing.fragment.footer.metadata_bytes)
            .with_loaded(piece.range.start, loaded);
        missing.load(files, &source, &mut sizes)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_metadata_of_few_large_fragments_are_loaded_together() {
        let n = |bytes: &[u64]| n_at_once(bytes.iter().copied());
        assert_eq!(n(&[10; 100]), AT_ONCE);
        assert_eq!(n(&[HELD_BYTES; 100]), 4);
        assert_eq!(n(&[AT_ONCE_BYTES + 1, 1]), 1);
        assert_eq!(n(&[1, AT_ONCE_BYTES, 1]), 1);
    }
}
