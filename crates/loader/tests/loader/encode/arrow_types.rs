//! Labels in every supported Arrow type, with nulls and odd dictionaries.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int8Type, Int64Type, UInt16Type};
use arrow_array::{
    Array, ArrayRef, BooleanArray, Date32Array, DictionaryArray, Float32Array, Float64Array,
    Int64Array, LargeStringArray, NullArray, StringArray, StringViewArray, UInt64Array,
};
use arrow_cast::cast;
use arrow_schema::DataType;
use loader::encode::{
    BatchKeyEncoder, EncodeError, Encoder, FitError, InverseError, KeyError, LabelEncoder,
    LabelsError, Nulls, Rules, UNSEEN_CODE, Unseen,
};

use crate::encode::labels::{
    check_codes, codes, dictionary, obs, owned_texts, texts, texts_or_null,
};

const CODE: Rules = Rules { unseen: Unseen::Code, nulls: Nulls::Unseen };
const CLASS: Rules = Rules { unseen: Unseen::Error, nulls: Nulls::Class };

fn fit(labels: &ArrayRef, rules: Rules) -> LabelEncoder {
    LabelEncoder::fit("cell_type", labels, rules).unwrap()
}

#[test]
fn texts_of_every_type_agree() {
    let labels = vec!["T cell", "B cell", "", "T cell"];
    let arrays: [ArrayRef; 5] = [
        Arc::new(StringArray::from(labels.clone())),
        Arc::new(LargeStringArray::from(labels.clone())),
        Arc::new(StringViewArray::from(labels.clone())),
        Arc::new(labels.iter().copied().collect::<DictionaryArray<Int8Type>>()),
        Arc::new(labels.into_iter().collect::<DictionaryArray<UInt16Type>>()),
    ];
    for fitted in &arrays {
        let encoder = fit(fitted, Rules::default());
        assert_eq!(encoder.n_classes(), Some(3));
        for labels in &arrays {
            check_codes(&encoder, labels, &[2, 1, 0, 2]);
            check_codes(&encoder, &labels.slice(1, 2), &[1, 0]);
        }
        let labels = encoder.inverse(&codes(&[2, 0])).unwrap();
        assert_eq!(owned_texts(&labels), [Some("T cell".to_owned()), Some(String::new())]);
    }
}

#[test]
fn integers_of_every_type_agree() {
    let numbers: ArrayRef = Arc::new(Int64Array::from(vec![10, 3, 9, 10]));
    for integer in [
        DataType::Int8,
        DataType::Int16,
        DataType::Int32,
        DataType::Int64,
        DataType::UInt8,
        DataType::UInt16,
        DataType::UInt32,
        DataType::UInt64,
        DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Int32)),
    ] {
        let labels = cast(&numbers, &integer).unwrap();
        let encoder = fit(&labels, Rules::default());
        check_codes(&encoder, &labels, &[2, 0, 1, 2]);
        check_codes(&encoder, &numbers, &[2, 0, 1, 2]);
        let labels = encoder.inverse(&codes(&[0, 2])).unwrap();
        assert_eq!(labels.as_primitive::<Int64Type>().values(), &[3, 10]);
    }
    let extremes: ArrayRef = Arc::new(Int64Array::from(vec![i64::MAX, i64::MIN, 0]));
    check_codes(&fit(&extremes, Rules::default()), &extremes, &[2, 0, 1]);
}

#[test]
fn booleans_are_labels() {
    let labels: ArrayRef = Arc::new(BooleanArray::from(vec![true, false, true]));
    let encoder = fit(&labels, Rules::default());
    check_codes(&encoder, &labels, &[1, 0, 1]);
    assert_eq!(
        encoder.inverse(&codes(&[0])).unwrap().as_boolean(),
        &BooleanArray::from(vec![false])
    );
}

/// The codes of scikit-learn 1.9.1 for the same labels.
#[test]
fn codes_are_those_of_scikit_learn() {
    let labels = texts([
        "b",
        "B",
        "é",
        "z",
        "",
        "10",
        "9",
        "\u{1F9EC}",
        "\u{FB00}",
        "a b",
        "ab",
        "e\u{301}",
        "B",
    ]);
    check_codes(&fit(&labels, Rules::default()), &labels, SCIKIT_LEARN);
    let labels: ArrayRef = Arc::new(Int64Array::from(vec![10, -3, 9, 10]));
    check_codes(&fit(&labels, Rules::default()), &labels, &[2, 0, 1, 2]);
}

const SCIKIT_LEARN: &[i64] = &[6, 3, 9, 8, 0, 1, 2, 11, 10, 4, 5, 7, 3];

