//! Encoders as JSON: golden files, and texts that are rejected.

use std::fs;
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Int64Array};
use loader::encode::{
    BatchKeyEncoder, Encoder, KeyError, LabelEncoder, Nulls, Rules, SavedError, Unseen,
};

use crate::encode::labels::{check_codes, obs, texts, texts_or_null};

/// Donor, batch number, and whether the data are primary.
fn batch_keys() -> BatchKeyEncoder {
    let donors = texts_or_null([Some("a/b"), Some("ü"), None]);
    let numbers: ArrayRef = Arc::new(Int64Array::from(vec![-3, 9_007_199_254_740_993, -3]));
    let primary: ArrayRef = Arc::new(BooleanArray::from(vec![Some(true), Some(false), None]));
    let batch = obs([("donor", donors), ("number", numbers), ("primary", primary)]);
    let rules = Rules { unseen: Unseen::Code, nulls: Nulls::Class };
    BatchKeyEncoder::fit("batch", &["donor", "number", "primary"], &batch, rules).unwrap()
}

#[test]
fn golden_files() {
    let labels = texts(["T cell", "B \"cell\"", "T cell"]);
    let encoder =
        LabelEncoder::fit("cell_type", &labels, Rules::default()).unwrap().with_name("label");
    insta::assert_snapshot!("label", encoder.to_json().unwrap());
    insta::assert_snapshot!("batch_key", batch_keys().to_json().unwrap());
}

#[test]
fn files_give_the_encoder_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("batch.json");
    fs::write(&path, "something old, and longer than what comes").unwrap();
    let encoder = batch_keys();
    encoder.save(&path).unwrap();
    assert_eq!(BatchKeyEncoder::restore(&path).unwrap(), encoder);

    let label = LabelEncoder::fit("cell_type", &texts(["b", "a"]), Rules::default()).unwrap();
    let label = label.extend(&texts(["0"])).unwrap();
    let path = folder.path().join("label.json");
    label.save(&path).unwrap();
    let restored = LabelEncoder::restore(&path).unwrap();
    check_codes(&restored, &texts(["0", "a", "b"]), &[2, 0, 1]);
    assert_eq!(restored, label);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "nothing is left beside the files");

    let error = LabelEncoder::restore(&folder.path().join("none.json")).unwrap_err();
    assert!(matches!(error, SavedError::File { what: "read", .. }), "{error}");
    let error = label.save(&folder.path().join("no/folder.json")).unwrap_err();
    assert!(matches!(error, SavedError::File { what: "write", .. }), "{error}");
}

#[test]
fn a_file_that_was_written_stays_readable() {
    // Written by hand: order and white space are free.
    let json = r#"{"version": 1, "format": "somafeed encoder", "encoder": "label", "name": "label",
        "classes": [["T cell"], [null], ["B cell"]], "nulls": "class", "unseen": "code",
        "columns": [{"labels": "text", "name": "cell_type"}]}"#;
    let encoder = LabelEncoder::from_json(json).unwrap();
    assert_eq!((encoder.name(), encoder.columns()), ("label", &["cell_type".to_owned()][..]));
    let labels = texts_or_null([Some("B cell"), None, Some("T cell"), Some("NK cell")]);
    check_codes(&encoder, &labels, &[2, 1, 0, -1]);
}

#[track_caller]
fn refused(json: &str, from: &str, to: &str) -> SavedError {
    assert_eq!(json.matches(from).count(), 1, "{json}");
    LabelEncoder::from_json(&json.replace(from, to)).unwrap_err()
}

#[test]
fn what_is_no_saved_encoder_is_refused() {
    let labels = texts(["T cell", "B cell"]);
    let encoder = LabelEncoder::fit("cell_type", &labels, Rules::default()).unwrap();
    let json = encoder.to_json().unwrap();

    let error = refused(&json, "\"version\": 1", "\"version\": 2");
    assert!(matches!(error, SavedError::Version { found: 2, supported: 1 }), "{error}");
    // JSON of another version is rejected for its version, whatever else it has.
    let error =
        LabelEncoder::from_json(r#"{"format": "somafeed encoder", "version": 9, "later": []}"#)
            .unwrap_err();
    assert!(matches!(error, SavedError::Version { found: 9, .. }), "{error}");
    let error = refused(&json, "somafeed encoder", "somafeed plan");
    assert!(error.to_string().contains("\"somafeed plan\", not a label encoder"), "{error}");

    let error = refused(&json, "\"T cell\"", "\"B cell\"");
    assert!(
        matches!(&error, SavedError::Key(KeyError::Twice { label, first: 0, second: 1, .. }) if label == "\"B cell\""),
        "{error}"
    );
    for (to, shown) in
        [("7", "7"), ("null", "null"), ("\"a\", \"b\"", "(\"a\", \"b\")"), ("true", "true")]
    {
        let error = refused(&json, "\"T cell\"", to);
        assert!(
            matches!(&error, SavedError::Class { label, code: 1, .. } if label == shown),
            "{error}"
        );
    }
    for (from, to) in [
        ("\"T cell\"", "1.5"),
        ("\"nulls\"", "\"nils\""),
        ("\"unseen\": \"error\"", "\"unseen\": \"ignore\""),
        ("\"version\": 1", "\"version\": 1, \"more\": 0"),
        ("\"encoder\": \"label\"", "\"encoder\": \"ordinal\""),
        ("{\n  \"format\"", "[\"format\""),
    ] {
        let error = refused(&json, from, to);
        assert!(matches!(error, SavedError::Json { .. }), "{to}: {error}");
    }
    assert!(matches!(
        LabelEncoder::from_json(&json[..json.len() / 2]),
        Err(SavedError::Json { .. })
    ));
    assert!(matches!(LabelEncoder::from_json(""), Err(SavedError::Json { .. })));

    let error = BatchKeyEncoder::from_json(&json).unwrap_err();
    assert_eq!(
        error.to_string(),
        "this JSON is a label encoder, not a batch key encoder: restore it as the encoder that was saved"
    );
    let keys = batch_keys().to_json().unwrap();
    assert!(matches!(LabelEncoder::from_json(&keys), Err(SavedError::Other { .. })));
    let as_label = keys.replace("batch_key", "label");
    assert!(matches!(
        LabelEncoder::from_json(&as_label),
        Err(SavedError::Key(KeyError::Columns { .. }))
    ));
    let twice = keys.replace("\"number\"", "\"donor\"");
    assert!(matches!(
        BatchKeyEncoder::from_json(&twice),
        Err(SavedError::Key(KeyError::Columns { .. }))
    ));
}
