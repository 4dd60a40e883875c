//! Arrays: creating and opening them, their schema, metadata, extent and upkeep.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::libtiledb::context::{Context, Handle};
use crate::libtiledb::ffi::c_string;
use crate::libtiledb::metadata::{RawEntry, data_pointer, read_all, stored};
use crate::libtiledb::{enumeration, query, schema, sys};
use crate::{Condition, Enumeration, Error, Evolution, MetadataValue, Schema};

/// An open array.
///
/// Close an array whose metadata was written with [`Array::close`]: dropping it loses that
/// metadata.
pub struct Array {
    handle: Handle<sys::Array>,
    /// Guards everything that libtiledb loads into the open array at the first call without a lock
    /// of its own.
    lazy: Mutex<()>,
    uri: String,
    schema: Schema,
}

// SAFETY: libtiledb allows several queries on one open array from several threads. Whatever it
// loads into the array lazily and unguarded (metadata, the extent, enumerations), and whatever
// writes into it (metadata), is only called while `lazy` is locked.
unsafe impl Sync for Array {}

impl std::fmt::Debug for Array {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Array").field("uri", &self.uri).finish_non_exhaustive()
    }
}

fn free(functions: &sys::Functions, array: &mut *mut sys::Array) {
    // SAFETY: the handle owns the object and frees it once; freeing closes it, and drops metadata
    // that was not stored.
    unsafe { (functions.tiledb_array_free)(array) }
}

impl Array {
    /// Creates an array.
    pub fn create(context: &Context, uri: &str, schema: &Schema) -> Result<(), Error> {
        schema::create(context, uri, schema)
    }

    /// Opens an array for reading, as it was at `timestamp` (milliseconds since 1970) if given.
    pub fn open(context: &Context, uri: &str, timestamp: Option<u64>) -> Result<Self, Error> {
        Self::open_as(context, uri, 0, timestamp)
    }

    /// Opens an array for writing, at `timestamp` (milliseconds since 1970) if given, otherwise
    /// now.
    ///
    /// Cells are on storage when their write is finished, metadata when [`Self::close`] returns.
    pub fn open_for_writing(
        context: &Context,
        uri: &str,
        timestamp: Option<u64>,
    ) -> Result<Self, Error> {
        Self::open_as(context, uri, 1, timestamp)
    }

    fn open_as(
        context: &Context,
        uri: &str,
        mode: i32,
        timestamp: Option<u64>,
    ) -> Result<Self, Error> {
        let c_uri = c_string("a URI", uri)?;
        let handle = context.make("opening an array", uri, free, |functions, ctx, out| {
            // SAFETY: context, string and out pointer are live.
            unsafe { (functions.tiledb_array_alloc)(ctx, c_uri.as_ptr(), out) }
        })?;
        if let Some(end) = timestamp {
            context.call("opening an array", uri, |functions, ctx| {
                // SAFETY: the array is live and not open.
                unsafe { (functions.tiledb_array_set_open_timestamp_end)(ctx, handle.get(), end) }
            })?;
        }
        context.call("opening an array", uri, |functions, ctx| {
            // SAFETY: the array is live and not open.
            unsafe { (functions.tiledb_array_open)(ctx, handle.get(), mode) }
        })?;
        let schema = schema::read(context, uri, |functions, ctx, out| {
            // SAFETY: the array is open, the out pointer live.
            unsafe { (functions.tiledb_array_get_schema)(ctx, handle.get(), out) }
        })?;
        Ok(Self { handle, lazy: Mutex::new(()), uri: uri.to_owned(), schema })
    }

    /// Closes the array; its written metadata is then on storage.
    pub fn close(self) -> Result<(), Error> {
        self.call("closing an array", |functions, ctx, array| {
            // SAFETY: the array is live and open.
            unsafe { (functions.tiledb_array_close)(ctx, array) }
        })
    }

    /// The array's URI.
    pub fn uri(&self) -> &str {
        &self.uri
    }

