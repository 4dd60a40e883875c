//! What this crate declines to read, as values a caller can match on. Each is known before any cell is read.

use std::fmt;

/// Why an array has to be read by libtiledb.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unsupported {
    /// The array is dense.
    Dense,
    /// The schema or a fragment has a format version that this crate does not know.
    FormatVersion {
        /// The version found.
        version: u32,
    },
    /// Not exactly two dimensions.
    DimensionCount {
        /// How many there are.
        n_dimensions: u32,
    },
    /// A dimension is not one of int32, uint32, int64, uint64.
    DimensionType {
        /// Name of the dimension.
        name: String,
        /// Its type, as TileDB names it.
        datatype: String,
    },
    /// A dimension begins below 0 while its values are taken as positions.
    NegativeDomain {
        /// Name of the dimension.
        name: String,
    },
    /// Not exactly one attribute.
    AttributeCount {
        /// How many there are.
        n_attributes: u32,
    },
    /// The attribute has a variable number of values a cell, or more than one.
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
    /// A filter that is not implemented here, or not for that type.
    Filter {
        /// Its name, or its number where even the name is unknown.
        name: String,
        /// Which pipeline it is part of.
        of: String,
    },
    /// The array is encrypted.
    Encrypted,
    /// Cells were deleted by condition.
    DeleteConditions {
        /// The commit file that says so.
        commit: String,
    },
    /// Cells were updated by condition.
    UpdateConditions {
        /// The commit file that says so.
        commit: String,
    },
    /// A fragment carries delete times of its cells.
    DeleteMetadata {
        /// Name of the fragment.
        fragment: String,
    },
    /// A fragment was written under a schema whose dimensions or attribute differ from the array's.
    SchemaEvolution {
        /// Name of the fragment.
        fragment: String,
        /// What differs.
        what: String,
    },
    /// Of more than 16 fragments, some of one time overlap, and which of two cells counts depends
    /// on how libtiledb happens to order them.
    TiedFragments {
        /// The time, in milliseconds since 1970.
        time: u64,
    },
    /// Columns go beyond what a u32 can number.
    ColumnsTooWide {
        /// The highest column that holds a cell.
        last: u64,
    },
    /// Cells do not stand row by row: the orders differ, or tiles have fewer columns than the array. Of a writer.
    NotByRow,
    /// Tiles of more cells than this crate is ready to hold in memory.
    TileTooLarge {
        /// Cells of a tile.
        capacity: u64,
    },
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dense => write!(f, "it is a dense array"),
            Self::FormatVersion { version } => {
                write!(f, "format version {version} is not one of 5 to 23")
            }
            Self::DimensionCount { n_dimensions } => {
                write!(f, "it has {n_dimensions} dimensions, not 2")
            }
            Self::DimensionType { name, datatype } => {
                write!(f, "dimension `{name}` is of type {datatype}")
            }
            Self::NegativeDomain { name } => {
                write!(f, "the domain of dimension `{name}` begins below 0")
            }
            Self::AttributeCount { n_attributes } => {
                write!(f, "it has {n_attributes} attributes, not 1")
            }
            Self::ValuesPerCell { name } => {
                write!(f, "attribute `{name}` does not have exactly one value a cell")
            }
            Self::Nullable { name } => write!(f, "attribute `{name}` is nullable"),
            Self::AttributeType { name, datatype } => {
                write!(f, "attribute `{name}` is of type {datatype}")
            }
            Self::Filter { name, of } => write!(f, "the filters of `{of}` include {name}"),
            Self::Encrypted => write!(f, "it is encrypted"),
            Self::DeleteConditions { commit } => {
                write!(f, "cells were deleted by condition ({commit})")
            }
            Self::UpdateConditions { commit } => {
                write!(f, "cells were updated by condition ({commit})")
            }
            Self::DeleteMetadata { fragment } => {
                write!(f, "fragment {fragment} carries the delete times of its cells")
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
            Self::ColumnsTooWide { last } => write!(f, "column {last} does not fit 32 bits"),
            Self::NotByRow => write!(f, "its cells do not stand row by row"),
            Self::TileTooLarge { capacity } => {
                write!(f, "its tiles have {capacity} cells, more than 67,108,864")
            }
        }
    }
}
