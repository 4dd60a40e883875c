//! Reads a schema field by field.

use storage::Files;

use super::{Attribute, Dimension, Schema, Span, VARIABLE};
use crate::cursor::Cursor;
use crate::datatype::{Datatype, Number};
use crate::error::{Error, Fault};
use crate::filter;
use crate::generic_tile;
use crate::unsupported::Unsupported;

const NULLABLE: u32 = 7;
const FILL_VALUES: u32 = 6;
const ORDERED_ATTRIBUTES: u32 = 17;
const DIMENSION_LABELS: u32 = 18;
const ENUMERATIONS: u32 = 20;
const CURRENT_DOMAIN: u32 = 22;

/// The format versions of schemas and fragments that this crate reads.
pub(crate) const VERSIONS: std::ops::RangeInclusive<u32> = 5..=23;

impl Schema {
    /// Reads the schema in `file`.
    pub(crate) fn load(files: &Files, file: &str) -> Result<Self, Error> {
        let bytes = generic_tile::read_file(files, file)?;
        let version = Cursor::new(&bytes)
            .u32("a format version")
            .map_err(|fault| fault.in_unfiltered(files.name(file), 0))?;
        if !VERSIONS.contains(&version) {
            return Err(Error::Unsupported {
                place: files.place(),
                reason: Unsupported::FormatVersion { version },
            });
        }
        Self::parse(&bytes).map_err(|fault| fault.in_unfiltered(files.name(file), 0))
    }

    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, Fault> {
        let mut cursor = Cursor::new(bytes);
        let version = cursor.u32("a format version")?;
        let allows_duplicates = cursor.flag("whether duplicates are allowed")?;
        let is_dense = cursor.u8("an array type")? == 0;
        // The reader finds cells by their coordinates, in any order.
        let tile_order = cursor.u8("a tile order")?;
        let cell_order = cursor.u8("a cell order")?;
        let capacity = cursor.u64("a capacity")?;
        let coords_filters = filter::parse(&mut cursor, version)?;
        let offsets_filters = filter::parse(&mut cursor, version)?;
        let mut validity_filters = Vec::new();
        if version >= NULLABLE {
            validity_filters = filter::parse(&mut cursor, version)?;
        }
        let n_dimensions = cursor.u32("the number of dimensions")?;
        let mut dimensions = Vec::new();
        for _ in 0..n_dimensions {
            let mut dimension = dimension(&mut cursor, version)?;
            if dimension.filters.is_empty() {
                dimension.filters.clone_from(&coords_filters);
            }
            dimensions.push(dimension);
        }
        let n_attributes = cursor.u32("the number of attributes")?;
        let mut attributes = Vec::new();
        for _ in 0..n_attributes {
            attributes.push(attribute(&mut cursor, version)?);
        }
        if version >= DIMENSION_LABELS {
            for _ in 0..cursor.u32("the number of dimension labels")? {
                skip_label(&mut cursor)?;
            }
        }
        let mut enumerations = Vec::new();
        if version >= ENUMERATIONS {
            for _ in 0..cursor.u32("the number of enumerations")? {
                let name = cursor.name("an enumeration's name")?;
                enumerations.push((name, cursor.name("an enumeration's file")?));
            }
        }
        let current_domain = if version >= CURRENT_DOMAIN {
            current_domain(&mut cursor, &dimensions)?
        } else {
            None
        };
        Ok(Self {
            version,
            allows_duplicates,
            is_dense,
            orders: (tile_order, cell_order),
            capacity,
            coords_filters,
            offsets_filters,
            validity_filters,
            dimensions,
            attributes,
            current_domain,
            enumerations,
        })
    }
}

fn dimension(cursor: &mut Cursor<'_>, version: u32) -> Result<Dimension, Fault> {
    let name = cursor.name("a dimension's name")?;
    let datatype = Datatype(cursor.u8("a dimension's type")?);
    let values_per_cell = cursor.u32("the values of a coordinate")?;
    let filters = filter::parse(cursor, version)?;
    let domain_len = cursor.u64("the length of a domain")?;
    let domain = cursor.take(usize::try_from(domain_len).unwrap_or(usize::MAX), "a domain")?;
    let domain = bounds(domain, datatype);
    let extent = if cursor.flag("whether a tile extent is missing")? {
        None
    } else {
        let size = datatype
            .size()
            .ok_or_else(|| Fault::at(cursor.at(), format!("a dimension of {}", datatype.name())))?;
        let bytes = cursor.take(size, "a tile extent")?;
        integer(bytes, datatype)
    };
    Ok(Dimension { name, datatype, values_per_cell, filters, domain, extent })
}

