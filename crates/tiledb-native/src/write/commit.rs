//! The folder of a fragment being written: its files, and its commit.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use super::new_file::{absolute, failed, parent, sync_folder, timestamped, write_new};
use crate::error::Error;

const METADATA: &str = "__fragment_metadata.tdb";

/// A fragment's folder. Dropping it before it is committed removes it.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    commit: PathBuf,
    /// The names of the files of cells, and their lengths so far.
    files: Vec<(String, u64)>,
    /// Whether we have created the folder.
    is_made: bool,
    is_committed: bool,
}

impl Folder {
    /// Prepares the folder without creating it. `times` are those of the first and of the last
    /// cell, in milliseconds since 1970; `names` are those of the files of cells.
    pub(super) fn new(
        array: &Path,
        times: (u64, u64),
        version: u32,
        names: impl IntoIterator<Item = String>,
    ) -> Self {
        let root = absolute(array);
        let name = format!("{}_{version}", timestamped(&root, times));
        Self {
            path: root.join("__fragments").join(&name),
            commit: root.join("__commits").join(format!("{name}.wrt")),
            files: names.into_iter().map(|name| (name, 0)).collect(),
            is_made: false,
            is_committed: false,
        }
    }

    /// The length of a file so far.
    pub(super) fn file_bytes(&self, file: usize) -> u64 {
        self.files[file].1
    }

    /// The length of all files so far.
    pub(super) fn n_bytes(&self) -> u64 {
        self.files.iter().map(|(_, n_bytes)| n_bytes).sum()
    }

    /// Appends pieces to a file; creates the folder and all files at first.
    pub(super) fn append<'a>(
        &mut self,
        file: usize,
        pieces: impl IntoIterator<Item = &'a [u8]>,
    ) -> Result<(), Error> {
        if !self.is_made {
            self.create()?;
        }
        let (name, n_bytes) = &mut self.files[file];
        let path = self.path.join(name);
        // Opened for each tile: a table has more files than a process may keep open.
        let mut file = File::options().append(true).open(&path).map_err(failed("open", &path))?;
        for piece in pieces {
            file.write_all(piece).map_err(failed("write to", &path))?;
            *n_bytes += piece.len() as u64;
        }
        Ok(())
    }

    fn create(&mut self) -> Result<(), Error> {
        fs::create_dir_all(parent(&self.path))
            .and_then(|()| fs::create_dir(&self.path))
            .map_err(failed("create", &self.path))?;
        self.is_made = true;
        for (name, _) in &self.files {
            let path = self.path.join(name);
            drop(File::create_new(&path).map_err(failed("create", &path))?);
        }
        Ok(())
    }

    pub(super) fn write_metadata(&self, bytes: &[u8]) -> Result<(), Error> {
        write_new(&self.path.join(METADATA), bytes)
    }

    /// Syncs everything to disk, and then commits the fragment.
    pub(super) fn commit(&mut self) -> Result<(), Error> {
        for (name, _) in &self.files {
            let path = self.path.join(name);
            File::open(&path).and_then(|file| file.sync_all()).map_err(failed("sync", &path))?;
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

impl Drop for Folder {
    fn drop(&mut self) {
        if self.is_made && !self.is_committed {
            // If this fails, the folder is still not a fragment.
            drop(fs::remove_dir_all(&self.path));
        }
    }
}
