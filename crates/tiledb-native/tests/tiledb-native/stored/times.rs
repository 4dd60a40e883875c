//! Time that a read spends fetching and decoding, with a storage that sleeps.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use storage::{Coalesce, Entry, Piece, Storage};
use tiledb_native::{Array, ColumnSelection, CsrBuffers, OpenOptions};

use crate::stored::packed::MemoryStorage;
use crate::stored::stored;

/// Least time of a read of the storage; it sleeps, so it uses almost no processor time.
const READ: Duration = Duration::from_millis(5);

#[derive(Debug)]
struct Slow {
    files: MemoryStorage,
    n_reads: AtomicU64,
}

impl Storage for Slow {
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
        std::thread::sleep(READ);
        self.n_reads.fetch_add(1, Ordering::Relaxed);
        self.files.read(pieces, into)
    }

    fn coalesce(&self) -> Coalesce {
        Coalesce { gap_bytes: 100, batch_bytes: 2000, prefetch_bytes: 0 }
    }
}

#[test]
fn fetching_and_decoding_are_timed_apart() {
    let files = stored("format-22-consolidated");
    let storage = Arc::new(Slow { files, n_reads: AtomicU64::new(0) });
    let array = Array::open(Arc::<Slow>::clone(&storage), &OpenOptions::new(2)).unwrap();
    let mut out = CsrBuffers::new();
    for columns in &[ColumnSelection::All, ColumnSelection::Range(10..200)] {
        // The first read builds the row indices; each read decodes columns and values.
        array.read_csr(&[0..100], columns, &mut out).unwrap();
        let before = storage.n_reads.load(Ordering::Relaxed);
        let stats = array.read_csr(&[0..100], columns, &mut out).unwrap();
        let n_reads = storage.n_reads.load(Ordering::Relaxed) - before;
        assert!(0 < n_reads);
        // Sleeping counts as fetching, not as processor time.
        let times = stats.times.unwrap();
        assert!(READ * n_reads as u32 <= times.fetch.wall, "{stats:?}");
        assert!(times.fetch.cpu < times.fetch.wall, "{stats:?}");
        assert!(Duration::ZERO < times.decode.cpu, "{stats:?}");
        // Row, column and value: 8, 8 and 4 bytes.
        assert_eq!(stats.bytes_needed, Some(20 * stats.values));
        // Columns and values of whole chunks are decoded.
        assert_eq!(stats.bytes_decoded.unwrap() % 4, 0);
        assert!(Some(12 * stats.values) <= stats.bytes_decoded, "{stats:?}");
    }
}
