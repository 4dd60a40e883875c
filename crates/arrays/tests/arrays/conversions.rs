//! Elements that are converted on their way into a batch.

use std::path::Path;
use std::sync::Arc;

use arrays::{ElementType, SampleSpec, Variable};
use half::f16;
use zarrs::array::{ArrayBuilder, DataType, data_type};
use zarrs::filesystem::FilesystemStore;

use crate::{open, open_with, values};

/// Writes 3 steps of 2 elements, with attributes.
fn write<T: zarrs::array::Element>(
    folder: &Path,
    element: DataType,
    fill: impl Into<zarrs::array::builder::ArrayBuilderFillValue>,
    elements: &[T],
    attributes: &serde_json::Value,
) {
    let store = Arc::new(FilesystemStore::new(folder).unwrap());
    let mut builder = ArrayBuilder::new(vec![3, 2], vec![1, 2], element, fill);
    builder.attributes(attributes.as_object().unwrap().clone());
    let array = builder.build(store, "/a").unwrap();
    array.store_metadata().unwrap();
    array.store_array_subset(&array.subset_all(), elements).unwrap();
}

#[test]
fn packed_integers_are_unpacked() {
    let folder = tempfile::tempdir().unwrap();
    let attributes =
        serde_json::json!({"scale_factor": 0.5, "add_offset": 100.0, "_FillValue": -1});
    write(folder.path(), data_type::int16(), -1_i16, &[0_i16, 1, -1, 3, 4, 300], &attributes);
    // A chunk that is not stored is missing, too.
    std::fs::remove_file(folder.path().join("a/c/2/0")).unwrap();
    let (all, _) = values::<f32>(open(folder.path(), "a").unwrap()).unwrap();
    assert_eq!(all[..2], [100.0, 100.5]);
    assert!(all[2].is_nan());
    assert_eq!(all[3..4], [101.5]);
    assert!(all[4].is_nan() && all[5].is_nan());
}

#[test]
fn half_floats_come_as_stored_or_as_f32() {
    let folder = tempfile::tempdir().unwrap();
    let stored: Vec<f16> = [0.5, -1.0, 2.25, 3.0, 65504.0, 1e-7].map(f16::from_f32).to_vec();
    write(folder.path(), data_type::float16(), f16::ZERO, &stored, &serde_json::json!({}));
    let (same, _) = values::<f16>(open(folder.path(), "a").unwrap()).unwrap();
    assert_eq!(same, stored);
    let spec = SampleSpec::new([Variable::new("a").as_f32()]);
    let (wide, _) = values::<f32>(open_with(folder.path(), &spec).unwrap()).unwrap();
    assert_eq!(wide, stored.iter().map(|x| x.to_f32()).collect::<Vec<f32>>());
}

#[test]
fn every_type_of_numbers_becomes_f32() {
    macro_rules! check {
        ($($element:ident $rust:ty),*) => {$({
            let folder = tempfile::tempdir().unwrap();
            let stored = [0, 1, 2, 3, 4, 100].map(|n: u8| n as $rust);
            let none = serde_json::json!({});
            write(folder.path(), data_type::$element(), 0 as $rust, &stored, &none);
            let spec = SampleSpec::new([Variable::new("a").as_f32()]);
            let (all, _) = values::<f32>(open_with(folder.path(), &spec).unwrap()).unwrap();
            assert_eq!(all, [0.0, 1.0, 2.0, 3.0, 4.0, 100.0], stringify!($element));
        })*};
    }
    check!(int8 i8, int16 i16, int32 i32, int64 i64, uint8 u8, uint16 u16, uint32 u32, uint64 u64);
    check!(float32 f32, float64 f64);
}

#[test]
fn every_type_has_its_name_in_zarr() {
    for name in ["bool", "int8", "uint64", "float16", "bfloat16", "float32"] {
        assert_eq!(ElementType::from_zarr_name(name).unwrap().to_string(), name);
    }
    assert_eq!(ElementType::from_zarr_name("complex64"), None);
}