    /// Its schema.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// The context in which it was opened.
    pub fn context(&self) -> &Context {
        self.handle.context()
    }

    pub(crate) fn raw(&self) -> *mut sys::Array {
        self.handle.get()
    }

    fn lock(&self) -> MutexGuard<'_, ()> {
        // The lock guards none of our data, so a panic cannot have left it inconsistent.
        self.lazy.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the values of an enumeration. [`crate::Attribute::enumeration`] names that of an
    /// attribute.
    pub fn enumeration(&self, name: &str) -> Result<Enumeration, Error> {
        let c_name = c_string("an enumeration's name", name)?;
        let _guard = self.lock();
        enumeration::read(self.context(), &self.uri, name, |functions, ctx, out| {
            // SAFETY: the array is open; string and out pointer are live.
            unsafe {
                (functions.tiledb_array_get_enumeration)(ctx, self.raw(), c_name.as_ptr(), out)
            }
        })
    }

    /// The least and the greatest written coordinate of each dimension, both included; `None` for
    /// an empty array.
    ///
    /// # Errors
    /// A dimension's coordinates are not integers.
    pub fn non_empty_domain(&self) -> Result<Option<Vec<(i128, i128)>>, Error> {
        let _guard = self.lock();
        let mut bounds = Vec::with_capacity(self.schema.dimensions.len());
        for (dimension_idx, dimension) in self.schema.dimensions.iter().enumerate() {
            let size =
                dimension.domain.and_then(|_| dimension.datatype.size()).ok_or_else(|| {
                    Error::Column {
                        column: dimension.name.clone(),
                        uri: self.uri.clone(),
                        message: format!(
                            "coordinates of type {:?} have no integer extent",
                            dimension.datatype
                        ),
                    }
                })?;
            let (mut both, mut is_empty) = ([0_u8; 16], 0);
            self.call("reading the extent of an array", |functions, ctx, array| {
                // SAFETY: the array is open, the index below the number of dimensions; two integers
                // fit into 16 bytes.
                unsafe {
                    (functions.tiledb_array_get_non_empty_domain_from_index)(
                        ctx,
                        array,
                        dimension_idx as u32,
                        both.as_mut_ptr().cast(),
                        &raw mut is_empty,
                    )
                }
            })?;
            if is_empty != 0 {
                return Ok(None);
            }
            let bound =
                |at: usize| dimension.datatype.integer(&both[at..at + size]).unwrap_or_default();
            bounds.push((bound(0), bound(size)));
        }
        Ok(Some(bounds))
    }

    /// Stores a metadata value when [`Self::close`] is called; the array must be open for writing.
    pub fn put_metadata(&self, key: &str, value: &MetadataValue) -> Result<(), Error> {
        let c_key = c_string("a metadata key", key)?;
        let (datatype, n_values, data) = stored(key, value)?;
        let _guard = self.lock();
        self.call("writing metadata", |functions, ctx, array| {
            // SAFETY: all pointers are live; the value is copied.
            unsafe {
                (functions.tiledb_array_put_metadata)(
                    ctx,
                    array,
                    c_key.as_ptr(),
                    datatype.number(),
                    n_values,
                    data_pointer(&data),
                )
            }
        })
    }

    /// Reads all metadata, sorted by key.
    pub fn metadata(&self) -> Result<Vec<(String, MetadataValue)>, Error> {
        let _guard = self.lock();
        let count = |n_keys: &mut u64| {
            self.call("reading metadata", |functions, ctx, array| {
                // SAFETY: array and out pointer are live.
                unsafe { (functions.tiledb_array_get_metadata_num)(ctx, array, n_keys) }
            })
        };
        let entry = |key_idx: u64, entry: &mut RawEntry| {
            self.call("reading metadata", |functions, ctx, array| {
                // SAFETY: all pointers are live and the index is below the count.
                unsafe {
                    (functions.tiledb_array_get_metadata_from_index)(
                        ctx,
                        array,
                        key_idx,
                        &raw mut entry.key,
                        &raw mut entry.key_length,
                        &raw mut entry.datatype,
                        &raw mut entry.n_values,
                        &raw mut entry.data,
                    )
                }
            })
        };
        // SAFETY: libtiledb fills the entries, and its memory lives as long as the array is open
        // and is not changed under the lock.
        unsafe { read_all(count, entry) }
    }