fn attribute(cursor: &mut Cursor<'_>, version: u32) -> Result<Attribute, Fault> {
    let name = cursor.name("an attribute's name")?;
    let datatype = Datatype(cursor.u8("an attribute's type")?);
    let values_per_cell = cursor.u32("the values of a cell")?;
    let filters = filter::parse(cursor, version)?;
    let mut fill = None;
    if version >= FILL_VALUES {
        let len = cursor.u64("the length of a fill value")?;
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        fill = Some(cursor.take(len, "a fill value")?.to_vec());
    }
    let (mut nullable, mut fill_is_valid) = (false, true);
    if version >= NULLABLE {
        nullable = cursor.flag("whether an attribute is nullable")?;
        fill_is_valid = cursor.flag("the validity of the fill value")?;
    }
    if version >= ORDERED_ATTRIBUTES {
        cursor.u8("an attribute's order")?;
    }
    let mut enumeration = None;
    if version >= ENUMERATIONS {
        let name = cursor.name("the name of an attribute's enumeration")?;
        enumeration = Some(name).filter(|name| !name.is_empty());
    }
    Ok(Attribute {
        name,
        datatype,
        values_per_cell,
        filters,
        nullable,
        fill,
        fill_is_valid,
        enumeration,
    })
}

/// Skips a dimension label, which says nothing about how cells are stored; the current domain
/// follows the labels.
fn skip_label(cursor: &mut Cursor<'_>) -> Result<(), Fault> {
    cursor.u32("a label's dimension")?;
    cursor.name("a label's name")?;
    cursor.flag("whether a label's address is relative")?;
    let len = cursor.u64("the length of a label's address")?;
    cursor.take(usize::try_from(len).unwrap_or(usize::MAX), "a label's address")?;
    cursor.name("a label's attribute")?;
    cursor.u8("a label's order")?;
    cursor.u8("a label's type")?;
    cursor.u32("the values of a label")?;
    cursor.flag("whether a label is external").map(|_| ())
}

fn current_domain(
    cursor: &mut Cursor<'_>,
    dimensions: &[Dimension],
) -> Result<Option<Vec<Option<Span>>>, Fault> {
    cursor.u32("the version of a current domain")?;
    if cursor.flag("whether the current domain is empty")? {
        return Ok(None);
    }
    let kind = cursor.u8("the type of the current domain")?;
    if kind != 0 {
        return Err(Fault::at(cursor.at(), format!("a current domain of type {kind}")));
    }
    dimensions.iter().map(|dimension| range(cursor, dimension)).collect::<Result<_, _>>().map(Some)
}

/// Reads a range of a dimension's coordinates, the form of current domains, non-empty domains and
/// bounding rectangles.
pub(crate) fn range(cursor: &mut Cursor<'_>, dimension: &Dimension) -> Result<Option<Span>, Fault> {
    if dimension.values_per_cell == VARIABLE {
        let len = cursor.u64("the length of a range")?;
        cursor.u64("the length of a range's start")?;
        cursor.take(usize::try_from(len).unwrap_or(usize::MAX), "a range")?;
        return Ok(None);
    }
    let size = dimension.datatype.size().unwrap_or(1);
    let bytes = cursor.take(2 * size, "a range")?;
    Ok(bounds(bytes, dimension.datatype))
}

fn bounds(bytes: &[u8], datatype: Datatype) -> Option<Span> {
    let (low, high) = bytes.split_at(bytes.len() / 2);
    Some((integer(low, datatype)?, integer(high, datatype)?))
}

/// The integer or time in `bytes`; `None` if the type is another, or `bytes` have another size.
fn integer(bytes: &[u8], datatype: Datatype) -> Option<i128> {
    match datatype.coordinate_number() {
        // Bounding rectangles of many tiles are read this way.
        Some(number) => (bytes.len() == number.size()).then(|| coordinate(bytes, number)),
        None => datatype.described().integer(bytes),
    }
}

/// The coordinate in `bytes`, which have the size of `number`.
fn coordinate(bytes: &[u8], number: Number) -> i128 {
    let mut wide = [0; 8];
    for (to, &from) in wide.iter_mut().zip(bytes) {
        *to = from;
    }
    let raw = u64::from_le_bytes(wide);
    match number {
        Number::I32 => i128::from(raw as u32 as i32),
        Number::I64 => i128::from(raw.cast_signed()),
        _ => i128::from(raw),
    }
}
