//! Array schemas.
//!
//! Specification: `format_spec/array_schema.md`; `array_format_history.md` lists the changes by
//! format version. All of a schema is parsed, so that later fields are found in their place;
//! [`Layout::of`] decides whether this crate can read the array.

mod layout;
mod parse;

use crate::datatype::Datatype;
use crate::filter::Filter;
pub(crate) use layout::{Layout, Stored};
pub(crate) use parse::{VERSIONS, range};

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
    /// Whether tiles, and cells within them, are ordered row by row.
    pub(crate) is_row_major: bool,
    pub(crate) capacity: u64,
    /// The default filters of dimensions, and the filters of timestamps.
    pub(crate) coords_filters: Vec<Filter>,
    /// The filters of the offsets of values of variable size.
    pub(crate) offsets_filters: Vec<Filter>,
    /// The filters of the validity of nullable attributes.
    pub(crate) validity_filters: Vec<Filter>,
    pub(crate) dimensions: Vec<Dimension>,
    pub(crate) attributes: Vec<Attribute>,
    /// Bounds of each dimension, both included, if there is a current domain and this crate reads
    /// its type.
    pub(crate) current_domain: Option<Vec<Option<Span>>>,
}

/// A dimension as stored.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Dimension {
    pub(crate) name: String,
    pub(crate) datatype: Datatype,
    pub(crate) values_per_cell: u32,
    pub(crate) filters: Vec<Filter>,
    /// Bounds, both included; `None` for types that this crate does not read.
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
}
