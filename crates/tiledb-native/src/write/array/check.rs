//! Checks a schema by the rules of libtiledb, which refuses to open arrays that break them.

use std::collections::HashSet;

use tiledb::{ArrayType, Attribute, Datatype, Dimension, Enumeration, EnumerationValues, Schema};

use crate::write::{generic_tile, schema};

/// The beginning of names that TileDB uses itself.
const RESERVED: &str = "__";

/// Fails with the rule that a schema breaks.
pub(super) fn check(schema: &Schema) -> Result<(), String> {
    if schema.array_type == ArrayType::Dense {
        return Err("it is of a dense array; only sparse ones are created".to_owned());
    }
    if schema.dimensions.is_empty() || schema.capacity == 0 {
        return Err("it needs a dimension, and tiles of at least one cell".to_owned());
    }
    let dimensions = schema.dimensions.iter().map(|dimension| dimension.name.as_str());
    let attributes = schema.attributes.iter().map(|attribute| attribute.name.as_str());
    names("dimension or attribute", dimensions.chain(attributes))?;
    names("enumeration", schema.enumerations.iter().map(|one| one.name.as_str()))?;
    for part in &schema.dimensions {
        dimension(part).map_err(|problem| format!("dimension {:?}: {problem}", part.name))?;
    }
    for part in &schema.enumerations {
        enumeration(part).map_err(|problem| format!("enumeration {:?}: {problem}", part.name))?;
    }
    for part in &schema.attributes {
        attribute(part, &schema.enumerations)
            .map_err(|problem| format!("attribute {:?}: {problem}", part.name))?;
    }
    current_domain(schema)
}

fn names<'a>(what: &str, names: impl Iterator<Item = &'a str>) -> Result<(), String> {
    let mut seen = HashSet::new();
    for name in names {
        if name.is_empty() || name.starts_with(RESERVED) || name.contains('\0') {
            return Err(format!(
                "{name:?} cannot be the name of a {what}: it must not be empty or begin with {RESERVED:?}"
            ));
        }
        if !seen.insert(name) {
            return Err(format!("{name:?} is the name of a {what} twice"));
        }
    }
    Ok(())
}

fn dimension(dimension: &Dimension) -> Result<(), String> {
    let (least, greatest) = dimension.domain.ok_or("it has no domain of integers")?;
    if least > greatest {
        return Err(format!("its domain ends at {greatest}, before it begins at {least}"));
    }
    let Some(extent) = dimension.tile_extent else { return Ok(()) };
    let n = greatest - least + 1;
    if extent < 1 || extent > n {
        return Err(format!("a tile of {extent} coordinates in a domain of {n}"));
    }
    // The domain, made whole tiles, must still fit the type.
    let end = least + (n + extent - 1) / extent * extent - 1;
    if dimension.datatype.integer_bytes(end).is_none() {
        return Err(format!(
            "its domain ends at {end} once it is whole tiles, beyond {:?}: end it a tile earlier",
            dimension.datatype
        ));
    }
    Ok(())
}

fn attribute(attribute: &Attribute, enumerations: &[Enumeration]) -> Result<(), String> {
    if attribute.values_per_cell == 0 || attribute.values_per_cell == u32::MAX {
        return Err(format!("it has {} values per cell", attribute.values_per_cell));
    }
    let Some(name) = &attribute.enumeration else { return Ok(()) };
    let found = enumerations.iter().find(|enumeration| enumeration.name == *name);
    let enumeration = found.ok_or_else(|| format!("there is no enumeration {name:?}"))?;
    let is_integer = attribute.datatype != Datatype::Bool
        && !attribute.datatype.is_string()
        && attribute.datatype.integer_bytes(0).is_some();
    if !is_integer || attribute.var_sized || attribute.values_per_cell != 1 {
        return Err("it has an enumeration, but is not one integer per cell".to_owned());
    }
    // Room for one more code than there are values.
    if attribute.datatype.integer_bytes(enumeration.len() as i128 + 1).is_none() {
        return Err(format!(
            "{:?} has too few codes for {} values",
            attribute.datatype,
            enumeration.len()
        ));
    }
    Ok(())
}

fn enumeration(enumeration: &Enumeration) -> Result<(), String> {
    // Before the values are compared, which takes long for that many values.
    generic_tile::check_size(schema::enumeration_bytes(enumeration))?;
    let twice = || Err("it has a value twice".to_owned());
    match &enumeration.values {
        EnumerationValues::VarSized(values) => {
            let mut seen = HashSet::new();
            if !values.iter().all(|value| seen.insert(value)) {
                return twice();
            }
        }
        EnumerationValues::Fixed(bytes) => {
            let size = enumeration.datatype.size().filter(|size| bytes.len().is_multiple_of(*size));
            let size = size.ok_or("its bytes are not whole values")?;
            let mut seen = HashSet::new();
            if !bytes.chunks_exact(size).all(|value| seen.insert(value)) {
                return twice();
            }
        }
    }
    Ok(())
}

fn current_domain(schema: &Schema) -> Result<(), String> {
    let Some(bounds) = &schema.current_domain else { return Ok(()) };
    if bounds.len() != schema.dimensions.len() {
        return Err(format!(
            "the current domain has bounds for {} dimensions, but there are {}",
            bounds.len(),
            schema.dimensions.len()
        ));
    }
    for (dimension, (least, greatest)) in schema.dimensions.iter().zip(bounds) {
        let inside = dimension
            .domain
            .is_some_and(|(first, last)| first <= *least && least <= greatest && *greatest <= last);
        if !inside {
            return Err(format!(
                "the current domain has {least} to {greatest} of dimension {:?}, whose domain is {:?}",
                dimension.name, dimension.domain
            ));
        }
    }
    Ok(())
}
