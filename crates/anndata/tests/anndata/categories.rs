//! Random categorical columns: the values that were written, or an error where a category is there
//! twice or missing.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_schema::DataType;
use proptest::prelude::*;
use serde_json::{Value, json};
use zarrs::array::builder::ArrayBuilderFillValue;
use zarrs::array::{ArrayBuilder, Element, FillValue, data_type};
use zarrs::filesystem::FilesystemStore;
use zarrs::group::GroupBuilder;

use crate::{chain, open};

/// Categories of one type, some of which may be equal.
#[derive(Debug, Clone)]
enum Categories {
    Texts(Vec<String>),
    Integers(Vec<i16>),
    Large(Vec<u64>),
    Floats(Vec<f32>),
    Truths(Vec<bool>),
}

fn categories() -> impl Strategy<Value = Categories> {
    let few = 1..6_usize;
    let float = prop_oneof![Just(0.0_f32), Just(-0.0), Just(f32::NAN), Just(1.5), Just(-3.0)];
    prop_oneof![
        prop::collection::vec("[ab]{0,3}", few.clone()).prop_map(Categories::Texts),
        prop::collection::vec(-4..4_i16, few.clone()).prop_map(Categories::Integers),
        prop::collection::vec(u64::MAX - 8..u64::MAX, few.clone()).prop_map(Categories::Large),
        prop::collection::vec(float, few).prop_map(Categories::Floats),
        prop::collection::vec(any::<bool>(), 1..3).prop_map(Categories::Truths),
    ]
}

impl Categories {
    /// As texts; `None` for a missing one.
    fn texts(&self) -> Vec<Option<String>> {
        match self {
            Self::Texts(texts) => texts.iter().cloned().map(Some).collect(),
            Self::Integers(numbers) => numbers.iter().map(|n| Some(n.to_string())).collect(),
            Self::Large(numbers) => numbers.iter().map(|n| Some(n.to_string())).collect(),
            Self::Floats(numbers) => {
                let text = |n: &f32| (!n.is_nan()).then(|| format!("{n:?}"));
                numbers.iter().map(text).collect()
            }
            Self::Truths(truths) => truths.iter().map(|truth| Some(truth.to_string())).collect(),
        }
    }

    fn write(&self, store: &Arc<FilesystemStore>, path: &str) {
        match self {
            Self::Texts(texts) => write(store, path, (data_type::string(), ""), texts),
            Self::Integers(numbers) => write(store, path, (data_type::int16(), 0_i16), numbers),
            Self::Large(numbers) => write(store, path, (data_type::uint64(), 0_u64), numbers),
            Self::Floats(numbers) => write(store, path, (data_type::float32(), 0_f32), numbers),
            Self::Truths(truths) => {
                write(store, path, (data_type::bool(), FillValue::from(false)), truths);
            }
        }
    }
}

fn write<T: Element>(
    store: &Arc<FilesystemStore>,
    path: &str,
    (data_type, fill): (zarrs::array::DataType, impl Into<ArrayBuilderFillValue>),
    values: &[T],
) {
    let len = values.len() as u64;
    let built = ArrayBuilder::new(vec![len], vec![len.max(1)], data_type, fill)
        .build(Arc::clone(store), path)
        .unwrap();
    built.store_metadata().unwrap();
    built.store_array_subset(&built.subset_all(), values).unwrap();
}

fn write_group(store: &Arc<FilesystemStore>, path: &str, attributes: &Value) {
    let mut group = GroupBuilder::new();
    group.attributes(attributes.as_object().unwrap().clone());
    group.build(Arc::clone(store), path).unwrap().store_metadata().unwrap();
}

/// Writes an AnnData whose obs has a categorical column `kind`.
fn write_store(folder: &Path, categories: &Categories, codes: &[i8]) {
    fs::create_dir_all(folder).unwrap();
    let store = Arc::new(FilesystemStore::new(folder).unwrap());
    let encoded = |kind: &str, version: &str| {
        json!({"encoding-type": kind, "encoding-version": version, "ordered": false,
            "_index": "_index", "column-order": ["kind"]})
    };
    write_group(&store, "/", &encoded("anndata", "0.1.0"));
    write_group(&store, "/obs", &encoded("dataframe", "0.2.0"));
    write_group(&store, "/obs/kind", &encoded("categorical", "0.2.0"));
    let names: Vec<String> = (0..codes.len()).map(|row| format!("c{row}")).collect();
    write(&store, "/obs/_index", (data_type::string(), ""), &names);
    write(&store, "/obs/kind/codes", (data_type::int8(), 0_i8), codes);
    categories.write(&store, "/obs/kind/categories");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn values_are_those_that_were_written_or_an_error(
        categories in categories(),
        codes in prop::collection::vec(any::<prop::sample::Index>(), 0..20),
    ) {
        let texts = categories.texts();
        // -1 is a missing value.
        let codes: Vec<i8> = codes.iter().map(|code| code.index(texts.len() + 1) as i8 - 1).collect();
        let folder = tempfile::tempdir().unwrap();
        write_store(folder.path(), &categories, &codes);
        let obs = open(folder.path()).unwrap().obs().unwrap();
        let read = obs.read(&["kind"], 0..codes.len() as u64);
        let same = |text: &Option<String>| text.as_ref().map(|text| text.replace("-0.0", "0.0"));
        let mut distinct: Vec<Option<String>> = texts.iter().map(same).collect();
        distinct.sort();
        distinct.dedup();
        if distinct.len() < texts.len() || distinct.contains(&None) {
            let error = chain(&read.unwrap_err());
            prop_assert!(error.contains("obs/kind/categories"), "{}", error);
            prop_assert!(error.contains("which anndata refuses") || error.contains("a missing value"));
            return Ok(());
        }
        let read = arrow_cast::cast(read.unwrap().column(0), &DataType::LargeUtf8).unwrap();
        let found: Vec<Option<String>> =
            read.as_string::<i64>().iter().map(|text| text.map(str::to_owned)).collect();
        let expected: Vec<Option<String>> = codes
            .iter()
            .map(|code| texts.get(usize::try_from(*code).ok()?).cloned().flatten())
            .collect();
        prop_assert_eq!(found, expected);
    }
}
