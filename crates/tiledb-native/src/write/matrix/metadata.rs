//! Metadata of a matrix's tiles: those of rows, columns and values.

use super::tile::Tile;
use crate::datatype::Number;
use crate::write::field::{Field, Kind};
use crate::write::footer::Rectangle;

/// The tiles written so far.
#[derive(Debug)]
pub(super) struct Tiles {
    pub(super) bounds: Vec<Rectangle<2>>,
    pub(super) n_cells: Vec<u64>,
    rows: Field,
    columns: Field,
    values: Field,
}

impl Default for Tiles {
    fn default() -> Self {
        let dimension = || Field::new(Kind::Dimension { number: Number::I64 });
        let value = Kind::Attribute { number: Some(Number::F32), is_nullable: false };
        Self {
            bounds: Vec::new(),
            n_cells: Vec::new(),
            rows: dimension(),
            columns: dimension(),
            values: Field::new(value),
        }
    }
}

impl Tiles {
    /// Adds tiles, which are appended to the files of rows, columns and values.
    pub(super) fn add(&mut self, tiles: &[Tile]) {
        for tile in tiles {
            self.bounds.push(tile.summary.bounds);
            self.n_cells.push(tile.summary.n_cells);
            let fields = [&mut self.rows, &mut self.columns, &mut self.values];
            for ((field, bytes), statistics) in
                fields.into_iter().zip(&tile.bytes).zip(tile.summary.statistics)
            {
                field.add([field.file_bytes[0], 0, 0], 0, statistics);
                field.file_bytes[0] += bytes.len() as u64;
            }
        }
    }

    /// The fields in the order of the fragment's metadata.
    pub(super) fn into_fields(self) -> (Vec<Rectangle<2>>, Vec<u64>, [Field; 4]) {
        let obsolete = Field::obsolete(2, self.bounds.len());
        (self.bounds, self.n_cells, [self.values, obsolete, self.rows, self.columns])
    }
}
