//! Creates schemas, and arrays with them.

use std::ffi::{c_char, c_void};
use std::ptr;

use super::VAR_SIZED;
use super::raw::{
    Raw, free_attribute, free_current_domain, free_dimension, free_domain, free_rectangle,
    free_schema,
};
use crate::libtiledb::context::{Context, Handle};
use crate::libtiledb::ffi::c_string;
use crate::libtiledb::{enumeration, filter, sys};
use crate::{ArrayType, Attribute, Dimension, Error, Schema};

/// Creates an array at `uri` with `schema`.
pub(crate) fn create(context: &Context, uri: &str, schema: &Schema) -> Result<(), Error> {
    let raw = build(context, uri, schema)?;
    let c_uri = c_string("a URI", uri)?;
    context.call("creating an array", uri, |functions, ctx| {
        // SAFETY: string and schema are live.
        unsafe { (functions.tiledb_array_create)(ctx, c_uri.as_ptr(), raw.handle.get()) }
    })
}

fn build<'a>(context: &'a Context, uri: &'a str, schema: &Schema) -> Result<Raw<'a>, Error> {
    let handle = context.make("making a schema", uri, free_schema, |functions, ctx, out| {
        let kind = i32::from(schema.array_type == ArrayType::Sparse);
        // SAFETY: context and out pointer are live.
        unsafe { (functions.tiledb_array_schema_alloc)(ctx, kind, out) }
    })?;
    let raw = Raw { context, handle, uri };
    let domain = build_domain(context, uri, &schema.dimensions)?;
    // SAFETY: the schema is live, here and below, and copies its arguments.
    raw.call(|functions, ctx, out| unsafe {
        (functions.tiledb_array_schema_set_domain)(ctx, out, domain.get())
    })?;
    // SAFETY: as above.
    raw.call(|functions, ctx, out| unsafe {
        (functions.tiledb_array_schema_set_capacity)(ctx, out, schema.capacity)
    })?;
    raw.call(|functions, ctx, out| {
        // SAFETY: as above.
        unsafe {
            (functions.tiledb_array_schema_set_cell_order)(ctx, out, schema.cell_order.number())
        }
    })?;
    raw.call(|functions, ctx, out| {
        // SAFETY: as above.
        unsafe {
            (functions.tiledb_array_schema_set_tile_order)(ctx, out, schema.tile_order.number())
        }
    })?;
    if schema.array_type == ArrayType::Sparse {
        raw.call(|functions, ctx, out| {
            // SAFETY: as above.
            unsafe {
                (functions.tiledb_array_schema_set_allows_dups)(
                    ctx,
                    out,
                    schema.allows_duplicates.into(),
                )
            }
        })?;
    }
    add_parts(&raw, schema)?;
    if let Some(bounds) = &schema.current_domain {
        let current = build_current_domain((context, uri), &domain, &schema.dimensions, bounds)?;
        raw.call(|functions, ctx, out| {
            // SAFETY: schema and part are live; a copy is taken.
            unsafe { (functions.tiledb_array_schema_set_current_domain)(ctx, out, current.get()) }
        })?;
    }
    // SAFETY: as above.
    raw.call(|functions, ctx, out| unsafe { (functions.tiledb_array_schema_check)(ctx, out) })?;
    Ok(raw)
}

