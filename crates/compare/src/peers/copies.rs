//! Makes copies of the data in a loader's own format, once. The folder's name has a digest of a
//! copy's inputs, and a marker shows that the copy is complete.
//!
//! `FOLDER/NAME-VERSION-DIGEST/` contains the copy in `copy/` and, written last, the marker
//! `conversion.json`. The digest covers the experiment's address and files (with sizes and
//! modification times), its measurement, layer and obs columns, and the copy's format and versions.
//! Files in a store are not covered. A folder without the marker is from an interrupted run; its
//! copy is made again.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use bench_run::{DataFile, digest, folder_bytes, print_message};
use grid_point::Data;
use serde::{Deserialize, Serialize};

use super::peer::PeerConversion;

const MARKER: &str = "conversion.json";

/// Loader, format and versions of a copy.
#[derive(Clone, Debug)]
pub(crate) struct CopySpec {
    pub(crate) loader: String,
    pub(crate) version: String,
    /// Description of the format in one line.
    pub(crate) format: String,
    /// Versions of all libraries that take part in writing the copy.
    pub(crate) versions: String,
}

/// A complete copy and its cost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct DataCopy {
    pub(crate) loader: String,
    pub(crate) format: String,
    pub(crate) versions: String,
    /// Address of the experiment, without credentials.
    pub(crate) source: String,
    /// Time at which the copy was made.
    pub(crate) made: jiff::Timestamp,
    pub(crate) secs: f64,
    /// Peak memory of the process tree that made the copy.
    pub(crate) max_mem_bytes: u64,
    /// Size of the copy on disk.
    pub(crate) bytes: u64,
    /// Folder of the copy. Not part of the marker, because users may move the cache.
    #[serde(skip)]
    pub(crate) folder: PathBuf,
    /// Whether the copy existed before this run.
    #[serde(skip)]
    pub(crate) kept: bool,
}

impl CopySpec {
    /// Returns the existing copy, or calls `make` to write one to an empty folder. Waits for
    /// another process that makes the same copy. Fails if the copy cannot be written.
    pub(crate) fn prepare(
        &self,
        root: &Path,
        data: &Data,
        make: impl FnOnce(&Path) -> anyhow::Result<PeerConversion>,
    ) -> anyhow::Result<DataCopy> {
        let folder = root.join(self.folder_name(data)?);
        let cannot = || format!("cannot write {}", folder.display());
        fs::create_dir_all(&folder).with_context(cannot)?;
        let _lock = lock(&folder).with_context(cannot)?;
        if let Some(copy) = read_marker(&folder) {
            return Ok(copy);
        }
        let target = folder.join("copy");
        // The data itself may be a copy in this folder, made by another run.
        soma_io::check_apart(&[data.uri.full()], &[&target.to_string_lossy()])?;
        remove(&target).with_context(cannot)?;
        fs::create_dir(&target).with_context(cannot)?;
        let took = make(&target).inspect_err(|_| {
            // An incomplete copy may fill the disk. If it cannot be removed now, the next run
            // removes it.
            let _removed = remove(&target);
        })?;
        let copy = DataCopy {
            loader: self.loader.clone(),
            format: self.format.clone(),
            versions: self.versions.clone(),
            source: data.uri.to_string(),
            made: jiff::Timestamp::now(),
            secs: took.secs,
            max_mem_bytes: took.max_mem,
            bytes: folder_bytes(&target).with_context(cannot)?,
            folder: target,
            kept: false,
        };
        write_marker(&folder, &copy).with_context(cannot)?;
        Ok(copy)
    }

    fn folder_name(&self, data: &Data) -> anyhow::Result<String> {
        let files: Vec<_> = data.files()?.iter().map(DataFile::identity).collect();
        let taken = (data.uri.to_string(), &data.measurement, &data.layer, &data.obs_columns);
        let digest = digest(&(taken, files, &self.format, &self.versions))?;
        Ok(format!("{}-{}-{digest}", self.loader.replace(' ', "-"), self.version))
    }
}

/// Locks the folder until the copy is complete. The system frees the lock if the process is killed.
fn lock(folder: &Path) -> io::Result<File> {
    let file = File::create(folder.join("lock"))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            print_message!("waiting for another process that makes {}", folder.display());
            file.lock()?;
        }
        Err(TryLockError::Error(error)) => return Err(error),
    }
    Ok(file)
}

