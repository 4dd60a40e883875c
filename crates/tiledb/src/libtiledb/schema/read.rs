//! Reading the schema of an array.

use std::ptr;

use super::raw::{
    Raw, free_attribute, free_current_domain, free_dimension, free_domain, free_rectangle,
    free_schema,
};
use super::{VAR_SIZED, cell_order};
use crate::libtiledb::context::{Context, Handle};
use crate::libtiledb::ffi::{bytes, from_c, take_string};
use crate::libtiledb::sys::Functions;
use crate::libtiledb::{filter, sys};
use crate::{ArrayType, Attribute, Datatype, Dimension, Error, Schema};

/// Reads the schema that `get` returns.
pub(crate) fn read(
    context: &Context,
    uri: &str,
    get: impl FnOnce(&Functions, *mut sys::Ctx, *mut *mut sys::ArraySchema) -> i32,
) -> Result<Schema, Error> {
    let raw =
        Raw { context, handle: context.make("reading a schema", uri, free_schema, get)?, uri };
    let dimensions = read_dimensions(&raw)?;
    let attributes = read_attributes(&raw)?;
    Ok(Schema {
        array_type: match raw.number(|functions| functions.tiledb_array_schema_get_array_type)? {
            0 => ArrayType::Dense,
            _ => ArrayType::Sparse,
        },
        tile_order: cell_order(
            raw.number(|functions| functions.tiledb_array_schema_get_tile_order)?,
            uri,
        )?,
        cell_order: cell_order(
            raw.number(|functions| functions.tiledb_array_schema_get_cell_order)?,
            uri,
        )?,
        capacity: raw.number(|functions| functions.tiledb_array_schema_get_capacity)?,
        allows_duplicates: raw.number(|functions| functions.tiledb_array_schema_get_allows_dups)?
            != 0,
        offsets_filters: filter::read(context, uri, |functions, ctx, out| {
            // SAFETY: schema and out pointer are live.
            unsafe {
                (functions.tiledb_array_schema_get_offsets_filter_list)(ctx, raw.handle.get(), out)
            }
        })?,
        coords_filters: filter::read(context, uri, |functions, ctx, out| {
            // SAFETY: schema and out pointer are live.
            unsafe {
                (functions.tiledb_array_schema_get_coords_filter_list)(ctx, raw.handle.get(), out)
            }
        })?,
        validity_filters: filter::read(context, uri, |functions, ctx, out| {
            // SAFETY: schema and out pointer are live.
            unsafe {
                (functions.tiledb_array_schema_get_validity_filter_list)(ctx, raw.handle.get(), out)
            }
        })?,
        current_domain: read_current_domain(&raw, &dimensions)?,
        dimensions,
        attributes,
        enumerations: Vec::new(),
    })
}

fn read_dimensions(raw: &Raw<'_>) -> Result<Vec<Dimension>, Error> {
    let (context, uri) = (raw.context, raw.uri);
    let domain = context.make("reading a domain", uri, free_domain, |functions, ctx, out| {
        // SAFETY: the schema and the out pointer are live.
        unsafe { (functions.tiledb_array_schema_get_domain)(ctx, raw.handle.get(), out) }
    })?;
    let mut n_dimensions = 0;
    context.call("reading a domain", uri, |functions, ctx| {
        // SAFETY: domain and out pointer are live.
        unsafe { (functions.tiledb_domain_get_ndim)(ctx, domain.get(), &raw mut n_dimensions) }
    })?;
    (0..n_dimensions)
        .map(|dimension_idx| {
            let dimension = context.make(
                "reading a dimension",
                uri,
                free_dimension,
                |functions, ctx, out| {
                    // SAFETY: domain and out pointer are live, and the index is below the count.
                    unsafe {
                        (functions.tiledb_domain_get_dimension_from_index)(
                            ctx,
                            domain.get(),
                            dimension_idx,
                            out,
                        )
                    }
                },
            )?;
            read_dimension(context, uri, &dimension)
        })
        .collect()
}

fn read_attributes(raw: &Raw<'_>) -> Result<Vec<Attribute>, Error> {
    let (context, uri) = (raw.context, raw.uri);
    let n_attributes: u32 =
        raw.number(|functions| functions.tiledb_array_schema_get_attribute_num)?;
    (0..n_attributes)
        .map(|attribute_idx| {
            let attribute = context.make(
                "reading an attribute",
                uri,
                free_attribute,
                |functions, ctx, out| {
                    // SAFETY: schema and out pointer are live, and the index is below the count.
                    unsafe {
                        (functions.tiledb_array_schema_get_attribute_from_index)(
                            ctx,
                            raw.handle.get(),
                            attribute_idx,
                            out,
                        )
                    }
                },
            )?;
            read_attribute(context, uri, &attribute)
        })
        .collect()
}