/// Adds filters, enumerations and attributes to the schema.
fn add_parts(raw: &Raw<'_>, schema: &Schema) -> Result<(), Error> {
    let (context, uri) = (raw.context, raw.uri);
    if !schema.offsets_filters.is_empty() {
        let list = filter::build(context, &schema.offsets_filters)?;
        raw.call(|functions, ctx, out| {
            // SAFETY: schema and part are live; a copy is taken.
            unsafe { (functions.tiledb_array_schema_set_offsets_filter_list)(ctx, out, list.get()) }
        })?;
    }
    if !schema.coords_filters.is_empty() {
        let list = filter::build(context, &schema.coords_filters)?;
        raw.call(|functions, ctx, out| {
            // SAFETY: schema and part are live; a copy is taken.
            unsafe { (functions.tiledb_array_schema_set_coords_filter_list)(ctx, out, list.get()) }
        })?;
    }
    if !schema.validity_filters.is_empty() {
        let list = filter::build(context, &schema.validity_filters)?;
        raw.call(|functions, ctx, out| {
            // SAFETY: schema and part are live; a copy is taken.
            unsafe {
                (functions.tiledb_array_schema_set_validity_filter_list)(ctx, out, list.get())
            }
        })?;
    }
    for enumeration in &schema.enumerations {
        let handle = enumeration::build(enumeration, context, uri)?;
        raw.call(|functions, ctx, out| {
            // SAFETY: schema and part are live; a copy is taken.
            unsafe { (functions.tiledb_array_schema_add_enumeration)(ctx, out, handle.get()) }
        })?;
    }
    for attribute in &schema.attributes {
        let handle = build_attribute(context, uri, attribute)?;
        raw.call(|functions, ctx, out| {
            // SAFETY: schema and part are live; a copy is taken.
            unsafe { (functions.tiledb_array_schema_add_attribute)(ctx, out, handle.get()) }
        })?;
    }
    Ok(())
}

pub(super) fn build_domain(
    context: &Context,
    uri: &str,
    dimensions: &[Dimension],
) -> Result<Handle<sys::Domain>, Error> {
    let domain = context.make("making a domain", uri, free_domain, |functions, ctx, out| {
        // SAFETY: context and out pointer are live.
        unsafe { (functions.tiledb_domain_alloc)(ctx, out) }
    })?;
    for dimension in dimensions {
        let name = c_string("a dimension's name", &dimension.name)?;
        let filters = filter::build(context, &dimension.filters)?;
        let bounds =
            dimension.domain.map(|bounds| bounds_bytes(uri, dimension, bounds)).transpose()?;
        let extent = dimension
            .tile_extent
            .map(|extent| {
                dimension
                    .datatype
                    .integer_bytes(extent)
                    .ok_or_else(|| misfit(uri, dimension, extent))
            })
            .transpose()?;
        let pointer = |bytes: &Option<Vec<u8>>| {
            bytes.as_ref().map_or(ptr::null(), |bytes| bytes.as_ptr().cast::<c_void>())
        };
        let handle = context.make(
            "making a dimension",
            &dimension.name,
            free_dimension,
            |functions, ctx, out| {
                // SAFETY: name, bounds and extent are live and have the size of the datatype;
                // libtiledb copies them.
                unsafe {
                    (functions.tiledb_dimension_alloc)(
                        ctx,
                        name.as_ptr(),
                        dimension.datatype.number(),
                        pointer(&bounds),
                        pointer(&extent),
                        out,
                    )
                }
            },
        )?;
        context.call("making a dimension", &dimension.name, |functions, ctx| {
            // SAFETY: all handles are live; copies are taken.
            unsafe {
                (functions.tiledb_dimension_set_filter_list)(ctx, handle.get(), filters.get())
                    | (functions.tiledb_domain_add_dimension)(ctx, domain.get(), handle.get())
            }
        })?;
    }
    Ok(domain)
}

fn misfit(uri: &str, dimension: &Dimension, value: i128) -> Error {
    Error::Column {
        column: dimension.name.clone(),
        uri: uri.to_owned(),
        message: format!("{value} is not a coordinate of type {:?}", dimension.datatype),
    }
}

/// The least and the greatest coordinate as bytes, one after the other.
fn bounds_bytes(
    uri: &str,
    dimension: &Dimension,
    (least, greatest): (i128, i128),
) -> Result<Vec<u8>, Error> {
    let bytes = |value| {
        dimension.datatype.integer_bytes(value).ok_or_else(|| misfit(uri, dimension, value))
    };
    Ok([bytes(least)?, bytes(greatest)?].concat())
}

