//! Metadata of arrays and groups: the named values in the folder `__meta`.
//!
//! Specification: `format_spec/metadata.md`. Each file is a generic tile of records, in any number:
//! the key, after its length (u32); whether it was deleted (u8); unless it was, the type (u8), the
//! number of values (u32), and the values. Later files replace and delete what earlier ones hold.
//! Consolidation writes one file for several, and lists those in a vacuum file.

use std::collections::{BTreeMap, HashSet};

use storage::{Bytes, Files, Piece};
use tiledb::MetadataValue;

use crate::cursor::Cursor;
use crate::datatype::Datatype;
use crate::directory::{last_part, lines, suffix};
use crate::error::{Error, Fault};
use crate::generic_tile::{self, Source};
use crate::timestamped_name::{self, Times};

const FOLDER: &str = "__meta";

/// Values by the bytes of their keys, in whose order libtiledb lists them.
type Entries = BTreeMap<Vec<u8>, MetadataValue>;

/// Reads all metadata as of `timestamp` (milliseconds since 1970), sorted by key.
pub(crate) fn load(files: &Files, timestamp: u64) -> Result<Vec<(String, MetadataValue)>, Error> {
    let mut entries = Entries::new();
    let paths = current_files(files, timestamp)?;
    for (path, bytes) in paths.iter().zip(read_all(files, &paths)?) {
        let source = Source::new(files, path, bytes.len() as u64).with_loaded(0, &bytes);
        apply(&source.read(0)?, &mut entries)
            .map_err(|fault| fault.in_unfiltered(files.name(path), 0))?;
    }
    let text = |key: Vec<u8>| String::from_utf8_lossy(&key).into_owned();
    Ok(entries.into_iter().map(|(key, value)| (text(key), value)).collect())
}

/// Reads files that are a generic tile each, all with two calls of the storage.
pub(crate) fn read_all(files: &Files, paths: &[String]) -> Result<Vec<Bytes>, Error> {
    let names: Vec<&str> = paths.iter().map(String::as_str).collect();
    let sizes = files.sizes(&names)?;
    let mut n_bytes = 0_u64;
    for (path, size) in names.iter().zip(&sizes) {
        n_bytes = n_bytes.saturating_add(*size);
        // All files are held at once.
        if n_bytes > generic_tile::MAX_BYTES {
            let what =
                format!("{n_bytes} bytes up to this file, more than {}", generic_tile::MAX_BYTES);
            return Err(Fault::new(what).in_file(files.name(path), 0));
        }
    }
    let pieces: Vec<_> =
        names.iter().zip(sizes).map(|(file, size)| Piece { file, range: 0..size }).collect();
    Ok(files.read_each(&pieces)?)
}

/// Paths of the metadata files that count at `timestamp`, oldest first.
fn current_files(files: &Files, timestamp: u64) -> Result<Vec<String>, Error> {
    let entries = files.list(FOLDER)?;
    let mut found: Vec<(Times, &str)> = Vec::new();
    let mut replaced = HashSet::new();
    for entry in &entries {
        let Some(times) = timestamped_name::parse(&entry.name) else { continue };
        if times.end > timestamp {
            continue;
        }
        match suffix(&entry.name) {
            "" => found.push((times, &entry.name)),
            "vac" => {
                let lines = lines(files, &format!("{FOLDER}/{}", entry.name))?;
                let names = lines.iter().map(|line| last_part(line.trim_end_matches('/')));
                replaced.extend(names.map(str::to_owned));
            }
            _ => {}
        }
    }
    found.retain(|(_, name)| !replaced.contains(*name));
    // Names are listed in order, which decides between files of equal times.
    found.sort_by_key(|(times, _)| (times.start, times.end));
    Ok(found.into_iter().map(|(_, name)| format!("{FOLDER}/{name}")).collect())
}

/// Applies the records of one file to `entries`.
fn apply(bytes: &[u8], entries: &mut Entries) -> Result<(), Fault> {
    let mut cursor = Cursor::new(bytes);
    while !cursor.remaining().is_empty() {
        let key_len = cursor.u32("the length of a metadata key")? as usize;
        let key = cursor.take(key_len, "a metadata key")?.to_vec();
        if cursor.flag("whether a metadata key is deleted")? {
            entries.remove(&key);
        } else {
            entries.insert(key, value(&mut cursor)?);
        }
    }
    Ok(())
}

fn value(cursor: &mut Cursor<'_>) -> Result<MetadataValue, Fault> {
    let at = cursor.at();
    let datatype = Datatype(cursor.u8("a metadata value's type")?);
    let n_values = cursor.u32("the number of a metadata key's values")?;
    let size = datatype
        .size()
        .ok_or_else(|| Fault::at(at, format!("a metadata value of {}", datatype.name())))?;
    let bytes = cursor.take((n_values as usize).saturating_mul(size), "a metadata value")?;
    let public = datatype.described();
    // Values of types without a name are left out, as the documentation of `MetadataValue` has it.
    let bytes = if public.size().is_some() { bytes } else { &[] };
    Ok(MetadataValue::from_stored(public, n_values, bytes))
}

#[cfg(any(test, somafeed_fuzz))]
pub(crate) fn parse(bytes: &[u8]) -> Result<usize, Fault> {
    let mut entries = Entries::new();
    apply(bytes, &mut entries).map(|()| entries.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A record; without a value it deletes the key.
    fn record(key: &str, value: Option<(u8, u32, &[u8])>) -> Vec<u8> {
        let mut out = (key.len() as u32).to_le_bytes().to_vec();
        out.extend(key.as_bytes());
        out.push(u8::from(value.is_none()));
        if let Some((datatype, n_values, bytes)) = value {
            out.push(datatype);
            out.extend(n_values.to_le_bytes());
            out.extend(bytes);
        }
        out
    }

    #[test]
    fn later_records_replace_and_delete() {
        let first = [
            record("b", Some((1, 1, &5_i64.to_le_bytes()))),
            record("a", Some((12, 2, b"hi"))),
            record("c", Some((12, 0, b""))),
        ];
        let second = [record("b", None), record("a", Some((3, 1, &2.5_f64.to_le_bytes())))];
        let mut entries = Entries::new();
        apply(&first.concat(), &mut entries).unwrap();
        assert_eq!(entries[&b"a"[..]], MetadataValue::from("hi"));
        apply(&second.concat(), &mut entries).unwrap();
        let left: Vec<_> = entries.into_iter().collect();
        let expected =
            [(b"a".to_vec(), MetadataValue::Float(2.5)), (b"c".to_vec(), MetadataValue::from(""))];
        assert_eq!(left, expected);
    }

    #[test]
    fn damage_is_an_error() {
        let whole = record("key", Some((0, 2, &[0; 8])));
        assert_eq!(parse(&whole).unwrap(), 1);
        for len in 1..whole.len() {
            assert!(parse(&whole[..len]).is_err(), "{len}");
        }
        assert!(parse(&record("key", Some((0, u32::MAX, &[0; 8])))).is_err());
        assert!(parse(&record("key", Some((200, 1, &[0; 8])))).is_err());
    }
}
