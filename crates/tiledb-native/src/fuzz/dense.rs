//! Dense arrays: stored ones with overwritten bytes, and files with arbitrary content, opened and
//! read whole and in part.

use std::slice::from_ref;
use std::sync::{Arc, OnceLock};

use csr::Narrowing;
use storage::MemoryStorage;

use super::array::options;
use super::first_byte;
use crate::{DenseArray, Error, OpenOptions};

const STORED: [&[u8]; 2] = [
    include_bytes!("../../tests/data/dense.files"),
    include_bytes!("../../tests/data/dense-columns.files"),
];
/// The stored arrays have fewer rows and columns.
const MOST: u64 = 50;

/// Input: index of a stored array (1 byte), or beyond those, files packed in the same form; the
/// opening time (1 byte); then changes, as for `array`.
pub(super) fn dense(input: &[u8]) {
    static UNPACKED: OnceLock<Vec<MemoryStorage>> = OnceLock::new();
    let (choice, rest) = first_byte(input);
    let (timestamp, rest) = first_byte(rest);
    let stored =
        UNPACKED.get_or_init(|| STORED.iter().map(|of| MemoryStorage::unpack(of)).collect());
    let served = match stored.get(usize::from(choice)) {
        Some(stored) => stored.changed(rest),
        None => MemoryStorage::unpack(rest),
    };
    let timestamp = (timestamp < 10).then_some(timestamp.into());
    // An error is an acceptable result.
    let _read = read(served, timestamp);
}

fn read(served: MemoryStorage, timestamp: Option<u64>) -> Result<(), Error> {
    let array = DenseArray::open(Arc::new(served), &OpenOptions { timestamp, ..options() })?;
    let (n_rows, n_columns) = (array.n_rows().min(MOST), array.n_columns().min(MOST));
    let mut whole = vec![0.0; (n_rows * n_columns) as usize];
    array.read(&[0..n_rows], &[0..n_columns], Narrowing::Nearest, &mut whole)?;
    // A part, across tiles.
    let (rows, columns) = (n_rows / 3..n_rows, n_columns / 2..n_columns);
    let (height, width) = (rows.end - rows.start, columns.end - columns.start);
    let mut part = vec![0.0; (height * width) as usize];
    let (of_rows, of_columns) = (from_ref(&rows), from_ref(&columns));
    array.read(of_rows, of_columns, Narrowing::Nearest, &mut part)?;
    let of_whole = rows.flat_map(|row| columns.clone().map(move |column| (row, column)));
    for (value, (row, column)) in part.iter().zip(of_whole) {
        let expected = whole[(row * n_columns + column) as usize];
        assert_eq!(value.to_bits(), expected.to_bits(), "row {row}, column {column}");
    }
    Ok(())
}
