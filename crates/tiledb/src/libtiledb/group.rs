//! Groups: their named members and their metadata.

use std::ptr;

use crate::libtiledb::config::OwnedConfig;
use crate::libtiledb::context::{Context, Handle};
use crate::libtiledb::ffi::{c_string, take_string};
use crate::libtiledb::metadata::{RawEntry, data_pointer, read_all, stored};
use crate::libtiledb::sys;
use crate::{Error, MetadataValue, ObjectType};

/// A member of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Its name in the group.
    pub name: String,
    /// Its absolute URI.
    pub uri: String,
    /// Whether it is a group or an array; `None` if nothing was there when it was added.
    pub kind: Option<ObjectType>,
}

/// An open group.
///
/// Close a group that was written to with [`Group::close`]: dropping it loses the changes.
pub struct Group {
    handle: Handle<sys::Group>,
    uri: String,
}

impl std::fmt::Debug for Group {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Group").field("uri", &self.uri).finish_non_exhaustive()
    }
}

fn free(functions: &sys::Functions, group: &mut *mut sys::Group) {
    // SAFETY: the handle owns the object and frees it once; freeing closes it, and drops metadata
    // that was not stored.
    unsafe { (functions.tiledb_group_free)(group) }
}

impl Group {
    /// Creates an empty group.
    pub fn create(context: &Context, uri: &str) -> Result<(), Error> {
        let c_uri = c_string("a URI", uri)?;
        context.call("creating a group", uri, |functions, ctx| {
            // SAFETY: context and string are live.
            unsafe { (functions.tiledb_group_create)(ctx, c_uri.as_ptr()) }
        })
    }

    /// Opens a group for reading, as it was at `timestamp` (milliseconds since 1970) if given.
    pub fn open(context: &Context, uri: &str, timestamp: Option<u64>) -> Result<Self, Error> {
        let at = timestamp
            .map(|end| context.config_with(&[("sm.group.timestamp_end", end.to_string())]))
            .transpose()?;
        Self::open_as(context, uri, 0, at.as_ref())
    }

    /// Opens a group for writing. Changes appear when [`Self::close`] returns; dropping the group
    /// loses them.
    pub fn open_for_writing(context: &Context, uri: &str) -> Result<Self, Error> {
        Self::open_as(context, uri, 1, None)
    }

    fn open_as(
        context: &Context,
        uri: &str,
        mode: i32,
        config: Option<&OwnedConfig>,
    ) -> Result<Self, Error> {
        let config = config.map_or_else(|| context.raw_config(), OwnedConfig::raw);
        let c_uri = c_string("a URI", uri)?;
        let handle = context.make("opening a group", uri, free, |functions, ctx, out| {
            // SAFETY: context, string and out pointer are live.
            unsafe { (functions.tiledb_group_alloc)(ctx, c_uri.as_ptr(), out) }
        })?;
        context.call("opening a group", uri, |functions, ctx| {
            // SAFETY: group and configuration are live; the group keeps a copy.
            unsafe { (functions.tiledb_group_set_config)(ctx, handle.get(), config) }
        })?;
        context.call("opening a group", uri, |functions, ctx| {
            // SAFETY: the group is live and not open.
            unsafe { (functions.tiledb_group_open)(ctx, handle.get(), mode) }
        })?;
        Ok(Self { handle, uri: uri.to_owned() })
    }

    /// Closes the group; its changes are then on storage.
    pub fn close(self) -> Result<(), Error> {
        self.call("closing a group", |functions, ctx, group| {
            // SAFETY: the group is live and open.
            unsafe { (functions.tiledb_group_close)(ctx, group) }
        })
    }

    /// The group's URI.
    pub fn uri(&self) -> &str {
        &self.uri
    }

    /// The members, in the group's order.
    pub fn members(&self) -> Result<Vec<Member>, Error> {
        let mut n_members = 0;
        self.call("counting members", |functions, ctx, group| {
            // SAFETY: group and out pointer are live.
            unsafe { (functions.tiledb_group_get_member_count)(ctx, group, &raw mut n_members) }
        })?;
        (0..n_members).map(|member_idx| self.member(member_idx)).collect()
    }

