//! Fragments: the parts of an array on storage.

use std::ptr;

use crate::libtiledb::context::{Context, Handle};
use crate::libtiledb::ffi::{c_string, from_c};
use crate::libtiledb::sys;
use crate::{Dimension, Error};

/// One fragment of an array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fragment {
    /// Its URI.
    pub uri: String,
    /// Number of its cells.
    pub n_cells: u64,
    /// Its size on storage, in bytes.
    pub n_bytes: u64,
    /// The first and the last time of its cells, in milliseconds since 1970.
    pub timestamps: (u64, u64),
    /// For each dimension the least and the greatest coordinate, both included. Empty if
    /// coordinates are not integers.
    pub non_empty_domain: Vec<(i128, i128)>,
    /// Number of its data tiles, if it is sparse.
    pub n_tiles: u64,
}

/// The fragments of an array, in the order of their timestamps.
pub struct FragmentInfo {
    handle: Handle<sys::FragmentInfo>,
    uri: String,
}

impl std::fmt::Debug for FragmentInfo {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("FragmentInfo").field("uri", &self.uri).finish_non_exhaustive()
    }
}

fn free(functions: &sys::Functions, info: &mut *mut sys::FragmentInfo) {
    // SAFETY: the handle owns the object and frees it once.
    unsafe { (functions.tiledb_fragment_info_free)(info) }
}

impl FragmentInfo {
    /// Loads the metadata of all fragments.
    pub fn load(context: &Context, uri: &str) -> Result<Self, Error> {
        let c_uri = c_string("a URI", uri)?;
        let handle = context.make("reading fragments", uri, free, |functions, ctx, out| {
            // SAFETY: context, string and out pointer are live.
            unsafe { (functions.tiledb_fragment_info_alloc)(ctx, c_uri.as_ptr(), out) }
        })?;
        let info = Self { handle, uri: uri.to_owned() };
        info.call(|functions, ctx, raw| {
            // SAFETY: the object and the configuration are live; a copy is kept.
            unsafe { (functions.tiledb_fragment_info_set_config)(ctx, raw, context.raw_config()) }
        })?;
        // SAFETY: the object is live.
        info.call(|functions, ctx, raw| unsafe {
            (functions.tiledb_fragment_info_load)(ctx, raw)
        })?;
        Ok(info)
    }

    /// Lists the fragments; `dimensions` are those of the array.
    pub fn fragments(&self, dimensions: &[Dimension]) -> Result<Vec<Fragment>, Error> {
        let mut n_fragments = 0;
        self.call(|functions, ctx, raw| {
            // SAFETY: object and out pointer are live.
            unsafe {
                (functions.tiledb_fragment_info_get_fragment_num)(ctx, raw, &raw mut n_fragments)
            }
        })?;
        (0..n_fragments).map(|fragment_idx| self.fragment(fragment_idx, dimensions)).collect()
    }

    fn fragment(&self, idx: u32, dimensions: &[Dimension]) -> Result<Fragment, Error> {
        let mut uri = ptr::null();
        let (mut n_cells, mut n_bytes, mut timestamps, mut n_tiles) = (0, 0, (0, 0), 0);
        self.call(|functions, ctx, raw| {
            // SAFETY: the object and the out pointers are live, and the index is below the count.
            unsafe {
                (functions.tiledb_fragment_info_get_fragment_uri)(ctx, raw, idx, &raw mut uri)
                    | (functions.tiledb_fragment_info_get_cell_num)(ctx, raw, idx, &raw mut n_cells)
                    | (functions.tiledb_fragment_info_get_fragment_size)(
                        ctx,
                        raw,
                        idx,
                        &raw mut n_bytes,
                    )
                    | (functions.tiledb_fragment_info_get_mbr_num)(ctx, raw, idx, &raw mut n_tiles)
                    | (functions.tiledb_fragment_info_get_timestamp_range)(
                        ctx,
                        raw,
                        idx,
                        &raw mut timestamps.0,
                        &raw mut timestamps.1,
                    )
            }
        })?;
        // SAFETY: a string that ends in zero, and lives as long as the object.
        let uri = unsafe { from_c(uri) };
        let non_empty_domain = self.bounds(idx, dimensions)?;
        Ok(Fragment { uri, n_cells, n_bytes, timestamps, non_empty_domain, n_tiles })
    }

    /// The least and the greatest coordinates of a fragment in each dimension, both included.
    fn bounds(&self, idx: u32, dimensions: &[Dimension]) -> Result<Vec<(i128, i128)>, Error> {
        if dimensions.iter().any(|dimension| dimension.domain.is_none()) {
            return Ok(Vec::new());
        }
        (0_u32..)
            .zip(dimensions)
            .map(|(dimension_idx, dimension)| {
                // Room for two integers of at most eight bytes.
                let mut both = [0_u8; 16];
                self.call(|functions, ctx, raw| {
                    // SAFETY: the object is live, the indices in range, and `both` has room for
                    // two coordinates.
                    unsafe {
                        (functions.tiledb_fragment_info_get_non_empty_domain_from_index)(
                            ctx,
                            raw,
                            idx,
                            dimension_idx,
                            both.as_mut_ptr().cast(),
                        )
                    }
                })?;
                let size = dimension.datatype.size().unwrap_or(8);
                let bound = |at: usize| {
                    dimension.datatype.integer(&both[at..at + size]).unwrap_or_default()
                };
                Ok((bound(0), bound(size)))
            })
            .collect()
    }

    fn call(
        &self,
        call: impl FnOnce(&sys::Functions, *mut sys::Ctx, *mut sys::FragmentInfo) -> i32,
    ) -> Result<(), Error> {
        self.handle.context().call("reading fragments", &self.uri, |functions, ctx| {
            call(functions, ctx, self.handle.get())
        })
    }
}