fn read_marker(folder: &Path) -> Option<DataCopy> {
    let text = fs::read_to_string(folder.join(MARKER)).ok()?;
    let copy: DataCopy = serde_json::from_str(&text).ok()?;
    let target = folder.join("copy");
    // Someone may have removed a part of the copy to free space.
    let whole = folder_bytes(&target).is_ok_and(|bytes| bytes == copy.bytes);
    whole.then_some(DataCopy { folder: target, kept: true, ..copy })
}

fn write_marker(folder: &Path, copy: &DataCopy) -> io::Result<()> {
    let written = folder.join("conversion.json.new");
    let mut file = File::create(&written)?;
    file.write_all(serde_json::to_string_pretty(copy)?.as_bytes())?;
    file.sync_all()?;
    fs::rename(written, folder.join(MARKER))
}

fn remove(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Bed {
        folder: tempfile::TempDir,
        data: Data,
    }

    impl Bed {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let source = folder.path().join("source");
            fs::create_dir(&source).unwrap();
            fs::write(source.join("a"), "12").unwrap();
            let data = Data { uri: source.to_str().unwrap().into(), ..Data::default() };
            Self { folder, data }
        }

        /// Returns the copy, and whether this call made it.
        fn prepare(&self, versions: &str) -> (DataCopy, bool) {
            let mut made = false;
            let copy =
                spec(versions).prepare(&self.folder.path().join("copies"), &self.data, |target| {
                    made = true;
                    assert_eq!(fs::read_dir(target).unwrap().count(), 0);
                    fs::create_dir(target.join("x")).unwrap();
                    fs::write(target.join("x/y"), "123")?;
                    Ok(PeerConversion { secs: 1.5, max_mem: 7 })
                });
            (copy.unwrap(), made)
        }
    }

    fn spec(versions: &str) -> CopySpec {
        CopySpec {
            loader: "other".into(),
            version: "1.0".into(),
            format: "a format".into(),
            versions: versions.into(),
        }
    }

    #[test]
    fn a_copy_is_made_once_for_what_it_depends_on() {
        let bed = Bed::new();
        let (first, made) = bed.prepare("other 1.0");
        assert!(made && !first.kept && first.folder.join("x/y").is_file());
        assert_eq!((first.bytes, first.max_mem_bytes, first.secs), (3, 7, 1.5));
        let (again, made) = bed.prepare("other 1.0");
        assert!(!made && again.kept);
        assert_eq!(DataCopy { kept: false, ..again }, first);
        assert!(bed.prepare("other 1.0, below 2").1);
        fs::write(bed.folder.path().join("source/a"), "other").unwrap();
        assert!(bed.prepare("other 1.0").1);
    }

    #[test]
    fn what_is_not_whole_is_made_again() {
        let bed = Bed::new();
        let (copy, _) = bed.prepare("v");
        fs::write(copy.folder.join("x/y"), "12").unwrap();
        assert!(bed.prepare("v").1, "a part of it is gone");
        fs::write(copy.folder.parent().unwrap().join(MARKER), "{").unwrap();
        assert!(bed.prepare("v").1, "the marker is no marker");
        fs::remove_file(copy.folder.parent().unwrap().join(MARKER)).unwrap();
        fs::write(copy.folder.join("left"), "of a run that was killed").unwrap();
        let (copy, made) = bed.prepare("v");
        assert!(made && !copy.folder.join("left").exists());
    }

    #[test]
    fn data_in_the_place_of_the_copy_is_not_removed() {
        let bed = Bed::new();
        let root = bed.folder.path().join("copies");
        let folder = root.join(spec("v").folder_name(&bed.data).unwrap());
        fs::create_dir_all(&folder).unwrap();
        std::os::unix::fs::symlink(bed.data.uri.full(), folder.join("copy")).unwrap();
        let error = spec("v").prepare(&root, &bed.data, |_| panic!("nothing is to be made"));
        assert!(error.unwrap_err().to_string().contains("which is read meanwhile"));
        assert_eq!(fs::read_to_string(bed.folder.path().join("source/a")).unwrap(), "12");
    }

    #[test]
    fn a_copy_that_fails_leaves_nothing() {
        let bed = Bed::new();
        let root = bed.folder.path().join("copies");
        let error = spec("v").prepare(&root, &bed.data, |target| {
            fs::write(target.join("half"), "1")?;
            anyhow::bail!("the disk is full")
        });
        assert_eq!(error.unwrap_err().to_string(), "the disk is full");
        let folder = fs::read_dir(root).unwrap().next().unwrap().unwrap().path();
        assert!(!folder.join("copy").exists() && !folder.join(MARKER).exists());
        assert!(bed.prepare("v").1);
    }
}
