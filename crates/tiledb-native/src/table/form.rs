//! How the fields of a table are stored in fragments with one schema and format version.

use crate::datatype::{Datatype, Number};
use crate::filter::texts::{TextPipeline, bind_texts};
use crate::filter::{Filter, Pipeline};
use crate::fragment::{DELETE_TIMES_STEM, TIMES_STEM, file_stem};
use crate::schema::{self, Attribute, Dimension, MAX_CAPACITY, Schema, VARIABLE};
use crate::unsupported::Unsupported;

/// The fields of a table in one kind of fragment.
#[derive(Debug)]
pub(super) struct Form {
    pub(super) capacity: u64,
    /// The dimension, and how its coordinates are stored, if rows are found by them.
    pub(super) position: Option<(Dimension, Number)>,
    /// Index of a field of fixed size that all cells have, whose tiles show how many there are.
    pub(super) counting: usize,
    /// The dimensions, the attributes of the table in its order, the times of cells, and the times
    /// at which they were deleted; `None` for attributes that the fragment's schema does not have.
    pub(super) fields: Vec<Option<StoredField>>,
    /// Indices of the fields whose name the fragment's schema has with another type.
    pub(super) other_types: Vec<usize>,
}

/// How the rows of a table are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Indexing {
    /// By the coordinates of its only dimension, positions that are not negative.
    ByPosition,
    /// Not at all: all rows are read, in the order in which they are stored.
    AsStored,
}

/// How one field is stored.
#[derive(Debug)]
pub(super) struct StoredField {
    pub(super) name: String,
    /// Its place in the lists of the footer.
    pub(super) file: FileNumber,
    /// The names of its files without their endings.
    pub(super) stem: String,
    pub(super) kind: FieldKind,
    /// Bytes of one value of the datatype.
    pub(super) value_bytes: usize,
    /// The filters of values, or of offsets if the field is var-sized.
    pub(super) main: Pipeline,
    /// The filters of values, if the field is var-sized.
    pub(super) var: Option<VarFilters>,
    /// The filters of validity, if the field is nullable.
    pub(super) validity: Option<Pipeline>,
}

/// The filters of var-sized values.
#[derive(Debug)]
pub(super) enum VarFilters {
    /// Filters of values alone; offsets have their own.
    Values(Pipeline),
    /// Filters of texts with their offsets.
    Texts(TextPipeline),
}

/// The place of a field in the lists of a footer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileNumber {
    Dimension(usize),
    Attribute(usize),
    Times,
    DeleteTimes,
}

/// The size of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FieldKind {
    /// This many bytes.
    Fixed(usize),
    VarSized,
}

/// Index of the dimension among the fields of a form, if rows are found by it.
pub(super) const DIMENSION: usize = 0;
/// Bytes of a stored offset.
pub(super) const OFFSET_BYTES: usize = 8;

impl Form {
    /// The form of fragments of format `version` with the schema `stored`, for a table that is
    /// opened with the schema `table`.
    pub(super) fn from_schemas(
        table: &Schema,
        stored: &Schema,
        version: u32,
        indexing: Indexing,
    ) -> Result<Self, Unsupported> {
        if stored.is_dense {
            return Err(Unsupported::Dense);
        }
        let n_dimensions = stored.dimensions.len() as u32;
        let position = match (indexing, stored.dimensions.as_slice()) {
            (Indexing::ByPosition, [dimension]) => {
                Some((dimension.clone(), coordinate_number(dimension)?))
            }
            (Indexing::AsStored, [_, ..]) => None,
            _ => return Err(Unsupported::DimensionCount { n_dimensions }),
        };
        if stored.capacity > MAX_CAPACITY || stored.capacity == 0 {
            return Err(Unsupported::TileTooLarge { capacity: stored.capacity });
        }
        let dimensions = 0..stored.dimensions.len();
        let dimensions = dimensions.map(|idx| dimension_field(stored, idx, version).map(Some));
        let mut fields = dimensions.collect::<Result<Vec<_>, _>>()?;
        let mut other_types = Vec::new();
        for attribute in &table.attributes {
            let found = stored.attributes.iter().position(|other| other.name == attribute.name);
            let is_same = |idx: &usize| same_type(attribute, &stored.attributes[*idx]);
            if found.is_some_and(|idx| !is_same(&idx)) {
                other_types.push(fields.len());
            }
            let found = found.filter(is_same);
            fields.push(found.map(|idx| attribute_field(stored, idx, version)).transpose()?);
        }
        let is_fixed = |field: &Option<StoredField>| {
            field.as_ref().is_some_and(|field| matches!(field.kind, FieldKind::Fixed(_)))
        };
        let counting = fields.iter().position(is_fixed);
        let counting = counting.ok_or(Unsupported::NoFixedField)?;
        fields.push(Some(times_field(stored, version, (FileNumber::Times, TIMES_STEM))?));
        let deleted = (FileNumber::DeleteTimes, DELETE_TIMES_STEM);
        fields.push(Some(times_field(stored, version, deleted)?));
        Ok(Self { capacity: stored.capacity, position, counting, fields, other_types })
    }

    /// The dimensions of `stored`, if they are not those of the table.
    pub(super) fn other_dimensions(table: &Schema, stored: &Schema) -> Option<String> {
        let dimensions = |schema: &Schema| {
            let listed = schema.dimensions.iter();
            listed.map(|dimension| (dimension.name.clone(), dimension.datatype)).collect::<Vec<_>>()
        };
        (dimensions(table) != dimensions(stored))
            .then(|| format!("dimensions {:?}", dimensions(stored)))
    }

