//! Whole arrays: stored ones with overwritten bytes, and files with arbitrary content, opened and
//! read in every way.

use std::sync::{Arc, OnceLock};

use rayon::{ThreadPool, ThreadPoolBuilder};

use super::first_byte;
use crate::{Array, ColumnSelection, CsrBuffers, Error, OpenOptions, PackedCsr, Threads};
use storage::MemoryStorage;

const STORED: [&[u8]; 9] = [
    include_bytes!("../../tests/data/format-06.files"),
    include_bytes!("../../tests/data/format-09-appended.files"),
    include_bytes!("../../tests/data/format-11.files"),
    include_bytes!("../../tests/data/format-12-consolidated.files"),
    include_bytes!("../../tests/data/format-14-consolidated.files"),
    include_bytes!("../../tests/data/format-15-consolidated.files"),
    include_bytes!("../../tests/data/format-22-consolidated.files"),
    include_bytes!("../../tests/data/format-22.files"),
    include_bytes!("../../tests/data/matrix-deleted.files"),
];
/// The stored arrays have a hundred rows. Most runs read few of them, which is faster.
const MAX_ROWS: u64 = 200;
const FEW_ROWS: u64 = 6;
const ALL: u8 = u8::MAX;

/// Input: index of a stored array (1 byte), or beyond those, files packed in the same form; rows to
/// read (1 byte); then changes: file (1 byte), place (2 bytes), number of bytes (1 byte), bytes. A
/// change of no bytes truncates the file there.
pub(super) fn array(input: &[u8]) {
    let (choice, rest) = first_byte(input);
    let (part, rest) = first_byte(rest);
    let Some(stored) = stored().get(usize::from(choice)) else {
        read(MemoryStorage::unpack(rest), part);
        return;
    };
    read(stored.changed(rest), part);
}

fn stored() -> &'static [MemoryStorage] {
    static UNPACKED: OnceLock<Vec<MemoryStorage>> = OnceLock::new();
    UNPACKED.get_or_init(|| STORED.iter().map(|bytes| MemoryStorage::unpack(bytes)).collect())
}

fn read(served: MemoryStorage, part: u8) {
    let Ok(array) = Array::open(Arc::new(served), &options()) else { return };
    let _bounds = (array.non_empty_domain(), array.n_cells());
    // An error is an acceptable result.
    let _read = read_in_every_way(&array, part);
}

fn read_in_every_way(array: &Array, part: u8) -> Result<(), Error> {
    let end = array.n_rows().min(MAX_ROWS);
    let rows = match part {
        ALL => 0..end,
        part => {
            let start = u64::from(part).min(end);
            start..end.min(start + FEW_ROWS)
        }
    };
    let n_rows = rows.end - rows.start;
    let (mut out, mut packed) = (CsrBuffers::new(), PackedCsr::default());
    let n_columns = array.n_columns();
    let some = ColumnSelection::Range(n_columns.min(1)..n_columns.min(40));
    let list = ColumnSelection::List([3, 0, 17].into_iter().filter(|c| *c < n_columns).collect());
    let all = ColumnSelection::All;
    // Cached chunks of the earlier reads serve the last one.
    for (columns, kept) in [(&all, 0), (&some, 1 << 20), (&list, 1 << 20), (&all, 1 << 20)] {
        array.keep_decoded(kept);
        let read = array.read_csr(std::slice::from_ref(&rows), columns, &mut out);
        let read_packed = array.read_packed(std::slice::from_ref(&rows), columns, &mut packed);
        if let Err(error) = read {
            assert_eq!(out.n_rows(), 0, "{error}");
            return Err(error);
        }
        check(&out, n_rows);
        match read_packed {
            Ok(_) => {
                let unpacked = packed.unpack();
                assert_eq!(unpacked.row_offsets, out.row_offsets);
                assert_eq!(unpacked.columns, out.columns);
                let bits = |values: &[f32]| values.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
                assert_eq!(bits(&unpacked.values), bits(&out.values));
            }
            Err(error) => assert!(matches!(error, Error::TooManyToPack { .. }), "{error}"),
        }
    }
    Ok(())
}

fn check(out: &CsrBuffers, n_rows: u64) {
    assert_eq!(out.n_rows() as u64, n_rows);
    assert!(out.row_offsets.is_sorted() && out.row_offsets.last() == Some(&out.values.len()));
    assert_eq!(out.columns.len(), out.values.len());
    for row in 0..out.n_rows() {
        let (columns, _) = out.row(row);
        assert!(columns.is_sorted());
        assert!(columns.last().is_none_or(|last| (*last as usize) < out.n_columns));
    }
}

/// A pool of only the calling thread: handing each run to another one would take most of the time.
pub(super) fn options() -> OpenOptions {
    thread_local! {
        static POOL: Arc<ThreadPool> = {
            let pool = ThreadPoolBuilder::new().num_threads(1).use_current_thread().build();
            Arc::new(pool.unwrap_or_else(|error| panic!("there is no pool: {error}")))
        };
    }
    let threads = Threads::Shared(POOL.with(Arc::clone));
    OpenOptions { threads, ..OpenOptions::new(1) }
}
