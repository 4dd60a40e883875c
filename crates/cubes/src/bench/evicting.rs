//! A storage that removes what was read from the page cache, so that each epoch reads from the
//! disk.
//!
//! If an epoch reads ahead over the end of the one before, no moment between the two could drop the
//! cache: the next epoch's first files were read before it. Here each file leaves the cache as soon
//! as it was read. An epoch reads every file once, so none is in the cache when the next one reads
//! it, whenever that is. The advice costs a system call in the thread that reads, within the
//! epoch's time.

use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use bench_run::evict;
use storage::{Coalesce, Entry, Expected, FileVersion, ListedFile, Piece, RequestCounts, Storage};

/// A folder of this machine whose files leave the page cache after each read.
#[derive(Debug)]
pub(crate) struct EvictingStorage {
    inner: Arc<dyn Storage>,
    root: PathBuf,
}

impl EvictingStorage {
    /// `inner`, which reads the files in the folder `root`.
    pub(crate) fn new(inner: Arc<dyn Storage>, root: PathBuf) -> Self {
        Self { inner, root }
    }

    fn evict(&self, file: &str, part: Range<u64>) -> io::Result<()> {
        evict(&self.root.join(file), part)
    }
}

#[deny(clippy::missing_trait_methods)]
impl Storage for EvictingStorage {
    storage::forward! { inner:
        fn place() -> String;
        fn list(folder: &str) -> io::Result<Vec<Entry>>;
        fn list_each(folders: &[&str]) -> Vec<io::Result<Vec<Entry>>>;
        fn list_all(most: usize) -> io::Result<Option<Vec<ListedFile>>>;
        fn size(file: &str) -> io::Result<u64>;
        fn sizes(files: &[&str]) -> Vec<io::Result<u64>>;
        fn versions(files: &[&str]) -> Vec<io::Result<FileVersion>>;
        fn prefetch(pieces: &[Piece<'_>], read: Expected);
        fn coalesce() -> Coalesce;
        fn keeps_versions() -> bool;
        fn request_counts() -> Option<RequestCounts>;
    }

    fn read(&self, pieces: &[Piece<'_>], into: &mut [u8]) -> io::Result<()> {
        self.inner.read(pieces, into)?;
        pieces.iter().try_for_each(|piece| self.evict(piece.file, piece.range.clone()))
    }

    fn read_files(&self, files: &[&str]) -> Vec<io::Result<Vec<u8>>> {
        let read = self.inner.read_files(files).into_iter().zip(files);
        read.map(|(bytes, file)| {
            let bytes = bytes?;
            self.evict(file, 0..bytes.len() as u64)?;
            Ok(bytes)
        })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use bench_run::cached_share;
    use storage::LocalStorage;

    use super::*;

    #[test]
    fn what_was_read_is_in_the_cache_no_longer() {
        // The target folder is on a disk; the system's folder for temporary files may be memory.
        let target = std::env::current_exe().unwrap();
        let folder = tempfile::tempdir_in(target.parent().unwrap()).unwrap();
        for name in ["a", "b"] {
            std::fs::write(folder.path().join(name), vec![7; 300_000]).unwrap();
            std::fs::File::open(folder.path().join(name)).unwrap().sync_all().unwrap();
        }
        let local = Arc::new(LocalStorage::new(folder.path()));
        let storage = EvictingStorage::new(local, folder.path().to_owned());
        let share = || cached_share(&[folder.path().to_owned()]).unwrap();
        assert!(share() > 0.99);
        let mut bytes = vec![0; 300_000];
        // A page that was used a moment ago may be on a list that advice does not reach at once.
        let mut left = 1.0;
        for _ in 0..20 {
            storage.read(&[Piece { file: "a", range: 0..300_000 }], &mut bytes).unwrap();
            assert!(bytes.iter().all(|byte| *byte == 7));
            assert_eq!(storage.read_files(&["b"])[0].as_ref().unwrap().len(), 300_000);
            left = share();
            if left < 0.05 {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        assert!(left < 0.05, "{left}");
    }
}