fn read_dimension(
    context: &Context,
    uri: &str,
    dimension: &Handle<sys::Dimension>,
) -> Result<Dimension, Error> {
    let (mut name, mut number, mut domain, mut extent) = (ptr::null(), 0, ptr::null(), ptr::null());
    context.call("reading a dimension", uri, |functions, ctx| {
        // SAFETY: the dimension and the out pointers are live.
        unsafe {
            (functions.tiledb_dimension_get_name)(ctx, dimension.get(), &raw mut name)
                | (functions.tiledb_dimension_get_type)(ctx, dimension.get(), &raw mut number)
                | (functions.tiledb_dimension_get_domain)(ctx, dimension.get(), &raw mut domain)
                | (functions.tiledb_dimension_get_tile_extent)(
                    ctx,
                    dimension.get(),
                    &raw mut extent,
                )
        }
    })?;
    let datatype = Datatype::from_number(number);
    let size = if datatype.is_string() { 0 } else { datatype.size().unwrap_or(0) };
    // SAFETY: the domain is null or two coordinates, the extent null or one; they live as long as
    // the dimension.
    let (domain, extent) = unsafe { (bytes(domain.cast(), 2 * size), bytes(extent.cast(), size)) };
    let bounds = (size > 0 && domain.len() == 2 * size)
        .then(|| Some((datatype.integer(&domain[..size])?, datatype.integer(&domain[size..])?)))
        .flatten();
    Ok(Dimension {
        // SAFETY: a string that ends in zero, and lives as long as the dimension.
        name: unsafe { from_c(name) },
        datatype,
        domain: bounds,
        tile_extent: datatype.integer(extent),
        filters: filter::read(context, uri, |functions, ctx, out| {
            // SAFETY: the dimension and the out pointer are live.
            unsafe { (functions.tiledb_dimension_get_filter_list)(ctx, dimension.get(), out) }
        })?,
    })
}

fn read_attribute(
    context: &Context,
    uri: &str,
    attribute: &Handle<sys::Attribute>,
) -> Result<Attribute, Error> {
    let (mut name, mut number, mut nullable, mut values_per_cell) = (ptr::null(), 0, 0, 0);
    let mut enumeration = ptr::null_mut();
    context.call("reading an attribute", uri, |functions, ctx| {
        // SAFETY: the attribute and the out pointers are live.
        unsafe {
            (functions.tiledb_attribute_get_name)(ctx, attribute.get(), &raw mut name)
                | (functions.tiledb_attribute_get_type)(ctx, attribute.get(), &raw mut number)
                | (functions.tiledb_attribute_get_nullable)(ctx, attribute.get(), &raw mut nullable)
                | (functions.tiledb_attribute_get_cell_val_num)(
                    ctx,
                    attribute.get(),
                    &raw mut values_per_cell,
                )
                | (functions.tiledb_attribute_get_enumeration_name)(
                    ctx,
                    attribute.get(),
                    &raw mut enumeration,
                )
        }
    })?;
    // libtiledb marks a var-sized attribute with a special number of values.
    let var_sized = values_per_cell == VAR_SIZED;
    Ok(Attribute {
        // SAFETY: a string that ends in zero, and lives as long as the attribute.
        name: unsafe { from_c(name) },
        datatype: Datatype::from_number(number),
        nullable: nullable != 0,
        var_sized,
        values_per_cell: if var_sized { 1 } else { values_per_cell },
        filters: filter::read(context, uri, |functions, ctx, out| {
            // SAFETY: the attribute and the out pointer are live.
            unsafe { (functions.tiledb_attribute_get_filter_list)(ctx, attribute.get(), out) }
        })?,
        // SAFETY: a new string handle, or null if there is no enumeration.
        enumeration: unsafe { take_string(context.functions(), enumeration) },
    })
}

fn read_current_domain(
    raw: &Raw<'_>,
    dimensions: &[Dimension],
) -> Result<Option<Vec<(i128, i128)>>, Error> {
    let (context, uri) = (raw.context, raw.uri);
    let domain = context.make(
        "reading the current domain",
        uri,
        free_current_domain,
        |functions, ctx, out| {
            // SAFETY: schema and out pointer are live.
            unsafe {
                (functions.tiledb_array_schema_get_current_domain)(ctx, raw.handle.get(), out)
            }
        },
    )?;
    let mut empty = 0;
    context.call("reading the current domain", uri, |functions, ctx| {
        // SAFETY: domain and out pointer are live.
        unsafe { (functions.tiledb_current_domain_get_is_empty)(ctx, domain.get(), &raw mut empty) }
    })?;
    if empty != 0 {
        return Ok(None);
    }
    let rectangle = context.make(
        "reading the current domain",
        uri,
        free_rectangle,
        |functions, ctx, out| {
            // SAFETY: domain and out pointer are live.
            unsafe { (functions.tiledb_current_domain_get_ndrectangle)(ctx, domain.get(), out) }
        },
    )?;
    read_rectangle(raw, &rectangle, dimensions)
}

/// Reads the bounds of each dimension; `None` if a dimension's coordinates are not integers.
fn read_rectangle(
    raw: &Raw<'_>,
    rectangle: &Handle<sys::NdRectangle>,
    dimensions: &[Dimension],
) -> Result<Option<Vec<(i128, i128)>>, Error> {
    let (context, uri) = (raw.context, raw.uri);
    let mut bounds = Vec::with_capacity(dimensions.len());
    for (dimension_idx, dimension) in dimensions.iter().enumerate() {
        let mut range = sys::Range { min: ptr::null(), min_size: 0, max: ptr::null(), max_size: 0 };
        context.call("reading the current domain", uri, |functions, ctx| {
            // SAFETY: rectangle and range are live, and the index is below the number of
            // dimensions.
            unsafe {
                (functions.tiledb_ndrectangle_get_range)(
                    ctx,
                    rectangle.get(),
                    dimension_idx as u32,
                    &raw mut range,
                )
            }
        })?;
        // SAFETY: libtiledb filled in pointers with their sizes, which live as long as the
        // rectangle.
        let (least, greatest) = unsafe {
            (
                bytes(range.min.cast(), range.min_size as usize),
                bytes(range.max.cast(), range.max_size as usize),
            )
        };
        match (dimension.datatype.integer(least), dimension.datatype.integer(greatest)) {
            (Some(least), Some(greatest)) => bounds.push((least, greatest)),
            _ => return Ok(None),
        }
    }
    Ok(Some(bounds))
}
