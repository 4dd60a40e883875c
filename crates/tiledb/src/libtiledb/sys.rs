//! The C functions of libtiledb that this crate calls, resolved once when the library is loaded.
//!
//! Names, argument orders and constants follow the C API reference of TileDB 2.30
//! (<https://tiledb-inc-tiledb.readthedocs-hosted.com/en/stable/c-api.html>). To call another
//! function, add its line here.

use std::ffi::{c_char, c_int, c_void};

use libloading::Library;

/// Declares opaque C structures.
macro_rules! opaque {
    ($($name:ident),* $(,)?) => {
        $(
            #[repr(C)]
            pub(crate) struct $name {
                _opaque: [u8; 0],
            }
        )*
    };
}

opaque!(
    Array,
    ArraySchema,
    ArraySchemaEvolution,
    Attribute,
    Config,
    Ctx,
    CurrentDomain,
    Dimension,
    Domain,
    Enumeration,
    Error,
    Filter,
    FilterList,
    FragmentInfo,
    Group,
    NdRectangle,
    Query,
    QueryCondition,
    StringHandle,
    Subarray,
    Vfs,
);

/// `TILEDB_INVALID`: neither a group nor an array.
pub(crate) const INVALID_OBJECT: c_int = 0;

/// A range of an n-dimensional rectangle, laid out like `tiledb_range_t`.
#[repr(C)]
pub(crate) struct Range {
    pub(crate) min: *const c_void,
    pub(crate) min_size: u64,
    pub(crate) max: *const c_void,
    pub(crate) max_size: u64,
}

pub(crate) type ObjectCallback = unsafe extern "C" fn(*const c_char, *mut c_void) -> i32;

