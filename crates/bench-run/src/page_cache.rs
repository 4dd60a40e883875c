//! Sets the page cache's state before a measurement: reads the data's files before each run (warm),
//! or removes them from the cache before each epoch (cold).
//!
//! For a cold cache the machine's whole cache is dropped if that is permitted. Otherwise, or at the
//! user's request, the kernel is advised that the data's files are not needed. The kernel need not
//! follow advice (another process may have a file mapped), so the result is checked: pages that are
//! still cached make the state unknown.

mod cold;

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use bench_report::kernel_entry;

pub use cold::{Cold, MOST_LEFT as MOST_CACHED_IF_COLD, cached_share, cool, evict};

use crate::data_files::data_files;

/// Largest share of the available memory that the files may take, to stay cached beside a loader.
const SHARE: f64 = 0.6;

/// Name of the warm state.
const WARM: &str = "warm";

/// State of the page cache before a measurement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PageCache {
    /// The data's files were read.
    Warm {
        /// Size of all files together.
        bytes: u64,
    },
    /// The machine's cache was dropped.
    Dropped,
    /// The kernel removed the data's files on our advice.
    Advised,
    /// The state is unknown, for this reason.
    Unknown(String),
}

impl PageCache {
    /// Returns the state's name, recorded in each row.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Warm { .. } => WARM,
            Self::Dropped => "cold-dropped",
            Self::Advised => "cold-advised",
            Self::Unknown(_) => "unknown",
        }
    }
}

/// Reads all files below `folders` into the page cache; `None` means data that is not on a local
/// disk. Returns [`PageCache::Unknown`] if the files cannot be read or do not fit.
pub fn warm(folders: Option<&[PathBuf]>) -> PageCache {
    let Some(folders) = folders else { return not_local() };
    let files = data_files(folders);
    let bytes: u64 = files.iter().flatten().map(|file| file.bytes).sum();
    match files.and_then(|files| Ok((files, available_bytes()?))) {
        Err(error) => PageCache::Unknown(format!("the files cannot be listed: {error}")),
        Ok((_, available)) if available as f64 * SHARE < bytes as f64 => {
            PageCache::Unknown(format!(
                "the files take {bytes} bytes, more than {SHARE} of the memory that is available"
            ))
        }
        Ok((files, _)) => match files.iter().try_for_each(|file| read_through(&file.path)) {
            Ok(()) => PageCache::Warm { bytes },
            Err(error) => PageCache::Unknown(format!("the files cannot be read: {error}")),
        },
    }
}

fn not_local() -> PageCache {
    PageCache::Unknown("the data is not on a local disk".to_owned())
}

/// Reads the files again if the cache was warm, since a run with much memory may have evicted them.
/// Returns the state's name. Calls `warn` if the cache cannot be made warm again.
pub(crate) fn warm_again(
    before: &'static str,
    folders: Option<&[PathBuf]>,
    warn: impl FnOnce(&str),
) -> &'static str {
    if before != WARM {
        return before;
    }
    let state = warm(folders);
    if let PageCache::Unknown(why) = &state {
        warn(&format!("warning: the page cache is warm no longer: {why}"));
    }
    state.name()
}

fn read_through(file: &Path) -> io::Result<()> {
    let mut file = File::open(file)?;
    let mut buffer = vec![0; 1 << 20];
    while file.read(&mut buffer)? != 0 {}
    Ok(())
}

fn available_bytes() -> io::Result<u64> {
    let text = fs::read_to_string("/proc/meminfo")?;
    kernel_entry(&text, "MemAvailable:")
        .ok_or_else(|| io::Error::other("/proc/meminfo names no available memory"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_below_the_folders_are_read() {
        let folder = tempfile::tempdir().unwrap();
        for (file, bytes) in [("x/deep/d0.tdb", 3_000_000), ("obs/a", 10), ("other/b", 99)] {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, vec![0; bytes]).unwrap();
        }
        let folders = ["x", "obs", "missing"].map(|name| folder.path().join(name));
        assert_eq!(warm(Some(&folders)), PageCache::Warm { bytes: 3_000_010 });
        let mut warnings = Vec::new();
        let mut warn = |why: &str| warnings.push(why.to_owned());
        assert_eq!(warm_again(WARM, Some(&folders), &mut warn), WARM);
        assert_eq!(warm_again("unknown", Some(&folders), &mut warn), "unknown");
        assert_eq!(warm_again(WARM, None, &mut warn), "unknown");
        assert!(warnings.len() == 1 && warnings[0].contains("warm no longer"), "{warnings:?}");
    }

    #[test]
    fn data_in_a_store_is_not_called_warm() {
        assert_eq!(warm(None).name(), "unknown");
    }
}
