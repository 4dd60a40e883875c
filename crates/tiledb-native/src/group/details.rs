//! The files in `__group`, which list members.
//!
//! Each is a generic tile: version (u32), number of members (u64), members. In version 1 every file
//! lists all members, so that the last one counts. From version 2 on, which the file's name ends
//! in, files list changes, and a member may be marked as deleted.
//!
//! A member: version (u32), kind (u8, 0 if there was nothing when it was added), whether its URI is
//! relative (u8), URI after its length (u64), whether it has a name (u8), name after its length
//! (u64); in version 2 whether it is deleted (u8).

use std::collections::BTreeMap;

use storage::Files;
use tiledb::ObjectType;

use super::{GROUP_FOLDER, GroupMember};
use crate::cursor::Cursor;
use crate::error::{Error, Fault};
use crate::generic_tile::Source;
use crate::metadata::read_all;
use crate::timestamped_name::{self, Times};
use crate::unsupported::Unsupported;

const WITH_ALL_MEMBERS: u32 = 1;
const WITH_CHANGES: u32 = 2;
/// The kind of a member at whose place libtiledb found nothing when it was added.
pub(crate) const UNKNOWN_KIND: u8 = 0;

/// Members by their names.
type Members = BTreeMap<String, GroupMember>;

/// Reads the members as of `timestamp`, sorted by name.
pub(super) fn load(files: &Files, timestamp: u64) -> Result<Vec<GroupMember>, Error> {
    let paths = current_files(files, timestamp)?;
    let mut members = Members::new();
    for (path, bytes) in paths.iter().zip(read_all(files, &paths)?) {
        let source = Source::new(files, path, bytes.len() as u64).with_loaded(0, &bytes);
        let details = source.read(0)?;
        let damaged = |fault: Fault| fault.in_unfiltered(files.name(path), 0);
        let version = Cursor::new(&details).u32("a group's version").map_err(damaged)?;
        if !(WITH_ALL_MEMBERS..=WITH_CHANGES).contains(&version) {
            let reason = Unsupported::GroupVersion { version };
            return Err(Error::Unsupported { place: files.place(), reason });
        }
        apply(&details, &mut members).map_err(damaged)?;
    }
    Ok(members.into_values().collect())
}

/// Paths of the files that count, oldest first. If the last one lists all members, it is the only
/// one.
fn current_files(files: &Files, timestamp: u64) -> Result<Vec<String>, Error> {
    let entries = files.list(GROUP_FOLDER)?;
    let mut found: Vec<(Times, &str)> = entries
        .iter()
        .filter(|entry| !entry.name.contains('.'))
        .filter_map(|entry| Some((timestamped_name::parse(&entry.name)?, entry.name.as_str())))
        .filter(|(times, _)| times.end <= timestamp)
        .collect();
    found.sort_by_key(|(times, _)| (times.start, times.end));
    if let Some(last @ (times, _)) = found.last()
        && times.version.is_none()
    {
        found = vec![*last];
    }
    Ok(found.into_iter().map(|(_, name)| format!("{GROUP_FOLDER}/{name}")).collect())
}

fn apply(bytes: &[u8], members: &mut Members) -> Result<(), Fault> {
    let mut cursor = Cursor::new(bytes);
    if cursor.u32("a group's version")? == WITH_ALL_MEMBERS {
        members.clear();
    }
    let n_members = cursor.u64("the number of members")?;
    for _ in 0..n_members {
        let (member, is_deleted) = member(&mut cursor)?;
        if is_deleted {
            members.remove(&member.name);
        } else {
            members.insert(member.name.clone(), member);
        }
    }
    Ok(())
}

