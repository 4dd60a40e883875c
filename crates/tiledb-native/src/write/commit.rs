//! The folder of a fragment being written: its files, and its commit.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use md5::Digest as _;

use super::tile::Tile;
use crate::error::Error;

/// Names of the files of rows, columns and values.
const NAMES: [&str; 3] = ["d0.tdb", "d1.tdb", "a0.tdb"];
const METADATA: &str = "__fragment_metadata.tdb";

/// Distinguishes the names of fragments of one process and one millisecond.
static N_NAMED: AtomicU64 = AtomicU64::new(0);

/// A fragment's folder. Dropping it before it is committed removes it.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    commit: PathBuf,
    /// Created with the first tile.
    files: Option<[File; 3]>,
    file_bytes: [u64; 3],
    /// Whether we have created the folder.
    is_made: bool,
    is_committed: bool,
}

impl Folder {
    /// Prepares the folder without creating it.
    pub(super) fn new(array: &Path, timestamp: u64, version: u32) -> Self {
        let root = absolute(array);
        let name = format!("__{timestamp}_{timestamp}_{}_{version}", unique(&root));
        Self {
            path: root.join("__fragments").join(&name),
            commit: root.join("__commits").join(format!("{name}.wrt")),
            files: None,
            file_bytes: [0; 3],
            is_made: false,
            is_committed: false,
        }
    }

    /// The lengths of the files so far.
    pub(super) fn file_bytes(&self) -> [u64; 3] {
        self.file_bytes
    }

    /// Appends tiles.
    pub(super) fn append(&mut self, tiles: &[Tile]) -> Result<(), Error> {
        let mut files = match self.files.take() {
            Some(files) => files,
            None => self.create()?,
        };
        for (idx, file) in files.iter_mut().enumerate() {
            for tile in tiles {
                file.write_all(&tile.bytes[idx])
                    .map_err(failed("write to", &self.path.join(NAMES[idx])))?;
                self.file_bytes[idx] += tile.bytes[idx].len() as u64;
            }
        }
        self.files = Some(files);
        Ok(())
    }

    fn create(&mut self) -> Result<[File; 3], Error> {
        fs::create_dir_all(parent(&self.path))
            .and_then(|()| fs::create_dir(&self.path))
            .map_err(failed("create", &self.path))?;
        self.is_made = true;
        let file = |name| {
            let path = self.path.join(name);
            File::create_new(&path).map_err(failed("create", &path))
        };
        let [rows, columns, values] = NAMES.map(file);
        Ok([rows?, columns?, values?])
    }

    pub(super) fn write_metadata(&self, bytes: &[u8]) -> Result<(), Error> {
        let path = self.path.join(METADATA);
        let mut file = File::create_new(&path).map_err(failed("create", &path))?;
        file.write_all(bytes).map_err(failed("write to", &path))?;
        file.sync_all().map_err(failed("sync", &path))
    }

    /// Syncs everything to disk, and then commits the fragment.
    pub(super) fn commit(&mut self) -> Result<(), Error> {
        for (file, name) in self.files.take().iter().flatten().zip(NAMES) {
            file.sync_all().map_err(failed("sync", &self.path.join(name)))?;
        }
        sync_folder(&self.path)?;
        sync_folder(&parent(&self.path))?;
        let commits = parent(&self.commit);
        fs::create_dir_all(&commits).map_err(failed("create", &commits))?;
        let file = File::create_new(&self.commit).map_err(failed("create", &self.commit))?;
        let synced = file
            .sync_all()
            .map_err(failed("sync", &self.commit))
            .and_then(|()| sync_folder(&commits));
        // A commit that is reported as failed must not count.
        self.is_committed = synced.is_ok() || fs::remove_file(&self.commit).is_err();
        synced
    }
}

fn parent(path: &Path) -> PathBuf {
    path.parent().map(Path::to_owned).unwrap_or_default()
}

impl Drop for Folder {
    fn drop(&mut self) {
        if self.is_made && !self.is_committed {
            // If this fails, the folder is still not a fragment.
            drop(fs::remove_dir_all(&self.path));
        }
    }
}

fn sync_folder(path: &Path) -> Result<(), Error> {
    File::open(path).and_then(|folder| folder.sync_all()).map_err(failed("sync", path))
}

fn failed<'a>(action: &str, path: &'a Path) -> impl FnOnce(io::Error) -> Error + use<'a> {
    let action = action.to_owned();
    move |source| {
        let file = path.display().to_string();
        storage::Error::File { action, file, source }.into()
    }
}

/// Where an array's folder is.
fn absolute(root: &Path) -> PathBuf {
    std::path::absolute(root).unwrap_or_else(|_| root.to_owned())
}

/// 32 hexadecimal digits that no other fragment of the array has.
fn unique(root: &Path) -> String {
    let now =
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let n = N_NAMED.fetch_add(1, Ordering::Relaxed);
    let mut digest = md5::Md5::new();
    digest.update(root.as_os_str().as_encoded_bytes());
    digest.update(now.as_nanos().to_le_bytes());
    digest.update(std::process::id().to_le_bytes());
    digest.update(n.to_le_bytes());
    let digest = digest.finalize();
    let [high, low] = [0, 8].map(|at| digest_word(&digest, at));
    format!("{high:016x}{low:016x}")
}

/// Eight bytes of a digest.
fn digest_word(digest: &[u8], at: usize) -> u64 {
    digest[at..at + 8].iter().fold(0, |word, byte| word << 8 | u64::from(*byte))
}
