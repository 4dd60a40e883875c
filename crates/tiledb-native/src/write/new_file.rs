//! Files and folders that a writer makes: created, synced, named after times and digests.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use md5::Digest as _;

use crate::error::Error;

/// Distinguishes the names that one process makes in one nanosecond.
static N_NAMED: AtomicU64 = AtomicU64::new(0);

/// Creates a file that must not exist yet, and syncs it to disk. Its folder is not synced.
pub(super) fn write_new(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let mut file = File::create_new(path).map_err(failed("create", path))?;
    file.write_all(bytes).map_err(failed("write to", path))?;
    file.sync_all().map_err(failed("sync", path))
}

/// Creates folders below `root`, which may exist, and `root` itself. Syncs the names of `root` and
/// of the folders above it that are new; those below `root` count when `root` is synced.
pub(super) fn create_folders(root: &Path, names: &[&str]) -> Result<(), Error> {
    let new: Vec<&Path> = root.ancestors().take_while(|folder| !folder.exists()).collect();
    fs::create_dir_all(root).map_err(failed("create", root))?;
    for path in names.iter().map(|name| root.join(name)) {
        fs::create_dir_all(&path).map_err(failed("create", &path))?;
    }
    new.into_iter().try_for_each(|folder| sync_folder(&parent(folder)))
}

/// A folder that gets its name when all its content is on disk, so that it appears whole. Dropping
/// it before removes it.
#[derive(Debug)]
pub(super) struct StagedFolder {
    path: PathBuf,
    is_published: bool,
}

impl StagedFolder {
    /// Creates the folder in `root`, under a name that readers do not take for an array or a group.
    pub(super) fn create(root: &Path) -> Result<Self, Error> {
        let path = root.join(format!(".incomplete-{}", unique(root)));
        fs::create_dir(&path).map_err(failed("create", &path))?;
        Ok(Self { path, is_published: false })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Syncs the names in the folder, gives it the name `name`, and syncs that.
    pub(super) fn publish(mut self, name: &str) -> Result<(), Error> {
        sync_folder(&self.path)?;
        let (root, to) = (parent(&self.path), self.path.with_file_name(name));
        fs::rename(&self.path, &to).map_err(failed("give its name to", &to))?;
        self.is_published = true;
        sync_folder(&root)
    }
}

impl Drop for StagedFolder {
    fn drop(&mut self) {
        if !self.is_published {
            // If this fails, the folder is still neither an array nor a group.
            drop(fs::remove_dir_all(&self.path));
        }
    }
}

/// Syncs the names in a folder to disk.
pub(super) fn sync_folder(path: &Path) -> Result<(), Error> {
    File::open(path).and_then(|folder| folder.sync_all()).map_err(failed("sync", path))
}

/// Makes an error of a failed operation on a file.
pub(super) fn failed<'a>(
    action: &str,
    path: &'a Path,
) -> impl FnOnce(io::Error) -> Error + use<'a> {
    let action = action.to_owned();
    move |source| {
        let file = path.display().to_string();
        storage::Error::File { action, file, source }.into()
    }
}

/// The place of an array's or a group's folder, independent of the working directory.
pub(super) fn absolute(root: &Path) -> PathBuf {
    std::path::absolute(root).unwrap_or_else(|_| root.to_owned())
}

pub(super) fn parent(path: &Path) -> PathBuf {
    path.parent().map(Path::to_owned).unwrap_or_default()
}

/// A name with the first and the last time of its content, in milliseconds since 1970:
/// `__t1_t2_uuid`.
pub(super) fn timestamped(root: &Path, (first, last): (u64, u64)) -> String {
    format!("__{first}_{last}_{}", unique(root))
}

/// 32 hexadecimal digits that nothing else below `root` has in its name.
pub(super) fn unique(root: &Path) -> String {
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
