//! What a data frame reads: rows by joinid, as Arrow record batches.

use std::fmt::Debug;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::SchemaRef;

use crate::Error;

/// A stored table whose rows are indexed by `soma_joinid`.
pub(crate) trait Table: Debug + Send + Sync {
    /// The columns that are read, `soma_joinid` first.
    fn schema(&self) -> &SchemaRef;

    /// The least and the greatest written joinid; `None` if no row was written.
    fn joinid_bounds(&self) -> Result<Option<(u64, u64)>, Error>;

    /// The upper bound of joinids, exclusive.
    fn extent(&self) -> u64;

    /// Number of rows that a read returns.
    fn n_rows(&self) -> Result<u64, Error>;

    /// All categories of a column; `None` if it is not categorical.
    fn categories(&self, column: &str) -> Result<Option<ArrayRef>, Error>;

    /// Reads columns, `soma_joinid` among them, of the rows in `ranges` (both ends included; all
    /// rows if there is no range), by ascending joinid. `each` gets a batch of rows at a time; its
    /// first error ends the read.
    fn read_each(
        &self,
        names: &[&str],
        ranges: &[(i64, i64)],
        each: &mut dyn FnMut(&RecordBatch) -> Result<(), Error>,
    ) -> Result<(), Error>;

    /// The reason why libtiledb reads the table or a part of it; `None` if it does not.
    fn why_not_native(&self) -> Option<&str> {
        None
    }

    /// Columns that are stored and cannot be read, each with the reason.
    fn unread_columns(&self) -> Vec<(String, String)> {
        Vec::new()
    }
}
