//! Array schemas.

use crate::{Datatype, Enumeration, Filter};

/// Dense or sparse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArrayType {
    /// Every cell of the domain has a value.
    Dense,
    /// Only the written cells exist.
    Sparse,
}

/// The order of tiles in an array, or of cells in a tile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CellOrder {
    /// The last dimension runs fastest.
    RowMajor,
    /// The first dimension runs fastest.
    ColumnMajor,
    /// Along a Hilbert curve.
    Hilbert,
}

impl CellOrder {
    /// The order with this number in `tiledb_layout_t`; `None` if no order of cells has it.
    pub fn from_number(number: i32) -> Option<Self> {
        match number {
            0 => Some(Self::RowMajor),
            1 => Some(Self::ColumnMajor),
            4 => Some(Self::Hilbert),
            _ => None,
        }
    }

    /// Its number in `tiledb_layout_t`.
    pub fn number(self) -> i32 {
        match self {
            Self::RowMajor => 0,
            Self::ColumnMajor => 1,
            Self::Hilbert => 4,
        }
    }
}

/// A dimension.
#[derive(Debug, Clone, PartialEq)]
pub struct Dimension {
    /// Its name.
    pub name: String,
    /// The type of its coordinates.
    pub datatype: Datatype,
    /// The least and the greatest coordinate, both included; `None` if coordinates are not
    /// integers.
    pub domain: Option<(i128, i128)>,
    /// The extent of a tile; `None` if there is none, or if coordinates are not integers.
    pub tile_extent: Option<i128>,
    /// Its filters; when an array is created, an empty list means libtiledb's default.
    pub filters: Vec<Filter>,
}

/// An attribute.
#[derive(Debug, Clone, PartialEq)]
pub struct Attribute {
    /// Its name.
    pub name: String,
    /// The type of its values, or of its codes if it has an enumeration.
    pub datatype: Datatype,
    /// Whether a cell may have no value.
    pub nullable: bool,
    /// Whether a cell has any number of values, as strings have.
    pub var_sized: bool,
    /// Values per cell; 1 if it is var-sized, since each cell then has its own number.
    pub values_per_cell: u32,
    /// Its filters.
    pub filters: Vec<Filter>,
    /// The name of the enumeration whose values its codes stand for.
    pub enumeration: Option<String>,
}

impl Attribute {
    /// Makes an attribute of one value per cell, or of text if `datatype` is a string type. Not
    /// nullable, no filters.
    pub fn new(name: &str, datatype: Datatype) -> Self {
        Self {
            name: name.to_owned(),
            datatype,
            nullable: false,
            var_sized: datatype.is_string() || datatype == Datatype::Blob,
            values_per_cell: 1,
            filters: Vec::new(),
            enumeration: None,
        }
    }
}

/// The schema of an array.
#[derive(Debug, Clone, PartialEq)]
pub struct Schema {
    /// Dense or sparse.
    pub array_type: ArrayType,
    /// The dimensions, slowest first.
    pub dimensions: Vec<Dimension>,
    /// The attributes.
    pub attributes: Vec<Attribute>,
    /// The order of tiles.
    pub tile_order: CellOrder,
    /// The order of cells in a tile.
    pub cell_order: CellOrder,
    /// Cells per data tile of a sparse array.
    pub capacity: u64,
    /// Whether several cells may have the same coordinates.
    pub allows_duplicates: bool,
    /// The filters of the offsets of var-sized columns; when an array is created, an empty list
    /// means libtiledb's default.
    pub offsets_filters: Vec<Filter>,
    /// The filters of dimensions without filters of their own, and of the times of cells; an empty
    /// list means the default.
    pub coords_filters: Vec<Filter>,
    /// The filters of the validity of nullable attributes; an empty list means the default,
    /// `[Filter::Rle]`.
    pub validity_filters: Vec<Filter>,
    /// For each dimension the least and the greatest coordinate in use, both included; `None`
    /// without a current domain. Creating the array fails unless there is one pair for each
    /// dimension.
    pub current_domain: Option<Vec<(i128, i128)>>,
    /// Enumerations to create with the array. Not filled when a schema is read:
    /// enumerations are read by their names.
    pub enumerations: Vec<Enumeration>,
}
