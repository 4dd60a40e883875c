//! Removes the data's files from the page cache.

use std::fs::{self, File};
use std::io;
use std::num::NonZeroU64;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use clap::ValueEnum;
use rustix::io::pread;
use serde::{Deserialize, Serialize};

use super::{PageCache, not_local};
use crate::data_files::{DataFile, data_files};
use crate::kernel;

/// How the cache is made cold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
pub enum Cold {
    /// Drop the machine's cache where that is permitted, else as `advise`
    Auto,
    /// Drop the machine's cache, for root only; others who use the machine feel it
    Drop,
    /// Advise the kernel that the data's files are not needed
    Advise,
}

/// File that makes the kernel drop the whole page cache when root writes to it.
const DROP_CACHES: &str = "/proc/sys/vm/drop_caches";

/// Pages checked in each file, spread from its beginning to its end.
const SAMPLED_PAGES: u64 = 16;
const PAGE_BYTES: u64 = 4096;

/// Largest share of the checked pages that may still be cached if files are to count as cold.
pub const MOST_LEFT: f64 = 0.05;

/// Pauses before the advice is repeated.
const AGAIN: [Duration; 3] =
    [Duration::from_millis(20), Duration::from_millis(100), Duration::from_millis(500)];

/// Removes the files below `folders` from the page cache; `None` means data that is not on a local
/// disk. Returns [`PageCache::Unknown`] if that failed.
pub fn cool(folders: Option<&[PathBuf]>, how: Cold) -> PageCache {
    let Some(folders) = folders else { return not_local() };
    match data_files(folders) {
        Ok(files) => cool_files(&files, how, Path::new(DROP_CACHES)),
        Err(error) => PageCache::Unknown(format!("the files cannot be listed: {error}")),
    }
}

/// Advises the kernel that a part of a file is not needed any longer, rounded outward to whole
/// pages. The kernel keeps pages that are in use, not on the disk yet, or in one piece with others
/// that are needed. Fails if the file cannot be opened or the kernel refuses.
pub fn evict(file: &Path, part: Range<u64>) -> io::Result<()> {
    let file = File::open(file)?;
    let start = part.start - part.start % PAGE_BYTES;
    let length = part.end.next_multiple_of(PAGE_BYTES).saturating_sub(start);
    if length == 0 {
        return Ok(());
    }
    // Up to the end of the file and beyond, the last piece is wholly inside.
    let is_rest = file.metadata()?.len() <= part.end;
    let length = NonZeroU64::new(length).filter(|_| !is_rest);
    kernel::forget_pages(&file, start, length)
}

/// Returns the share of the pages of the files below `folders` that are in the page cache, by a
/// sample of each file. Fails if a file cannot be read.
pub fn cached_share(folders: &[PathBuf]) -> io::Result<f64> {
    let files = data_files(folders)?;
    let share = left(&files)?;
    // Removes the pages that the check has brought in.
    if share <= MOST_LEFT {
        each(&files, advise)?;
    }
    Ok(share)
}

fn cool_files(files: &[DataFile], how: Cold, drop_caches: &Path) -> PageCache {
    // The kernel keeps pages that are not on the disk yet.
    if let Err(error) = each(files, File::sync_all) {
        return PageCache::Unknown(format!("the files cannot be written back: {error}"));
    }
    let dropped = match how {
        Cold::Advise => Err(io::ErrorKind::Unsupported.into()),
        // 1 drops the page cache alone, not the caches of file names.
        Cold::Auto | Cold::Drop => fs::write(drop_caches, "1"),
    };
    let state = match (dropped, how) {
        (Ok(()), _) => PageCache::Dropped,
        (Err(error), Cold::Drop) => {
            return PageCache::Unknown(format!("{} refuses: {error}", drop_caches.display()));
        }
        (Err(_), Cold::Auto | Cold::Advise) => match each(files, advise) {
            Ok(()) => PageCache::Advised,
            Err(error) => return PageCache::Unknown(format!("the kernel refuses: {error}")),
        },
    };
    let left = match &state {
        PageCache::Advised => left_at_last(files),
        _ => left(files),
    };
    match left {
        // Removes the pages that the check has brought in.
        Ok(share) if share <= MOST_LEFT => match each(files, advise) {
            Ok(()) => state,
            Err(error) => PageCache::Unknown(format!("the kernel refuses: {error}")),
        },
        Ok(share) => PageCache::Unknown(format!(
            "{:.0} % of the pages looked at are in the cache still: another process uses the files, or they are in memory only",
            100.0 * share
        )),
        Err(error) => PageCache::Unknown(format!("what is left cannot be seen: {error}")),
    }
}

/// Returns the share of pages that stay cached after repeated advice. A page that was just used may
/// be on a list of another processor, which advice does not reach until that list is emptied.
fn left_at_last(files: &[DataFile]) -> io::Result<f64> {
    for pause in AGAIN {
        let share = left(files)?;
        if share <= MOST_LEFT {
            return Ok(share);
        }
        thread::sleep(pause);
        each(files, advise)?;
    }
    left(files)
}

