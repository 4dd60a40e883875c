//! Features that this crate does not read, as values that callers can match. Each is detected
//! before any cell is read.

use std::fmt;

/// The reason why only libtiledb can read an array.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unsupported {
    /// The array is dense.
    Dense,
    /// The array is sparse, where a dense one is read.
    Sparse,
    /// The domain of a dense array does not begin at 0.
    LateDomain {
        /// Name of the dimension.
        name: String,
        /// Its first coordinate.
        first: u64,
    },
    /// The schema or a fragment has a format version that this crate does not know.
    FormatVersion {
        /// The version found.
        version: u32,
    },
    /// The array does not have two dimensions, or one if it is read as a table.
    DimensionCount {
        /// Number of dimensions.
        n_dimensions: u32,
    },
    /// A dimension is not one of int32, uint32, int64, uint64.
    DimensionType {
        /// Name of the dimension.
        name: String,
        /// Its type, as TileDB names it.
        datatype: String,
    },
    /// A dimension begins below 0, but its values are used as positions.
    NegativeDomain {
        /// Name of the dimension.
        name: String,
    },
    /// No dimension and no attribute is of fixed size. Only for tables that are read as stored.
    NoFixedField,
    /// The array does not have exactly one attribute.
    AttributeCount {
        /// Number of attributes.
        n_attributes: u32,
    },
    /// The attribute has a variable number of values per cell, or more than one.
    ValuesPerCell {
        /// Name of the attribute.
        name: String,
    },
    /// The attribute may be null.
    Nullable {
        /// Name of the attribute.
        name: String,
    },
    /// The attribute's type does not convert to f32.
    AttributeType {
        /// Name of the attribute.
        name: String,
        /// Its type, as TileDB names it.
        datatype: String,
    },
    /// This crate does not implement the filter, or not for that type.
    Filter {
        /// Its name, or its number if the name is unknown.
        name: String,
        /// The field that it filters.
        of: String,
    },
    /// The array is encrypted.
    Encrypted,
    /// Cells were deleted by a condition that libtiledb does not evaluate either, whose result it
    /// does not define, or that is nested more than 256 deep.
    DeleteCondition {
        /// The commit with the condition.
        commit: String,
        /// What is wrong with it.
        what: String,
    },
    /// Cells were updated by condition.
    UpdateConditions {
        /// The commit file with the condition.
        commit: String,
    },
    /// A fragment was written under a schema whose dimensions or attribute differ from the array's.
    SchemaEvolution {
        /// Name of the fragment.
        fragment: String,
        /// The difference.
        what: String,
    },
    /// There are more than 16 fragments, and some with equal times overlap: which of two cells
    /// counts depends on how libtiledb happens to order them.
    TiedFragments {
        /// The time, in milliseconds since 1970.
        time: u64,
    },
    /// An enumeration has a version that this crate does not know.
    EnumerationVersion {
        /// The version found.
        version: u32,
    },
    /// The details of a group have a version that this crate does not know.
    GroupVersion {
        /// The version found.
        version: u32,
    },
    /// Rows from before an attribute was added have a fill value longer than this crate repeats.
    FillTooLong {
        /// Name of the attribute.
        name: String,
        /// Bytes of its fill value.
        n_bytes: usize,
    },
    /// Columns exceed u32.
    ColumnsTooWide {
        /// The highest column with a cell.
        last: u64,
    },
    /// Cells are not ordered row by row: the orders differ, or tiles have fewer columns than the
    /// array. Only for writing.
    NotByRow,
    /// It does not have one dimension, as tables have.
    NotATable {
        /// The number.
        n_dimensions: u32,
    },
    /// Tiles have more cells than this crate is willing to keep in memory.
    TileTooLarge {
        /// Cells per tile.
        capacity: u64,
    },
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dense => write!(f, "it is a dense array"),
            Self::Sparse => write!(f, "it is a sparse array"),
            Self::LateDomain { name, first } => {
                write!(f, "the domain of dimension `{name}` begins at {first}")
            }
            Self::FormatVersion { version } => {
                write!(f, "format version {version} is not one of 5 to 23")
            }
            Self::DimensionCount { n_dimensions } => {
                write!(f, "it has {n_dimensions} dimensions")
            }
            Self::DimensionType { name, datatype } => {
                write!(f, "dimension `{name}` is of type {datatype}")
            }
            Self::NegativeDomain { name } => {
                write!(f, "the domain of dimension `{name}` begins below 0")
            }
            Self::NoFixedField => write!(f, "no column is of fixed size"),
            Self::AttributeCount { n_attributes } => {
                write!(f, "it has {n_attributes} attributes, not 1")
            }
            Self::ValuesPerCell { name } => {
                write!(f, "attribute `{name}` does not have exactly one value per cell")
            }
            Self::Nullable { name } => write!(f, "attribute `{name}` is nullable"),
            Self::AttributeType { name, datatype } => {
                write!(f, "attribute `{name}` is of type {datatype}")
            }
            Self::Filter { name, of } => write!(f, "the filters of `{of}` include {name}"),
            Self::Encrypted => write!(f, "it is encrypted"),
            Self::DeleteCondition { commit, what } => {
                write!(
                    f,
                    "cells were deleted by a condition ({commit}) that cannot be evaluated: {what}"
                )
            }
            Self::UpdateConditions { commit } => {
                write!(f, "cells were updated by condition ({commit})")
            }
            Self::SchemaEvolution { fragment, what } => {
                write!(f, "fragment {fragment} has another schema: {what}")
            }
            Self::TiedFragments { time } => {
                write!(
                    f,
                    "of more than 16 fragments some of time {time} overlap, in an order that only libtiledb knows"
                )
            }
            Self::EnumerationVersion { version } => {
                write!(f, "an enumeration has version {version}, not 0")
            }
            Self::GroupVersion { version } => {
                write!(f, "the group's details have version {version}, not 1 or 2")
            }
            Self::FillTooLong { name, n_bytes } => {
                write!(f, "the fill value of attribute `{name}` has {n_bytes} bytes")
            }
            Self::ColumnsTooWide { last } => write!(f, "column {last} does not fit 32 bits"),
            Self::NotByRow => write!(f, "its cells are not ordered row by row"),
            Self::NotATable { n_dimensions } => {
                write!(f, "it has {n_dimensions} dimensions, not the one of a table")
            }
            Self::TileTooLarge { capacity } => {
                write!(f, "its tiles have {capacity} cells, more than 67,108,864")
            }
        }
    }
}
