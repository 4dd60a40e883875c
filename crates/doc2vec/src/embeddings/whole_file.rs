//! Files that appear whole or not at all.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use crate::error::Error;

/// Writes to `path.partial`, and renames it once all of it has reached the disk. Replaces a file of
/// that name.
pub(super) fn write_whole(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> Result<(), Error>,
) -> Result<(), Error> {
    let partial = partial_path(path);
    let written = write_and_rename(&partial, path, write);
    if written.is_err() {
        // The first error counts. A later run overwrites what remains.
        drop(fs::remove_file(&partial));
    }
    written
}

fn write_and_rename(
    partial: &Path,
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut writer = BufWriter::new(File::create(partial).map_err(Error::write(path))?);
    write(&mut writer)?;
    let mut finish = || -> io::Result<()> {
        writer.flush()?;
        writer.get_ref().sync_all()?;
        fs::rename(partial, path)
    };
    finish().map_err(Error::write(path))
}

fn partial_path(path: &Path) -> PathBuf {
    let mut partial = OsString::from(path);
    partial.push(".partial");
    PathBuf::from(partial)
}
