//! Data frames: obs and var, read as Arrow record batches.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use tiledb_schema::{Datatype, Enumeration};

use crate::arrow::{column_array, field};
use crate::columns::JOINID;
use crate::soma_object::{Place, StoredColumn, StoredTable, open_table};
use crate::{ColumnKind, ColumnSpec, Error, RowRanges};

/// A `SOMADataFrame` whose rows are indexed by `soma_joinid`.
///
/// Columns have the same Arrow types as in tiledbsoma: texts are `LargeUtf8`, booleans `Boolean`,
/// and categories are dictionaries whose values come from the array's enumeration.
#[derive(Debug)]
pub struct DataFrame {
    table: Box<dyn StoredTable>,
    uri: String,
    schema: SchemaRef,
    enumerations: HashMap<String, Enumeration>,
}

impl DataFrame {
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

    /// The data frame's URI.
    pub fn uri(&self) -> &str {
        &self.uri
    }

    /// The reason why libtiledb reads the data frame, or why it had to read a part of it, such as an
    /// enumeration; `None` if all was read natively.
    pub fn why_not_native(&self) -> Option<&str> {
        self.table.why_not_native()
    }

    /// The columns, `soma_joinid` first.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The least and the greatest written joinid; `None` if no row was written.
    pub fn joinid_bounds(&self) -> Result<Option<(u64, u64)>, Error> {
        let bounds = self.table.non_empty_domain()?;
        let bound = |joinid: i128| u64::try_from(joinid).unwrap_or(0);
        Ok(bounds.map(|bounds| (bound(bounds[0].0), bound(bounds[0].1))))
    }

    /// The columns except `soma_joinid`, in the form that an
    /// [`ExperimentWriter`](crate::ExperimentWriter) takes to make a data frame with the same
    /// schema. Categories keep all their values.
    pub fn column_specs(&self) -> Result<Vec<ColumnSpec>, Error> {
        let fields = self.schema.fields().iter().filter(|field| field.name() != JOINID);
        fields
            .map(|field| {
                let (name, nullable) = (field.name().clone(), field.is_nullable());
                Ok(ColumnSpec { kind: self.column_kind(field)?, name, nullable })
            })
            .collect()
    }

    fn column_kind(&self, field: &Field) -> Result<ColumnKind, Error> {
        let failed = |problem: String| Error::Uncopied {
            uri: self.uri().to_owned(),
            column: field.name().clone(),
            problem,
        };
        match (field.data_type(), self.enumerations.get(field.name())) {
            (DataType::Dictionary(codes, values), Some(enumeration)) => {
                let ordered = enumeration.ordered;
                let values = crate::arrow::enumeration_values(enumeration, values, &failed)?;
                Ok(ColumnKind::Dictionary { codes: codes.as_ref().clone(), values, ordered })
            }
            (data_type, _) => ColumnKind::of(data_type)
                .ok_or_else(|| failed(format!("values of type {data_type} have no kind here"))),
        }
    }

    /// Number of written rows. If the array allows duplicates, rows written twice count twice.
    pub fn n_rows(&self) -> Result<u64, Error> {
        self.table.n_cells()
    }

    /// Reads rows by ascending joinid; `None` means all. The result has `columns` in the given
    /// order; `None` means all. Rows that were never written are left out.
    ///
    /// # Errors
    /// A column does not exist; joinids lie beyond the data frame.
    pub fn read(
        &self,
        columns: Option<&[&str]>,
        rows: Option<&RowRanges>,
    ) -> Result<RecordBatch, Error> {
        let schema = self.project(columns)?;
        if let Some(rows) = rows {
            rows.check_within(self.uri(), self.extent())?;
        }
        let no_rows = rows.is_some_and(|rows| rows.n_rows() == 0);
        let ranges = rows.map(RowRanges::inclusive).unwrap_or_default();
        let mut names: Vec<&str> =
            schema.fields().iter().map(|field| field.name().as_str()).collect();
        // It counts the rows if no column is selected.
        if names.is_empty() {
            names.push(JOINID);
        }
        let columns = if no_rows {
            names.iter().map(|name| self.no_values(name)).collect()
        } else {
            self.table.read(&names, &ranges)?
        };
        let n_joinids = columns.first().map_or(0, |joinids| joinids.bytes.len() / size_of::<i64>());
        let arrays = schema.fields().iter().zip(columns).map(|(field, column)| {
            column_array(column, field, self.enumerations.get(field.name()), &self.uri)
        });
        let arrays: Vec<_> = arrays.collect::<Result<_, _>>()?;
        let n_rows = arrays.first().map_or(n_joinids, |array| array.len());
        let options = RecordBatchOptions::new().with_row_count(Some(n_rows));
        RecordBatch::try_new_with_options(Arc::new(schema), arrays, &options).map_err(|source| {
            Error::Arrow { uri: self.uri().to_owned(), what: "the columns".into(), source }
        })
    }

    /// The upper bound of joinids, exclusive.
    fn extent(&self) -> u64 {
        let schema = self.table.schema();
        let bounds = schema.current_domain.as_ref().map(|bounds| bounds[0]);
        let last = bounds.or(schema.dimensions[0].domain).map_or(i128::MAX, |(_, last)| last);
        u64::try_from(last + 1).unwrap_or(0)
    }

    fn project(&self, columns: Option<&[&str]>) -> Result<Schema, Error> {
        let Some(columns) = columns else { return Ok(self.schema.as_ref().clone()) };
        let mut fields: Vec<Field> = Vec::with_capacity(columns.len());
        for name in columns {
            let field = self.schema.field_with_name(name).map_err(|_| Error::NoColumn {
                uri: self.uri().to_owned(),
                name: (*name).to_owned(),
                existing: self.schema.fields().iter().map(|field| field.name().clone()).collect(),
            })?;
            if !fields.iter().any(|chosen| chosen.name() == name) {
                fields.push(field.clone());
            }
        }
        Ok(Schema::new(fields))
    }

    /// A column without rows.
    fn no_values(&self, name: &str) -> StoredColumn {
        let attributes = &self.table.schema().attributes;
        let attribute = attributes.iter().find(|attribute| attribute.name == name);
        StoredColumn {
            bytes: Vec::new(),
            offsets: attribute.filter(|attribute| attribute.var_sized).map(|_| vec![0]),
            validity: attribute.filter(|attribute| attribute.nullable).map(|_| Vec::new()),
        }
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
