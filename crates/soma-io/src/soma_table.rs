//! Tables of SOMA: arrays of TileDB, whose columns become Arrow arrays.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use arrow_array::cast::AsArray as _;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, RecordBatch, UInt32Array};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use arrow_select::concat::concat;
use arrow_select::take::take;
use tiledb::{Attribute, Datatype, Enumeration};

use crate::Error;
use crate::arrow::{column_array, enumeration_values, field};
use crate::columns::JOINID;
use crate::soma_object::{Place, StoredColumn, StoredTable, TableIndex, open_table};
use crate::table::Table;

/// Rows of a batch of a table that is not indexed by `soma_joinid` alone.
const BATCH_ROWS: usize = 1 << 16;

/// A `SOMADataFrame`.
///
/// If it is indexed by other columns than `soma_joinid` alone, the columns of a read are in memory
/// as a whole while its rows are brought into the order of their joinids.
#[derive(Debug)]
pub(crate) struct SomaTable {
    table: Box<dyn StoredTable>,
    index: TableIndex,
    /// The order of the rows, if they are not indexed by joinid; found when first needed.
    order: OnceLock<JoinidOrder>,
    uri: String,
    schema: SchemaRef,
    /// By column.
    enumerations: HashMap<String, Enumeration>,
}

/// The order of rows by joinid.
#[derive(Debug)]
struct JoinidOrder {
    /// Ascending.
    joinids: Vec<i64>,
    /// For each of them the place of its row in a read of all rows.
    places: Vec<u32>,
}

impl SomaTable {
    pub(crate) fn open(place: &Place) -> Result<Self, Error> {
        let uri = place.uri.clone();
        let mut index = TableIndex::Joinid;
        let table = open_table(place, "SOMADataFrame", |schema| {
            index = check_schema(schema, &uri)?;
            Ok(index)
        })?;
        let mut fields = vec![Field::new(JOINID, DataType::Int64, false)];
        let mut enumerations = HashMap::new();
        let dimensions = table.schema().dimensions.iter();
        for dimension in dimensions.filter(|dimension| dimension.name != JOINID) {
            fields.push(field(&Attribute::new(&dimension.name, dimension.datatype), None, &uri)?);
        }
        let attributes = table.schema().attributes.iter();
        for attribute in attributes.filter(|attribute| attribute.name != JOINID) {
            // The enumeration's name differs between versions of tiledbsoma, so it is read from the
            // attribute.
            let enumeration =
                attribute.enumeration.as_deref().map(|name| table.enumeration(name)).transpose()?;
            fields.push(field(attribute, enumeration.as_ref(), &uri)?);
            if let Some(enumeration) = enumeration {
                enumerations.insert(attribute.name.clone(), enumeration);
            }
        }
        let (schema, order) = (Arc::new(Schema::new(fields)), OnceLock::new());
        Ok(Self { table, index, order, uri, schema, enumerations })
    }

    /// The order of the rows by joinid.
    fn order(&self) -> Result<&JoinidOrder, Error> {
        if let Some(order) = self.order.get() {
            return Ok(order);
        }
        let mut found: Vec<i64> = Vec::new();
        self.read_stored(&[JOINID], &[], &mut |batch| {
            let joinids = batch.column(0).as_primitive_opt::<Int64Type>();
            found.extend(joinids.map_or(&[][..], |joinids| joinids.values()));
            Ok(())
        })?;
        let order = JoinidOrder::sort(&found);
        let order = order.map_err(|problem| Error::broken_column(&self.uri, JOINID, problem))?;
        // Two threads may both have found it; either result serves.
        Ok(self.order.get_or_init(|| order))
    }

    /// Reads columns of all rows, and hands those in `ranges` to `each` by ascending joinid.
    fn read_in_order(
        &self,
        names: &[&str],
        ranges: &[(i64, i64)],
        each: &mut dyn FnMut(&RecordBatch) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let order = self.order()?;
        let mut columns: Vec<Vec<ArrayRef>> = vec![Vec::new(); names.len()];
        let mut n_rows = 0;
        self.read_stored(names, &[], &mut |batch| {
            n_rows += batch.num_rows();
            columns
                .iter_mut()
                .zip(batch.columns())
                .for_each(|(all, one)| all.push(Arc::clone(one)));
            Ok(())
        })?;
        if n_rows != order.joinids.len() {
            let problem = format!("{n_rows} rows were read, and {} before", order.joinids.len());
            return Err(Error::broken_column(&self.uri, JOINID, problem));
        }
        if n_rows == 0 {
            return Ok(());
        }
        let whole = |parts: Vec<ArrayRef>| {
            let parts: Vec<&dyn Array> = parts.iter().map(AsRef::as_ref).collect();
            concat(&parts).map_err(|source| self.not_arrow(source))
        };
        let columns: Vec<ArrayRef> = columns.into_iter().map(whole).collect::<Result<_, _>>()?;
        let schema = Arc::new(self.project(names)?);
        for places in order.within(ranges).flat_map(|places| places.chunks(BATCH_ROWS)) {
            let places = UInt32Array::from(places.to_vec());
            let take = |column: &ArrayRef| {
                take(column, &places, None).map_err(|source| self.not_arrow(source))
            };
            let arrays = columns.iter().map(take).collect::<Result<_, _>>()?;
            let batch = RecordBatch::try_new(Arc::clone(&schema), arrays);
            each(&batch.map_err(|source| self.not_arrow(source))?)?;
        }
        Ok(())
    }

