//! Errors of opening and reading AnnData.

use std::io;
use std::ops::Range;

/// An error of opening or reading AnnData in Zarr.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The root is not an AnnData.
    #[error(
        "{place} is not an AnnData: its root is no group with `encoding-type: anndata`; what anndata before 0.7 wrote is to be written anew: anndata.read_h5ad(path).write_zarr(...)"
    )]
    NotAnnData {
        /// The storage.
        place: String,
    },

    /// The metadata of an element cannot be read.
    #[error("cannot read the metadata {file} in {place}")]
    Metadata {
        /// The storage.
        place: String,
        /// The file with the metadata.
        file: String,
        /// The cause.
        #[source]
        source: io::Error,
    },

    /// There is no such element.
    #[error("{place} has no element {element}")]
    Missing {
        /// The storage.
        place: String,
        /// Path of the group or array.
        element: String,
    },

    /// A table has no such column.
    #[error("the table {element} in {place} has no column `{column}`")]
    NoColumn {
        /// The storage.
        place: String,
        /// Path of the table.
        element: String,
        /// The requested column.
        column: String,
    },

    /// An element is of a kind that is not read.
    #[error("{element} in {place} cannot be read: {reason}")]
    Unsupported {
        /// The storage.
        place: String,
        /// Path of the group or array.
        element: String,
        /// What is not supported, and what to do about it.
        reason: String,
    },

    /// An element does not match the format.
    #[error("{element} in {place} is damaged: {what}")]
    Damaged {
        /// The storage.
        place: String,
        /// Path of the group or array.
        element: String,
        /// The finding.
        what: String,
    },

    /// Requested rows are beyond the element, overlap or do not ascend.
    #[error(
        "rows {rows:?} of {element} in {place} cannot be read: it has {n_rows} rows, and ranges ascend"
    )]
    Rows {
        /// The storage.
        place: String,
        /// Path of the element.
        element: String,
        /// The first range that does not fit.
        rows: Range<u64>,
        /// The number of rows.
        n_rows: u64,
    },

    /// An array cannot be opened or read.
    #[error(transparent)]
    Array(#[from] arrays::Error),
}
