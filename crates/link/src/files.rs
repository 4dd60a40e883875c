//! Files of the served folder, with the facts about them that answers have.

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use jiff::Timestamp;

use crate::request_path::is_below;

/// Why a key has no file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoFile {
    /// There is no file of this name.
    Absent,
    /// The name leads out of the folder, or the file may not be read.
    Refused,
    /// The system fails, for instance because too many files are open.
    Failed,
}

/// A file that is open.
#[derive(Debug)]
pub(crate) struct OpenFile {
    pub(crate) file: File,
    pub(crate) facts: Facts,
}

/// Size, time and identity of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Facts {
    pub(crate) size: u64,
    /// Device and inode: copies of a file have others.
    identity: [u64; 2],
    /// Nanoseconds of the last change after 1970; 0 if it is not known.
    changed: i128,
}

impl Facts {
    pub(crate) fn from_metadata(metadata: &Metadata) -> Self {
        let changed = metadata.modified().map_or(0, nanoseconds);
        Self { size: metadata.len(), identity: [metadata.dev(), metadata.ino()], changed }
    }

    /// The tag, in quotes: equal as long as the file is the same, and its size and time are.
    pub(crate) fn etag(&self) -> String {
        let [device, inode] = self.identity;
        format!("\"{:x}-{:x}-{device:x}-{inode:x}\"", self.size, self.changed)
    }

    fn timestamp(&self) -> Timestamp {
        Timestamp::from_nanosecond(self.changed).unwrap_or(Timestamp::UNIX_EPOCH)
    }

    /// The time as HTTP writes it.
    pub(crate) fn http_date(&self) -> String {
        self.timestamp().strftime("%a, %d %b %Y %H:%M:%S GMT").to_string()
    }

    /// The time as S3's lists write it.
    pub(crate) fn list_date(&self) -> String {
        self.timestamp().strftime("%Y-%m-%dT%H:%M:%S.000Z").to_string()
    }
}

fn nanoseconds(time: SystemTime) -> i128 {
    let nanos = |duration: std::time::Duration| i128::try_from(duration.as_nanos()).unwrap_or(0);
    match time.duration_since(UNIX_EPOCH) {
        Ok(after) => nanos(after),
        Err(before) => -nanos(before.duration()),
    }
}

/// A folder whose files are served, and none outside of it.
#[derive(Debug)]
pub(crate) struct Folder {
    /// Without symbolic links.
    root: PathBuf,
    /// First part of all keys; empty if keys begin in the folder.
    name: String,
}

impl Folder {
    /// Serves the folder `root` as the folder `name` of the bucket, or as the bucket itself if
    /// `name` is empty.
    pub(crate) fn new(root: &Path, name: &str) -> io::Result<Self> {
        let root = root.canonicalize()?;
        if !root.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        Ok(Self { root, name: name.to_owned() })
    }

    /// The path of `key`, which may lead through symbolic links, but not out of the folder.
    pub(crate) fn path(&self, key: &str) -> Result<PathBuf, NoFile> {
        // Stores have no such objects; clients ask for them to find folders.
        let Some(below) = self.below(key).filter(|below| !below.ends_with('/')) else {
            return Err(NoFile::Absent);
        };
        if !below.is_empty() && !is_below(below) {
            return Err(NoFile::Refused);
        }
        let path = self.root.join(below).canonicalize().map_err(|error| no_file(&error))?;
        if path.starts_with(&self.root) { Ok(path) } else { Err(NoFile::Refused) }
    }

    /// `key` without the folder's name; `None` if it lies beside the folder.
    fn below<'a>(&self, key: &'a str) -> Option<&'a str> {
        if self.name.is_empty() {
            return Some(key);
        }
        let rest = key.strip_prefix(&self.name)?;
        if rest.is_empty() { Some(rest) } else { rest.strip_prefix('/') }
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Opens the file of a key.
    pub(crate) fn open(&self, key: &str) -> Result<OpenFile, NoFile> {
        let path = self.path(key)?;
        // Opening a pipe would wait for its other end.
        if !metadata(&path)?.is_file() {
            return Err(NoFile::Absent);
        }
        let file = File::open(&path).map_err(|error| no_file(&error))?;
        let metadata = file.metadata().map_err(|error| no_file(&error))?;
        Ok(OpenFile { file, facts: Facts::from_metadata(&metadata) })
    }
}

/// The metadata of the file or folder at `path`.
pub(crate) fn metadata(path: &Path) -> Result<Metadata, NoFile> {
    std::fs::metadata(path).map_err(|error| no_file(&error))
}

fn no_file(error: &io::Error) -> NoFile {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::InvalidFilename => {
            NoFile::Absent
        }
        io::ErrorKind::PermissionDenied => NoFile::Refused,
        _ => NoFile::Failed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_out_of_the_folder_are_refused() {
        let outside = tempfile::tempdir().unwrap();
        std::fs::write(outside.path().join("secret"), "x").unwrap();
        let inside = tempfile::tempdir().unwrap();
        std::fs::create_dir(inside.path().join("a")).unwrap();
        std::fs::write(inside.path().join("a/b"), "xyz").unwrap();
        std::os::unix::fs::symlink(outside.path(), inside.path().join("out")).unwrap();
        std::os::unix::fs::symlink(inside.path().join("a"), inside.path().join("in")).unwrap();
        let folder = Folder::new(inside.path(), "").unwrap();
        assert_eq!(folder.open("in/b").unwrap().facts.size, 3);
        assert_eq!(folder.open("out/secret").err(), Some(NoFile::Refused));
        assert_eq!(folder.open("../x").err(), Some(NoFile::Refused));
        assert_eq!(folder.open("a").err(), Some(NoFile::Absent));
        assert_eq!(folder.open("a/b/c").err(), Some(NoFile::Absent));
        assert_eq!(folder.open("absent").err(), Some(NoFile::Absent));
        assert_eq!(folder.open("a/").err(), Some(NoFile::Absent));
        let named = Folder::new(inside.path(), "data").unwrap();
        assert_eq!(named.open("data/a/b").unwrap().facts.size, 3);
        for (key, why) in [
            ("a/b", NoFile::Absent),
            ("data", NoFile::Absent),
            ("data/", NoFile::Absent),
            ("database/a/b", NoFile::Absent),
            ("data/out/secret", NoFile::Refused),
            ("data/../x", NoFile::Refused),
            ("data//a/b", NoFile::Refused),
        ] {
            assert_eq!(named.open(key).err(), Some(why), "{key}");
        }
    }

    #[test]
    fn times_are_written_as_their_readers_expect() {
        let facts = Facts { size: 26, identity: [1, 10], changed: 784_111_777_500_000_000 };
        assert_eq!(facts.http_date(), "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(facts.list_date(), "1994-11-06T08:49:37.000Z");
        assert_eq!(facts.etag(), "\"1a-ae1b981da166f00-1-a\"");
        assert_ne!(facts.etag(), Facts { changed: facts.changed + 1, ..facts }.etag());
    }
}
