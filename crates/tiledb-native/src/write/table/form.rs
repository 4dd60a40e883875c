//! The facts about a table that a writer needs, and the checks of its input.

use super::Part;
use super::column::{ColumnCells, HeldColumn};
use crate::datatype::{Datatype, Number};
use crate::filter::{self, Filter, Pipeline};
use crate::schema::{self, Schema, VARIABLE};
use crate::unsupported::Unsupported;
use crate::write::VERSIONS;
use crate::write::field::Kind;

/// The largest tile that is written: what this crate reads of a matrix.
const MAX_CAPACITY: u64 = 1 << 26;
/// Texts in UTF-8, and bytes: blobs and two forms of geometries.
const VAR_SIZED: [Datatype; 4] = [Datatype(12), Datatype(40), Datatype(42), Datatype(43)];

#[derive(Debug)]
pub(super) struct Form {
    pub(super) version: u32,
    /// The last part of the schema's path.
    pub(super) schema_name: String,
    /// Cells per tile.
    pub(super) capacity: usize,
    dimension: String,
    allows_duplicates: bool,
    /// The least and the greatest coordinate.
    bounds: (i64, i64),
    pub(super) coordinates: Pipeline,
    pub(super) attributes: Vec<Attribute>,
    offsets: Pipeline,
    validity: Pipeline,
}

#[derive(Debug)]
pub(super) struct Attribute {
    name: String,
    datatype: Datatype,
    pub(super) is_var_sized: bool,
    pub(super) is_nullable: bool,
    pipeline: Pipeline,
}

impl Attribute {
    fn from_schema(attribute: &schema::Attribute, version: u32) -> Result<Self, Unsupported> {
        let name = attribute.name.clone();
        let datatype = attribute.datatype;
        let is_var_sized = attribute.values_per_cell == VARIABLE;
        let is_known =
            if is_var_sized { VAR_SIZED.contains(&datatype) } else { is_number(datatype) };
        if !is_known {
            return Err(Unsupported::AttributeType { name, datatype: datatype.name() });
        }
        if !is_var_sized && attribute.values_per_cell != 1 {
            return Err(Unsupported::ValuesPerCell { name });
        }
        // libtiledb's run lengths of texts are of another kind.
        if is_var_sized && attribute.filters.iter().any(is_run_lengths) {
            return Err(Unsupported::Filter { name: "run lengths of texts".to_owned(), of: name });
        }
        let pipeline = written(&attribute.filters, datatype, version, &name)?;
        Ok(Self { name, datatype, is_var_sized, is_nullable: attribute.nullable, pipeline })
    }

    /// The type of the values, if they have an order and a sum.
    pub(super) fn number(&self) -> Option<Number> {
        if self.is_var_sized { None } else { self.datatype.number() }
    }

    pub(super) fn kind(&self) -> Kind {
        Kind::Attribute { number: self.number(), is_nullable: self.is_nullable }
    }

    /// Whether it has the file of values or offsets, of values of variable size, of validity.
    pub(super) fn has_file(&self, which: usize) -> bool {
        [true, self.is_var_sized, self.is_nullable][which]
    }
}

fn is_run_lengths(filter: &Filter) -> bool {
    matches!(filter, Filter::Compress(filter::Codec::Rle, _))
}

/// Integers, floats, times and booleans.
fn is_number(datatype: Datatype) -> bool {
    datatype.value_number().is_some() || datatype.is_time()
}

/// Binds a pipeline, all of whose filters are written.
fn written(
    filters: &[Filter],
    datatype: Datatype,
    version: u32,
    of: &str,
) -> Result<Pipeline, Unsupported> {
    let failed = |name: String| Unsupported::Filter { name, of: of.to_owned() };
    let pipeline = filter::bind(filters, datatype, version).map_err(failed)?;
    match pipeline.not_written() {
        Some(name) => Err(failed(name.to_owned())),
        None => Ok(pipeline),
    }
}

impl Form {
    pub(super) fn from_schema(schema: &Schema, schema_file: &str) -> Result<Self, Unsupported> {
        let version = schema.version;
        if !VERSIONS.contains(&version) {
            return Err(Unsupported::FormatVersion { version });
        }
        if schema.is_dense {
            return Err(Unsupported::Dense);
        }
        let [dimension] = schema.dimensions.as_slice() else {
            let n_dimensions = schema.dimensions.len() as u32;
            return Err(Unsupported::NotATable { n_dimensions });
        };
        if !schema.is_row_major() {
            return Err(Unsupported::NotByRow);
        }
        if schema.capacity > MAX_CAPACITY || schema.capacity == 0 {
            return Err(Unsupported::TileTooLarge { capacity: schema.capacity });
        }
        let name = || dimension.name.clone();
        if dimension.datatype != Datatype::INT64 || dimension.values_per_cell != 1 {
            let datatype = dimension.datatype.name();
            return Err(Unsupported::DimensionType { name: name(), datatype });
        }
        let current = schema.current_domain.as_ref().and_then(|ranges| ranges.first().copied());
        let (least, greatest) = current.flatten().or(dimension.domain).unwrap_or((0, -1));
        if least < 0 {
            return Err(Unsupported::NegativeDomain { name: name() });
        }
        let clamp = |value: i128| i64::try_from(value).unwrap_or(i64::MAX);
        let attributes = schema.attributes.iter();
        Ok(Self {
            version,
            schema_name: schema_file.rsplit('/').next().unwrap_or(schema_file).to_owned(),
            capacity: schema.capacity as usize,
            dimension: name(),
            allows_duplicates: schema.allows_duplicates,
            bounds: (clamp(least), clamp(greatest)),
            coordinates: written(&dimension.filters, Datatype::INT64, version, &dimension.name)?,
            attributes: attributes
                .map(|attribute| Attribute::from_schema(attribute, version))
                .collect::<Result<_, _>>()?,
            offsets: written(&schema.offsets_filters, Datatype::UINT64, version, "offsets")?,
            validity: written(&schema.validity_filters, Datatype::UINT8, version, "validity")?,
        })
    }

