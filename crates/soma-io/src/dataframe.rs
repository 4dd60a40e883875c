//! Data frames: obs and var, read as Arrow record batches.

use arrow_array::cast::AsArray as _;
use arrow_array::types::Int64Type;
use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_buffer::BooleanBuffer;
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};

use crate::collected::CollectedColumn;
use crate::columns::JOINID;
use crate::soma_object::Place;
use crate::soma_table::SomaTable;
use crate::table::Table;
use crate::{ColumnKind, ColumnSpec, Error, RowRanges};

/// Chooses rows of a batch: from its joinids and its tested columns to the rows that are kept, or
/// `None` for all.
pub(crate) type Choose<'a> =
    dyn FnMut(&[i64], &RecordBatch) -> Result<Option<BooleanBuffer>, Error> + 'a;

/// A data frame whose rows have a `soma_joinid`: a `SOMADataFrame`, or a table of an AnnData.
///
/// A read of a `SOMADataFrame` that is indexed by other columns than `soma_joinid` alone takes the
/// memory of its columns for all rows.
///
/// Columns have the same Arrow types as in tiledbsoma: texts are `LargeUtf8`, booleans `Boolean`,
/// and categories are dictionaries.
#[derive(Debug)]
pub struct DataFrame {
    table: Box<dyn Table>,
    uri: String,
}

impl DataFrame {
    pub(crate) fn open(place: &Place) -> Result<Self, Error> {
        Ok(Self::new(SomaTable::open(place)?, place.uri.clone()))
    }

    /// The data frame of a table at `uri`.
    pub(crate) fn new(table: impl Table + 'static, uri: String) -> Self {
        Self { table: Box::new(table), uri }
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
        self.table.schema()
    }

    /// The least and the greatest written joinid; `None` if no row was written.
    pub fn joinid_bounds(&self) -> Result<Option<(u64, u64)>, Error> {
        self.table.joinid_bounds()
    }

    /// The columns except `soma_joinid`, in the form that an
    /// [`ExperimentWriter`](crate::ExperimentWriter) takes to make a data frame with the same
    /// schema. Categories keep all their values.
    pub fn column_specs(&self) -> Result<Vec<ColumnSpec>, Error> {
        let fields = self.schema().fields().iter().filter(|field| field.name() != JOINID);
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
        match (field.data_type(), self.table.categories(field.name())?) {
            (DataType::Dictionary(codes, _), Some(values)) => {
                let ordered = field.dict_is_ordered().unwrap_or(false);
                Ok(ColumnKind::Dictionary { codes: codes.as_ref().clone(), values, ordered })
            }
            (data_type, _) => ColumnKind::for_data_type(data_type)
                .ok_or_else(|| failed(format!("values of type {data_type} have no kind here"))),
        }
    }

    /// Number of written rows. If the array allows duplicates, rows written twice count twice.
    pub fn n_rows(&self) -> Result<u64, Error> {
        self.table.n_rows()
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
            rows.check_within(self.uri(), self.table.extent())?;
        }
        let wanted = schema.fields().iter().map(|field| field.name().as_str());
        // The joinid is always read: it counts the rows if no other column is selected.
        let mut names = vec![JOINID];
        for name in wanted.chain(tested.iter().copied()) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let place = |name: &str| names.iter().position(|known| *known == name);
        let tested: Vec<usize> = tested.iter().filter_map(|name| place(name)).collect();
        let collected = schema.fields().iter().map(|field| (place(field.name()), field));
        let mut collected: Vec<(usize, CollectedColumn)> = collected
            .filter_map(|(place, field)| Some((place?, CollectedColumn::new(field))))
            .collect();
        let mut n_rows = 0;
        let mut each = |batch: &RecordBatch| -> Result<(), Error> {
            let of_test = batch.project(&tested).map_err(|source| self.not_arrow(source))?;
            let joinids = batch.column(0).as_primitive_opt::<Int64Type>();
            let keep = choose(joinids.map_or(&[][..], |joinids| joinids.values()), &of_test)?;
            n_rows += keep.as_ref().map_or_else(|| batch.num_rows(), BooleanBuffer::count_set_bits);
            for (place, column) in &mut collected {
                let appended = column.append(batch.column(*place), keep.as_ref());
                appended.map_err(|what| Error::broken_column(&self.uri, names[*place], what))?;
            }
            Ok(())
        };
        // A read of no range would be one of all rows.
        if rows.is_none_or(|rows| rows.n_rows() > 0) {
            let ranges = rows.map(RowRanges::inclusive).unwrap_or_default();
            self.table.read_each(&names, &ranges, &mut each)?;
        }
        let arrays = collected.into_iter().map(|(_, column)| {
            let categories = |name: &str| self.table.categories(name);
            column.finish(&self.uri, &categories)
        });
        let arrays = arrays.collect::<Result<_, Error>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(n_rows));
        RecordBatch::try_new_with_options(schema.into(), arrays, &options)
            .map_err(|source| self.not_arrow(source))
    }

    fn not_arrow(&self, source: ArrowError) -> Error {
        Error::Arrow { uri: self.uri().to_owned(), what: "the columns".into(), source }
    }

    /// The columns with these names, each once; `None` means all.
    pub(crate) fn project(&self, columns: Option<&[&str]>) -> Result<Schema, Error> {
        let Some(columns) = columns else { return Ok(self.schema().as_ref().clone()) };
        let mut fields: Vec<Field> = Vec::with_capacity(columns.len());
        for name in columns {
            let field = self.schema().field_with_name(name).map_err(|_| self.no_column(name))?;
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
        let existing = self.schema().fields().iter().map(|field| field.name().clone()).collect();
        Error::NoColumn { uri: self.uri().to_owned(), name: name.to_owned(), existing }
    }

    /// The columns that are stored and cannot be read, each with the reason. SOMA has none.
    pub fn unread_columns(&self) -> Vec<(String, String)> {
        self.table.unread_columns()
    }
}
