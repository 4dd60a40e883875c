//! Elements that are converted on their way into a batch.

use std::path::Path;
use std::sync::Arc;

use arrays::{ElementType, SampleSpec, Variable};
use half::f16;
use zarrs::array::{ArrayBuilder, DataType, data_type};
use zarrs::filesystem::FilesystemStore;

use crate::{chain, open, open_with, values};

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

/// Writes an array of Zarr v2 with this metadata and these attributes, not compressed.
fn write_v2(folder: &Path, dtype: &str, (fill, elements): (&str, &[u8]), attributes: &str) {
    let array = folder.join("a");
    std::fs::create_dir_all(&array).unwrap();
    let n_bytes: usize = dtype[2..].parse().unwrap();
    let n = elements.len() / n_bytes;
    let metadata = format!(
        r#"{{"zarr_format": 2, "shape": [{n}], "chunks": [{n}], "dtype": "{dtype}",
            "compressor": null, "fill_value": {fill}, "filters": null, "order": "C"}}"#
    );
    std::fs::write(array.join(".zarray"), metadata).unwrap();
    std::fs::write(array.join(".zattrs"), attributes).unwrap();
    std::fs::write(array.join("0"), elements).unwrap();
}

fn bits(values: &[f32]) -> Vec<Option<u32>> {
    values.iter().map(|x| (!x.is_nan()).then(|| x.to_bits())).collect()
}

#[test]
fn attributes_of_packing_are_read_in_all_their_forms() {
    let with_missing: Vec<u8> = [0_i16, 1, -999].into_iter().flat_map(i16::to_le_bytes).collect();
    let small: Vec<u8> = [0_i16, 1, 2].into_iter().flat_map(i16::to_le_bytes).collect();
    let signed = [0, 1, 255];
    let nan = f32::NAN;
    let cases: [(&str, &[u8], &str, [f32; 3]); 10] = [
        ("<i2", &with_missing, r#"{"scale_factor": 0.5, "missing_value": -999}"#, [0.0, 0.5, nan]),
        ("<i2", &with_missing, r#"{"scale_factor": 0.5, "_FillValue": [-999]}"#, [0.0, 0.5, nan]),
        ("<i2", &small, r#"{"scale_factor": [0.5]}"#, [0.0, 0.5, 1.0]),
        ("<i2", &small, r#"{"scale_factor": 0.5, "add_offset": [10.0]}"#, [10.0, 10.5, 11.0]),
        ("<i2", &small, r#"{"scale_factor": 2, "missing_value": [1, 2]}"#, [0.0, nan, nan]),
        ("<i2", &small, r#"{"missing_value": NaN, "add_offset": 1}"#, [1.0, 2.0, 3.0]),
        ("|i1", &signed, r#"{"scale_factor": 0.5, "_Unsigned": "true"}"#, [0.0, 0.5, 127.5]),
        ("|i1", &signed, r#"{"_FillValue": [-1], "_Unsigned": "true"}"#, [0.0, 1.0, nan]),
        (
            "|i1",
            &signed,
            r#"{"_FillValue": NaN, "add_offset": 0, "_Unsigned": "true"}"#,
            [0.0, 1.0, 255.0],
        ),
        ("|u1", &signed, r#"{"_FillValue": 255, "_Unsigned": "false"}"#, [0.0, 1.0, nan]),
    ];
    for (dtype, stored, attributes, expected) in cases {
        let folder = tempfile::tempdir().unwrap();
        write_v2(folder.path(), dtype, ("null", stored), attributes);
        let (all, _) = values::<f32>(open(folder.path(), "a").unwrap()).unwrap();
        assert_eq!(bits(&all), bits(&expected), "{attributes}");
    }
}

#[test]
fn attributes_of_packing_that_are_not_understood_are_named() {
    let stored = [0; 6];
    for (attribute, value) in [
        ("scale_factor", "\"0.5\""),
        ("scale_factor", "[0.5, 1]"),
        ("add_offset", "true"),
        ("missing_value", "\"-999\""),
        ("_FillValue", "[{}]"),
        ("_Unsigned", "\"yes\""),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let attributes = format!("{{\"{attribute}\": {value}}}");
        write_v2(folder.path(), "<i2", ("null", &stored), &attributes);
        let error = chain(&open(folder.path(), "a").unwrap_err());
        assert!(error.contains(attribute) && error.contains("as_stored"), "{error}");
        // The numbers themselves can be read.
        let spec = SampleSpec::new([Variable::new("a").as_stored()]);
        let (all, _) = values::<i16>(open_with(folder.path(), &spec).unwrap()).unwrap();
        assert_eq!(all, [0; 3]);
    }
}

/// xarray takes the fill value for `_FillValue` in the arrays of Zarr v2 that it opens, which have
/// dimensions. Other programs give every array a fill value, which means nothing.
#[test]
fn fill_values_of_version_2_are_missing_where_dimensions_are_named() {
    let stored: Vec<u8> = [0_i16, 1, 2].into_iter().flat_map(i16::to_le_bytes).collect();
    let folder = tempfile::tempdir().unwrap();
    write_v2(folder.path(), "<i2", ("0", &stored), r#"{"_ARRAY_DIMENSIONS": ["x"]}"#);
    let (all, _) = values::<f32>(open(folder.path(), "a").unwrap()).unwrap();
    assert_eq!(bits(&all), bits(&[f32::NAN, 1.0, 2.0]));
    write_v2(folder.path(), "<i2", ("0", &stored), "{}");
    let (all, _) = values::<i16>(open(folder.path(), "a").unwrap()).unwrap();
    assert_eq!(all, [0, 1, 2]);
}

#[test]
fn unpacked_numbers_have_a_type_that_holds_each_stored_one() {
    let stored: Vec<u8> =
        [1_i32 << 24, (1 << 24) + 1].into_iter().flat_map(i32::to_le_bytes).collect();
    let folder = tempfile::tempdir().unwrap();
    write_v2(folder.path(), "<i4", ("null", &stored), r#"{"missing_value": 16777216}"#);
    let (all, _) = values::<f64>(open(folder.path(), "a").unwrap()).unwrap();
    assert!(all[0].is_nan() && all[1] == 16_777_217.0);
    let spec = SampleSpec::new([Variable::new("a").as_f32()]);
    let (all, _) = values::<f32>(open_with(folder.path(), &spec).unwrap()).unwrap();
    assert!(all[0].is_nan() && all[1] == 16_777_216.0);
    let halves: Vec<u8> =
        [1.5, 2.0].map(f16::from_f32).into_iter().flat_map(f16::to_le_bytes).collect();
    write_v2(folder.path(), "<f2", ("null", &halves), r#"{"missing_value": 2.0}"#);
    let (all, _) = values::<f16>(open(folder.path(), "a").unwrap()).unwrap();
    assert!(all[0] == f16::from_f32(1.5) && all[1].is_nan());
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