/// Reads a member, and whether it is deleted.
fn member(cursor: &mut Cursor<'_>) -> Result<(GroupMember, bool), Fault> {
    let at = cursor.at();
    let version = cursor.u32("a member's version")?;
    if !(WITH_ALL_MEMBERS..=WITH_CHANGES).contains(&version) {
        return Err(Fault::at(at, format!("a member of version {version}")));
    }
    let at = cursor.at();
    let kind = match cursor.u8("a member's kind")? {
        UNKNOWN_KIND => None,
        kind => Some(
            ObjectType::from_number(kind.into())
                .ok_or_else(|| Fault::at(at, format!("a member of kind {kind}")))?,
        ),
    };
    let is_relative = cursor.flag("whether a member is relative")?;
    let uri = long_text(cursor, "a member's URI")?;
    let name = if cursor.flag("whether a member has a name")? {
        long_text(cursor, "a member's name")?
    } else {
        uri.clone()
    };
    let is_deleted = version >= WITH_CHANGES && cursor.flag("whether a member is deleted")?;
    Ok((GroupMember { name, uri, is_relative, kind }, is_deleted))
}

/// Text after its length as a u64.
fn long_text(cursor: &mut Cursor<'_>, what: &str) -> Result<String, Fault> {
    let len = cursor.u64(what)?;
    cursor.text(usize::try_from(len).unwrap_or(usize::MAX), what)
}

#[cfg(any(test, somafeed_fuzz))]
pub(crate) fn parse(bytes: &[u8]) -> Result<Vec<GroupMember>, Fault> {
    let mut members = Members::new();
    apply(bytes, &mut members)?;
    Ok(members.into_values().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(version: u32, members: &[(&str, Option<&str>, bool)]) -> Vec<u8> {
        stored_as(2, version, members)
    }

    fn stored_as(kind: u8, version: u32, members: &[(&str, Option<&str>, bool)]) -> Vec<u8> {
        let mut out = version.to_le_bytes().to_vec();
        out.extend((members.len() as u64).to_le_bytes());
        for (uri, name, is_deleted) in members {
            out.extend(version.to_le_bytes());
            out.extend([kind, 1]);
            out.extend((uri.len() as u64).to_le_bytes());
            out.extend(uri.as_bytes());
            out.push(name.is_some().into());
            if let Some(name) = name {
                out.extend((name.len() as u64).to_le_bytes());
                out.extend(name.as_bytes());
            }
            if version == WITH_CHANGES {
                out.push((*is_deleted).into());
            }
        }
        out
    }

    fn names(members: &Members) -> Vec<&str> {
        members.keys().map(String::as_str).collect()
    }

    #[test]
    fn changes_add_up_and_whole_lists_replace() {
        let mut members = Members::new();
        let first = [("b", Some("B"), false), ("a", None, false)];
        apply(&stored(WITH_CHANGES, &first), &mut members).unwrap();
        assert_eq!(names(&members), ["B", "a"]);
        let second = [("b", Some("B"), true), ("c", Some("C"), false)];
        apply(&stored(WITH_CHANGES, &second), &mut members).unwrap();
        assert_eq!(names(&members), ["C", "a"]);
        apply(&stored(WITH_ALL_MEMBERS, &[("d", None, false)]), &mut members).unwrap();
        assert_eq!(names(&members), ["d"]);
    }

    #[test]
    fn a_member_may_be_of_unknown_kind() {
        let members = [("uri", Some("name"), false)];
        let kind = |number| parse(&stored_as(number, WITH_CHANGES, &members));
        assert_eq!(kind(0).unwrap()[0].kind, None);
        assert_eq!(kind(1).unwrap()[0].kind, Some(ObjectType::Group));
        assert_eq!(kind(2).unwrap()[0].kind, Some(ObjectType::Array));
        assert!(kind(3).is_err_and(|fault| fault.what.contains("kind 3")));
    }

    #[test]
    fn damage_is_an_error() {
        let whole = stored(WITH_CHANGES, &[("uri", Some("name"), false)]);
        assert_eq!(parse(&whole).unwrap().len(), 1);
        for len in 4..whole.len() {
            assert!(parse(&whole[..len]).is_err(), "{len}");
        }
        assert!(parse(&stored(7, &[("uri", None, false)])).is_err());
    }
}
