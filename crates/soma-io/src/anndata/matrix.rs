//! Matrices of an AnnData, and what they have in common with arrays of SOMA.

use std::sync::Arc;

use ::anndata::Matrix;
use arrow_schema::DataType;
use tiledb_schema::{
    ArrayType, Attribute, CellOrder, Datatype, Dimension, Enumeration, MetadataValue, Schema,
};

use crate::Error;
use crate::columns::{DATA, DIM_0, DIM_1};
use crate::soma_object::StoredArray;

/// A matrix, described as an array of SOMA.
#[derive(Debug)]
pub(super) struct StoredMatrix {
    matrix: Arc<Matrix>,
    schema: Schema,
}

impl StoredMatrix {
    pub(super) fn new(matrix: &Arc<Matrix>) -> Self {
        // Every type of numbers that is read has one.
        let datatype = datatype(matrix.value_type()).unwrap_or(Datatype::Float32);
        let (dimensions, (n_rows, n_columns)) = ([DIM_0, DIM_1].map(dimension), matrix.shape());
        let attributes = vec![Attribute::new(DATA, datatype)];
        let schema = schema(dimensions.into(), attributes, &[n_rows, n_columns]);
        Self { matrix: Arc::clone(matrix), schema }
    }
}

impl StoredArray for StoredMatrix {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn metadata(&self) -> Result<Vec<(String, MetadataValue)>, Error> {
        Ok(Vec::new())
    }

    fn enumeration(&self, name: &str) -> Result<Enumeration, Error> {
        Err(Error::Missing { uri: name.to_owned() })
    }

    fn non_empty_domain(&self) -> Result<Option<Vec<(i128, i128)>>, Error> {
        Ok(non_empty(&self.schema))
    }

    /// Of a dense matrix all places.
    fn n_cells(&self) -> Result<u64, Error> {
        let (n_rows, n_columns) = self.matrix.shape();
        Ok(self.matrix.nnz().unwrap_or_else(|| n_rows.saturating_mul(n_columns)))
    }

    fn why_not_native(&self) -> Option<&str> {
        None
    }
}

/// TileDB's type for values, the narrowest that has all of them; `None` if there is none.
pub(super) fn datatype(data_type: &DataType) -> Option<Datatype> {
    Some(match data_type {
        DataType::Boolean => Datatype::Bool,
        DataType::Int8 => Datatype::Int8,
        DataType::Int16 => Datatype::Int16,
        DataType::Int32 => Datatype::Int32,
        DataType::Int64 => Datatype::Int64,
        DataType::UInt8 => Datatype::UInt8,
        DataType::UInt16 => Datatype::UInt16,
        DataType::UInt32 => Datatype::UInt32,
        DataType::UInt64 => Datatype::UInt64,
        DataType::Float16 | DataType::Float32 => Datatype::Float32,
        DataType::Float64 => Datatype::Float64,
        DataType::LargeUtf8 => Datatype::StringUtf8,
        _ => return None,
    })
}

pub(super) fn dimension(name: &str) -> Dimension {
    let (domain, filters) = (Some((0, i64::MAX.into())), Vec::new());
    let name = name.to_owned();
    Dimension { name, datatype: Datatype::Int64, domain, tile_extent: None, filters }
}

/// The schema of a sparse array whose coordinates end before `shape`.
pub(super) fn schema(
    dimensions: Vec<Dimension>,
    attributes: Vec<Attribute>,
    shape: &[u64],
) -> Schema {
    Schema {
        array_type: ArrayType::Sparse,
        dimensions,
        attributes,
        tile_order: CellOrder::RowMajor,
        cell_order: CellOrder::RowMajor,
        capacity: 0,
        allows_duplicates: false,
        offsets_filters: Vec::new(),
        coords_filters: Vec::new(),
        validity_filters: Vec::new(),
        current_domain: Some(shape.iter().map(|len| (0, i128::from(*len) - 1)).collect()),
        enumerations: Vec::new(),
    }
}

/// The bounds of all coordinates, unless there is none.
pub(super) fn non_empty(schema: &Schema) -> Option<Vec<(i128, i128)>> {
    schema.current_domain.clone().filter(|bounds| bounds.iter().all(|(_, last)| 0 <= *last))
}