/// Declares the table of functions and its constructor.
macro_rules! functions {
    ($($name:ident($($argument:ty),*) $(-> $result:ty)?;)*) => {
        /// All functions that are called, resolved from the library.
        pub(crate) struct Functions {
            $(pub(crate) $name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
        }

        impl Functions {
            /// Resolves every function.
            ///
            /// # Safety
            /// `library` must be libtiledb with the declared C API, and stay loaded as long as the
            /// table is used.
            pub(crate) unsafe fn resolve(library: &Library) -> Result<Self, libloading::Error> {
                Ok(Self {
                    $(
                        // SAFETY: the caller guarantees that the library's symbol of this name has
                        // this type.
                        $name: unsafe { *library.get(stringify!($name).as_bytes())? },
                    )*
                })
            }
        }
    };
}

type Out<T> = *mut *mut T;

functions! {
    tiledb_error_message(*mut Error, *mut *const c_char) -> i32;
    tiledb_error_free(*mut *mut Error);
    tiledb_string_view(*mut StringHandle, *mut *const c_char, *mut usize) -> i32;
    tiledb_string_free(*mut *mut StringHandle) -> i32;

    tiledb_config_alloc(Out<Config>, *mut *mut Error) -> i32;
    tiledb_config_free(*mut *mut Config);
    tiledb_config_set(*mut Config, *const c_char, *const c_char, *mut *mut Error) -> i32;

    tiledb_ctx_alloc_with_error(*mut Config, Out<Ctx>, *mut *mut Error) -> i32;
    tiledb_ctx_free(*mut *mut Ctx);
    tiledb_ctx_get_last_error(*mut Ctx, *mut *mut Error) -> i32;
    tiledb_ctx_get_stats(*mut Ctx, *mut *mut c_char) -> i32;
    tiledb_stats_free_str(*mut *mut c_char) -> i32;

    tiledb_object_type(*mut Ctx, *const c_char, *mut c_int) -> i32;

    tiledb_vfs_alloc(*mut Ctx, *mut Config, Out<Vfs>) -> i32;
    tiledb_vfs_free(*mut *mut Vfs);
    tiledb_vfs_is_dir(*mut Ctx, *mut Vfs, *const c_char, *mut i32) -> i32;
    tiledb_vfs_is_file(*mut Ctx, *mut Vfs, *const c_char, *mut i32) -> i32;
    tiledb_vfs_create_dir(*mut Ctx, *mut Vfs, *const c_char) -> i32;
    tiledb_vfs_remove_dir(*mut Ctx, *mut Vfs, *const c_char) -> i32;
    tiledb_vfs_ls(*mut Ctx, *mut Vfs, *const c_char, ObjectCallback, *mut c_void) -> i32;

    tiledb_group_create(*mut Ctx, *const c_char) -> i32;
    tiledb_group_alloc(*mut Ctx, *const c_char, Out<Group>) -> i32;
    tiledb_group_free(*mut *mut Group);
    tiledb_group_set_config(*mut Ctx, *mut Group, *mut Config) -> i32;
    tiledb_group_open(*mut Ctx, *mut Group, c_int) -> i32;
    tiledb_group_close(*mut Ctx, *mut Group) -> i32;
    tiledb_group_put_metadata(*mut Ctx, *mut Group, *const c_char, c_int, u32, *const c_void) -> i32;
    tiledb_group_get_metadata_num(*mut Ctx, *mut Group, *mut u64) -> i32;
    tiledb_group_get_metadata_from_index(*mut Ctx, *mut Group, u64, *mut *const c_char, *mut u32, *mut c_int, *mut u32, *mut *const c_void) -> i32;
    tiledb_group_add_member(*mut Ctx, *mut Group, *const c_char, u8, *const c_char) -> i32;
    tiledb_group_remove_member(*mut Ctx, *mut Group, *const c_char) -> i32;
    tiledb_group_consolidate_metadata(*mut Ctx, *const c_char, *mut Config) -> i32;
    tiledb_group_vacuum_metadata(*mut Ctx, *const c_char, *mut Config) -> i32;
    tiledb_group_get_member_count(*mut Ctx, *mut Group, *mut u64) -> i32;
    tiledb_group_get_member_by_index_v2(*mut Ctx, *mut Group, u64, *mut *mut StringHandle, *mut c_int, *mut *mut StringHandle) -> i32;

    tiledb_array_alloc(*mut Ctx, *const c_char, Out<Array>) -> i32;
    tiledb_array_free(*mut *mut Array);
    tiledb_array_set_open_timestamp_end(*mut Ctx, *mut Array, u64) -> i32;
    tiledb_array_open(*mut Ctx, *mut Array, c_int) -> i32;
    tiledb_array_close(*mut Ctx, *mut Array) -> i32;
    tiledb_array_create(*mut Ctx, *const c_char, *mut ArraySchema) -> i32;
    tiledb_array_consolidate(*mut Ctx, *const c_char, *mut Config) -> i32;
    tiledb_array_consolidate_fragments(*mut Ctx, *const c_char, *mut *const c_char, u64, *mut Config) -> i32;
    tiledb_array_vacuum(*mut Ctx, *const c_char, *mut Config) -> i32;
    tiledb_array_evolve(*mut Ctx, *const c_char, *mut ArraySchemaEvolution) -> i32;
    tiledb_array_get_schema(*mut Ctx, *mut Array, Out<ArraySchema>) -> i32;
    tiledb_array_get_enumeration(*mut Ctx, *mut Array, *const c_char, Out<Enumeration>) -> i32;
    tiledb_array_get_non_empty_domain_from_index(*mut Ctx, *mut Array, u32, *mut c_void, *mut i32) -> i32;
    tiledb_array_put_metadata(*mut Ctx, *mut Array, *const c_char, c_int, u32, *const c_void) -> i32;
    tiledb_array_get_metadata_num(*mut Ctx, *mut Array, *mut u64) -> i32;
    tiledb_array_get_metadata_from_index(*mut Ctx, *mut Array, u64, *mut *const c_char, *mut u32, *mut c_int, *mut u32, *mut *const c_void) -> i32;

    tiledb_array_schema_alloc(*mut Ctx, c_int, Out<ArraySchema>) -> i32;
    tiledb_array_schema_free(*mut *mut ArraySchema);
    tiledb_array_schema_check(*mut Ctx, *mut ArraySchema) -> i32;
    tiledb_array_schema_set_domain(*mut Ctx, *mut ArraySchema, *mut Domain) -> i32;
    tiledb_array_schema_add_attribute(*mut Ctx, *mut ArraySchema, *mut Attribute) -> i32;
    tiledb_array_schema_add_enumeration(*mut Ctx, *mut ArraySchema, *mut Enumeration) -> i32;
    tiledb_array_schema_set_allows_dups(*mut Ctx, *mut ArraySchema, c_int) -> i32;
    tiledb_array_schema_set_capacity(*mut Ctx, *mut ArraySchema, u64) -> i32;
    tiledb_array_schema_set_cell_order(*mut Ctx, *mut ArraySchema, c_int) -> i32;
    tiledb_array_schema_set_tile_order(*mut Ctx, *mut ArraySchema, c_int) -> i32;
    tiledb_array_schema_set_offsets_filter_list(*mut Ctx, *mut ArraySchema, *mut FilterList) -> i32;
    tiledb_array_schema_set_coords_filter_list(*mut Ctx, *mut ArraySchema, *mut FilterList) -> i32;
    tiledb_array_schema_set_validity_filter_list(*mut Ctx, *mut ArraySchema, *mut FilterList) -> i32;
    tiledb_array_schema_get_array_type(*mut Ctx, *mut ArraySchema, *mut c_int) -> i32;
    tiledb_array_schema_get_allows_dups(*mut Ctx, *mut ArraySchema, *mut c_int) -> i32;
    tiledb_array_schema_get_capacity(*mut Ctx, *mut ArraySchema, *mut u64) -> i32;
    tiledb_array_schema_get_cell_order(*mut Ctx, *mut ArraySchema, *mut c_int) -> i32;
    tiledb_array_schema_get_tile_order(*mut Ctx, *mut ArraySchema, *mut c_int) -> i32;
    tiledb_array_schema_get_domain(*mut Ctx, *mut ArraySchema, Out<Domain>) -> i32;
    tiledb_array_schema_get_attribute_num(*mut Ctx, *mut ArraySchema, *mut u32) -> i32;
    tiledb_array_schema_get_attribute_from_index(*mut Ctx, *mut ArraySchema, u32, Out<Attribute>) -> i32;
    tiledb_array_schema_get_offsets_filter_list(*mut Ctx, *mut ArraySchema, Out<FilterList>) -> i32;
    tiledb_array_schema_get_coords_filter_list(*mut Ctx, *mut ArraySchema, Out<FilterList>) -> i32;
    tiledb_array_schema_get_validity_filter_list(*mut Ctx, *mut ArraySchema, Out<FilterList>) -> i32;
    tiledb_array_schema_get_current_domain(*mut Ctx, *mut ArraySchema, Out<CurrentDomain>) -> i32;
    tiledb_array_schema_set_current_domain(*mut Ctx, *mut ArraySchema, *mut CurrentDomain) -> i32;

    tiledb_array_schema_evolution_alloc(*mut Ctx, Out<ArraySchemaEvolution>) -> i32;
    tiledb_array_schema_evolution_free(*mut *mut ArraySchemaEvolution);
    tiledb_array_schema_evolution_add_attribute(*mut Ctx, *mut ArraySchemaEvolution, *mut Attribute) -> i32;
    tiledb_array_schema_evolution_drop_attribute(*mut Ctx, *mut ArraySchemaEvolution, *const c_char) -> i32;
    tiledb_array_schema_evolution_expand_current_domain(*mut Ctx, *mut ArraySchemaEvolution, *mut CurrentDomain) -> i32;
    tiledb_array_schema_evolution_set_timestamp_range(*mut Ctx, *mut ArraySchemaEvolution, u64, u64) -> i32;

    tiledb_current_domain_create(*mut Ctx, Out<CurrentDomain>) -> i32;
    tiledb_current_domain_free(*mut *mut CurrentDomain) -> i32;
    tiledb_current_domain_set_ndrectangle(*mut Ctx, *mut CurrentDomain, *mut NdRectangle) -> i32;
    tiledb_current_domain_get_is_empty(*mut Ctx, *mut CurrentDomain, *mut u32) -> i32;
    tiledb_current_domain_get_ndrectangle(*mut Ctx, *mut CurrentDomain, Out<NdRectangle>) -> i32;
    tiledb_ndrectangle_alloc(*mut Ctx, *mut Domain, Out<NdRectangle>) -> i32;
    tiledb_ndrectangle_free(*mut *mut NdRectangle) -> i32;
    tiledb_ndrectangle_set_range(*mut Ctx, *mut NdRectangle, u32, *mut Range) -> i32;
    tiledb_ndrectangle_get_range(*mut Ctx, *mut NdRectangle, u32, *mut Range) -> i32;

    tiledb_domain_alloc(*mut Ctx, Out<Domain>) -> i32;
    tiledb_domain_free(*mut *mut Domain);
    tiledb_domain_add_dimension(*mut Ctx, *mut Domain, *mut Dimension) -> i32;
    tiledb_domain_get_ndim(*mut Ctx, *mut Domain, *mut u32) -> i32;
    tiledb_domain_get_dimension_from_index(*mut Ctx, *mut Domain, u32, Out<Dimension>) -> i32;
    tiledb_dimension_alloc(*mut Ctx, *const c_char, c_int, *const c_void, *const c_void, Out<Dimension>) -> i32;
    tiledb_dimension_free(*mut *mut Dimension);
    tiledb_dimension_set_filter_list(*mut Ctx, *mut Dimension, *mut FilterList) -> i32;
    tiledb_dimension_get_filter_list(*mut Ctx, *mut Dimension, Out<FilterList>) -> i32;
    tiledb_dimension_get_name(*mut Ctx, *mut Dimension, *mut *const c_char) -> i32;
    tiledb_dimension_get_type(*mut Ctx, *mut Dimension, *mut c_int) -> i32;
    tiledb_dimension_get_domain(*mut Ctx, *mut Dimension, *mut *const c_void) -> i32;
    tiledb_dimension_get_tile_extent(*mut Ctx, *mut Dimension, *mut *const c_void) -> i32;

    tiledb_attribute_alloc(*mut Ctx, *const c_char, c_int, Out<Attribute>) -> i32;
    tiledb_attribute_free(*mut *mut Attribute);
    tiledb_attribute_set_nullable(*mut Ctx, *mut Attribute, u8) -> i32;
    tiledb_attribute_set_filter_list(*mut Ctx, *mut Attribute, *mut FilterList) -> i32;
    tiledb_attribute_set_cell_val_num(*mut Ctx, *mut Attribute, u32) -> i32;
    tiledb_attribute_set_enumeration_name(*mut Ctx, *mut Attribute, *const c_char) -> i32;
    tiledb_attribute_get_name(*mut Ctx, *mut Attribute, *mut *const c_char) -> i32;
    tiledb_attribute_get_type(*mut Ctx, *mut Attribute, *mut c_int) -> i32;
    tiledb_attribute_get_nullable(*mut Ctx, *mut Attribute, *mut u8) -> i32;
    tiledb_attribute_get_cell_val_num(*mut Ctx, *mut Attribute, *mut u32) -> i32;
    tiledb_attribute_get_filter_list(*mut Ctx, *mut Attribute, Out<FilterList>) -> i32;
    tiledb_attribute_get_enumeration_name(*mut Ctx, *mut Attribute, *mut *mut StringHandle) -> i32;

    tiledb_enumeration_alloc(*mut Ctx, *const c_char, c_int, u32, c_int, *const c_void, u64, *const c_void, u64, Out<Enumeration>) -> i32;
    tiledb_enumeration_free(*mut *mut Enumeration);
    tiledb_enumeration_get_type(*mut Ctx, *mut Enumeration, *mut c_int) -> i32;
    tiledb_enumeration_get_ordered(*mut Ctx, *mut Enumeration, *mut c_int) -> i32;
    tiledb_enumeration_get_cell_val_num(*mut Ctx, *mut Enumeration, *mut u32) -> i32;
    tiledb_enumeration_get_data(*mut Ctx, *mut Enumeration, *mut *const c_void, *mut u64) -> i32;
    tiledb_enumeration_get_offsets(*mut Ctx, *mut Enumeration, *mut *const c_void, *mut u64) -> i32;

    tiledb_filter_alloc(*mut Ctx, c_int, Out<Filter>) -> i32;
    tiledb_filter_free(*mut *mut Filter);
    tiledb_filter_get_type(*mut Ctx, *mut Filter, *mut c_int) -> i32;
    tiledb_filter_set_option(*mut Ctx, *mut Filter, c_int, *const c_void) -> i32;
    tiledb_filter_get_option(*mut Ctx, *mut Filter, c_int, *mut c_void) -> i32;
    tiledb_filter_list_alloc(*mut Ctx, Out<FilterList>) -> i32;
    tiledb_filter_list_free(*mut *mut FilterList);
    tiledb_filter_list_add_filter(*mut Ctx, *mut FilterList, *mut Filter) -> i32;
    tiledb_filter_list_get_nfilters(*mut Ctx, *mut FilterList, *mut u32) -> i32;
    tiledb_filter_list_get_filter_from_index(*mut Ctx, *mut FilterList, u32, Out<Filter>) -> i32;

    tiledb_query_alloc(*mut Ctx, *mut Array, c_int, Out<Query>) -> i32;
    tiledb_query_free(*mut *mut Query);
    tiledb_query_set_layout(*mut Ctx, *mut Query, c_int) -> i32;
    tiledb_query_set_subarray_t(*mut Ctx, *mut Query, *mut Subarray) -> i32;
    tiledb_query_set_data_buffer(*mut Ctx, *mut Query, *const c_char, *mut c_void, *mut u64) -> i32;
    tiledb_query_set_offsets_buffer(*mut Ctx, *mut Query, *const c_char, *mut u64, *mut u64) -> i32;
    tiledb_query_set_validity_buffer(*mut Ctx, *mut Query, *const c_char, *mut u8, *mut u64) -> i32;
    tiledb_query_set_condition(*mut Ctx, *mut Query, *const QueryCondition) -> i32;
    tiledb_query_submit(*mut Ctx, *mut Query) -> i32;
    tiledb_query_finalize(*mut Ctx, *mut Query) -> i32;
    tiledb_query_get_status(*mut Ctx, *mut Query, *mut c_int) -> i32;

    tiledb_query_condition_alloc(*mut Ctx, Out<QueryCondition>) -> i32;
    tiledb_query_condition_free(*mut *mut QueryCondition);
    tiledb_query_condition_init(*mut Ctx, *mut QueryCondition, *const c_char, *const c_void, u64, c_int) -> i32;
    tiledb_query_condition_alloc_set_membership(*mut Ctx, *const c_char, *const c_void, u64, *const c_void, u64, c_int, Out<QueryCondition>) -> i32;
    tiledb_query_condition_combine(*mut Ctx, *const QueryCondition, *const QueryCondition, c_int, Out<QueryCondition>) -> i32;

    tiledb_subarray_alloc(*mut Ctx, *const Array, Out<Subarray>) -> i32;
    tiledb_subarray_free(*mut *mut Subarray);
    tiledb_subarray_add_range(*mut Ctx, *mut Subarray, u32, *const c_void, *const c_void, *const c_void) -> i32;

    tiledb_fragment_info_alloc(*mut Ctx, *const c_char, Out<FragmentInfo>) -> i32;
    tiledb_fragment_info_free(*mut *mut FragmentInfo);
    tiledb_fragment_info_set_config(*mut Ctx, *mut FragmentInfo, *mut Config) -> i32;
    tiledb_fragment_info_load(*mut Ctx, *mut FragmentInfo) -> i32;
    tiledb_fragment_info_get_fragment_num(*mut Ctx, *mut FragmentInfo, *mut u32) -> i32;
    tiledb_fragment_info_get_fragment_uri(*mut Ctx, *mut FragmentInfo, u32, *mut *const c_char) -> i32;
    tiledb_fragment_info_get_fragment_size(*mut Ctx, *mut FragmentInfo, u32, *mut u64) -> i32;
    tiledb_fragment_info_get_cell_num(*mut Ctx, *mut FragmentInfo, u32, *mut u64) -> i32;
    tiledb_fragment_info_get_timestamp_range(*mut Ctx, *mut FragmentInfo, u32, *mut u64, *mut u64) -> i32;
    tiledb_fragment_info_get_non_empty_domain_from_index(*mut Ctx, *mut FragmentInfo, u32, u32, *mut c_void) -> i32;
    tiledb_fragment_info_get_mbr_num(*mut Ctx, *mut FragmentInfo, u32, *mut u64) -> i32;
}
