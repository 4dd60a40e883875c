//! Data frames: obs and var, read as Arrow record batches.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use tiledb::{Array, Datatype, Enumeration, Layout, ReadQuery};

use crate::arrow::{GatheredColumn, field};
use crate::columns::JOINID;
use crate::soma_object::{Place, n_cells, open_array};
use crate::{ColumnKind, ColumnSpec, Error, RowRanges};

/// The initial buffer of each column of a read, in bytes.
const BUFFER_BYTES: usize = 1 << 22;

/// A `SOMADataFrame` whose rows are indexed by `soma_joinid`.
///
/// Columns have the same Arrow types as in tiledbsoma: texts are `LargeUtf8`, booleans `Boolean`,
/// and categories are dictionaries whose values come from the array's enumeration.
#[derive(Debug)]
pub struct DataFrame {
    array: Array,
    place: Place,
    schema: SchemaRef,
    enumerations: HashMap<String, Enumeration>,
}

impl DataFrame {
    pub(crate) fn open(place: Place) -> Result<Self, Error> {
        let (array, _) = open_array(&place, "SOMADataFrame")?;
        let uri = array.uri();
        let dimensions: Vec<_> =
            array.schema().dimensions.iter().map(|dimension| dimension.name.as_str()).collect();
        if dimensions != [JOINID] || array.schema().dimensions[0].datatype != Datatype::Int64 {
            let problem = format!(
                "it is indexed by {}; data frames indexed by {JOINID} can be read",
                dimensions.join(", ")
            );
            return Err(Error::Schema { uri: uri.to_owned(), problem });
        }
        let mut fields = vec![Field::new(JOINID, DataType::Int64, false)];
        let mut enumerations = HashMap::new();
        for attribute in &array.schema().attributes {
            // The enumeration's name differs between versions of tiledbsoma, so it is read from the
            // attribute.
            let enumeration =
                attribute.enumeration.as_deref().map(|name| array.enumeration(name)).transpose()?;
            fields.push(field(attribute, enumeration.as_ref(), uri)?);
            if let Some(enumeration) = enumeration {
                enumerations.insert(attribute.name.clone(), enumeration);
            }
        }
        Ok(Self { schema: Arc::new(Schema::new(fields)), array, place, enumerations })
    }

    /// The data frame's URI.
    pub fn uri(&self) -> &str {
        self.array.uri()
    }

    /// The columns, `soma_joinid` first.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The least and the greatest written joinid; `None` if no row was written.
    pub fn joinid_bounds(&self) -> Result<Option<(u64, u64)>, Error> {
        let bounds = self.array.non_empty_domain()?;
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
        n_cells(&self.place, &self.array)
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
        // The joinid is always read: it counts the rows if no other column is selected.
        let mut names = vec![JOINID];
        names.extend(
            schema
                .fields()
                .iter()
                .map(|field| field.name().as_str())
                .filter(|name| *name != JOINID),
        );
        let mut gathered: Vec<GatheredColumn> =
            names.iter().map(|name| self.gathering(name)).collect();
        let mut n_rows = 0;
        if !no_rows {
            let mut query =
                ReadQuery::new(&self.array, Layout::RowMajor, &[&ranges], &names, BUFFER_BYTES)?;
            while let Some(piece) = query.next_piece()? {
                n_rows += piece.n_cells();
                for (column_idx, column) in gathered.iter_mut().enumerate() {
                    column.extend(piece.column(column_idx));
                }
            }
        }
        let mut arrays = HashMap::new();
        for (name, column) in names.iter().zip(gathered) {
            if let Ok(field) = schema.field_with_name(name) {
                arrays
                    .insert(*name, column.finish(field, self.enumerations.get(*name), self.uri())?);
            }
        }
        let arrays = schema
            .fields()
            .iter()
            .filter_map(|field| arrays.remove(field.name().as_str()))
            .collect();
        let options = RecordBatchOptions::new().with_row_count(Some(n_rows));
        RecordBatch::try_new_with_options(Arc::new(schema), arrays, &options).map_err(|source| {
            Error::Arrow { uri: self.uri().to_owned(), what: "the columns".into(), source }
        })
    }

    /// The upper bound of joinids, exclusive.
    fn extent(&self) -> u64 {
        let schema = self.array.schema();
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

    fn gathering(&self, name: &str) -> GatheredColumn {
        let attribute =
            self.array.schema().attributes.iter().find(|attribute| attribute.name == name);
        GatheredColumn::new(
            attribute.is_some_and(|attribute| attribute.var_sized),
            attribute.is_some_and(|attribute| attribute.nullable),
        )
    }
}
