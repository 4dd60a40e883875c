//! The fragments of a table, and the places of their tiles.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use super::form::{FieldKind, FileNumber, Form, StoredField, VarFilters};
use crate::deletes::Concerning;
use crate::directory::FragmentFolder;
use crate::error::Fault;
use crate::fragment::{FooterFields, n_cells, position_range};

/// A fragment that counts at the time the table is opened.
#[derive(Debug)]
pub(super) struct TableFragment {
    pub(super) folder: FragmentFolder,
    pub(super) footer: FooterFields,
    pub(super) form: Arc<Form>,
    /// The deletes that concern its cells.
    pub(super) deletes: Concerning,
    /// The number of its first tile among those of all fragments, which stands for the coordinates
    /// of its cells if rows are not found by them.
    first_tile: u64,
    /// The least and the greatest coordinate; `None` if the fragment is empty.
    pub(super) bounds: Option<(u64, u64)>,
    /// The bounds of each tile, read when first needed.
    pub(super) tiles: OnceLock<Vec<(u64, u64)>>,
    /// The places of each field's tiles, in the order of the form, read when first needed.
    pub(super) places: Vec<OnceLock<FieldPlaces>>,
}

/// Places of a field's tiles in its files. Each list of offsets ends with the end of the last tile.
#[derive(Debug, Default)]
pub(super) struct FieldPlaces {
    pub(super) main: Vec<u64>,
    pub(super) var: Vec<u64>,
    /// Unfiltered bytes of each var-sized tile.
    pub(super) var_sizes: Vec<u64>,
    pub(super) validity: Vec<u64>,
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
    /// The parts that have what is needed to decode the field.
    pub(super) fn parts(&self) -> impl Iterator<Item = Part> {
        // Texts that were encoded whole bring their offsets.
        let has_main = !matches!(self.var, Some(VarFilters::Texts(_)));
        let has = [has_main, self.var.is_some(), self.validity.is_some()];
        Part::ALL.into_iter().zip(has).filter(|(_, has)| *has).map(|(part, _)| part)
    }
}

impl TableFragment {
    pub(super) fn new(
        folder: FragmentFolder,
        footer: FooterFields,
        form: Arc<Form>,
        (deletes, first_tile): (Concerning, u64),
    ) -> Result<Self, Fault> {
        if footer.is_dense {
            return Err(Fault::new("a dense fragment in a sparse array"));
        }
        let bounds = match (&form.position, &footer.bounds) {
            (Some((dimension, _)), Some(bounds)) => {
                Some(position_range(bounds.first().copied().flatten(), &dimension.name)?)
            }
            (Some(_), None) => None,
            (None, _) => {
                let last = footer.n_tiles.checked_sub(1);
                last.map(|last| (first_tile, first_tile.saturating_add(last)))
            }
        };
        let places = form.fields.iter().map(|_| OnceLock::new()).collect();
        Ok(Self {
            bounds,
            first_tile,
            folder,
            footer,
            form,
            deletes,
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

    /// Whether cells may be later than `timestamp`, so that each one's own time decides.
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

    /// The place in the metadata of what shows the bounds of the tiles: the bounding rectangles,
    /// or, if rows are not found by coordinates, a list with an entry for each tile.
    pub(super) fn tiles_at(&self) -> u64 {
        let list = &self.footer.tile_offsets_at;
        match (&self.form.position, &self.form.fields[self.form.counting]) {
            (None, Some(field)) => list.get(self.file_number(field)).copied().unwrap_or(0),
            _ => self.footer.rtree_at,
        }
    }

    /// Numbers that stand for the bounds of the tiles.
    pub(super) fn numbered_tiles(&self) -> Vec<(u64, u64)> {
        let number = |tile: u64| self.first_tile.saturating_add(tile);
        (0..self.footer.n_tiles).map(|tile| (number(tile), number(tile))).collect()
    }

    /// Bytes of a field in tile `tile` once decoded: values, offsets and validity. Those of the
    /// field that counts cells if the fragment does not have the field.
    pub(super) fn decoded_bytes(&self, field: usize, tile: usize) -> u64 {
        let (field, stored) = match self.form.fields.get(field) {
            Some(Some(stored)) => (field, stored),
            _ => match &self.form.fields[self.form.counting] {
                Some(counting) => (self.form.counting, counting),
                None => return 0,
            },
        };
        let n_cells = self.tile_cells(tile);
        let main = main_bytes(stored.kind, n_cells as usize) as u64;
        let validity = if stored.validity.is_some() { n_cells.into() } else { 0 };
        main.saturating_add(self.var_size(field, tile)).saturating_add(validity)
    }

    /// The fields among `wanted` that the fragment has and whose places are not loaded yet; the
    /// field that counts cells if the fragment lacks any of them.
    pub(super) fn missing(&self, wanted: &[usize]) -> Vec<(usize, &StoredField)> {
        let is_known = |field: &usize| self.form.fields.get(*field).is_some_and(Option::is_some);
        let instead = (!wanted.iter().all(is_known)).then_some(self.form.counting);
        let mut fields: Vec<usize> = wanted.iter().copied().chain(instead).collect();
        fields.sort_unstable();
        fields.dedup();
        let has_cells = self.footer.n_tiles > 0;
        let missing = fields.into_iter().filter(|_| has_cells).filter_map(|field| {
            let stored = self.form.fields.get(field)?.as_ref()?;
            let is_there = match stored.file {
                FileNumber::Times => self.footer.has_timestamps,
                FileNumber::DeleteTimes => self.footer.has_delete_metadata,
                FileNumber::Dimension(_) | FileNumber::Attribute(_) => true,
            };
            (is_there && self.places[field].get().is_none()).then_some((field, stored))
        });
        missing.collect()
    }

    pub(super) fn file_number(&self, field: &StoredField) -> usize {
        match field.file {
            FileNumber::Dimension(idx) => self.footer.dimension_file(idx),
            FileNumber::Attribute(idx) => idx,
            FileNumber::Times => self.footer.times_file(),
            FileNumber::DeleteTimes => self.footer.delete_times_file(),
        }
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
