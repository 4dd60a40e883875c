//! Array schemas.
//!
//! Specification: `format_spec/array_schema.md`; what came with which format version is in `array_format_history.md`. Everything a
//! schema says is parsed, so that what follows is found where it should be; whether this crate can read such an array is decided by
//! [`Layout::of`].

mod layout;
mod parse;

use crate::datatype::Datatype;
use crate::filter::Filter;
pub(crate) use layout::{Layout, Stored};
pub(crate) use parse::{VERSIONS, range};

/// `u32::MAX` values a cell: a variable number.
pub(crate) const VARIABLE: u32 = u32::MAX;

/// The least and the greatest coordinate, both included.
pub(crate) type Span = (i128, i128);

/// A schema as it is written.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Schema {
    pub(crate) version: u32,
    pub(crate) allows_duplicates: bool,
    pub(crate) is_dense: bool,
    /// Whether tiles, and cells within them, stand row by row.
    pub(crate) is_row_major: bool,
    pub(crate) capacity: u64,
    /// The default for dimensions, and what timestamps are filtered by.
    pub(crate) coords_filters: Vec<Filter>,
    pub(crate) dimensions: Vec<Dimension>,
    pub(crate) attributes: Vec<Attribute>,
    /// Bounds of each dimension, both included, where a current domain was set and its type is one that is read here.
    pub(crate) current_domain: Option<Vec<Option<Span>>>,
}

/// A dimension as it is written.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Dimension {
    pub(crate) name: String,
    pub(crate) datatype: Datatype,
    pub(crate) values_per_cell: u32,
    pub(crate) filters: Vec<Filter>,
    /// Bounds, both included; `None` for types that are not read here.
    pub(crate) domain: Option<Span>,
    /// Rows or columns of a space tile.
    pub(crate) extent: Option<i128>,
}

/// An attribute as it is written.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Attribute {
    pub(crate) name: String,
    pub(crate) datatype: Datatype,
    pub(crate) values_per_cell: u32,
    pub(crate) filters: Vec<Filter>,
    pub(crate) nullable: bool,
}