#[test]
fn types_without_labels_are_refused() {
    let dictionary = DictionaryArray::<Int8Type>::try_new(
        vec![0_i8].into(),
        Arc::new(Float64Array::from(vec![0.5])),
    );
    let arrays: [ArrayRef; 5] = [
        Arc::new(Float32Array::from(vec![0.5])),
        Arc::new(Float64Array::from(vec![0.5])),
        Arc::new(Date32Array::from(vec![1])),
        Arc::new(NullArray::new(1)),
        Arc::new(dictionary.unwrap()),
    ];
    for labels in arrays {
        let error = LabelEncoder::fit("pH", &labels, Rules::default()).unwrap_err();
        assert!(
            matches!(&error, FitError::Labels(LabelsError::Type { column, found }) if column == "pH" && found == labels.data_type())
        );
        assert!(error.to_string().contains(&labels.data_type().to_string()), "{error}");
    }
    let large: ArrayRef = Arc::new(UInt64Array::from(vec![0, u64::MAX]));
    let error = LabelEncoder::fit("id", &large, Rules::default()).unwrap_err();
    assert!(error.to_string().contains("18446744073709551615"), "{error}");
}

#[test]
fn another_kind_of_labels_is_refused() {
    let encoder = fit(&texts(["1", "2"]), CODE);
    let numbers: ArrayRef = Arc::new(Int64Array::from(vec![1, 2]));
    let encoded = encoder.encode_labels(&numbers).unwrap_err().to_string();
    for error in [encoded, encoder.extend(&numbers).unwrap_err().to_string()] {
        assert_eq!(
            error,
            "encoder \"cell_type\" was fitted on texts, but column \"cell_type\" now has type Int64: cast it, or fit again"
        );
    }
}

#[test]
fn null_is_as_the_rule_says() {
    let labels = texts_or_null([Some("b"), None, Some("a")]);
    let encoder = fit(&labels, CODE);
    assert_eq!(encoder.n_classes(), Some(2));
    check_codes(&encoder, &labels, &[1, UNSEEN_CODE, 0]);
    let error = fit(&labels, Rules::default()).encode_labels(&labels).unwrap_err();
    assert!(
        matches!(&error, EncodeError::UnseenLabel { label, row_idx: 1, .. } if label == "null"),
        "{error}"
    );

    let encoder = fit(&labels, CLASS);
    check_codes(&encoder, &labels, &[1, 2, 0]);
    assert_eq!(
        owned_texts(&encoder.inverse(&codes(&[2, 0])).unwrap()),
        [None, Some("a".to_owned())]
    );
    // Null is an unknown label if fitting met no null.
    let encoder = fit(&texts(["a"]), CLASS);
    assert!(matches!(
        encoder.encode_labels(&labels),
        Err(EncodeError::UnseenLabel { row_idx: 0, .. })
    ));
    check_codes(&encoder.extend(&labels).unwrap(), &labels, &[1, 2, 0]);
    // With the other rule it never gets a code.
    assert_eq!(fit(&texts(["a"]), CODE).extend(&labels).unwrap().n_classes(), Some(2));
}

#[test]
fn nulls_of_a_dictionary_are_in_its_keys_or_its_values() {
    let labels = dictionary(
        vec![Some(0), None, Some(1), Some(2)],
        texts_or_null([Some("b"), None, Some("a")]),
    );
    let encoder = fit(&labels, CLASS);
    check_codes(&encoder, &labels, &[1, 2, 2, 0]);
    let error = LabelEncoder::from_enumeration("cell_type", &labels, CLASS).unwrap_err();
    assert!(matches!(error, FitError::NullInEnumeration { code: 1, .. }), "{error}");
}

#[test]
fn values_of_a_dictionary_that_no_row_has_get_no_code() {
    let labels = dictionary(vec![Some(3), Some(1), Some(3)], texts(["a", "b", "c", "d"]));
    let encoder = fit(&labels, Rules::default());
    check_codes(&encoder, &labels, &[1, 0, 1]);
    assert_eq!(owned_texts(&encoder.classes()), [Some("b".to_owned()), Some("d".to_owned())]);
    assert!(encoder.encode_labels(&texts(["a"])).is_err());
    // Values that no row has do not matter.
    let wider = dictionary(vec![Some(0)], texts(["d", "new", "newer"]));
    check_codes(&encoder, &wider, &[1]);
}

#[test]
fn values_that_a_dictionary_repeats_are_one_label() {
    let labels = dictionary(vec![Some(0), Some(1), Some(2)], texts(["x", "a", "x"]));
    check_codes(&fit(&labels, Rules::default()), &labels, &[1, 0, 1]);
    let error = LabelEncoder::from_enumeration("cell_type", &labels, Rules::default()).unwrap_err();
    assert!(matches!(error, FitError::Key(KeyError::Twice { first: 0, second: 2, .. })), "{error}");
}

