//! Stores that zarr-python wrote (`tests/data/write.py`): each format, codec and order of elements.

use std::path::PathBuf;

use arrays::Element;
use half::f16;

use crate::{open, read_all, values};

fn data() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data")
}

/// Asserts that element i of the array is i.
#[track_caller]
fn counts<T: Element + PartialEq + std::fmt::Debug>(array: &str, element: impl Fn(u8) -> T) {
    let expected: Vec<T> = (0..7 * 3 * 5).map(element).collect();
    let (all, shape) = values::<T>(open(&data(), array).unwrap()).unwrap();
    assert_eq!(all, expected, "{array}");
    assert_eq!(shape, [3, 5]);
}

#[test]
fn stores_of_zarr_python_read_as_written() {
    counts("v2-zlib-big-endian", f32::from);
    counts("v2-blosc", i16::from);
    counts("v2-none-fortran", f64::from);
    counts("v3-zstd", f16::from);
    counts("v3-blosc-sharded", f32::from);
    counts("v3-gzip-crc", |n| n);
}

#[test]
fn a_chunk_that_is_not_stored_reads_as_the_fill_value() {
    let expected: Vec<f32> = (0..7 * 15_u16)
        .map(|n| if (4..6).contains(&(n / 15)) { -1.5 } else { f32::from(n) })
        .collect();
    assert_eq!(read_all::<f32>(&data(), "v3-missing-chunk").unwrap(), expected);
}
