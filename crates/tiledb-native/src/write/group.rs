//! Creates groups.
//!
//! Specification: `format_spec/group.md` and `group_file_hierarchy.md`.

use std::fs;
use std::path::Path;

use super::array::is_array;
use super::new_file::{StagedFolder, absolute, sync_folder, timestamped, write_new};
use super::{generic_tile, named_values, schema};
use crate::error::Error;
use crate::group::{GroupMember, UNKNOWN_KIND};
use tiledb::MetadataValue;

/// The file that makes a folder a group.
const MARKER: &str = "__tiledb_group.tdb";
/// The folder of the lists of members.
const FOLDER: &str = "__group";
/// The version of the format of groups and of their members.
const VERSION: u32 = 2;

/// Creates a group in `folder`, with members and metadata as of `timestamp`, in milliseconds since
/// 1970.
///
/// Metadata come first, which readers ignore as long as there is no group. Then the folder of the
/// list of members, which makes the group, appears whole. So an incomplete group is not a group,
/// and a failed call can be repeated.
///
/// # Errors
/// [`Error::Group`] if there is a group or an array already, or a member's name comes twice;
/// [`Error::Metadata`] for a value that cannot be stored; [`Error::Storage`].
pub fn write_group(
    folder: impl AsRef<Path>,
    members: &[GroupMember],
    metadata: &[(&str, MetadataValue)],
    timestamp: u64,
) -> Result<(), Error> {
    let root = absolute(folder.as_ref());
    let failed = |problem| Error::Group { place: root.display().to_string(), problem };
    let (marker, list) = (root.join(MARKER), root.join(FOLDER));
    if marker.exists() || list.exists() {
        return Err(failed("there is a group already".to_owned()));
    }
    if is_array(&root) {
        return Err(failed("there is an array already".to_owned()));
    }
    let content = content(members).map_err(failed)?;
    let details = generic_tile::file(schema::VERSION, &content).map_err(failed)?;
    named_values::remove_leftover(&root)?;
    named_values::write(&root, metadata, timestamp)?;
    let staged = StagedFolder::create(&root)?;
    if !members.is_empty() {
        let name = format!("{}_{VERSION}", timestamped(&root, (timestamp, timestamp)));
        write_new(&staged.path().join(name), &details)?;
    }
    // If this fails, another call may have made a group here, which stays.
    staged.publish(FOLDER)?;
    let published = write_new(&marker, &[]).and_then(|()| sync_folder(&root));
    if published.is_err() {
        // A group that is reported as failed must not count. If this fails, it is whole.
        for path in [&marker, &list] {
            drop(fs::remove_file(path).or_else(|_| fs::remove_dir_all(path)));
        }
    }
    published
}

/// The version, the number of members, then for each: the version, its kind, whether its place is
/// relative, the place, whether it has a name, the name, whether it was deleted.
fn content(members: &[GroupMember]) -> Result<Vec<u8>, String> {
    let mut sorted: Vec<_> = members.iter().collect();
    sorted.sort_by_key(|member| &member.name);
    if let Some([member, _]) = sorted.array_windows().find(|[a, b]| a.name == b.name) {
        return Err(format!("member {:?} comes twice", member.name));
    }
    let mut out = VERSION.to_le_bytes().to_vec();
    // The specification says 32 bits; libtiledb writes and reads 64.
    out.extend_from_slice(&(members.len() as u64).to_le_bytes());
    for member in sorted {
        out.extend_from_slice(&VERSION.to_le_bytes());
        out.push(member.kind.map_or(UNKNOWN_KIND, |kind| kind.number() as u8));
        out.push(member.is_relative.into());
        put_text(&member.uri, &mut out);
        out.push(1);
        put_text(&member.name, &mut out);
        out.push(0);
    }
    Ok(out)
}

/// Appends a text after its length.
fn put_text(text: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(&(text.len() as u64).to_le_bytes());
    out.extend_from_slice(text.as_bytes());
}