pub(super) fn build_attribute(
    context: &Context,
    uri: &str,
    attribute: &Attribute,
) -> Result<Handle<sys::Attribute>, Error> {
    let name = c_string("an attribute's name", &attribute.name)?;
    let filters = filter::build(context, &attribute.filters)?;
    let enumeration = attribute
        .enumeration
        .as_deref()
        .map(|name| c_string("an enumeration's name", name))
        .transpose()?;
    let handle = context.make(
        "making an attribute",
        &attribute.name,
        free_attribute,
        |functions, ctx, out| {
            // SAFETY: context, name and out pointer are live.
            unsafe {
                (functions.tiledb_attribute_alloc)(
                    ctx,
                    name.as_ptr(),
                    attribute.datatype.number(),
                    out,
                )
            }
        },
    )?;
    let n_values = if attribute.var_sized { VAR_SIZED } else { attribute.values_per_cell };
    context.call("making an attribute", uri, |functions, ctx| {
        // SAFETY: all handles and strings are live; copies are taken.
        unsafe {
            (functions.tiledb_attribute_set_cell_val_num)(ctx, handle.get(), n_values)
                | (functions.tiledb_attribute_set_nullable)(
                    ctx,
                    handle.get(),
                    attribute.nullable.into(),
                )
                | (functions.tiledb_attribute_set_filter_list)(ctx, handle.get(), filters.get())
                | enumeration.as_ref().map_or(0, |name| {
                    (functions.tiledb_attribute_set_enumeration_name)(
                        ctx,
                        handle.get(),
                        name.as_ptr().cast::<c_char>(),
                    )
                })
        }
    })?;
    Ok(handle)
}

fn check_current_domain(
    uri: &str,
    dimensions: &[Dimension],
    bounds: &[(i128, i128)],
) -> Result<(), Error> {
    if bounds.len() != dimensions.len() {
        return Err(Error::Schema {
            uri: uri.to_owned(),
            message: format!(
                "the current domain has bounds for {} dimensions, but there are {}",
                bounds.len(),
                dimensions.len()
            ),
        });
    }
    Ok(())
}

/// Builds a current domain from `bounds`, one pair for each dimension of `domain`.
pub(super) fn build_current_domain(
    (context, uri): (&Context, &str),
    domain: &Handle<sys::Domain>,
    dimensions: &[Dimension],
    bounds: &[(i128, i128)],
) -> Result<Handle<sys::CurrentDomain>, Error> {
    check_current_domain(uri, dimensions, bounds)?;
    let rectangle =
        context.make("making a current domain", uri, free_rectangle, |functions, ctx, out| {
            // SAFETY: domain and out pointer are live.
            unsafe { (functions.tiledb_ndrectangle_alloc)(ctx, domain.get(), out) }
        })?;
    for (dimension_idx, (dimension, bounds)) in dimensions.iter().zip(bounds).enumerate() {
        let bytes = bounds_bytes(uri, dimension, *bounds)?;
        let (least, greatest) = bytes.split_at(bytes.len() / 2);
        let size = least.len() as u64;
        let mut range = sys::Range {
            min: least.as_ptr().cast(),
            min_size: size,
            max: greatest.as_ptr().cast(),
            max_size: size,
        };
        context.call("making a current domain", uri, |functions, ctx| {
            // SAFETY: the rectangle is live; the range points to coordinates of the dimension's
            // type, which are copied.
            unsafe {
                (functions.tiledb_ndrectangle_set_range)(
                    ctx,
                    rectangle.get(),
                    dimension_idx as u32,
                    &raw mut range,
                )
            }
        })?;
    }
    let current = context.make(
        "making a current domain",
        uri,
        free_current_domain,
        |functions, ctx, out| {
            // SAFETY: context and out pointer are live.
            unsafe { (functions.tiledb_current_domain_create)(ctx, out) }
        },
    )?;
    context.call("making a current domain", uri, |functions, ctx| {
        // SAFETY: both handles are live; a copy is taken.
        unsafe {
            (functions.tiledb_current_domain_set_ndrectangle)(ctx, current.get(), rectangle.get())
        }
    })?;
    Ok(current)
}