#[test]
fn enumerations_keep_their_codes() {
    let labels = dictionary(vec![Some(2), Some(0), None], texts(["z", "unused", "a"]));
    let encoder = LabelEncoder::from_enumeration("cell_type", &labels, CODE).unwrap();
    check_codes(&encoder, &labels, &[2, 0, UNSEEN_CODE]);
    check_codes(&encoder, &texts(["unused", "a", "z"]), &[1, 2, 0]);
    let classes: Vec<_> = owned_texts(&encoder.classes()).into_iter().flatten().collect();
    assert_eq!(classes, ["z", "unused", "a"]);
    // A later release with a longer enumeration.
    let later = dictionary(vec![Some(3), Some(2)], texts(["z", "unused", "a", "new"]));
    let later_encoder = LabelEncoder::from_enumeration("cell_type", &later, CODE).unwrap();
    check_codes(&later_encoder, &later, &[3, 2]);
    check_codes(&encoder, &later, &[UNSEEN_CODE, 2]);

    let encoder = LabelEncoder::from_enumeration("cell_type", &labels, CLASS).unwrap();
    check_codes(&encoder, &labels, &[2, 0, 3]);
    let plain = LabelEncoder::from_enumeration("cell_type", &texts(["a"]), CODE);
    assert!(matches!(plain, Err(FitError::NoEnumeration { .. })));
}

#[test]
fn unseen_labels_are_errors_that_say_which() {
    let labels = texts(["g", "f", "e", "d", "c", "b", "a"]);
    let encoder = fit(&labels, Rules::default());
    let error = encoder.encode_labels(&texts(["a", "B \"cell\"", "a"])).unwrap_err();
    assert_eq!(
        error.to_string(),
        "encoder \"cell_type\" does not know \"B \\\"cell\\\"\" of cell_type at row 1; it knows 7 labels \
         (\"a\", \"b\", \"c\", \"d\", \"e\", ...): fit it on rows with that label, add the label with extend, \
         or encode it as -1 (Unseen::Code, in Python unseen=\"code\")"
    );
    let error = encoder.encode_labels(&texts_or_null([Some("a"), None])).unwrap_err().to_string();
    assert!(error.contains("does not know null of cell_type at row 1"), "{error}");
    assert!(
        error.contains("a null is no label: make it a class (Nulls::Class, in Python"),
        "{error}"
    );
    check_codes(&encoder.with_unseen(Unseen::Code), &texts(["a", "other"]), &[0, UNSEEN_CODE]);
    let error = fit(&texts([]), Rules::default()).encode_labels(&texts(["a"])).unwrap_err();
    assert!(error.to_string().contains("it knows 0 labels: fit"), "{error}");
}

#[test]
fn extending_leaves_codes_as_they_are() {
    let encoder = fit(&texts(["m", "k"]), Rules::default());
    let extended = encoder.extend(&texts(["z", "a", "k", "z"])).unwrap();
    check_codes(&extended, &texts(["k", "m", "a", "z"]), &[0, 1, 2, 3]);
    assert_eq!(encoder.n_classes(), Some(2));
    assert_eq!(extended.extend(&texts(["a", "m"])).unwrap(), extended);
}

#[test]
fn codes_without_a_label_are_refused() {
    let encoder = fit(&texts(["a", "b"]), Rules::default());
    for (wrong, code) in
        [(codes(&[0, 2]), 2), (codes(&[1, -1]), -1), (codes(&[0, i64::MIN]), i64::MIN)]
    {
        let error = encoder.inverse(&wrong).unwrap_err();
        assert!(
            matches!(error, InverseError::CodeOutOfRange { code: found, row_idx: 1, n_classes: 2, .. } if found == code),
            "{error}"
        );
    }
    // The code of unseen labels has no label, but is not an error.
    let encoder = encoder.with_unseen(Unseen::Code);
    assert_eq!(
        owned_texts(&encoder.inverse(&codes(&[-1, 1])).unwrap()),
        [None, Some("b".to_owned())]
    );
    assert!(encoder.inverse(&codes(&[-2])).is_err());
    let with_null = Int64Array::from(vec![None, Some(0)]);
    assert_eq!(owned_texts(&encoder.inverse(&with_null).unwrap()), [None, Some("a".to_owned())]);
}

#[test]
fn no_rows_are_fine() {
    let none = dictionary(vec![], texts(["a"]));
    let encoder = fit(&none, Rules::default());
    assert_eq!(encoder.n_classes(), Some(0));
    check_codes(&encoder, &none, &[]);
    assert_eq!(encoder.inverse(&codes(&[])).unwrap().len(), 0);
    let batch = obs([("a", texts([])), ("b", none)]);
    let encoder = BatchKeyEncoder::fit("batch", &["a", "b"], &batch, Rules::default()).unwrap();
    assert_eq!(encoder.encode(&batch).unwrap().len(), 0);
    assert_eq!(encoder.inverse(&codes(&[])).unwrap().len(), 0);
}
