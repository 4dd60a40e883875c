//! Array schemas as plain data, read from an array or given to make one.

use std::ffi::{c_char, c_void};
use std::ptr;

use crate::context::{Context, Handle, bytes, c_string, from_c, take_string};
use crate::sys::Functions;
use crate::{Datatype, Enumeration, Error, Filter, filter, sys};

/// Dense or sparse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArrayType {
    /// Every cell of the domain has a value.
    Dense,
    /// Only the cells that were written.
    Sparse,
}

/// The order of tiles in an array, or of cells in a tile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CellOrder {
    /// The last dimension runs fastest.
    RowMajor,
    /// The first dimension runs fastest.
    ColumnMajor,
    /// Along a Hilbert curve.
    Hilbert,
}

impl CellOrder {
    fn from_raw(number: i32, uri: &str) -> Result<Self, Error> {
        match number {
            0 => Ok(Self::RowMajor),
            1 => Ok(Self::ColumnMajor),
            4 => Ok(Self::Hilbert),
            _ => {
                Err(Error::Unknown { what: "an order", value: number.into(), uri: uri.to_owned() })
            }
        }
    }

    fn raw(self) -> i32 {
        match self {
            Self::RowMajor => 0,
            Self::ColumnMajor => 1,
            Self::Hilbert => 4,
        }
    }
}

/// A dimension.
#[derive(Debug, Clone, PartialEq)]
pub struct Dimension {
    /// Its name.
    pub name: String,
    /// The type of its coordinates.
    pub datatype: Datatype,
    /// The least and the greatest coordinate, both included; `None` when coordinates are not integers.
    pub domain: Option<(i128, i128)>,
    /// The extent of a tile; `None` where there is none, or when coordinates are not integers.
    pub tile_extent: Option<i128>,
    /// Its filters.
    pub filters: Vec<Filter>,
}

/// An attribute.
#[derive(Debug, Clone, PartialEq)]
pub struct Attribute {
    /// Its name.
    pub name: String,
    /// The type of its values, or of its codes when it has an enumeration.
    pub datatype: Datatype,
    /// Whether a cell may have no value.
    pub nullable: bool,
    /// Whether a cell has any number of values, as strings have.
    pub var_sized: bool,
    /// The values per cell when it is not var-sized.
    pub values_per_cell: u32,
    /// Its filters.
    pub filters: Vec<Filter>,
    /// The name of the enumeration whose values its codes stand for.
    pub enumeration: Option<String>,
}

impl Attribute {
    /// An attribute of one value per cell, or of text when `datatype` is a string type; not nullable, no filters.
    pub fn new(name: &str, datatype: Datatype) -> Self {
        Self {
            name: name.to_owned(),
            datatype,
            nullable: false,
            var_sized: datatype.is_string() || datatype == Datatype::Blob,
            values_per_cell: 1,
            filters: Vec::new(),
            enumeration: None,
        }
    }
}

/// The schema of an array.
#[derive(Debug, Clone, PartialEq)]
pub struct Schema {
    /// Dense or sparse.
    pub array_type: ArrayType,
    /// The dimensions, slowest first.
    pub dimensions: Vec<Dimension>,
    /// The attributes.
    pub attributes: Vec<Attribute>,
    /// The order of tiles.
    pub tile_order: CellOrder,
    /// The order of cells in a tile.
    pub cell_order: CellOrder,
    /// The cells of a data tile of a sparse array.
    pub capacity: u64,
    /// Whether several cells may have the same coordinates.
    pub allows_duplicates: bool,
    /// The filters of the offsets of var-sized columns.
    pub offsets_filters: Vec<Filter>,
    /// Per dimension the least and the greatest coordinate in use, both included; `None` where the array has no current domain.
    pub current_domain: Option<Vec<(i128, i128)>>,
    /// The enumerations to make with the array. Not filled when a schema is read: see [`crate::Array::enumeration`].
    pub enumerations: Vec<Enumeration>,
}

fn free_schema(functions: &Functions, schema: &mut *mut sys::ArraySchema) {
    // SAFETY: the handle owns the object and frees it once.
    unsafe { (functions.tiledb_array_schema_free)(schema) }
}

fn free_domain(functions: &Functions, domain: &mut *mut sys::Domain) {
    // SAFETY: the handle owns the object and frees it once.
    unsafe { (functions.tiledb_domain_free)(domain) }
}

