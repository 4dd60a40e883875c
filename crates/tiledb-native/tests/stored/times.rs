//! What a read's threads spent their time with, by a clock that only the storage moves.

use std::cell::Cell;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tiledb_native::{
    Array, Coalesce, ColumnSelection, CsrBuffers, Entry, OpenOptions, Piece, Storage, ThreadTime,
};

use crate::packed::MemoryStorage;
use crate::stored;

/// Seconds of the wall clock that a read of the storage takes, and of the processor.
const READ_SECS: (u64, u64) = (1000, 10);

thread_local! {
    static N_READS: Cell<u64> = const { Cell::new(0) };
}

fn now() -> ThreadTime {
    let n_reads = N_READS.get();
    ThreadTime {
        wall: Duration::from_secs(n_reads * READ_SECS.0),
        cpu: Duration::from_secs(n_reads * READ_SECS.1),
    }
}

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
        N_READS.set(N_READS.get() + 1);
        self.n_reads.fetch_add(1, Ordering::Relaxed);
        self.files.read(pieces, into)
    }

    fn coalesce(&self) -> Coalesce {
        Coalesce { gap_bytes: 100, batch_bytes: 2000, prefetch: false }
    }
}

#[test]
fn fetching_is_told_from_decoding_and_nothing_without_a_clock() {
    let files = stored("format-22-consolidated");
    let storage = Arc::new(Slow { files, n_reads: AtomicU64::new(0) });
    let array = Array::open(Arc::<Slow>::clone(&storage), &OpenOptions::new(2)).unwrap();
    let mut out = CsrBuffers::new();
    let genes = [ColumnSelection::All, ColumnSelection::Range(10..200)];
    for columns in &genes {
        let untimed = array.read_csr(&[0..100], columns, &mut out).unwrap();
        assert_eq!(untimed.times, tiledb_native::ReadTimes::default());
    }
    array.time_reads(now);
    for columns in &genes {
        let before = storage.n_reads.load(Ordering::Relaxed);
        let stats = array.read_csr(&[0..100], columns, &mut out).unwrap();
        let n_reads = storage.n_reads.load(Ordering::Relaxed) - before;
        assert!(0 < n_reads);
        assert_eq!(stats.times.fetch.wall, Duration::from_secs(n_reads * READ_SECS.0));
        assert_eq!(stats.times.fetch.cpu, Duration::from_secs(n_reads * READ_SECS.1));
        assert_eq!(stats.times.decode, ThreadTime::default());
        // Row, column and value: 8, 8 and 4 bytes.
        assert_eq!(stats.bytes_needed, 20 * stats.nnz);
        // Row indices are there from the reads before; columns and values of whole chunks are decoded.
        assert_eq!(stats.bytes_decoded % 4, 0);
        assert!(12 * stats.nnz <= stats.bytes_decoded, "{stats:?}");
    }
}
