//! Stores that Python's anndata wrote, with the values that Python read of them.

use anndata::{AnnData, Frame, MatrixKind, Scalar, UnsValue};
use arrow_array::cast::AsArray as _;
use arrow_array::types::{
    ArrowPrimitiveType, Float32Type, Float64Type, Int8Type, Int16Type, Int64Type,
};
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use csr::{CsrBuffers, Narrowing};
use serde_json::{Value, json};
use storage::LocalStorage;

use crate::{copied, dense, fixtures, forget_consolidated, open, rows};

fn expected() -> Value {
    serde_json::from_slice(&std::fs::read(fixtures().join("expected.json")).unwrap()).unwrap()
}

/// Runs `check` on each version of the store, with and without consolidated metadata.
fn on_each(check: impl Fn(&AnnData, &Value)) {
    for name in ["v2", "v3"] {
        let folder = copied(name);
        check(&open(folder.path()).unwrap(), &expected());
        forget_consolidated(folder.path());
        check(&open(folder.path()).unwrap(), &expected());
    }
}

fn number<T: ArrowPrimitiveType<Native: Into<f64>>>(array: &ArrayRef, row: usize) -> Value {
    json!(array.as_primitive::<T>().value(row).into())
}

/// One value of a column, as in JSON.
fn value(array: &ArrayRef, row: usize) -> Value {
    if array.is_null(row) {
        return Value::Null;
    }
    match array.data_type() {
        DataType::LargeUtf8 => json!(array.as_string::<i64>().value(row)),
        DataType::Boolean => json!(array.as_boolean().value(row)),
        DataType::Int8 => number::<Int8Type>(array, row),
        DataType::Int16 => number::<Int16Type>(array, row),
        DataType::Int64 => json!(array.as_primitive::<Int64Type>().value(row) as f64),
        DataType::Float32 => number::<Float32Type>(array, row),
        DataType::Float64 => number::<Float64Type>(array, row),
        DataType::Dictionary(_, _) => {
            let dictionary = array.as_dictionary::<Int8Type>();
            value(dictionary.values(), dictionary.keys().value(row) as usize)
        }
        other => panic!("{other}"),
    }
}

fn check_frame(frame: &Frame, expect: &Value) {
    let expect = expect.as_object().unwrap();
    assert_eq!(frame.unsupported().count(), 0);
    assert_eq!(frame.schema().fields().len(), expect.len() + 1);
    let names: Vec<&str> = expect.keys().map(String::as_str).collect();
    let n_rows = frame.n_rows();
    for rows in [0..n_rows, 1..3, 2..2] {
        let batch = frame.read(&names, rows.clone()).unwrap();
        assert_eq!(batch.num_rows() as u64, rows.end - rows.start);
        for name in &names {
            let column = batch.column_by_name(name).unwrap();
            for (at, row) in rows.clone().enumerate() {
                let (found, expect) = (value(column, at), &expect[*name][row as usize]);
                let are_equal = match (found.as_f64(), expect.as_f64()) {
                    (Some(found), Some(expect)) => found == expect,
                    _ => found == *expect,
                };
                assert!(are_equal, "{name}, row {row}: {found} and not {expect}");
            }
        }
    }
}

#[test]
fn tables_are_as_python_reads_them() {
    on_each(|anndata, expect| {
        let obs = anndata.obs().unwrap();
        check_frame(&obs, &expect["obs"]);
        check_frame(&anndata.var().unwrap(), &expect["var"]);
        check_frame(&anndata.raw().unwrap().unwrap().var().unwrap(), &expect["raw_var"]);

        assert_eq!(obs.index_name(), "cell_id");
        let index = obs.read(&["cell_id"], 0..obs.n_rows()).unwrap();
        let names = index.column(0).as_string::<i64>().iter().flatten();
        assert!(names.eq(expect["obs_names"].as_array().unwrap().iter().filter_map(Value::as_str)));

        let schema = obs.schema();
        let field = |name| schema.field_with_name(name).unwrap();
        assert_eq!(field("stage").dict_is_ordered(), Some(true));
        assert_eq!(field("cell_type").dict_is_ordered(), Some(false));
        assert_eq!(field("age").data_type(), &DataType::Int16);
        let none = obs.read(&[], 1..3).unwrap();
        assert_eq!((none.num_rows(), none.num_columns()), (2, 0));
    });
}

