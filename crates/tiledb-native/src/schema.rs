//! Array schemas.
//!
//! Specification: `format_spec/array_schema.md`; `array_format_history.md` lists the changes by
//! format version. All of a schema is parsed, so that later fields are found in their place;
//! [`Layout::from_schema`] decides whether this crate can read the array.

mod description;
mod layout;
mod parse;
mod schemas;

use crate::datatype::Datatype;
use crate::filter::Filter;
pub(crate) use layout::{Layout, MAX_CAPACITY, Stored, bind};
pub(crate) use parse::{VERSIONS, range};
pub(crate) use schemas::Schemas;

/// `u32::MAX` values per cell mean a variable number.
pub(crate) const VARIABLE: u32 = u32::MAX;

/// The least and the greatest coordinate, both included.
pub(crate) type Span = (i128, i128);

/// A schema as stored.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Schema {
    pub(crate) version: u32,
    pub(crate) allows_duplicates: bool,
    pub(crate) is_dense: bool,
    /// The numbers of the orders of tiles and of cells in a tile.
    pub(crate) orders: (u8, u8),
    pub(crate) capacity: u64,
    /// The default filters of dimensions, and the filters of timestamps.
    pub(crate) coords_filters: Vec<Filter>,
    /// The filters of the offsets of var-sized fields.
    pub(crate) offsets_filters: Vec<Filter>,
    /// The filters of the validity of nullable attributes.
    pub(crate) validity_filters: Vec<Filter>,
    pub(crate) dimensions: Vec<Dimension>,
    pub(crate) attributes: Vec<Attribute>,
    /// Bounds of each dimension, both included, if there is a current domain; `None` for dimensions
    /// of other types than integers.
    pub(crate) current_domain: Option<Vec<Option<Span>>>,
    /// The name of each enumeration, and that of its file.
    pub(crate) enumerations: Vec<(String, String)>,
}

impl Schema {
    /// Whether tiles, and cells within them, are ordered row by row.
    pub(crate) fn is_row_major(&self) -> bool {
        self.orders == (0, 0)
    }
}

/// A dimension as stored.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Dimension {
    pub(crate) name: String,
    pub(crate) datatype: Datatype,
    pub(crate) values_per_cell: u32,
    pub(crate) filters: Vec<Filter>,
    /// Bounds, both included; `None` for other types than integers and times.
    pub(crate) domain: Option<Span>,
    /// Rows or columns of a space tile.
    pub(crate) extent: Option<i128>,
}

/// An attribute as stored.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Attribute {
    pub(crate) name: String,
    pub(crate) datatype: Datatype,
    pub(crate) values_per_cell: u32,
    pub(crate) filters: Vec<Filter>,
    pub(crate) nullable: bool,
    /// The value of cells that were written before the attribute was added; `None` in formats that
    /// do not store it.
    pub(crate) fill: Option<Vec<u8>>,
    /// Whether such cells have a value, if the attribute is nullable.
    pub(crate) fill_is_valid: bool,
    /// The name of its enumeration.
    pub(crate) enumeration: Option<String>,
}