    /// An attribute of `stored` that has another type in the table; `None` if there is none.
    pub(super) fn other_attribute(table: &Schema, stored: &Schema) -> Option<String> {
        let differs = |attribute: &&Attribute| {
            let other = table.attributes.iter().find(|other| other.name == attribute.name);
            other.is_some_and(|other| !same_type(other, attribute))
        };
        let found = stored.attributes.iter().find(differs)?;
        Some(format!("attribute `{}` is of type {}", found.name, found.datatype.name()))
    }

    /// The difference if `field` has another type in fragments of this form.
    pub(super) fn other_type(&self, field: usize) -> Option<&'static str> {
        self.other_types.contains(&field).then_some("a column that counts has another type in it")
    }
}

fn same_type(one: &Attribute, other: &Attribute) -> bool {
    let form =
        |attribute: &Attribute| (attribute.datatype, attribute.values_per_cell, attribute.nullable);
    form(one) == form(other)
}

fn coordinate_number(dimension: &Dimension) -> Result<Number, Unsupported> {
    let number = dimension.datatype.coordinate_number().filter(|_| dimension.values_per_cell == 1);
    let (number, (low, _)) =
        number.zip(dimension.domain).ok_or_else(|| Unsupported::DimensionType {
            name: dimension.name.clone(),
            datatype: dimension.datatype.name(),
        })?;
    if low < 0 {
        return Err(Unsupported::NegativeDomain { name: dimension.name.clone() });
    }
    Ok(number)
}

fn dimension_field(schema: &Schema, idx: usize, version: u32) -> Result<StoredField, Unsupported> {
    let Dimension { name, datatype, values_per_cell, filters, .. } = &schema.dimensions[idx];
    let values = StoredValues {
        name,
        datatype: *datatype,
        values_per_cell: *values_per_cell,
        filters,
        file: FileNumber::Dimension(idx),
        number: format!("d{idx}"),
    };
    values.field(schema, version)
}

fn attribute_field(schema: &Schema, idx: usize, version: u32) -> Result<StoredField, Unsupported> {
    let Attribute { name, datatype, values_per_cell, filters, .. } = &schema.attributes[idx];
    let values = StoredValues {
        name,
        datatype: *datatype,
        values_per_cell: *values_per_cell,
        filters,
        file: FileNumber::Attribute(idx),
        number: format!("a{idx}"),
    };
    let field = values.field(schema, version)?;
    let is_nullable = schema.attributes[idx].nullable;
    let bind = || schema::bind(&schema.validity_filters, Datatype::UINT8, version, name);
    Ok(StoredField { validity: is_nullable.then(bind).transpose()?, ..field })
}

/// The values of a dimension or an attribute, as a schema has them.
struct StoredValues<'a> {
    name: &'a str,
    datatype: Datatype,
    values_per_cell: u32,
    filters: &'a [Filter],
    file: FileNumber,
    /// The name of its file in new formats.
    number: String,
}

impl StoredValues<'_> {
    /// How they are stored, without validity.
    fn field(&self, schema: &Schema, version: u32) -> Result<StoredField, Unsupported> {
        let name = || self.name.to_owned();
        let value_bytes = self.datatype.size().ok_or_else(|| Unsupported::AttributeType {
            name: name(),
            datatype: self.datatype.name(),
        })?;
        let bind =
            |filters: &[Filter], datatype| schema::bind(filters, datatype, version, self.name);
        let (kind, main, var) = if self.values_per_cell == VARIABLE {
            let offsets = bind(&schema.offsets_filters, Datatype::UINT64)?;
            // libtiledb, too, goes by the version of the schema.
            let texts = bind_texts(self.filters, self.datatype, schema.version)
                .map_err(|filter| Unsupported::Filter { name: filter, of: name() })?;
            let var = match texts {
                Some(texts) => VarFilters::Texts(texts),
                None => VarFilters::Values(bind(self.filters, self.datatype)?),
            };
            (FieldKind::VarSized, offsets, Some(var))
        } else {
            let values = bind(self.filters, self.datatype)?;
            if self.values_per_cell > 1 && self.filters.iter().any(Filter::is_run_lengths) {
                let filter = "run lengths of several values".to_owned();
                return Err(Unsupported::Filter { name: filter, of: name() });
            }
            let cell_bytes = value_bytes.checked_mul(self.values_per_cell as usize);
            let cell_bytes = cell_bytes.filter(|bytes| *bytes > 0 && *bytes <= MAX_CELL_BYTES);
            let cell_bytes =
                cell_bytes.ok_or_else(|| Unsupported::ValuesPerCell { name: name() })?;
            (FieldKind::Fixed(cell_bytes), values, None)
        };
        Ok(StoredField {
            name: name(),
            file: self.file,
            stem: file_stem(version, &self.number, self.name),
            kind,
            value_bytes,
            main,
            var,
            validity: None,
        })
    }
}

/// The most bytes of a cell of fixed size.
const MAX_CELL_BYTES: usize = 1 << 16;

fn times_field(
    schema: &Schema,
    version: u32,
    (file, stem): (FileNumber, &str),
) -> Result<StoredField, Unsupported> {
    Ok(StoredField {
        name: "timestamps".to_owned(),
        file,
        stem: stem.to_owned(),
        kind: FieldKind::Fixed(8),
        value_bytes: 8,
        main: schema::bind(&schema.coords_filters, Datatype::UINT64, version, "timestamps")?,
        var: None,
        validity: None,
    })
}
