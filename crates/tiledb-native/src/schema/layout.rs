//! The parts of a schema that a reader needs, once it is known that this crate can read the array.

use super::{Attribute, Dimension, Schema};
use crate::datatype::{Datatype, Number};
use crate::filter::{self, Pipeline};
use crate::unsupported::Unsupported;

/// The most cells of a tile that are decoded at once.
pub(crate) const MAX_CAPACITY: u64 = 1 << 26;

/// How the cells of fragments with one schema and format version are stored.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    pub(crate) allows_duplicates: bool,
    pub(crate) capacity: u64,
    /// The first coordinate of the domain of rows and of columns, and the end of the current domain
    /// if there is one.
    pub(crate) shape: [(u64, u64); 2],
    /// The first coordinate and the end, of the current domain if there is one, otherwise of the
    /// domain.
    pub(crate) current: [(u64, u64); 2],
    /// Rows of a space tile, if tiles have an extent.
    pub(crate) extent_rows: Option<u64>,
    pub(crate) first_row: u64,
    pub(crate) rows: Stored,
    pub(crate) columns: Stored,
    pub(crate) values: Stored,
    /// Timestamps of cells, if a fragment has them.
    pub(crate) times: Stored,
    pub(crate) attribute: (String, Datatype),
    /// Index of the attribute in the schema.
    pub(crate) attribute_idx: usize,
    dimensions: [Dimension; 2],
}

/// How one file of a fragment is stored.
#[derive(Debug, Clone)]
pub(crate) struct Stored {
    pub(crate) number: Number,
    pub(crate) pipeline: Pipeline,
}

impl Layout {
    /// The layout of `schema` in fragments of format `version`, with the attribute `attribute`, or
    /// the only one.
    pub(crate) fn from_schema(
        schema: &Schema,
        version: u32,
        attribute: Option<&str>,
    ) -> Result<Self, Unsupported> {
        if schema.is_dense {
            return Err(Unsupported::Dense);
        }
        let [row, column] = schema.dimensions.as_slice() else {
            return Err(Unsupported::DimensionCount {
                n_dimensions: schema.dimensions.len() as u32,
            });
        };
        if schema.capacity > MAX_CAPACITY || schema.capacity == 0 {
            return Err(Unsupported::TileTooLarge { capacity: schema.capacity });
        }
        let attribute_idx = match attribute {
            Some(name) => schema.attributes.iter().position(|candidate| candidate.name == name),
            None if schema.attributes.len() == 1 => Some(0),
            None => None,
        };
        let n_attributes = schema.attributes.len() as u32;
        let found = attribute_idx.and_then(|idx| Some((idx, schema.attributes.get(idx)?)));
        let (attribute_idx, attribute) =
            found.ok_or(Unsupported::AttributeCount { n_attributes })?;
        let times = bind(&schema.coords_filters, Datatype::UINT64, version, "timestamps")?;
        let current = [current(schema, 0, row)?, current(schema, 1, column)?];
        Ok(Self {
            allows_duplicates: schema.allows_duplicates,
            capacity: schema.capacity,
            shape: [shape(row, current[0])?, shape(column, current[1])?],
            current,
            extent_rows: row
                .extent
                .and_then(|extent| u64::try_from(extent).ok())
                .filter(|&extent| extent > 0),
            first_row: row.domain.and_then(|(low, _)| u64::try_from(low).ok()).unwrap_or(0),
            rows: coordinate(row, version)?,
            columns: coordinate(column, version)?,
            values: value(attribute, version)?,
            times: Stored { number: Number::U64, pipeline: times },
            attribute: (attribute.name.clone(), attribute.datatype),
            attribute_idx,
            dimensions: [row.clone(), column.clone()],
        })
    }
}

impl Layout {
    /// Rows, then columns.
    pub(crate) fn dimensions(&self) -> &[Dimension; 2] {
        &self.dimensions
    }

    /// Describes how another schema of the same array differs for reading; `None` if its cells can
    /// be read together with those of this one.
    pub(crate) fn differs(&self, other: &Self) -> Option<String> {
        if self.attribute != other.attribute {
            return Some(format!(
                "attribute `{}` is of type {}",
                other.attribute.0,
                other.attribute.1.name()
            ));
        }
        let names = |layout: &Self| {
            [0, 1].map(|idx| (layout.dimensions[idx].name.clone(), layout.dimensions[idx].datatype))
        };
        (names(self) != names(other)).then(|| format!("dimensions {:?}", names(other)))
    }
}

fn position(dimension: &Dimension, coordinate: i128) -> Result<u64, Unsupported> {
    u64::try_from(coordinate)
        .map_err(|_| Unsupported::NegativeDomain { name: dimension.name.clone() })
}

/// The first coordinate of the domain, and the end of the current domain.
fn shape(dimension: &Dimension, current: (u64, u64)) -> Result<(u64, u64), Unsupported> {
    let first = dimension.domain.map(|(low, _)| position(dimension, low)).transpose()?;
    Ok((first.unwrap_or(current.0), current.1))
}

fn current(schema: &Schema, idx: usize, dimension: &Dimension) -> Result<(u64, u64), Unsupported> {
    let of_type = || Unsupported::DimensionType {
        name: dimension.name.clone(),
        datatype: dimension.datatype.name(),
    };
    let current =
        schema.current_domain.as_ref().and_then(|ranges| ranges.get(idx).copied().flatten());
    let (low, high) = current.or(dimension.domain).ok_or_else(of_type)?;
    let end = u64::try_from(high.saturating_add(1)).unwrap_or(u64::MAX);
    Ok((position(dimension, low)?, end))
}

fn coordinate(dimension: &Dimension, version: u32) -> Result<Stored, Unsupported> {
    let number = dimension.datatype.coordinate_number().filter(|_| dimension.values_per_cell == 1);
    let number = number.ok_or_else(|| Unsupported::DimensionType {
        name: dimension.name.clone(),
        datatype: dimension.datatype.name(),
    })?;
    Ok(Stored {
        number,
        pipeline: bind(&dimension.filters, dimension.datatype, version, &dimension.name)?,
    })
}

fn value(attribute: &Attribute, version: u32) -> Result<Stored, Unsupported> {
    let name = || attribute.name.clone();
    if attribute.values_per_cell != 1 {
        return Err(Unsupported::ValuesPerCell { name: name() });
    }
    if attribute.nullable {
        return Err(Unsupported::Nullable { name: name() });
    }
    let number = attribute.datatype.value_number();
    let number = number.ok_or_else(|| Unsupported::AttributeType {
        name: name(),
        datatype: attribute.datatype.name(),
    })?;
    Ok(Stored {
        number,
        pipeline: bind(&attribute.filters, attribute.datatype, version, &attribute.name)?,
    })
}

/// The pipeline of the field `of`.
pub(crate) fn bind(
    filters: &[filter::Filter],
    datatype: Datatype,
    version: u32,
    of: &str,
) -> Result<Pipeline, Unsupported> {
    filter::bind(filters, datatype, version)
        .map_err(|name| Unsupported::Filter { name, of: of.to_owned() })
}