fn free_dimension(functions: &Functions, dimension: &mut *mut sys::Dimension) {
    // SAFETY: the handle owns the object and frees it once.
    unsafe { (functions.tiledb_dimension_free)(dimension) }
}

fn free_attribute(functions: &Functions, attribute: &mut *mut sys::Attribute) {
    // SAFETY: the handle owns the object and frees it once.
    unsafe { (functions.tiledb_attribute_free)(attribute) }
}

fn free_current_domain(functions: &Functions, domain: &mut *mut sys::CurrentDomain) {
    // SAFETY: the handle owns the object and frees it once. Its status says nothing that could be acted on.
    let _ = unsafe { (functions.tiledb_current_domain_free)(domain) };
}

fn free_rectangle(functions: &Functions, rectangle: &mut *mut sys::NdRectangle) {
    // SAFETY: the handle owns the object and frees it once. Its status says nothing that could be acted on.
    let _ = unsafe { (functions.tiledb_ndrectangle_free)(rectangle) };
}

/// A schema of libtiledb, with where it came from for messages.
struct Raw<'a> {
    context: &'a Context,
    handle: Handle<sys::ArraySchema>,
    uri: &'a str,
}

impl Raw<'_> {
    fn call(
        &self,
        call: impl FnOnce(&Functions, *mut sys::Ctx, *mut sys::ArraySchema) -> i32,
    ) -> Result<(), Error> {
        self.context.call("reading or making a schema", self.uri, |functions, ctx| {
            call(functions, ctx, self.handle.get())
        })
    }

    /// One number of the schema.
    fn number<N: Default>(
        &self,
        get: impl FnOnce(
            &Functions,
        )
            -> unsafe extern "C" fn(*mut sys::Ctx, *mut sys::ArraySchema, *mut N) -> i32,
    ) -> Result<N, Error> {
        let mut number = N::default();
        // SAFETY: the schema is live, the out pointer too.
        self.call(|functions, ctx, schema| unsafe {
            get(functions)(ctx, schema, &raw mut number)
        })?;
        Ok(number)
    }
}

