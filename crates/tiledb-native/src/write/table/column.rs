//! Columns of a table: as they are given, and as they are held until they fill a tile.

use std::ops::Range;

use super::form::Attribute;
use crate::write::statistics::Statistics;
use tiledb::Datatype;

/// The cells of an attribute to write.
#[derive(Debug, Clone, Copy)]
pub struct ColumnCells<'a> {
    pub(super) name: &'a str,
    pub(super) datatype: Datatype,
    pub(super) bytes: &'a [u8],
    pub(super) offsets: Option<&'a [u64]>,
    pub(super) validity: Option<&'a [u8]>,
}

impl<'a> ColumnCells<'a> {
    /// Makes a column of values of fixed size: the little-endian bytes of one after another.
    pub fn fixed(name: &'a str, datatype: Datatype, bytes: &'a [u8]) -> Self {
        Self { name, datatype, bytes, offsets: None, validity: None }
    }

    /// Makes a column of texts or bytes; `offsets` are the beginnings of the cells in `bytes`, the
    /// first of them 0.
    pub fn var_sized(
        name: &'a str,
        datatype: Datatype,
        bytes: &'a [u8],
        offsets: &'a [u64],
    ) -> Self {
        Self { name, datatype, bytes, offsets: Some(offsets), validity: None }
    }

    /// Adds validity for a nullable attribute: one byte per cell, 1 if the cell has a value, 0 if
    /// it has none.
    #[must_use]
    pub fn with_validity(self, validity: &'a [u8]) -> Self {
        Self { validity: Some(validity), ..self }
    }
}

/// The beginning of a tile of an attribute.
#[derive(Debug, Default)]
pub(super) struct HeldColumn {
    /// Values of fixed or of variable size.
    pub(super) bytes: Vec<u8>,
    /// The beginnings of values of variable size, as bytes.
    pub(super) offsets: Vec<u8>,
    pub(super) validity: Vec<u8>,
}

impl HeldColumn {
    /// Adds cells of a column that was checked.
    pub(super) fn extend(&mut self, column: &ColumnCells<'_>, cells: Range<usize>) {
        if let Some(offsets) = column.offsets {
            let place = |cell: usize| {
                offsets.get(cell).map_or(column.bytes.len(), |offset| *offset as usize)
            };
            let (start, end) = (place(cells.start), place(cells.end));
            let shift = self.bytes.len() as u64;
            for offset in &offsets[cells.clone()] {
                let offset = offset - start as u64 + shift;
                self.offsets.extend_from_slice(&offset.to_le_bytes());
            }
            self.bytes.extend_from_slice(&column.bytes[start..end]);
        } else {
            let size = column.datatype.size().unwrap_or(1);
            self.bytes.extend_from_slice(&column.bytes[size * cells.start..size * cells.end]);
        }
        if let Some(validity) = column.validity {
            self.validity.extend_from_slice(&validity[cells]);
        }
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.offsets.clear();
        self.validity.clear();
    }

    /// The bytes of values of variable size.
    pub(super) fn var_bytes(&self, attribute: &Attribute) -> u64 {
        if attribute.is_var_sized { self.bytes.len() as u64 } else { 0 }
    }

    pub(super) fn statistics(&self, attribute: &Attribute) -> Statistics {
        let validity = attribute.is_nullable.then_some(self.validity.as_slice());
        match attribute.number() {
            Some(number) => Statistics::of_bytes(number, &self.bytes, validity),
            // libtiledb does not count the nulls of values of variable size.
            None => Statistics::default(),
        }
    }
}
