//! Reads of one table at the same time.

use std::fmt;
use std::io;
use std::sync::{Arc, Mutex};
use std::thread;

use storage::{Coalesce, Entry, Piece, Storage};
use tiledb_native::{OpenOptions, Table};

use super::packed::MemoryStorage;
use super::stored;

const COLUMNS: [&str; 7] = ["soma_joinid", "name", "kind", "flag", "share", "when", "added"];

type Interruption = Box<dyn FnOnce() + Send>;

/// A storage that runs something else when it is next asked for sizes.
struct Interrupted {
    files: MemoryStorage,
    next: Mutex<Option<Interruption>>,
}

impl fmt::Debug for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Interrupted").finish_non_exhaustive()
    }
}

impl Storage for Interrupted {
    fn place(&self) -> String {
        self.files.place()
    }

    fn list(&self, folder: &str) -> io::Result<Vec<Entry>> {
        self.files.list(folder)
    }

    fn size(&self, file: &str) -> io::Result<u64> {
        self.files.size(file)
    }

    fn sizes(&self, files: &[&str]) -> Vec<io::Result<u64>> {
        let next = self.next.lock().unwrap().take();
        if let Some(next) = next {
            next();
        }
        self.files.sizes(files)
    }

    fn read(&self, pieces: &[Piece<'_>], into: &mut [u8]) -> io::Result<()> {
        self.files.read(pieces, into)
    }

    fn coalesce(&self) -> Coalesce {
        self.files.coalesce()
    }
}

/// While one read waits for the sizes of the files of two columns, another read of the same table
/// loads the places of one of these columns.
#[test]
fn a_read_during_another_one_changes_nothing() {
    let whole = Table::open(Arc::new(stored("table")), &OpenOptions::new(1)).unwrap();
    for first in COLUMNS {
        for second in COLUMNS {
            let expected = whole.read(&[first, second], None).unwrap();
            let files = Interrupted { files: stored("table"), next: Mutex::default() };
            let files = Arc::new(files);
            let table = Table::open(Arc::clone(&files) as Arc<dyn Storage>, &OpenOptions::new(2));
            let table = Arc::new(table.unwrap());
            let other = Arc::clone(&table);
            let read_other = move || drop(other.read(&[first], None).unwrap());
            *files.next.lock().unwrap() =
                Some(Box::new(move || thread::spawn(read_other).join().unwrap()));
            let found = table.read(&[first, second], None);
            let found = found.unwrap_or_else(|error| panic!("{first}, {second}: {error}"));
            assert_eq!(found, expected, "{first}, {second}");
            assert!(files.next.lock().unwrap().is_none(), "{first}, {second}");
        }
    }
}

#[test]
fn many_threads_read_one_table() {
    let whole = Table::open(Arc::new(stored("table")), &OpenOptions::new(1)).unwrap();
    for _ in 0..20 {
        let table = Table::open(Arc::new(stored("table")), &OpenOptions::new(2)).unwrap();
        thread::scope(|scope| {
            for columns in COLUMNS.windows(2).chain(COLUMNS.windows(3)) {
                let (table, whole) = (&table, &whole);
                scope.spawn(move || {
                    let found = table.read(columns, None).unwrap();
                    assert_eq!(found, whole.read(columns, None).unwrap(), "{columns:?}");
                });
            }
        });
    }
}
