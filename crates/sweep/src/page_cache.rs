//! Reading the data's files through once, so that every point finds them in the page cache and the first is not slower than the rest.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

/// Share of the available memory that the files may take to be kept in the page cache beside a loader.
const SHARE: f64 = 0.6;

/// What the points find.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PageCache {
    /// Files of so many bytes were read through.
    Warm {
        /// Of all files together.
        bytes: u64,
    },
    /// Nothing is known, and why.
    Unknown(String),
}

impl PageCache {
    /// As it is noted with each row.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Warm { .. } => "warm",
            Self::Unknown(_) => "unknown",
        }
    }
}

/// Reads the files of X's layer, or of the whole experiment where they are elsewhere, and of obs.
pub(crate) fn warm(uri: &str, measurement: &str, layer: &str) -> PageCache {
    let Some(root) = local_path(uri) else {
        return PageCache::Unknown("the data is not on a local disk".to_owned());
    };
    let x = root.join("ms").join(measurement).join("X").join(layer);
    let folders = if x.is_dir() { vec![x, root.join("obs")] } else { vec![root] };
    let mut files = Vec::new();
    let listed = folders
        .iter()
        .filter(|folder| folder.is_dir())
        .try_for_each(|folder| list(folder, &mut files));
    let bytes: u64 = files.iter().map(|(_, bytes)| bytes).sum();
    match listed.and_then(|()| available_bytes()) {
        Err(error) => PageCache::Unknown(format!("the files cannot be listed: {error}")),
        Ok(available) if available as f64 * SHARE < bytes as f64 => PageCache::Unknown(format!(
            "the files take {bytes} bytes, more than {SHARE} of the memory that is available"
        )),
        Ok(_) => match files.iter().try_for_each(|(file, _)| read_through(file)) {
            Ok(()) => PageCache::Warm { bytes },
            Err(error) => PageCache::Unknown(format!("the files cannot be read: {error}")),
        },
    }
}

pub(crate) fn local_path(uri: &str) -> Option<PathBuf> {
    match uri.split_once("://") {
        None => Some(PathBuf::from(uri)),
        Some(("file", path)) => Some(PathBuf::from(path)),
        Some(_) => None,
    }
}

fn list(folder: &Path, into: &mut Vec<(PathBuf, u64)>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let found = fs::metadata(&path)?;
        if found.is_dir() {
            list(&path, into)?;
        } else {
            into.push((path, found.len()));
        }
    }
    Ok(())
}

fn read_through(file: &Path) -> io::Result<()> {
    let mut file = File::open(file)?;
    let mut buffer = vec![0; 1 << 20];
    while file.read(&mut buffer)? != 0 {}
    Ok(())
}

fn available_bytes() -> io::Result<u64> {
    let text = fs::read_to_string("/proc/meminfo")?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    kib.map(|kib| kib * 1024)
        .ok_or_else(|| io::Error::other("/proc/meminfo names no available memory"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_the_layer_and_of_obs_are_read() {
        let folder = tempfile::tempdir().unwrap();
        for (file, bytes) in [
            ("ms/RNA/X/raw/__fragments/f/d0.tdb", 3_000_000),
            ("obs/a", 10),
            ("ms/RNA/X/other/b", 99),
        ] {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, vec![0; bytes]).unwrap();
        }
        let uri = folder.path().to_str().unwrap();
        assert_eq!(warm(uri, "RNA", "raw"), PageCache::Warm { bytes: 3_000_010 });
        assert_eq!(
            warm(&format!("file://{uri}"), "RNA", "raw"),
            PageCache::Warm { bytes: 3_000_010 }
        );
        assert_eq!(warm(uri, "ATAC", "raw"), PageCache::Warm { bytes: 3_000_109 });
    }

    #[test]
    fn data_in_a_store_is_not_called_warm() {
        let state = warm("s3://bucket/experiment", "RNA", "raw");
        assert_eq!(state.name(), "unknown");
    }
}