    /// The files of a fragment: of coordinates, then of each attribute.
    pub(super) fn file_names(&self) -> Vec<String> {
        let mut names = vec!["d0.tdb".to_owned()];
        for (idx, attribute) in self.attributes.iter().enumerate() {
            for (which, end) in ["", "_var", "_validity"].into_iter().enumerate() {
                if attribute.has_file(which) {
                    names.push(format!("a{idx}{end}.tdb"));
                }
            }
        }
        names
    }

    /// The parts of an attribute's tile, in the order of its files.
    pub(super) fn parts<'a>(
        &'a self,
        attribute: &'a Attribute,
        held: &'a HeldColumn,
    ) -> impl Iterator<Item = Part<'a>> {
        let values =
            |value_bytes| Part { bytes: &held.bytes, value_bytes, pipeline: &attribute.pipeline };
        let offsets = Part { bytes: &held.offsets, value_bytes: 8, pipeline: &self.offsets };
        let validity = Part { bytes: &held.validity, value_bytes: 1, pipeline: &self.validity };
        let [first, second] = if attribute.is_var_sized {
            [offsets, values(1)].map(Some)
        } else {
            [Some(values(attribute.datatype.size().unwrap_or(1))), None]
        };
        [first, second, attribute.is_nullable.then_some(validity)].into_iter().flatten()
    }

    /// Fails with a column's name and what is wrong with it.
    pub(super) fn check_coordinates(
        &self,
        coordinates: &[i64],
        last: Option<i64>,
    ) -> Result<(), (String, String)> {
        let failed = |problem| Err((self.dimension.clone(), problem));
        let (least, greatest) = self.bounds;
        let mut before = last;
        for &coordinate in coordinates {
            if coordinate < least || coordinate > greatest {
                return failed(format!("{coordinate} is outside of {least} to {greatest}"));
            }
            if let Some(before) = before
                && (coordinate < before || coordinate == before && !self.allows_duplicates)
            {
                return failed(format!("{coordinate} comes after {before}"));
            }
            before = Some(coordinate);
        }
        Ok(())
    }

    /// The columns in the order of the attributes, each with `n_cells` cells.
    ///
    /// # Errors
    /// A column's name and what is wrong with it.
    pub(super) fn in_order<'a>(
        &self,
        columns: &[ColumnCells<'a>],
        n_cells: usize,
    ) -> Result<Vec<ColumnCells<'a>>, (String, String)> {
        let is_known = |name: &str| self.attributes.iter().any(|attribute| attribute.name == name);
        if let Some(column) = columns.iter().find(|column| !is_known(column.name)) {
            return Err((column.name.to_owned(), "it is not an attribute of the array".to_owned()));
        }
        self.attributes
            .iter()
            .map(|attribute| {
                let failed = |problem: String| (attribute.name.clone(), problem);
                let mut found = columns.iter().filter(|column| column.name == attribute.name);
                let column = found.next().ok_or_else(|| failed("it is missing".to_owned()))?;
                if found.next().is_some() {
                    return Err(failed("it comes twice".to_owned()));
                }
                check_column(attribute, column, n_cells).map_err(failed)?;
                Ok(*column)
            })
            .collect()
    }
}

fn check_column(
    attribute: &Attribute,
    column: &ColumnCells<'_>,
    n_cells: usize,
) -> Result<(), String> {
    if column.datatype.number() != i32::from(attribute.datatype.0) {
        let (given, wanted) = (column.datatype, attribute.datatype.name());
        return Err(format!("values of type {given:?} are given, but it is of type {wanted}"));
    }
    if column.offsets.is_some() != attribute.is_var_sized
        || column.validity.is_some() != attribute.is_nullable
    {
        return Err("offsets or validity are missing, or not wanted".to_owned());
    }
    let n_given = if let Some(offsets) = column.offsets {
        let n_bytes = column.bytes.len() as u64;
        let is_whole = offsets.first().map_or(column.bytes.is_empty(), |first| *first == 0);
        if !is_whole || !offsets.is_sorted() || offsets.last().is_some_and(|last| *last > n_bytes) {
            return Err(format!("its offsets do not ascend from 0 to at most {n_bytes}"));
        }
        offsets.len()
    } else {
        let size = column.datatype.size().unwrap_or(1);
        if !column.bytes.len().is_multiple_of(size) {
            return Err(format!("{} bytes are not whole values of {size}", column.bytes.len()));
        }
        column.bytes.len() / size
    };
    if n_given != n_cells || column.validity.is_some_and(|validity| validity.len() != n_cells) {
        return Err(format!("{n_given} cells are given, but {n_cells} coordinates"));
    }
    Ok(())
}
