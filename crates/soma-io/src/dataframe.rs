//! Data frames: obs and var, read as Arrow record batches.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_buffer::BooleanBuffer;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use tiledb_schema::{Attribute, Datatype, Enumeration};

use crate::arrow::{column_array, field};
use crate::collected::CollectedColumn;
use crate::columns::JOINID;
use crate::soma_object::{Place, StoredColumn, StoredTable, open_table};
use crate::{ColumnKind, ColumnSpec, Error, RowRanges};

/// Chooses rows of a batch: from its joinids and its tested columns to the rows that are kept, or
/// `None` for all.
pub(crate) type Choose<'a> =
    dyn FnMut(&[i64], &RecordBatch) -> Result<Option<BooleanBuffer>, Error> + 'a;

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
        Self::of_table(table, uri)
    }

    /// The data frame of a table at `uri`, which is indexed by joinid alone.
    pub(crate) fn of_table(table: Box<dyn StoredTable>, uri: String) -> Result<Self, Error> {
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

    /// The reason why libtiledb reads the data frame, or why it had to read a part of it, such as
    /// an enumeration; `None` if all was read natively.
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
        self.collect(schema, rows, &[], &mut |_, _| Ok(None))
    }

    /// Reads `rows` batch by batch, and collects the columns of `schema` of those that `choose`
    /// keeps; `None` keeps all. `choose` gets the joinids of a batch and its columns `tested`.
    ///
    /// Takes the memory of the result, and that of one batch.
    pub(crate) fn collect(
        &self,
        schema: Schema,
        rows: Option<&RowRanges>,
        tested: &[&str],
        choose: &mut Choose<'_>,
    ) -> Result<RecordBatch, Error> {
        if let Some(rows) = rows {
            rows.check_within(self.uri(), self.extent())?;
        }
        let wanted = schema.fields().iter().map(|field| field.name().as_str());
        // The joinid is always read: it counts the rows if no other column is selected.
        let mut names = vec![JOINID];
        for name in wanted.chain(tested.iter().copied()) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let categories = self.categories(&names)?;
        let mut collected: Vec<Option<CollectedColumn>> = names
            .iter()
            .map(|name| {
                let is_wanted = schema.index_of(name).is_ok();
                is_wanted.then(|| CollectedColumn::new(self.attribute(name)))
            })
            .collect();
        let tested = self.project(Some(tested))?;
        let mut n_rows = 0;
        let mut each = |columns: Vec<StoredColumn>| -> Result<(), Error> {
            let joinids: Vec<i64> = columns.first().map_or_else(Vec::new, joinids);
            let n_of_batch = joinids.len();
            let of_test = self.tested(&tested, &names, &columns, (&categories, n_of_batch))?;
            let keep = choose(&joinids, &of_test)?;
            n_rows += keep.as_ref().map_or(n_of_batch, BooleanBuffer::count_set_bits);
            for ((collected, column), name) in collected.iter_mut().zip(&columns).zip(&names) {
                let Some(collected) = collected else { continue };
                let appended = collected.append(column, n_of_batch, keep.as_ref());
                appended.map_err(|problem| Error::broken_column(&self.uri, name, problem))?;
            }
            Ok(())
        };
        // A read of no range would be one of all rows.
        if rows.is_none_or(|rows| rows.n_rows() > 0) {
            let ranges = rows.map(RowRanges::inclusive).unwrap_or_default();
            self.table.read_each(&names, &ranges, &mut each)?;
        }
        let mut arrays = HashMap::new();
        for (name, column) in names.iter().zip(collected) {
            if let (Some(column), Ok(field)) = (column, schema.field_with_name(name)) {
                let categories = categories.get(name);
                let array = column_array(column.finish(), field, categories, &self.uri)?;
                arrays.insert(*name, array);
            }
        }
        let arrays = schema
            .fields()
            .iter()
            .filter_map(|field| arrays.remove(field.name().as_str()))
            .collect();
        self.batch(schema.into(), arrays, n_rows)
    }

    /// The columns of `schema` of one batch, which are among those with these names.
    fn tested(
        &self,
        schema: &Schema,
        names: &[&str],
        columns: &[StoredColumn],
        (categories, n_rows): (&HashMap<&str, ArrayRef>, usize),
    ) -> Result<RecordBatch, Error> {
        let mut arrays = Vec::with_capacity(schema.fields().len());
        for field in schema.fields() {
            let name = field.name().as_str();
            let column = names.iter().position(|known| *known == name);
            if let Some(column) = column.and_then(|idx| columns.get(idx)) {
                let categories = categories.get(name);
                arrays.push(column_array(column.clone().into(), field, categories, &self.uri)?);
            }
        }
        self.batch(Arc::new(schema.clone()), arrays, n_rows)
    }

    fn batch(
        &self,
        schema: SchemaRef,
        arrays: Vec<ArrayRef>,
        n_rows: usize,
    ) -> Result<RecordBatch, Error> {
        let options = RecordBatchOptions::new().with_row_count(Some(n_rows));
        RecordBatch::try_new_with_options(schema, arrays, &options).map_err(|source| Error::Arrow {
            uri: self.uri().to_owned(),
            what: "the columns".into(),
            source,
        })
    }

    /// The values of the enumerations of columns, made once for all batches.
    fn categories<'a>(&self, names: &[&'a str]) -> Result<HashMap<&'a str, ArrayRef>, Error> {
        let mut categories = HashMap::new();
        for name in names {
            let (Some(enumeration), Ok(field)) =
                (self.enumerations.get(*name), self.schema.field_with_name(name))
            else {
                continue;
            };
            if let DataType::Dictionary(_, values) = field.data_type() {
                let failed = |problem| Error::broken_column(&self.uri, name, problem);
                let values = crate::arrow::enumeration_values(enumeration, values, &failed)?;
                categories.insert(*name, values);
            }
        }
        Ok(categories)
    }

    /// The upper bound of joinids, exclusive.
    fn extent(&self) -> u64 {
        let schema = self.table.schema();
        let bounds = schema.current_domain.as_ref().map(|bounds| bounds[0]);
        let last = bounds.or(schema.dimensions[0].domain).map_or(i128::MAX, |(_, last)| last);
        u64::try_from(last + 1).unwrap_or(0)
    }

    /// The columns with these names, each once; `None` means all.
    pub(crate) fn project(&self, columns: Option<&[&str]>) -> Result<Schema, Error> {
        let Some(columns) = columns else { return Ok(self.schema.as_ref().clone()) };
        let mut fields: Vec<Field> = Vec::with_capacity(columns.len());
        for name in columns {
            let field = self.schema.field_with_name(name).map_err(|_| self.no_column(name))?;
            if !fields.iter().any(|chosen| chosen.name() == name) {
                fields.push(field.clone());
            }
        }
        Ok(Schema::new(fields))
    }

    /// The error for a column that does not exist, or that exists and cannot be read.
    pub(crate) fn no_column(&self, name: &str) -> Error {
        let unread = self.unread_columns().into_iter().find(|(unread, _)| unread == name);
        if let Some((_, reason)) = unread {
            return Error::broken_column(self.uri(), name, reason);
        }
        let existing = self.schema.fields().iter().map(|field| field.name().clone()).collect();
        Error::NoColumn { uri: self.uri().to_owned(), name: name.to_owned(), existing }
    }

    /// The columns that are stored and cannot be read, each with the reason. SOMA has none.
    pub fn unread_columns(&self) -> Vec<(String, String)> {
        self.table.unread_columns()
    }

    /// The attribute of a column; `None` for the joinid.
    fn attribute(&self, name: &str) -> Option<&Attribute> {
        self.table.schema().attributes.iter().find(|attribute| attribute.name == name)
    }
}

/// The joinids of a column.
fn joinids(column: &StoredColumn) -> Vec<i64> {
    column.bytes.as_chunks::<8>().0.iter().map(|bytes| i64::from_le_bytes(*bytes)).collect()
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
