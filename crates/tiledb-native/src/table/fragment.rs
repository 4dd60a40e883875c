//! The fragments of a table, and the places of their tiles.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use storage::{Files, Piece};

use super::form::{DIMENSION, FieldKind, FileNumber, Form, StoredField};
use crate::directory::FragmentFolder;
use crate::error::{Error, Fault};
use crate::fragment::{
    FooterFields, last_level, metadata_file, n_cells, position_range, tile_numbers,
    var_tile_offsets,
};
use crate::generic_tile::Source;
use crate::schema;

/// The most metadata of a fragment that is read in one piece.
const HELD_BYTES: u64 = 8 << 20;
/// Fragments whose tiles are read together.
const AT_ONCE: usize = 32;

/// A fragment that counts at the time the table is opened.
#[derive(Debug)]
pub(super) struct TableFragment {
    pub(super) folder: FragmentFolder,
    pub(super) footer: FooterFields,
    pub(super) form: Arc<Form>,
    /// The least and the greatest coordinate; `None` if the fragment is empty.
    pub(super) bounds: Option<(u64, u64)>,
    /// The bounds of each tile, read when first needed.
    tiles: OnceLock<Vec<(u64, u64)>>,
    /// The places of each field's tiles, in the order of the form, read when first needed.
    places: Vec<OnceLock<FieldPlaces>>,
}

/// Places of a field's tiles in its files. Each list of offsets ends with the end of the last tile.
#[derive(Debug, Default)]
struct FieldPlaces {
    main: Vec<u64>,
    var: Vec<u64>,
    /// Unfiltered bytes of each var-sized tile.
    var_sizes: Vec<u64>,
    validity: Vec<u64>,
}

/// One file of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Part {
    /// Values, or offsets if the field is var-sized.
    Main,
    /// Var-sized values.
    Var,
    Validity,
}

impl Part {
    const ALL: [Self; 3] = [Self::Main, Self::Var, Self::Validity];
}

impl StoredField {
    /// The parts that the field has.
    pub(super) fn parts(&self) -> impl Iterator<Item = Part> {
        let has = [true, self.var.is_some(), self.validity.is_some()];
        Part::ALL.into_iter().zip(has).filter(|(_, has)| *has).map(|(part, _)| part)
    }
}

impl TableFragment {
    pub(super) fn new(
        folder: FragmentFolder,
        footer: FooterFields,
        form: Arc<Form>,
    ) -> Result<Self, Fault> {
        if footer.is_dense {
            return Err(Fault::new("a dense fragment in a sparse array"));
        }
        let bounds = footer
            .bounds
            .as_ref()
            .map(|bounds| position_range(bounds.first().copied().flatten(), &form.dimension.name));
        let places = form.fields.iter().map(|_| OnceLock::new()).collect();
        Ok(Self {
            bounds: bounds.transpose()?,
            folder,
            footer,
            form,
            tiles: OnceLock::new(),
            places,
        })
    }

    /// All cells of the fragment.
    pub(super) fn n_cells(&self) -> u64 {
        let FooterFields { n_tiles, last_tile_cells, .. } = self.footer;
        n_cells(n_tiles, last_tile_cells, self.form.capacity).unwrap_or(u64::MAX)
    }

    /// Cells in tile `tile`.
    pub(super) fn tile_cells(&self, tile: usize) -> u32 {
        let is_last = tile as u64 + 1 == self.footer.n_tiles;
        let n_cells = if is_last { self.footer.last_tile_cells } else { self.form.capacity };
        // Capacities are checked, and the last tile's cells against them.
        u32::try_from(n_cells).unwrap_or(u32::MAX)
    }

    /// Whether cells may be later than `timestamp`, so that each one's own time has to be looked at.
    pub(super) fn is_partly_after(&self, timestamp: u64) -> bool {
        self.footer.has_timestamps && self.folder.times.end > timestamp
    }

    /// The bounds of the tiles; none before they are loaded.
    pub(super) fn tiles(&self) -> &[(u64, u64)] {
        self.tiles.get().map_or(&[], Vec::as_slice)
    }

    /// The path of a file.
    pub(super) fn path(&self, field: &StoredField, part: Part) -> String {
        let ending = match part {
            Part::Main => "",
            Part::Var => "_var",
            Part::Validity => "_validity",
        };
        format!("{}/{}{ending}.tdb", self.folder.path, field.stem)
    }

    /// The bytes of tile `tile` in the file `part` of the field `field`; empty before the field is
    /// loaded.
    pub(super) fn bytes(&self, field: usize, part: Part, tile: usize) -> Range<u64> {
        let Some(places) = self.places.get(field).and_then(OnceLock::get) else { return 0..0 };
        let offsets = match part {
            Part::Main => &places.main,
            Part::Var => &places.var,
            Part::Validity => &places.validity,
        };
        match offsets.get(tile..tile + 2) {
            Some([start, end]) => *start..*end,
            _ => 0..0,
        }
    }

    /// Unfiltered bytes of the var-sized tile `tile` of the field `field`.
    pub(super) fn var_size(&self, field: usize, tile: usize) -> u64 {
        let places = self.places.get(field).and_then(OnceLock::get);
        places.and_then(|places| places.var_sizes.get(tile).copied()).unwrap_or(0)
    }

    /// The fields among `wanted` that the fragment has and whose places are not loaded yet; the
    /// dimension if the fragment lacks any of them.
    fn missing(&self, wanted: &[usize]) -> Vec<(usize, &StoredField)> {
        let is_known = |field: &usize| self.form.fields.get(*field).is_some_and(Option::is_some);
        let instead = (!wanted.iter().all(is_known)).then_some(DIMENSION);
        let mut fields: Vec<usize> = wanted.iter().copied().chain(instead).collect();
        fields.sort_unstable();
        fields.dedup();
        let has_cells = self.footer.n_tiles > 0;
        let missing = fields.into_iter().filter(|_| has_cells).filter_map(|field| {
            let stored = self.form.fields.get(field)?.as_ref()?;
            let is_there = stored.file != FileNumber::Times || self.footer.has_timestamps;
            (is_there && self.places[field].get().is_none()).then_some((field, stored))
        });
        missing.collect()
    }

    fn file_number(&self, field: &StoredField) -> usize {
        match field.file {
            FileNumber::Dimension => self.footer.dimension_file(0),
            FileNumber::Attribute(idx) => idx,
            FileNumber::Times => self.footer.times_file(),
        }
    }

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

/// Bytes of a tile of `n_cells` cells of the field's main file once unfiltered.
pub(super) fn main_bytes(kind: FieldKind, n_cells: usize) -> usize {
    let cell_bytes = match kind {
        FieldKind::Fixed(cell_bytes) => cell_bytes,
        FieldKind::VarSized => super::form::OFFSET_BYTES,
    };
    n_cells.saturating_mul(cell_bytes)
}