    fn member(&self, member_idx: u64) -> Result<Member, Error> {
        let (mut uri, mut name, mut kind) = (ptr::null_mut(), ptr::null_mut(), 0);
        self.call("reading a member", |functions, ctx, group| {
            // SAFETY: all pointers are live and the index is below the count.
            unsafe {
                (functions.tiledb_group_get_member_by_index_v2)(
                    ctx,
                    group,
                    member_idx,
                    &raw mut uri,
                    &raw mut kind,
                    &raw mut name,
                )
            }
        })?;
        let functions = self.handle.context().functions();
        // SAFETY: both are new string handles, or null if the member has no name.
        let (uri, name) = unsafe { (take_string(functions, uri), take_string(functions, name)) };
        let uri = uri.unwrap_or_default();
        let unknown = || Error::Unknown {
            what: "a member of kind",
            value: kind.into(),
            uri: self.uri.clone(),
        };
        let kind = match kind {
            sys::INVALID_OBJECT => None,
            kind => Some(ObjectType::from_number(kind).ok_or_else(unknown)?),
        };
        Ok(Member { name: name.unwrap_or_else(|| uri.clone()), uri, kind })
    }

    /// Adds a member by its path relative to the group, which is also its name.
    pub fn add_relative(&self, name: &str) -> Result<(), Error> {
        self.add_member(name, true, Some(name))
    }

    /// Adds a member by its URI, absolute or relative to the group's, under a name if given.
    pub fn add_member(&self, uri: &str, relative: bool, name: Option<&str>) -> Result<(), Error> {
        let c_uri = c_string("a member's URI", uri)?;
        let c_name = name.map(|name| c_string("a member's name", name)).transpose()?;
        let name = c_name.as_ref().map_or(ptr::null(), |name| name.as_ptr());
        self.call("adding a member", |functions, ctx, group| {
            // SAFETY: group and URI are live, and so is the name, or it is null for none.
            unsafe {
                (functions.tiledb_group_add_member)(
                    ctx,
                    group,
                    c_uri.as_ptr(),
                    relative.into(),
                    name,
                )
            }
        })
    }

    /// Removes a member by its name, or by its URI as it was added if it has no name. What it
    /// refers to stays.
    pub fn remove_member(&self, name_or_uri: &str) -> Result<(), Error> {
        let c_name = c_string("a member's name", name_or_uri)?;
        self.call("removing a member", |functions, ctx, group| {
            // SAFETY: group and string are live.
            unsafe { (functions.tiledb_group_remove_member)(ctx, group, c_name.as_ptr()) }
        })
    }

    /// Writes one file with all metadata; the old ones are replaced, and stay until
    /// [`Self::vacuum_metadata`].
    pub fn consolidate_metadata(context: &Context, uri: &str) -> Result<(), Error> {
        let c_uri = c_string("a URI", uri)?;
        context.call("consolidating the metadata of a group", uri, |functions, ctx| {
            // SAFETY: string and configuration are live.
            unsafe {
                (functions.tiledb_group_consolidate_metadata)(
                    ctx,
                    c_uri.as_ptr(),
                    context.raw_config(),
                )
            }
        })
    }

    /// Removes the files of metadata that consolidation replaced.
    pub fn vacuum_metadata(context: &Context, uri: &str) -> Result<(), Error> {
        let c_uri = c_string("a URI", uri)?;
        context.call("vacuuming the metadata of a group", uri, |functions, ctx| {
            // SAFETY: string and configuration are live.
            unsafe {
                (functions.tiledb_group_vacuum_metadata)(ctx, c_uri.as_ptr(), context.raw_config())
            }
        })
    }

    /// Stores a metadata value when [`Self::close`] is called.
    pub fn put_metadata(&self, key: &str, value: &MetadataValue) -> Result<(), Error> {
        let c_key = c_string("a metadata key", key)?;
        let (datatype, n_values, data) = stored(key, value)?;
        self.call("writing metadata", |functions, ctx, group| {
            // SAFETY: all pointers are live; the value is copied.
            unsafe {
                (functions.tiledb_group_put_metadata)(
                    ctx,
                    group,
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
        let count = |n_keys: &mut u64| {
            self.call("reading metadata", |functions, ctx, group| {
                // SAFETY: group and out pointer are live.
                unsafe { (functions.tiledb_group_get_metadata_num)(ctx, group, n_keys) }
            })
        };
        let entry = |key_idx: u64, entry: &mut RawEntry| {
            self.call("reading metadata", |functions, ctx, group| {
                // SAFETY: all pointers are live and the index is below the count.
                unsafe {
                    (functions.tiledb_group_get_metadata_from_index)(
                        ctx,
                        group,
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
        // SAFETY: libtiledb fills the entries, and its memory lives as long as the group is open.
        unsafe { read_all(count, entry) }
    }

    fn call(
        &self,
        operation: &'static str,
        call: impl FnOnce(&sys::Functions, *mut sys::Ctx, *mut sys::Group) -> i32,
    ) -> Result<(), Error> {
        self.handle
            .context()
            .call(operation, &self.uri, |functions, ctx| call(functions, ctx, self.handle.get()))
    }
}
