//! A good array with the input written over parts of its files: opened and read, it may fail but not panic, hang or run out of memory.
//!
//! The input is a list of changes: file (1 byte), place (3 bytes), number of bytes (1 byte), bytes. Run with
//! `cargo +nightly fuzz run damaged_array -- -rss_limit_mb=2048 -timeout=20`.
#![no_main]

#[path = "../../tests/stored/packed.rs"]
mod packed;

use std::sync::{Arc, OnceLock};

use libfuzzer_sys::fuzz_target;
use packed::MemoryStorage;
use tiledb_native::{Array, ColumnSelection, CsrBuffers, OpenOptions, Threads};

fuzz_target!(|input: &[u8]| {
    static WHOLE: OnceLock<MemoryStorage> = OnceLock::new();
    let whole = WHOLE.get_or_init(|| {
        MemoryStorage::unpack(include_bytes!("../../tests/data/format-22-consolidated.files"))
    });
    let mut storage = whole.clone();
    let mut rest = input;
    while let Some((change, after)) = rest.split_first_chunk::<5>() {
        let file = usize::from(change[0]) % storage.files.len();
        let place = u32::from_le_bytes([change[1], change[2], change[3], 0]) as usize;
        let (bytes, after) = after.split_at(usize::from(change[4]).min(after.len()));
        rest = after;
        let Some(file) = storage.files.values_mut().nth(file).filter(|file| !file.is_empty()) else { continue };
        let start = place % file.len();
        let end = file.len().min(start + bytes.len());
        file[start..end].copy_from_slice(&bytes[..end - start]);
        if bytes.is_empty() {
            file.truncate(start);
        }
    }
    read(storage);
});

fn read(storage: MemoryStorage) {
    let Ok(array) = Array::open(Arc::new(storage), &options()) else { return };
    let mut out = CsrBuffers::new();
    let rows = 0..array.n_rows().min(200);
    for columns in [ColumnSelection::All, ColumnSelection::Range(0..array.n_columns().min(40))] {
        if array.read_csr(std::slice::from_ref(&rows), &columns, &mut out).is_ok() {
            assert_eq!(out.n_rows() as u64, rows.end);
        }
    }
}

/// One pool for all runs: starting threads would take most of the time.
fn options() -> OpenOptions {
    static POOL: OnceLock<Arc<rayon::ThreadPool>> = OnceLock::new();
    let pool = POOL.get_or_init(|| Arc::new(rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a thread")));
    OpenOptions { threads: Threads::Shared(Arc::clone(pool)), ..OpenOptions::new(1) }
}
