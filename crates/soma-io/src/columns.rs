//! Names of SOMA's columns, and Arrow tables for pieces of X.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema};

use crate::Error;

/// The column that numbers the rows of a data frame.
pub(crate) const JOINID: &str = "soma_joinid";
/// The dimension of X for joinids of cells.
pub(crate) const DIM_0: &str = "soma_dim_0";
/// The dimension of X for joinids of genes.
pub(crate) const DIM_1: &str = "soma_dim_1";
/// The attribute of X.
pub(crate) const DATA: &str = "soma_data";

/// Makes a piece of X: joinids of cells and genes, and values.
pub(crate) fn coo_batch(
    uri: &str,
    cells: Int64Array,
    genes: Int64Array,
    values: ArrayRef,
) -> Result<RecordBatch, Error> {
    let schema = Schema::new(vec![
        Field::new(DIM_0, DataType::Int64, false),
        Field::new(DIM_1, DataType::Int64, false),
        Field::new(DATA, values.data_type().clone(), false),
    ]);
    RecordBatch::try_new(Arc::new(schema), vec![Arc::new(cells), Arc::new(genes), values])
        .map_err(|source| Error::Arrow { uri: uri.to_owned(), what: "a piece".into(), source })
}
