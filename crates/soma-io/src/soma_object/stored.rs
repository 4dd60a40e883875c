//! Arrays and tables, as a way of reading them sees them.

use std::fmt::Debug;

use tiledb::{Enumeration, MetadataValue, Schema};

use crate::Error;

/// The facts about an array that need no read of its cells, and the number of cells.
pub(crate) trait StoredArray: Debug + Send + Sync {
    fn schema(&self) -> &Schema;

    fn metadata(&self) -> Result<Vec<(String, MetadataValue)>, Error>;

    fn enumeration(&self, name: &str) -> Result<Enumeration, Error>;

    /// For each dimension the least and the greatest written coordinate, both included; `None` if
    /// nothing was written.
    fn non_empty_domain(&self) -> Result<Option<Vec<(i128, i128)>>, Error>;

    /// Number of cells that a read returns.
    fn n_cells(&self) -> Result<u64, Error>;

    /// The reason why libtiledb reads the array, or read a part of it so far; `None` if all is read
    /// natively.
    fn why_not_native(&self) -> Option<&str>;
}

/// A table: an array whose columns can be read.
pub(crate) trait StoredTable: StoredArray {
    /// Reads columns by name, the dimension's among them, of the cells in `ranges` (both ends
    /// included; all cells if there is no range), by ascending coordinate; without ranges, and in
    /// any order, if it is not indexed by one integer dimension alone. `each` gets the columns
    /// of a batch of cells at a time; its first error ends the read.
    fn read_each(
        &self,
        names: &[&str],
        ranges: &[(i64, i64)],
        each: &mut dyn FnMut(Vec<StoredColumn>) -> Result<(), Error>,
    ) -> Result<(), Error>;
}

/// The values of a column.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct StoredColumn {
    pub(crate) bytes: Vec<u8>,
    /// Start of each cell of a var-sized column, followed by the total number of bytes.
    pub(crate) offsets: Option<Vec<i64>>,
    /// Whether each cell of a nullable column has a value.
    pub(crate) validity: Option<Vec<bool>>,
}
