//! Any files at all, packed as `tests/data/*.files` are, which make the first corpus:
//! `cargo +nightly fuzz run packed_array tests/data -- -rss_limit_mb=2048 -timeout=20`.
#![no_main]

#[path = "../../tests/stored/packed.rs"]
mod packed;

use std::sync::{Arc, OnceLock};

use libfuzzer_sys::fuzz_target;
use packed::MemoryStorage;
use tiledb_native::{Array, ColumnSelection, CsrBuffers, OpenOptions, Threads};

fuzz_target!(|input: &[u8]| {
    let storage = MemoryStorage::unpack(input);
    let Ok(array) = Array::open(Arc::new(storage), &options()) else { return };
    let rows = 0..array.n_rows().min(200);
    let mut out = CsrBuffers::new();
    if array.read_csr(std::slice::from_ref(&rows), &ColumnSelection::All, &mut out).is_ok() {
        assert_eq!(out.n_rows() as u64, rows.end);
    }
});

/// One pool for all runs: starting threads would take most of the time.
fn options() -> OpenOptions {
    static POOL: OnceLock<Arc<rayon::ThreadPool>> = OnceLock::new();
    let pool = POOL.get_or_init(|| Arc::new(rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a thread")));
    OpenOptions { threads: Threads::Shared(Arc::clone(pool)), ..OpenOptions::new(1) }
}
