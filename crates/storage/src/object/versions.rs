//! The version of each object that was read first: bytes of two versions must not be mixed.
//!
//! Formats such as TileDB never write a file again, but whoever copies a data set over another one
//! does, and a read takes hours. A store names the version with each answer. Versions are compared
//! here rather than required of the store (`If-Match`), which not every implementation of S3
//! understands.

use std::collections::HashMap;
use std::io;
use std::sync::{Mutex, PoisonError};

use object_store::ObjectMeta;
use object_store::path::Path;

use crate::storage::FileVersion;

/// Identifies one version of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Version {
    size: u64,
    /// The store's own mark (ETag), else the time of the last change in nanoseconds.
    mark: Result<String, Option<i64>>,
}

impl Version {
    fn from_metadata(found: &ObjectMeta) -> Self {
        let written = || found.last_modified.timestamp_nanos_opt();
        Self { size: found.size, mark: found.e_tag.clone().ok_or_else(written) }
    }
}

/// The version in a form that other processes can compare.
pub(super) fn file_version(found: &ObjectMeta) -> FileVersion {
    let Version { size, mark } = Version::from_metadata(found);
    let tag = match mark {
        Ok(mark) => Some(mark),
        Err(written) => written.map(|nanoseconds| format!("written {nanoseconds}")),
    };
    FileVersion { size, tag }
}

/// The version that each object had when it was first read.
#[derive(Debug, Default)]
pub(super) struct Versions(Mutex<HashMap<Path, Version>>);

impl Versions {
    /// Notes the version of an object, or compares it with that noted before.
    pub(super) fn check(&self, key: &Path, found: &ObjectMeta) -> io::Result<()> {
        let found = Version::from_metadata(found);
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match known.get(key) {
            None => {
                known.insert(key.clone(), found);
                Ok(())
            }
            Some(first) if *first == found => Ok(()),
            Some(first) => {
                let what = format!(
                    "{key} was replaced while the array was open: it was {first}, and is {found}; open the storage and the array again"
                );
                Err(io::Error::other(what))
            }
        }
    }
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "of {} bytes", self.size)?;
        match &self.mark {
            Ok(mark) => write!(f, " with the mark {mark}"),
            Err(Some(nanoseconds)) => write!(f, " written {nanoseconds} ns after 1970"),
            Err(None) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::*;

    fn meta(size: u64, e_tag: Option<&str>, written: u64) -> ObjectMeta {
        let written = SystemTime::UNIX_EPOCH + Duration::from_secs(written);
        ObjectMeta {
            location: Path::from("a"),
            last_modified: written.into(),
            size,
            e_tag: e_tag.map(str::to_owned),
            version: None,
        }
    }

    #[test]
    fn another_version_is_an_error_and_stays_one() {
        let (versions, key) = (Versions::default(), Path::from("array/a.tdb"));
        versions.check(&key, &meta(5, Some("\"x\""), 1)).unwrap();
        // A store that copies an object elsewhere gives it another time.
        versions.check(&key, &meta(5, Some("\"x\""), 2)).unwrap();
        versions.check(&Path::from("array/b.tdb"), &meta(5, Some("\"y\""), 1)).unwrap();
        for _ in 0..2 {
            let error = versions.check(&key, &meta(5, Some("\"y\""), 1)).unwrap_err().to_string();
            assert!(error.contains("array/a.tdb was replaced"), "{error}");
            assert!(error.contains("\"x\"") && error.contains("\"y\""), "{error}");
        }
        versions.check(&key, &meta(5, Some("\"x\""), 1)).unwrap();
    }

    #[test]
    fn without_a_mark_the_time_and_the_size_count() {
        let (versions, key) = (Versions::default(), Path::from("a"));
        versions.check(&key, &meta(5, None, 1)).unwrap();
        versions.check(&key, &meta(5, None, 1)).unwrap();
        assert!(versions.check(&key, &meta(5, None, 2)).is_err());
        assert!(versions.check(&key, &meta(6, None, 1)).is_err());
    }
}