    /// Reads columns as the stored table gives them.
    fn read_stored(
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
        if self.index == TableIndex::Other {
            let joinids = &self.order()?.joinids;
            let bounds = joinids.first().zip(joinids.last());
            return Ok(bounds.map(|(first, last)| (*first as u64, *last as u64)));
        }
        let bounds = self.table.non_empty_domain()?;
        let bound = |joinid: i128| u64::try_from(joinid).unwrap_or(0);
        Ok(bounds.map(|bounds| (bound(bounds[0].0), bound(bounds[0].1))))
    }

    fn extent(&self) -> u64 {
        if self.index == TableIndex::Other {
            return 1 << 63;
        }
        let schema = self.table.schema();
        let bounds = schema.current_domain.as_ref().map(|bounds| bounds[0]);
        let last = bounds.or(schema.dimensions[0].domain).map_or(i128::MAX, |(_, last)| last);
        u64::try_from(last + 1).unwrap_or(0)
    }

    fn n_rows(&self) -> Result<u64, Error> {
        match self.index {
            TableIndex::Joinid => self.table.n_cells(),
            TableIndex::Other => Ok(self.order()?.joinids.len() as u64),
        }
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
        match self.index {
            TableIndex::Joinid => self.read_stored(names, ranges, each),
            TableIndex::Other => self.read_in_order(names, ranges, each),
        }
    }

    fn why_not_native(&self) -> Option<&str> {
        self.table.why_not_native()
    }
}

impl JoinidOrder {
    /// The order of rows with these joinids. Fails with the problem if two have the same, or one
    /// has none.
    fn sort(joinids: &[i64]) -> Result<Self, String> {
        let n_rows = u32::try_from(joinids.len())
            .map_err(|_| format!("{} rows are too many to be sorted", joinids.len()))?;
        let mut places: Vec<u32> = (0..n_rows).collect();
        places.sort_unstable_by_key(|place| joinids[*place as usize]);
        let joinids: Vec<i64> = places.iter().map(|place| joinids[*place as usize]).collect();
        if let Some([joinid, _]) = joinids.array_windows().find(|[joinid, next]| joinid == next) {
            return Err(format!("several rows have the joinid {joinid}"));
        }
        match joinids.first() {
            Some(first) if *first < 0 => Err(format!("{first} is below 0")),
            _ => Ok(Self { joinids, places }),
        }
    }

    /// The places of the rows in each range, both ends included; of all rows if there is no range.
    fn within<'a>(&'a self, ranges: &'a [(i64, i64)]) -> impl Iterator<Item = &'a [u32]> {
        let all = ranges.is_empty().then_some(self.places.as_slice());
        let in_range = move |(first, last): &(i64, i64)| {
            let start = self.joinids.partition_point(|joinid| joinid < first);
            let end = self.joinids.partition_point(|joinid| joinid <= last);
            &self.places[start..end.max(start)]
        };
        all.into_iter().chain(ranges.iter().map(in_range))
    }
}

/// How rows are found. Fails if they have no joinids.
fn check_schema(schema: &tiledb::Schema, uri: &str) -> Result<TableIndex, Error> {
    let mut dimensions = schema.dimensions.iter();
    let dimension = dimensions.find(|dimension| dimension.name == JOINID);
    if dimension.is_some_and(|dimension| dimension.datatype == Datatype::Int64) {
        let is_alone = schema.dimensions.len() == 1;
        return Ok(if is_alone { TableIndex::Joinid } else { TableIndex::Other });
    }
    let attribute = schema.attributes.iter().find(|attribute| attribute.name == JOINID);
    let is_joinid = |attribute: &Attribute| {
        attribute.datatype == Datatype::Int64
            && !attribute.var_sized
            && attribute.values_per_cell == 1
            && attribute.enumeration.is_none()
    };
    if dimension.is_none() && attribute.is_some_and(is_joinid) {
        return Ok(TableIndex::Other);
    }
    let problem = format!("it has no column {JOINID} of 64-bit integers, which number its rows");
    Err(Error::Schema { uri: uri.to_owned(), problem })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_found_by_their_joinids() {
        let order = JoinidOrder::sort(&[7, 2, 40, 3]).unwrap();
        let within = |ranges: &[(i64, i64)]| order.within(ranges).collect::<Vec<_>>().concat();
        assert_eq!(within(&[]), [1, 3, 0, 2]);
        assert_eq!(within(&[(0, 2), (4, 39)]), [1, 0]);
        assert_eq!(within(&[(50, 60)]), [0; 0]);
        assert_eq!(JoinidOrder::sort(&[5, 1, 5]).unwrap_err(), "several rows have the joinid 5");
        assert_eq!(JoinidOrder::sort(&[5, -1]).unwrap_err(), "-1 is below 0");
        assert!(JoinidOrder::sort(&[]).unwrap().joinids.is_empty());
    }
}
