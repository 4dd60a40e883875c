//! The parts of an experiment that libtiledb writes.

use std::sync::Arc;

use storage::Config;
use tiledb::{Array, Context, Group, MetadataValue, ObjectType, WriteOrder, WriteQuery};

use super::check::folder_of;
use crate::Error;

/// Size limits of one enumeration, and of all enumerations of an array, unless the config sets
/// them. libtiledb's own limits of 10 and 50 MiB are full with about 300,000 names of cells.
const ENUMERATIONS: [(&str, u64); 2] =
    [("sm.enumerations_max_size", 1 << 32), ("sm.enumerations_max_total_size", 1 << 33)];

/// A context for writing at `uri`.
pub(super) fn context(uri: &str, config: &Config) -> Result<Context, Error> {
    let mut config = storage::complete_config(uri, config)?;
    for (name, bytes) in ENUMERATIONS {
        config.entry(name.to_owned()).or_insert_with(|| bytes.to_string());
    }
    Ok(Context::new(&config)?)
}

/// Creates the folder at `uri`, in which nothing may be yet, and other folders.
pub(super) fn create_folders(context: &Context, uri: &str, others: &[&str]) -> Result<(), Error> {
    let vfs = tiledb::Vfs::new(context)?;
    if vfs.is_file(uri)? || (vfs.is_dir(uri)? && !vfs.ls(uri)?.is_empty()) {
        return Err(storage::DestinationError::Exists { uri: uri.to_owned() }.into());
    }
    for folder in [uri].iter().chain(others) {
        if !vfs.is_dir(folder)? {
            vfs.create_dir(folder)?;
        }
    }
    Ok(())
}

/// Adds metadata to a new array.
pub(super) fn mark(
    context: &Context,
    uri: &str,
    metadata: &[(&str, MetadataValue)],
) -> Result<(), Error> {
    let array = Array::open_for_writing(context, uri, None)?;
    for (key, value) in metadata {
        array.put_metadata(key, value)?;
    }
    Ok(array.close()?)
}

/// Creates a group of members in its folder. The metadata that make it a SOMA object come last: a
/// group without them opens as none.
pub(super) fn create_group(
    context: &Context,
    uri: &str,
    metadata: &[(&str, MetadataValue)],
    members: &[(&str, ObjectType)],
) -> Result<(), Error> {
    Group::create(context, uri)?;
    let group = Group::open_for_writing(context, uri)?;
    for (member, _) in members {
        group.add_member(&folder_of(member), true, Some(member))?;
    }
    group.close()?;
    let group = Group::open_for_writing(context, uri)?;
    for (key, value) in metadata {
        group.put_metadata(key, value)?;
    }
    Ok(group.close()?)
}

/// Opens an array for writing cells in the array's own order.
pub(super) fn open_write(context: &Context, uri: &str) -> Result<WriteQuery, Error> {
    let array = Arc::new(Array::open_for_writing(context, uri, None)?);
    Ok(WriteQuery::new(&array, WriteOrder::Global)?)
}

/// Memory for consolidation, unless the config sets it: 2 GiB, a sixteenth of it for buffers. By
/// default libtiledb takes up to 10 GiB, and fills a sixth of that with zeros, even for a small
/// array.
const CONSOLIDATION_MEMORY: [(&str, u64); 4] = [
    ("sm.mem.total_budget", 2 << 30),
    ("sm.mem.consolidation.buffers_weight", 1),
    ("sm.mem.consolidation.reader_weight", 12),
    ("sm.mem.consolidation.writer_weight", 3),
];

/// Merges the fragments of an array, with a timestamp for each cell, and its metadata, and removes
/// the merged ones.
pub(super) fn consolidate(context: &Context, uri: &str) -> Result<(), Error> {
    for mode in ["fragments", "fragment_meta", "commits"] {
        let mut changes = vec![
            ("sm.consolidation.mode", mode.to_owned()),
            ("sm.consolidation.with_timestamps", "true".to_owned()),
            ("sm.vacuum.mode", mode.to_owned()),
        ];
        let own =
            CONSOLIDATION_MEMORY.iter().filter(|(name, _)| !context.config().contains_key(*name));
        changes.extend(own.map(|(name, value)| (*name, value.to_string())));
        let upkeep = context.with(&changes)?;
        Array::consolidate(&upkeep, uri)?;
        Array::vacuum(&upkeep, uri)?;
    }
    Ok(())
}
