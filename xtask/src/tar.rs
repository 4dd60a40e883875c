//! Unpacks archives of sources, to be built.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, bail};

use crate::cache::remove;

/// Unpacks an archive into a folder, in place of what is there. The files get the time of now, not
/// the one in the archive, by which cargo would take changed files for those that it has compiled.
pub(crate) fn unpack(archive: &Path, folder: &Path) -> anyhow::Result<()> {
    remove(folder)?;
    fs::create_dir_all(folder)?;
    let mut tar = Command::new("tar");
    let status = tar.arg("-xmf").arg(archive).arg("-C").arg(folder).status();
    if !status.context("cannot run tar, which unpacks sources")?.success() {
        bail!("tar cannot unpack {}", archive.display());
    }
    Ok(())
}
