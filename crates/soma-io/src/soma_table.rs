//! Tables of SOMA: arrays of TileDB, whose columns become Arrow arrays.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use tiledb_schema::{Datatype, Enumeration};

use crate::Error;
use crate::arrow::{column_array, enumeration_values, field};
use crate::columns::JOINID;
use crate::soma_object::{Place, StoredColumn, StoredTable, open_table};
use crate::table::Table;

/// A `SOMADataFrame` that is indexed by `soma_joinid` alone.
#[derive(Debug)]
pub(crate) struct SomaTable {
    table: Box<dyn StoredTable>,
    uri: String,
    schema: SchemaRef,
    /// By column.
    enumerations: HashMap<String, Enumeration>,
}

impl SomaTable {
    pub(crate) fn open(place: &Place) -> Result<Self, Error> {
        let uri = place.uri.clone();
        let table = open_table(place, "SOMADataFrame", |schema| check_schema(schema, &uri))?;
        let mut fields = vec![Field::new(JOINID, DataType::Int64, false)];
        let mut enumerations = HashMap::new();
        for attribute in &table.schema().attributes {
            // The enumeration's name differs between versions of tiledbsoma, so it is read from the
            // attribute.
            let enumeration =
                attribute.enumeration.as_deref().map(|name| table.enumeration(name)).transpose()?;
            fields.push(field(attribute, enumeration.as_ref(), &uri)?);
            if let Some(enumeration) = enumeration {
                enumerations.insert(attribute.name.clone(), enumeration);
            }
        }
        Ok(Self { schema: Arc::new(Schema::new(fields)), table, uri, enumerations })
    }

    /// The columns with these names.
    fn project(&self, names: &[&str]) -> Result<Schema, Error> {
        let field = |name: &&str| self.schema.field_with_name(name).cloned();
        let fields = names.iter().map(field).collect::<Result<Vec<_>, _>>();
        fields.map(Schema::new).map_err(|source| self.not_arrow(source))
    }

    fn not_arrow(&self, source: arrow_schema::ArrowError) -> Error {
        Error::Arrow { uri: self.uri.clone(), what: "the columns".into(), source }
    }
}

impl Table for SomaTable {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn joinid_bounds(&self) -> Result<Option<(u64, u64)>, Error> {
        let bounds = self.table.non_empty_domain()?;
        let bound = |joinid: i128| u64::try_from(joinid).unwrap_or(0);
        Ok(bounds.map(|bounds| (bound(bounds[0].0), bound(bounds[0].1))))
    }

    fn extent(&self) -> u64 {
        let schema = self.table.schema();
        let bounds = schema.current_domain.as_ref().map(|bounds| bounds[0]);
        let last = bounds.or(schema.dimensions[0].domain).map_or(i128::MAX, |(_, last)| last);
        u64::try_from(last + 1).unwrap_or(0)
    }

    fn n_rows(&self) -> Result<u64, Error> {
        self.table.n_cells()
    }

    fn categories(&self, column: &str) -> Result<Option<ArrayRef>, Error> {
        let (Some(enumeration), Ok(field)) =
            (self.enumerations.get(column), self.schema.field_with_name(column))
        else {
            return Ok(None);
        };
        let DataType::Dictionary(_, values) = field.data_type() else { return Ok(None) };
        let failed = |problem| Error::broken_column(&self.uri, column, problem);
        enumeration_values(enumeration, values, &failed).map(Some)
    }

    fn read_each(
        &self,
        names: &[&str],
        ranges: &[(i64, i64)],
        each: &mut dyn FnMut(&RecordBatch) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let schema = Arc::new(self.project(names)?);
        // Made once for all batches.
        let categories = names.iter().map(|name| self.categories(name));
        let categories: Vec<Option<ArrayRef>> = categories.collect::<Result<_, _>>()?;
        self.table.read_each(names, ranges, &mut |columns: Vec<StoredColumn>| {
            let columns = columns.into_iter().zip(schema.fields()).zip(&categories);
            let arrays = columns.map(|((column, field), categories)| {
                column_array(column.into(), field, categories.as_ref(), &self.uri)
            });
            let arrays = arrays.collect::<Result<_, _>>()?;
            let batch = RecordBatch::try_new(Arc::clone(&schema), arrays);
            each(&batch.map_err(|source| self.not_arrow(source))?)
        })
    }

    fn why_not_native(&self) -> Option<&str> {
        self.table.why_not_native()
    }
}

/// Fails unless rows are indexed by joinid alone.
fn check_schema(schema: &tiledb_schema::Schema, uri: &str) -> Result<(), Error> {
    let dimensions: Vec<_> =
        schema.dimensions.iter().map(|dimension| dimension.name.as_str()).collect();
    if dimensions != [JOINID] || schema.dimensions[0].datatype != Datatype::Int64 {
        let problem = format!(
            "it is indexed by {}; data frames indexed by {JOINID} can be read",
            dimensions.join(", ")
        );
        return Err(Error::Schema { uri: uri.to_owned(), problem });
    }
    Ok(())
}