/// Reads a schema that `get` hands out.
pub(crate) fn read(
    context: &Context,
    uri: &str,
    get: impl FnOnce(&Functions, *mut sys::Ctx, *mut *mut sys::ArraySchema) -> i32,
) -> Result<Schema, Error> {
    let raw =
        Raw { context, handle: context.make("reading a schema", uri, free_schema, get)?, uri };
    let domain = context.make("reading a domain", uri, free_domain, |functions, ctx, out| {
        // SAFETY: the schema and the out pointer are live.
        unsafe { (functions.tiledb_array_schema_get_domain)(ctx, raw.handle.get(), out) }
    })?;
    let mut n_dimensions = 0;
    context.call("reading a domain", uri, |functions, ctx| {
        // SAFETY: domain and out pointer are live.
        unsafe { (functions.tiledb_domain_get_ndim)(ctx, domain.get(), &raw mut n_dimensions) }
    })?;
    let dimensions = (0..n_dimensions)
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
        .collect::<Result<Vec<_>, _>>()?;
    let n_attributes: u32 =
        raw.number(|functions| functions.tiledb_array_schema_get_attribute_num)?;
    let attributes = (0..n_attributes)
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
        .collect::<Result<_, _>>()?;
    Ok(Schema {
        array_type: match raw.number(|functions| functions.tiledb_array_schema_get_array_type)? {
            0 => ArrayType::Dense,
            _ => ArrayType::Sparse,
        },
        tile_order: CellOrder::from_raw(
            raw.number(|functions| functions.tiledb_array_schema_get_tile_order)?,
            uri,
        )?,
        cell_order: CellOrder::from_raw(
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
        current_domain: read_current_domain(&raw, &dimensions)?,
        dimensions,
        attributes,
        enumerations: Vec::new(),
    })
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
    let datatype = Datatype::from_raw(number);
    let size = if datatype.is_string() { 0 } else { datatype.size().unwrap_or(0) };
    // SAFETY: the domain is null or two coordinates, the extent null or one; they live as long as the dimension.
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
    Ok(Attribute {
        // SAFETY: a string that ends in zero, and lives as long as the attribute.
        name: unsafe { from_c(name) },
        datatype: Datatype::from_raw(number),
        nullable: nullable != 0,
        var_sized: values_per_cell == u32::MAX,
        values_per_cell,
        filters: filter::read(context, uri, |functions, ctx, out| {
            // SAFETY: the attribute and the out pointer are live.
            unsafe { (functions.tiledb_attribute_get_filter_list)(ctx, attribute.get(), out) }
        })?,
        // SAFETY: a fresh string handle, or null where there is no enumeration.
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
    let mut bounds = Vec::with_capacity(dimensions.len());
    for (dimension_idx, dimension) in dimensions.iter().enumerate() {
        let mut range = sys::Range { min: ptr::null(), min_size: 0, max: ptr::null(), max_size: 0 };
        context.call("reading the current domain", uri, |functions, ctx| {
            // SAFETY: rectangle and range are live, and the index is below the number of dimensions.
            unsafe {
                (functions.tiledb_ndrectangle_get_range)(
                    ctx,
                    rectangle.get(),
                    dimension_idx as u32,
                    &raw mut range,
                )
            }
        })?;
        // SAFETY: libtiledb filled in pointers with their sizes, which live as long as the rectangle.
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

/// Makes an array at `uri` with `schema`.
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
    // SAFETY: the schema is live, here and below, and takes copies of what it is given.
    raw.call(|functions, ctx, out| unsafe {
        (functions.tiledb_array_schema_set_domain)(ctx, out, domain.get())
    })?;
    // SAFETY: as above.
    raw.call(|functions, ctx, out| unsafe {
        (functions.tiledb_array_schema_set_capacity)(ctx, out, schema.capacity)
    })?;
    raw.call(|functions, ctx, out| {
        // SAFETY: as above.
        unsafe { (functions.tiledb_array_schema_set_cell_order)(ctx, out, schema.cell_order.raw()) }
    })?;
    raw.call(|functions, ctx, out| {
        // SAFETY: as above.
        unsafe { (functions.tiledb_array_schema_set_tile_order)(ctx, out, schema.tile_order.raw()) }
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
    if !schema.offsets_filters.is_empty() {
        let list = filter::build(context, &schema.offsets_filters)?;
        raw.call(|functions, ctx, out| {
            // SAFETY: as above.
            unsafe { (functions.tiledb_array_schema_set_offsets_filter_list)(ctx, out, list.get()) }
        })?;
    }
    for enumeration in &schema.enumerations {
        let handle = enumeration.build(context, uri)?;
        raw.call(|functions, ctx, out| {
            // SAFETY: as above.
            unsafe { (functions.tiledb_array_schema_add_enumeration)(ctx, out, handle.get()) }
        })?;
    }
    for attribute in &schema.attributes {
        let handle = build_attribute(context, uri, attribute)?;
        raw.call(|functions, ctx, out| {
            // SAFETY: as above.
            unsafe { (functions.tiledb_array_schema_add_attribute)(ctx, out, handle.get()) }
        })?;
    }
    if let Some(bounds) = &schema.current_domain {
        set_current_domain(&raw, &domain, &schema.dimensions, bounds)?;
    }
    // SAFETY: as above.
    raw.call(|functions, ctx, out| unsafe { (functions.tiledb_array_schema_check)(ctx, out) })?;
    Ok(raw)
}

fn build_domain(
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
                // SAFETY: name, bounds and extent are live, and have the size of the datatype; libtiledb copies them.
                unsafe {
                    (functions.tiledb_dimension_alloc)(
                        ctx,
                        name.as_ptr(),
                        dimension.datatype.raw(),
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
        message: format!("{value} is no coordinate of type {:?}", dimension.datatype),
    }
}

/// The least and the greatest coordinate, one after the other.
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

fn build_attribute(
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
                    attribute.datatype.raw(),
                    out,
                )
            }
        },
    )?;
    let n_values = if attribute.var_sized { u32::MAX } else { attribute.values_per_cell };
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

fn set_current_domain(
    raw: &Raw<'_>,
    domain: &Handle<sys::Domain>,
    dimensions: &[Dimension],
    bounds: &[(i128, i128)],
) -> Result<(), Error> {
    let (context, uri) = (raw.context, raw.uri);
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
            // SAFETY: the rectangle is live; the range points to coordinates of the dimension's type, which are copied.
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
    raw.call(|functions, ctx, schema| {
        // SAFETY: all handles are live; copies are taken.
        unsafe {
            (functions.tiledb_current_domain_set_ndrectangle)(ctx, current.get(), rectangle.get())
                | (functions.tiledb_array_schema_set_current_domain)(ctx, schema, current.get())
        }
    })
}
