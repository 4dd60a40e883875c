//! Prefetching announces to the storage everything that will be read, each range once.

use std::io;
use std::sync::{Arc, Mutex};

use storage::{Coalesce, Entry, Expected, Piece, Storage};
use tiledb_native::{Array, ColumnSelection, CsrBuffers, OpenOptions};

use crate::stored::packed::MemoryStorage;
use crate::stored::stored;

type Named = (String, std::ops::Range<u64>);

#[derive(Debug)]
struct Recorded {
    files: MemoryStorage,
    announced: Mutex<Vec<Named>>,
    read: Mutex<Vec<Named>>,
}

fn named(pieces: &[Piece<'_>]) -> impl Iterator<Item = Named> {
    pieces.iter().map(|piece| (piece.file.to_owned(), piece.range.clone()))
}

impl Storage for Recorded {
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
        self.read.lock().unwrap().extend(named(pieces));
        self.files.read(pieces, into)
    }

    fn prefetch(&self, pieces: &[Piece<'_>], _read: Expected) {
        self.announced.lock().unwrap().extend(named(pieces));
    }

    fn coalesce(&self) -> Coalesce {
        Coalesce { gap_bytes: 100, batch_bytes: 2000, prefetch_bytes: 1 << 20 }
    }
}

#[test]
fn what_is_read_was_announced() {
    let files = stored("format-22-consolidated");
    let storage = Arc::new(Recorded { files, announced: Mutex::default(), read: Mutex::default() });
    let array = Array::open(Arc::<Recorded>::clone(&storage), &OpenOptions::new(2)).unwrap();
    let mut out = CsrBuffers::new();
    for rows in [vec![3..20], vec![70..75, 90..95], vec![0..100]] {
        storage.announced.lock().unwrap().clear();
        storage.read.lock().unwrap().clear();
        array.read_csr(&rows, &ColumnSelection::All, &mut out).unwrap();
        let announced = storage.announced.lock().unwrap();
        let read = storage.read.lock().unwrap();
        let cells = read.iter().filter(|(file, _)| !file.ends_with("__fragment_metadata.tdb"));
        for (file, range) in cells {
            // No byte was announced twice, see below.
            let overlaps = announced
                .iter()
                .filter(|(name, _)| name == file)
                .map(|(_, one)| one.end.min(range.end).saturating_sub(one.start.max(range.start)));
            // The number of chunks, with which a tile begins, may lie between two wanted ranges.
            let is_announced = range.end - range.start <= overlaps.sum::<u64>() + 8;
            assert!(is_announced, "{file} {range:?} was not announced for {rows:?}");
        }
        for (idx, (file, range)) in announced.iter().enumerate() {
            let again = announced[idx + 1..].iter().any(|(name, other)| {
                name == file && other.start < range.end && range.start < other.end
            });
            assert!(!again, "{file} {range:?} was announced twice for {rows:?}");
        }
    }
}

#[test]
fn the_next_rows_are_announced_after_the_present_ones() {
    let files = stored("format-22-consolidated");
    let storage = Arc::new(Recorded { files, announced: Mutex::default(), read: Mutex::default() });
    let array = Array::open(Arc::<Recorded>::clone(&storage), &OpenOptions::new(2)).unwrap();
    let mut out = CsrBuffers::new();
    let clear = || {
        storage.announced.lock().unwrap().clear();
        storage.read.lock().unwrap().clear();
    };
    let mut read = |rows: std::ops::Range<u64>| {
        array.read_csr(&[rows], &ColumnSelection::All, &mut out).unwrap();
    };
    let covers = |announced: &[Named], (file, range): &Named| {
        announced
            .iter()
            .any(|(name, of)| name == file && of.start <= range.start && of.end >= range.end)
    };
    // In the first case, the next rows' tiles are not known yet.
    for (present, next) in [(0..5, 90..100), (3..20, 60..70), (0..100, 30..40), (5..9, 90..100)] {
        read(present.clone());
        clear();
        read(present.clone());
        let alone = storage.announced.lock().unwrap().clone();
        assert!(!alone.is_empty());
        array.announce_next(std::slice::from_ref(&next), &ColumnSelection::All);
        clear();
        read(present.clone());
        let both = storage.announced.lock().unwrap().clone();
        assert_eq!(both[..alone.len()], alone, "{present:?} comes first");
        clear();
        read(next.clone());
        for wanted in storage.read.lock().unwrap().iter() {
            assert!(covers(&both, wanted), "{wanted:?} was not announced before {next:?}");
        }
        clear();
        read(present);
        assert_eq!(*storage.announced.lock().unwrap(), alone, "{next:?} was announced once");
    }
}