#[test]
fn matrices_are_as_python_reads_them() {
    on_each(|anndata, expect| {
        let raw = anndata.raw().unwrap().unwrap();
        let counts = anndata.layer("counts").unwrap();
        assert_eq!(counts.value_type(), &DataType::UInt16);
        assert_eq!(anndata.layers().unwrap(), ["by_columns", "counts", "dense"]);
        assert_eq!(anndata.obsm_names().unwrap(), ["X_pca"]);
        let matrices = [
            (anndata.x().unwrap(), &expect["X"], MatrixKind::Csr),
            (counts, &expect["layers"]["counts"], MatrixKind::Csr),
            (anndata.layer("dense").unwrap(), &expect["layers"]["dense"], MatrixKind::Dense),
            (anndata.obsm("X_pca").unwrap(), &expect["obsm"]["X_pca"], MatrixKind::Dense),
            (raw.x().unwrap(), &expect["raw"], MatrixKind::Csr),
        ];
        for (matrix, expect, kind) in matrices {
            let expect: Vec<Vec<f32>> = serde_json::from_value(expect.clone()).unwrap();
            assert_eq!(matrix.kind(), kind);
            assert_eq!(matrix.shape(), (expect.len() as u64, expect[0].len() as u64));
            assert_eq!(dense(&rows(&matrix, &[0..matrix.shape().0]).unwrap()), expect);
            let some = dense(&rows(&matrix, &[0..1, 2..2, 3..5, 5..6]).unwrap());
            assert_eq!(some, [&expect[0..1], &expect[3..6]].concat());
        }
    });
}

#[test]
fn a_small_dense_matrix_is_decoded_once() {
    on_each(|anndata, expect| {
        let expect: Vec<Vec<f32>> =
            serde_json::from_value(expect["layers"]["dense"].clone()).unwrap();
        let matrix = anndata.layer("dense").unwrap();
        let mut out = CsrBuffers::new();
        let all = 0..matrix.shape().0;
        let first = matrix.read_rows(&[all], Narrowing::Nearest, &mut out).unwrap();
        assert!(first.bytes_decoded > Some(0), "{first:?}");
        for narrowing in [Narrowing::Nearest, Narrowing::Exact] {
            let later = matrix.read_rows(&[1..2, 4..6], narrowing, &mut out).unwrap();
            assert_eq!(later.bytes_decoded, Some(0), "{narrowing:?}");
            assert_eq!(dense(&out), [&expect[1..2], &expect[4..6]].concat());
        }
    });
}

#[test]
fn a_matrix_by_columns_is_refused_with_what_to_do() {
    on_each(|anndata, _| {
        let text = anndata.layer("by_columns").unwrap_err().to_string();
        assert!(text.contains("adata.layers[\"by_columns\"].tocsr()"), "{text}");
    });
}

#[test]
fn a_store_is_recognized_by_its_root() {
    for name in ["v2", "v3"] {
        assert!(AnnData::is_at(&LocalStorage::new(fixtures().join(name))).unwrap());
        let inside = LocalStorage::new(fixtures().join(name).join("obs"));
        assert!(!AnnData::is_at(&inside).unwrap());
    }
    let folder = tempfile::tempdir().unwrap();
    assert!(!AnnData::is_at(&LocalStorage::new(folder.path())).unwrap());
    let text = open(folder.path()).unwrap_err().to_string();
    assert!(text.contains("encoding-type: anndata"), "{text}");
}

#[test]
fn plain_values_of_uns_are_read_and_the_others_are_told() {
    let single = UnsValue::Single;
    let text = |of: &str| single(Scalar::Text(of.to_owned()));
    let named = |values: Vec<(&str, UnsValue)>| -> Vec<(String, UnsValue)> {
        values.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    };
    let params = named(vec![("use", text("X")), ("zero_center", single(Scalar::Bool(false)))]);
    let colors = ["#ff0000", "#00ff00"].map(str::to_owned).to_vec();
    let expected = named(vec![
        ("colors", UnsValue::Texts(colors)),
        ("empty", text("")),
        ("large", single(Scalar::Unsigned(1 << 63))),
        ("n", single(Scalar::Integer(-3))),
        ("pca", UnsValue::Group(named(vec![("params", UnsValue::Group(params))]))),
        ("share", single(Scalar::Float(0.25))),
        ("title", text("Zellen mit Umlaut: ä")),
        ("yes", single(Scalar::Bool(true))),
    ]);
    on_each(|anndata, _| {
        let uns = anndata.uns().unwrap();
        assert_eq!(uns.values, expected);
        let [(pca, why_pca), (table, why_table)] = &uns.unread[..] else { panic!("{uns:?}") };
        assert_eq!((pca.as_str(), table.as_str()), ("pca/variance", "table"));
        assert!(why_pca.contains("float64") && why_table.contains("dataframe"), "{uns:?}");
    });
}

#[test]
fn a_value_of_uns_that_is_damaged_is_told() {
    let folder = copied("v3");
    std::fs::write(folder.path().join("uns/title/c"), "damaged").unwrap();
    let uns = open(folder.path()).unwrap().uns().unwrap();
    assert!(uns.values.iter().all(|(name, _)| name != "title"));
    assert!(uns.unread.iter().any(|(path, why)| path == "title" && why.contains("uns/title")));
}
