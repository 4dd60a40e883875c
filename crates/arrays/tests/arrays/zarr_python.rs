//! Stores that zarr-python wrote (`tests/data/write.py`): each format, codec and order of elements;
//! and data sets that xarray wrote (`write_xarray.py`).

use std::path::PathBuf;

use arrays::{Element, Indices, SampleSpec, Variable};
use half::f16;

use crate::{open, open_with, read_all, values};

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

#[test]
fn data_sets_of_xarray_read_as_xarray_decodes_them() {
    for store in ["xarray-v2", "xarray-v3"] {
        let folder = data().join(store);
        let number = |i: u16| if i.is_multiple_of(11) { f32::NAN } else { f32::from(i) / 8.0 };
        let expected: Vec<f32> = (0..6 * 4 * 5).map(number).collect();
        // Missing numbers differ from themselves: bits are compared.
        let bits = |values: &[f32]| -> Vec<Option<u32>> {
            values.iter().map(|x| (!x.is_nan()).then(|| x.to_bits())).collect()
        };
        for variable in ["t", "u"] {
            let all = read_all::<f32>(&folder, variable).unwrap();
            assert_eq!(bits(&all), bits(&expected), "{store} {variable}");
        }
        let mask = read_all::<u8>(&folder, "mask").unwrap();
        assert!(mask.iter().zip(&expected).all(|(is, x)| (*is == 1) != x.is_nan()), "{store}");

        let north = Variable::new("t").select("lat", Indices::Range(2..4));
        let (part, shape) =
            values::<f32>(open_with(&folder, &SampleSpec::new([north])).unwrap()).unwrap();
        assert_eq!(shape, [2, 5]);
        assert_eq!(bits(&part[..10]), bits(&expected[10..20]), "{store}");
    }
}

#[test]
fn batches_have_the_names_of_dimensions() {
    for store in ["xarray-v2", "xarray-v3"] {
        let spec = SampleSpec::new([Variable::new("t").steps([0, 1])]);
        let samples = open_with(&data().join(store), &spec).unwrap();
        let pipeline = pipeline::Pipeline::new(
            samples.into(),
            crate::in_order(),
            arrays::ArrayBatch::n_samples,
        );
        let batch = pipeline.unwrap().epoch(0).unwrap().next().unwrap().unwrap();
        let values = batch.variable("t").unwrap();
        assert_eq!(values.dimensions(), ["sample", "step", "lat", "lon"], "{store}");
    }
}
