//! Copies of the data in a loader's own format: made once, kept in a folder that is named by what
//! they depend on, and marked when whole.
//!
//! `FOLDER/NAME-VERSION-DIGEST/` has the copy in `copy/` and, written last, `conversion.json`. The
//! digest is of the experiment's files with their sizes and times of change, what is taken of them,
//! the format and the versions of what wrote it. (Of an experiment in a store only the URI is
//! known.) A folder without the marker is of a run that was ended, and begun again.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use bench_run::{DataFile, digest, folder_bytes};
use grid_point::Data;
use serde::{Deserialize, Serialize};

use super::peer::PeerConversion;

const MARKER: &str = "conversion.json";

/// What a copy is made of and for.
#[derive(Clone, Debug)]
pub(crate) struct CopySpec {
    pub(crate) loader: String,
    pub(crate) version: String,
    /// In a line.
    pub(crate) format: String,
    /// Of all that has a part in writing it.
    pub(crate) versions: String,
}

/// A copy that is whole, and what it took.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct DataCopy {
    pub(crate) loader: String,
    pub(crate) format: String,
    pub(crate) versions: String,
    /// The experiment.
    pub(crate) source: String,
    /// When it was made.
    pub(crate) made: jiff::Timestamp,
    pub(crate) secs: f64,
    /// The true peak of the process tree that made it.
    pub(crate) max_mem_bytes: u64,
    /// Of the whole copy on disk.
    pub(crate) bytes: u64,
    /// Not part of the marker: the cache may be moved.
    #[serde(skip)]
    pub(crate) folder: PathBuf,
    /// Whether it was there already.
    #[serde(skip)]
    pub(crate) kept: bool,
}

impl CopySpec {
    /// The copy: the one that is there, or one that `make` writes into the folder that it is given.
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
        // The data may be a copy that another run made here.
        soma_io::check_apart(&[data.uri.full()], &[&target.to_string_lossy()])?;
        remove(&target).with_context(cannot)?;
        fs::create_dir(&target).with_context(cannot)?;
        let took = make(&target).inspect_err(|_| {
            // It may have filled the disk. What cannot be removed now is when the next one is made.
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

/// Held until the copy is whole, and freed by the system should the process be killed.
fn lock(folder: &Path) -> io::Result<File> {
    let file = File::create(folder.join("lock"))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            eprintln!("waiting for another process that makes {}", folder.display());
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
    // Someone may have removed a part of it to make room.
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

        /// The copy, and whether it was made now.
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
