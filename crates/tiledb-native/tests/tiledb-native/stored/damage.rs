//! Flipped, truncated or overwritten bytes in every file: an error with the place, or wrong values
//! that the format cannot detect; never a panic, never a hang.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tiledb_native::{Array, ColumnSelection, CsrBuffers, Error, OpenOptions, PackedCsr};

use crate::stored::packed::MemoryStorage;
use crate::stored::stored;

/// The same numbers each time, so that failures are reproducible.
pub(super) struct Numbers(pub(super) u64);

impl Numbers {
    fn below(&mut self, n: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % n.max(1)
    }
}

/// Opens and reads, quickly in any case; delivered rows are consistent. Returns whether there was
/// an error.
fn open_and_read(storage: MemoryStorage, what: &str) -> bool {
    let started = Instant::now();
    let read = Array::open(Arc::new(storage), &OpenOptions::new(1)).and_then(|array| {
        let mut out = CsrBuffers::new();
        let rows = array.n_rows().min(200);
        let mut packed = PackedCsr::default();
        let some = 1..array.n_columns().clamp(1, 40);
        let all = ColumnSelection::All;
        // Cached chunks of the earlier reads serve the last one.
        for (columns, kept) in
            [(&all, 0), (&ColumnSelection::Range(some), 1 << 20), (&all, 1 << 20)]
        {
            array.keep_decoded(kept);
            array.read_csr(&[0..rows], columns, &mut out)?;
            // Packed rows equal the wide ones; rows that cannot be packed are an error.
            match array.read_packed(&[0..rows], columns, &mut packed) {
                Ok(_) => {
                    let unpacked = packed.unpack();
                    assert_eq!(
                        (&unpacked.row_offsets, &unpacked.columns),
                        (&out.row_offsets, &out.columns),
                        "{what}"
                    );
                }
                Err(error) => {
                    assert_eq!(packed.n_rows(), 0, "{what}: {error}");
                    assert!(
                        matches!(error, Error::Damaged { .. } | Error::TooManyToPack { .. }),
                        "{what}: {error}"
                    );
                }
            }
            assert_eq!(out.n_rows() as u64, rows, "{what}");
            assert!(
                out.row_offsets.is_sorted() && out.row_offsets.last() == Some(&out.values.len()),
                "{what}"
            );
            for row in 0..out.n_rows() {
                let (columns, _) = out.row(row);
                assert!(
                    columns.is_sorted()
                        && columns.iter().all(|&column| (column as usize) < out.n_columns),
                    "{what}"
                );
            }
        }
        Ok(())
    });
    assert!(started.elapsed() < Duration::from_secs(20), "{what} took {:?}", started.elapsed());
    match &read {
        Err(error @ Error::Damaged { .. }) => {
            assert!(error.to_string().contains("memory/"), "{what}: {error}");
        }
        Err(error) => assert!(!error.to_string().is_empty(), "{what}"),
        Ok(()) => {}
    }
    read.is_err()
}

/// Calls `each` with damaged copies of `whole` and a description of the damage: bits flipped, bytes
/// overwritten, files cut and lengthened, at `n_each` random places of each file.
pub(super) fn damages(
    whole: &MemoryStorage,
    n_each: usize,
    numbers: &mut Numbers,
    each: &mut dyn FnMut(MemoryStorage, &str),
) {
    let mut case = |path: &str, damage: &str, change: &mut dyn FnMut(&mut Vec<u8>)| {
        let mut storage = whole.clone();
        change(storage.files.get_mut(path).unwrap());
        each(storage, &format!("{path} {damage}"));
    };
    for (path, bytes) in &whole.files {
        let n = bytes.len();
        for _ in 0..n_each.min(n) {
            let (at, bit) = (numbers.below(n), numbers.below(8));
            case(path, &format!("with bit {bit} of byte {at} flipped"), &mut |bytes| {
                bytes[at] ^= 1 << bit;
            });
            let with = [0, 0xff, 0x7f][numbers.below(3)];
            let len = 1 + numbers.below(16);
            case(path, &format!("with {len} bytes of {with} at {at}"), &mut |bytes| {
                let end = n.min(at + len);
                bytes[at..end].fill(with);
            });
            let cut = numbers.below(n);
            case(path, &format!("cut to {cut} bytes"), &mut |bytes| bytes.truncate(cut));
            case(path, &format!("with 8 bytes more at {at}"), &mut |bytes| {
                bytes.splice(at..at, [1; 8]);
            });
        }
    }
}

fn check(name: &str, n_each: usize) {
    let (mut n_errors, mut n_cases) = (0, 0);
    damages(&stored(name), n_each, &mut Numbers(7), &mut |storage, damage| {
        n_cases += 1;
        n_errors += usize::from(open_and_read(storage, &format!("{name}: {damage}")));
    });
    assert!(n_errors * 2 > n_cases, "{n_errors} of {n_cases} were noticed");
}

#[test]
fn damaged_fragments() {
    check("format-22", 25);
}

#[test]
fn damaged_fragments_with_timestamps() {
    check("format-22-consolidated", 60);
}

#[test]
fn damaged_fragments_of_old_layouts() {
    check("format-09-appended", 15);
    check("format-06", 15);
    check("format-15-consolidated", 15);
}

#[test]
fn damaged_deletes() {
    check("matrix-deleted", 40);
}

#[test]
fn files_that_are_missing() {
    let whole = stored("format-22-consolidated");
    for path in whole.files.keys() {
        let mut storage = whole.clone();
        storage.files.remove(path);
        let failed = open_and_read(storage, &format!("without {path}"));
        // Without its commit a fragment does not count; no other file can be missing unnoticed.
        assert_eq!(failed, !path.starts_with("__commits/"), "without {path}");
    }
}
