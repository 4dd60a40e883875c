//! Short ways to write arrays of labels and expected codes.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{
    Array, ArrayRef, DictionaryArray, Int32Array, Int64Array, RecordBatch, StringArray,
};
use loader::encode::{Encoder, LabelEncoder};

pub(crate) fn texts<'a>(labels: impl IntoIterator<Item = &'a str>) -> ArrayRef {
    Arc::new(StringArray::from_iter_values(labels))
}

pub(crate) fn texts_or_null<const N: usize>(labels: [Option<&str>; N]) -> ArrayRef {
    Arc::new(StringArray::from(labels.to_vec()))
}

/// A dictionary with these values, used by the keys or not.
pub(crate) fn dictionary(keys: Vec<Option<i32>>, values: ArrayRef) -> ArrayRef {
    Arc::new(DictionaryArray::<Int32Type>::try_new(Int32Array::from(keys), values).unwrap())
}

pub(crate) fn obs<'a>(columns: impl IntoIterator<Item = (&'a str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable(
        columns.into_iter().map(|(name, array)| (name, array, true)),
    )
    .unwrap()
}

/// The texts of an array that `inverse` returned.
pub(crate) fn owned_texts(labels: &ArrayRef) -> Vec<Option<String>> {
    labels.as_string::<i64>().iter().map(|label| label.map(str::to_owned)).collect()
}

#[track_caller]
pub(crate) fn check_codes(encoder: &LabelEncoder, labels: &ArrayRef, expect: &[i64]) {
    let codes = encoder.encode_labels(labels).unwrap();
    assert_eq!(codes.values(), expect);
    assert_eq!(codes.null_count(), 0);
    let column = &encoder.columns()[0];
    assert_eq!(encoder.encode(&obs([(column.as_str(), Arc::clone(labels))])).unwrap(), codes);
}

pub(crate) fn codes(codes: &[i64]) -> Int64Array {
    Int64Array::from(codes.to_vec())
}
