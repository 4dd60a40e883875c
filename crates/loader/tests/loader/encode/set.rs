//! Sets of encoders, and the obs columns that they need.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use arrow_schema::DataType;
use loader::encode::{
    BatchKeyEncoder, DuplicateName, EncodeError, Encoder, Encoders, FitError, InverseError,
    KeyError, LabelEncoder, Rules, Unseen,
};

use crate::encode::labels::{codes, obs, owned_texts, texts};

fn batch() -> RecordBatch {
    obs([
        ("cell_type", texts(["T cell", "B cell", "T cell"])),
        ("donor", texts(["d2", "d1", "d1"])),
        ("assay", texts(["v3", "v3", "v2"])),
    ])
}

fn label() -> Arc<dyn Encoder> {
    Arc::new(LabelEncoder::fit("cell_type", batch().column(0), Rules::default()).unwrap())
}

fn key(name: &str) -> Arc<dyn Encoder> {
    Arc::new(BatchKeyEncoder::fit(name, &["donor", "assay"], &batch(), Rules::default()).unwrap())
}

/// An encoder that returns fixed codes.
#[derive(Debug)]
struct Fixed {
    codes: Int64Array,
}

impl Encoder for Fixed {
    fn name(&self) -> &'static str {
        "fixed"
    }

    fn columns(&self) -> &[String] {
        &[]
    }

    fn encode(&self, _obs: &RecordBatch) -> Result<Int64Array, EncodeError> {
        if self.codes.is_empty() {
            return Err(EncodeError::Custom {
                encoder: "fixed".into(),
                source: "nothing to give".into(),
            });
        }
        Ok(self.codes.clone())
    }

    fn inverse(&self, codes: &Int64Array) -> Result<ArrayRef, InverseError> {
        Ok(Arc::new(codes.clone()))
    }
}

#[test]
fn codes_come_under_the_encoders_names() {
    let encoders =
        Encoders::new(vec![key("batch"), label(), Arc::new(Fixed { codes: codes(&[7, 8, 9]) })])
            .unwrap();
    assert_eq!(encoders.columns(), ["donor", "assay", "cell_type"]);
    let encoded = encoders.encode(&batch()).unwrap();
    let schema = encoded.schema();
    let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    assert_eq!(names, ["batch", "cell_type", "fixed"]);
    assert!(
        schema
            .fields()
            .iter()
            .all(|field| *field.data_type() == DataType::Int64 && !field.is_nullable())
    );
    let expect = [codes(&[2, 1, 0]), codes(&[1, 0, 1]), codes(&[7, 8, 9])];
    for (column, expect) in encoded.columns().iter().zip(expect) {
        assert_eq!(column.as_ref(), &expect);
    }
    let labels = encoders.inverse("cell_type", &codes(&[0])).unwrap();
    assert_eq!(owned_texts(&labels), [Some("B cell".to_owned())]);
    assert_eq!(encoders.get("fixed").unwrap().n_classes(), None);
    assert_eq!(encoders.get("batch").unwrap().n_classes(), Some(3));
    let error = encoders.get("donor").unwrap_err();
    assert_eq!(
        error.to_string(),
        "no encoder is called \"donor\": there are batch, cell_type, fixed"
    );
}

#[test]
fn names_are_unique() {
    let error = Encoders::new(vec![label(), key("cell_type")]).unwrap_err();
    assert!(matches!(&error, DuplicateName { name } if name == "cell_type"), "{error}");
    assert_eq!(Encoders::new(vec![key("a"), key("b")]).unwrap().iter().count(), 2);
}

#[test]
fn missing_columns_are_named_with_those_that_exist() {
    let encoders = Encoders::new(vec![label(), key("batch")]).unwrap();
    let only = obs([("cell_type", texts(["T cell"])), ("donor_id", texts(["d1"]))]);
    let expect = "encoder \"batch\" needs obs column \"donor\", which is missing: there are cell_type, donor_id";
    assert_eq!(encoders.encode(&only).unwrap_err().to_string(), expect);
    assert_eq!(key("batch").encode(&only).unwrap_err().to_string(), expect);
    let error = BatchKeyEncoder::fit("batch", &["donor"], &only, Rules::default()).unwrap_err();
    assert_eq!(error.to_string(), expect);
}

#[test]
fn keys_are_of_columns_that_each_come_once() {
    for columns in [&[][..], &["donor", "assay", "donor"]] {
        let error = BatchKeyEncoder::fit("batch", columns, &batch(), Rules::default()).unwrap_err();
        assert!(matches!(error, FitError::Key(KeyError::Columns { .. })), "{error}");
    }
}

#[test]
fn unseen_keys_are_shown_as_tuples() {
    let other = obs([("donor", texts(["d1", "d2"])), ("assay", texts(["v2", "v2"]))]);
    let encoder =
        BatchKeyEncoder::fit("batch", &["donor", "assay"], &batch(), Rules::default()).unwrap();
    let error = encoder.encode(&other).unwrap_err();
    assert!(
        error.to_string().starts_with(
            "encoder \"batch\" does not know (\"d2\", \"v2\") of donor, assay at row 1; it knows 3 labels ((\"d1\", \"v2\"), "
        ),
        "{error}"
    );
    assert_eq!(encoder.with_unseen(Unseen::Code).encode(&other).unwrap(), codes(&[0, -1]));
}

#[test]
fn encoders_of_others_are_checked() {
    for (wrong, n_nulls) in
        [(codes(&[1, 2]), 0), (Int64Array::from(vec![Some(1), None, Some(2)]), 1)]
    {
        let encoders = Encoders::new(vec![Arc::new(Fixed { codes: wrong })]).unwrap();
        let error = encoders.encode(&batch()).unwrap_err();
        assert!(
            matches!(error, EncodeError::CodeCount { n_rows: 3, n_nulls: found, .. } if found == n_nulls),
            "{error}"
        );
    }
    let encoders = Encoders::new(vec![Arc::new(Fixed { codes: codes(&[]) })]).unwrap();
    assert!(matches!(encoders.encode(&batch()), Err(EncodeError::Custom { .. })));
}

#[test]
fn no_encoders_give_no_columns() {
    let encoded = Encoders::new(Vec::new()).unwrap().encode(&batch()).unwrap();
    assert_eq!((encoded.num_rows(), encoded.num_columns()), (3, 0));
}
