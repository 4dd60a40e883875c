//! The state of the page cache that points find: the data's files read through before each run (warm), or put out of it before each epoch
//! (cold).
//!
//! Cold, the machine's whole cache is dropped where that is permitted; elsewhere, and where it is asked for so, the kernel is advised
//! that the data's files are not needed. Advice need not be followed (another process may have a file mapped), so it is looked at:
//! pages that are still there make the state unknown, and why is said.

mod cold;

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

pub(crate) use cold::{Cold, cool};

use crate::job::Data;
use crate::secrets::Address;

/// Share of the available memory that the files may take to be kept in the page cache beside a loader.
const SHARE: f64 = 0.6;

/// The name of a cache that was read into.
const WARM: &str = "warm";

/// What the points find.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PageCache {
    /// Files of so many bytes were read through.
    Warm {
        /// Of all files together.
        bytes: u64,
    },
    /// The machine's cache was dropped.
    Dropped,
    /// The data's files were advised out.
    Advised,
    /// Nothing is known, and why.
    Unknown(String),
}

impl PageCache {
    /// As it is noted with each row.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Warm { .. } => WARM,
            Self::Dropped => "cold-dropped",
            Self::Advised => "cold-advised",
            Self::Unknown(_) => "unknown",
        }
    }
}

/// Reads the files of X's layer, or of the whole experiment where they are elsewhere, and of obs.
pub(crate) fn warm(data: &Data) -> PageCache {
    if local_path(&data.uri).is_none() {
        return PageCache::Unknown("the data is not on a local disk".to_owned());
    }
    let files = files(data);
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

/// Reads the files through again where the cache was warm: a run that took much memory may have put them out of it. The cache's name as it is
/// now; `warn` is told where it is warm no longer.
pub(crate) fn warm_again(
    before: &'static str,
    data: &Data,
    warn: impl FnOnce(&str),
) -> &'static str {
    if before != WARM {
        return before;
    }
    let found = warm(data);
    if let PageCache::Unknown(why) = &found {
        warn(&format!("warning: the page cache is warm no longer: {why}"));
    }
    found.name()
}

/// A file of the data.
#[derive(Debug)]
pub(crate) struct DataFile {
    pub(crate) path: PathBuf,
    pub(crate) bytes: u64,
    /// When it was changed last, in nanoseconds since 1970.
    pub(crate) changed: i128,
}

/// The files that a sweep reads: of X's layer, or of the whole experiment where that is elsewhere, and of obs; by path. None of data
/// that is not on a local disk.
pub(crate) fn files(data: &Data) -> io::Result<Vec<DataFile>> {
    let Some(root) = local_path(&data.uri) else { return Ok(Vec::new()) };
    let x = root.join("ms").join(&data.measurement).join("X").join(&data.layer);
    let folders = if x.is_dir() { vec![x, root.join("obs")] } else { vec![root] };
    let mut files = Vec::new();
    for folder in folders.iter().filter(|folder| folder.is_dir()) {
        list(folder, &mut files)?;
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

pub(crate) fn local_path(uri: &Address) -> Option<PathBuf> {
    soma_io::local_path(uri.full()).map(Path::to_owned)
}

fn list(folder: &Path, into: &mut Vec<DataFile>) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt as _;
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let found = fs::metadata(&path)?;
        if found.is_dir() {
            list(&path, into)?;
        } else {
            let changed =
                i128::from(found.mtime()) * 1_000_000_000 + i128::from(found.mtime_nsec());
            into.push(DataFile { path, bytes: found.len(), changed });
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

    fn data(uri: &str, measurement: &str) -> Data {
        let [measurement, layer] = [measurement, "raw"].map(str::to_owned);
        Data { uri: uri.into(), measurement, layer, ..Data::default() }
    }

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
        let all_of_raw = PageCache::Warm { bytes: 3_000_010 };
        assert_eq!(warm(&data(uri, "RNA")), all_of_raw);
        assert_eq!(warm(&data(&format!("file://{uri}"), "RNA")), all_of_raw);
        assert_eq!(warm(&data(uri, "ATAC")), PageCache::Warm { bytes: 3_000_109 });
        let mut told = Vec::new();
        assert_eq!(warm_again(WARM, &data(uri, "RNA"), |why| told.push(why.to_owned())), WARM);
        let unknown = warm_again("unknown", &data(uri, "RNA"), |why| told.push(why.to_owned()));
        assert_eq!(unknown, "unknown");
        assert_eq!(told, [""; 0]);
        let away = data("s3://bucket/experiment", "RNA");
        assert_eq!(warm_again(WARM, &away, |why| told.push(why.to_owned())), "unknown");
        assert!(told[0].contains("warm no longer"), "{told:?}");
    }

    #[test]
    fn data_in_a_store_is_not_called_warm() {
        let state = warm(&data("s3://bucket/experiment", "RNA"));
        assert_eq!(state.name(), "unknown");
    }
}
