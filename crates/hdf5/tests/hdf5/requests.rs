//! Reads of the storage behind: how many there are, and what a failure of one leaves.

use std::fs;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hdf5::Hdf5Storage;
use storage::MemoryStorage;
use storage::{Coalesce, Entry, Piece, Storage};

use crate::damaged::PATHS;
use crate::{data, elements, open};

/// Files whose reads are counted, and of which one fails.
#[derive(Debug)]
struct Watched {
    files: MemoryStorage,
    n_reads: AtomicU64,
    fails_at: AtomicU64,
}

impl Watched {
    /// The fixture with datasets of many kinds, and the HDF5 file over it, opened.
    fn opened() -> (Arc<Self>, Arc<dyn Storage>) {
        let files = MemoryStorage::one("x.h5", &fs::read(data().join("kinds.h5")).unwrap());
        let (n_reads, fails_at) = (AtomicU64::new(0), AtomicU64::new(u64::MAX));
        let watched = Arc::new(Self { files, n_reads, fails_at });
        let files: Arc<dyn Storage> = Arc::<Self>::clone(&watched);
        let hdf5 = Hdf5Storage::open(files, "x.h5").unwrap();
        (watched, Arc::new(hdf5))
    }
}

impl Storage for Watched {
    fn place(&self) -> String {
        self.files.place()
    }

    fn list(&self, folder: &str) -> io::Result<Vec<Entry>> {
        self.files.list(folder)
    }

    fn size(&self, file: &str) -> io::Result<u64> {
        self.files.size(file)
    }

    fn read(&self, pieces: &[Piece<'_>], into: &mut [u8]) -> io::Result<()> {
        let number = self.n_reads.fetch_add(1, Ordering::Relaxed);
        if number == self.fails_at.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        self.files.read(pieces, into)
    }

    fn coalesce(&self) -> Coalesce {
        self.files.coalesce()
    }
}

#[test]
fn chunks_that_are_decoded_here_are_read_in_one_call() {
    let plain = open(&data(), "kinds.h5").unwrap();
    for path in ["chunked/lzf", "chunked/checked", "chunked/gzip", "chunked/blosc"] {
        let (watched, hdf5) = Watched::opened();
        let files: Vec<String> = (0..15).map(|place| format!("{path}/c/{place}")).collect();
        let sizes: Vec<u64> = files.iter().map(|file| hdf5.size(file).unwrap()).collect();
        let before = watched.n_reads.load(Ordering::Relaxed);
        // Two pieces of each file, as readers of parts ask for them.
        let pieces: Vec<Piece<'_>> = files
            .iter()
            .zip(&sizes)
            .flat_map(|(file, size)| {
                [0..size / 3, size / 2..*size].map(|range| Piece { file, range })
            })
            .collect();
        let n_bytes = |pieces: &[Piece<'_>]| {
            pieces.iter().map(|piece| (piece.range.end - piece.range.start) as usize).sum()
        };
        let mut read = vec![1; n_bytes(&pieces)];
        hdf5.read(&pieces, &mut read).unwrap();
        assert_eq!(watched.n_reads.load(Ordering::Relaxed) - before, 1, "{path}");
        let mut expected = Vec::new();
        for piece in pieces {
            let mut bytes = vec![2; n_bytes(std::slice::from_ref(&piece))];
            plain.read(&[piece], &mut bytes).unwrap();
            expected.extend(bytes);
        }
        assert_eq!(read, expected, "{path}");
    }
}

#[test]
fn a_failure_of_the_storage_is_an_error_and_not_remembered() {
    let mut n_all = 0;
    for fails_at in 0..8 {
        let (watched, hdf5) = Watched::opened();
        let n_reads = watched.n_reads.load(Ordering::Relaxed);
        watched.fails_at.store(n_reads + fails_at, Ordering::Relaxed);
        let mut n_failures = 0;
        for path in PATHS {
            let file = format!("{path}/zarr.json");
            let read = || hdf5.read_files(&[&file]).remove(0);
            let metadata = read().or_else(|error| {
                assert_eq!(error.kind(), io::ErrorKind::ConnectionReset, "{path}: {error}");
                n_failures += 1;
                read()
            });
            let metadata = String::from_utf8(metadata.unwrap()).unwrap();
            assert!(!metadata.contains(hdf5::UNREADABLE), "{path}: {metadata}");
        }
        assert!(n_failures <= 1);
        n_all += n_failures;
        let text = || elements(&hdf5, "text/variable");
        assert!(text().or_else(|_| text()).is_ok());
    }
    assert!(0 < n_all, "no read failed");
}