fn each(files: &[DataFile], mut act: impl FnMut(&File) -> io::Result<()>) -> io::Result<()> {
    files.iter().try_for_each(|file| {
        File::open(&file.path).and_then(|open| act(&open)).map_err(|error| {
            io::Error::new(error.kind(), format!("{}: {error}", file.path.display()))
        })
    })
}

fn advise(file: &File) -> io::Result<()> {
    kernel::forget_pages(file, 0, None)
}

/// Returns the share of checked pages that are in the cache. All checked pages are there when this
/// returns: the check itself makes the kernel read them, and advice does not drop a page that is
/// being read, so this waits for them.
fn left(files: &[DataFile]) -> io::Result<f64> {
    let (mut n_looked, mut n_there) = (0_u64, 0_u64);
    for file in files {
        let open = File::open(&file.path)?;
        // Otherwise a check of one page would fetch the pages behind it.
        kernel::read_single_pages(&open)?;
        let n_pages = file.bytes.div_ceil(PAGE_BYTES);
        let step = n_pages.div_ceil(SAMPLED_PAGES).max(1);
        let mut absent = Vec::new();
        for at in (0..n_pages).step_by(step as usize).map(|page| page * PAGE_BYTES) {
            n_looked += 1;
            if kernel::is_cached(&open, at)? {
                n_there += 1;
            } else {
                absent.push(at);
            }
        }
        for at in absent {
            pread(&open, &mut [0], at)?;
        }
    }
    Ok(if n_looked == 0 { 0.0 } else { n_there as f64 / n_looked as f64 })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes files to the target folder, which is on a disk; /tmp may be memory.
    fn data() -> (tempfile::TempDir, Vec<DataFile>) {
        let target = std::env::current_exe().unwrap();
        let folder = tempfile::tempdir_in(target.parent().unwrap()).unwrap();
        fs::create_dir(folder.path().join("obs")).unwrap();
        fs::write(folder.path().join("obs/a"), vec![7; 1 << 20]).unwrap();
        fs::write(folder.path().join("obs/empty"), "").unwrap();
        let files = data_files(&[folder.path().to_owned()]).unwrap();
        assert_eq!(files.len(), 2);
        (folder, files)
    }

    /// Whether files are cold in the end. Advice misses pages that another processor has just used,
    /// until that processor has other pages to list.
    fn at_last(is_cold: impl Fn() -> bool) -> bool {
        AGAIN.into_iter().chain([Duration::from_secs(2); 5]).any(|pause| {
            thread::sleep(pause);
            is_cold()
        })
    }

    #[test]
    fn files_are_advised_out_and_read_in_again() {
        let (_folder, files) = data();
        let nowhere = Path::new("/nonexistent/drop_caches");
        assert!(left(&files).unwrap() > 0.99, "what was just written is in the cache");
        for how in [Cold::Advise, Cold::Auto] {
            // The last advice is about the pages that the check itself has just brought in, which
            // may be on a list of another processor.
            let is_cold = at_last(|| {
                assert_eq!(cool_files(&files, how, nowhere), PageCache::Advised);
                left(&files).unwrap() < 0.01
            });
            assert!(is_cold);
        }
        let state = cool_files(&files, Cold::Drop, nowhere);
        assert!(
            matches!(&state, PageCache::Unknown(why) if why.contains("drop_caches")),
            "{state:?}"
        );
        fs::read(&files[0].path).unwrap();
        assert!(left(&files).unwrap() > 0.99);
    }

    #[test]
    fn a_file_that_was_read_is_evicted_with_its_edges() {
        let (folder, files) = data();
        let of_all = || cached_share(&[folder.path().to_owned()]).unwrap();
        let path = folder.path().join("obs/a");
        // What is not on the disk yet stays.
        each(&files, File::sync_all).unwrap();
        evict(&path, 7..7).unwrap();
        assert!(of_all() > 0.99);
        let is_cold = at_last(|| {
            evict(&path, 1..(1 << 20)).unwrap();
            of_all() < 0.01
        });
        assert!(is_cold);
        evict(&folder.path().join("absent"), 0..1).unwrap_err();
    }

    #[test]
    fn a_drop_that_drops_nothing_is_not_believed() {
        let (folder, files) = data();
        let pretended = folder.path().join("drop_caches");
        let state = cool_files(&files, Cold::Auto, &pretended);
        assert!(matches!(&state, PageCache::Unknown(why) if why.contains("100 %")), "{state:?}");
        assert_eq!(fs::read_to_string(pretended).unwrap(), "1");
    }

    #[test]
    fn data_in_a_store_is_not_called_cold() {
        assert_eq!(cool(None, Cold::Auto).name(), "unknown");
    }
}