    /// Changes the schema.
    pub fn evolve(context: &Context, uri: &str, evolution: &Evolution) -> Result<(), Error> {
        schema::evolve(context, uri, evolution)
    }

    /// Deletes the cells that match `condition`, at `timestamp` (milliseconds since 1970) if given,
    /// otherwise now.
    pub fn delete(
        context: &Context,
        uri: &str,
        timestamp: Option<u64>,
        condition: &Condition,
    ) -> Result<(), Error> {
        query::delete(context, &Self::open_as(context, uri, 2, timestamp)?, condition)
    }

    /// Merges the fragments with these names, the last parts of their URIs, into one.
    ///
    /// The order of cells may change if fragments that lie between them in time overlap them, and
    /// merging drops the times of cells (before format 15).
    pub fn consolidate_fragments(
        context: &Context,
        uri: &str,
        names: &[&str],
    ) -> Result<(), Error> {
        let c_uri = c_string("a URI", uri)?;
        let c_names: Vec<_> = names
            .iter()
            .map(|name| c_string("a fragment's name", name))
            .collect::<Result<_, _>>()?;
        let mut pointers: Vec<_> = c_names.iter().map(|name| name.as_ptr()).collect();
        context.call("consolidating an array", uri, |functions, ctx| {
            // SAFETY: strings, the list of as many pointers to them, and the configuration are
            // live; libtiledb copies the names.
            unsafe {
                (functions.tiledb_array_consolidate_fragments)(
                    ctx,
                    c_uri.as_ptr(),
                    pointers.as_mut_ptr(),
                    pointers.len() as u64,
                    context.raw_config(),
                )
            }
        })
    }

    /// Merges fragments like [`Self::consolidate`], with some parameters changed.
    pub fn consolidate_with(
        context: &Context,
        uri: &str,
        changes: &[(&str, String)],
    ) -> Result<(), Error> {
        let config = context.config_with(changes)?;
        Self::consolidate_by(context, uri, config.raw())
    }

    /// Merges fragments, according to the context's `sm.consolidation.*` parameters.
    pub fn consolidate(context: &Context, uri: &str) -> Result<(), Error> {
        Self::consolidate_by(context, uri, context.raw_config())
    }

    fn consolidate_by(context: &Context, uri: &str, config: *mut sys::Config) -> Result<(), Error> {
        let c_uri = c_string("a URI", uri)?;
        context.call("consolidating an array", uri, |functions, ctx| {
            // SAFETY: the string is live, and so is the configuration, which the caller owns.
            unsafe { (functions.tiledb_array_consolidate)(ctx, c_uri.as_ptr(), config) }
        })
    }

    /// Removes the fragments that consolidation replaced, according to the context's `sm.vacuum.*`
    /// parameters.
    pub fn vacuum(context: &Context, uri: &str) -> Result<(), Error> {
        let c_uri = c_string("a URI", uri)?;
        context.call("vacuuming an array", uri, |functions, ctx| {
            // SAFETY: string and configuration are live.
            unsafe { (functions.tiledb_array_vacuum)(ctx, c_uri.as_ptr(), context.raw_config()) }
        })
    }

    fn call(
        &self,
        operation: &'static str,
        call: impl FnOnce(&sys::Functions, *mut sys::Ctx, *mut sys::Array) -> i32,
    ) -> Result<(), Error> {
        self.context().call(operation, &self.uri, |functions, ctx| call(functions, ctx, self.raw()))
    }
}
