//! Stores that are damaged: each is an error that names the element.

use std::fs;
use std::path::Path;

use serde_json::json;

use crate::{chain, copied, edit_json, forget_consolidated, open, rows};

/// Damages a copy of the store in Zarr v3; opening X or reading it must fail with these words.
#[track_caller]
fn fails(damage: impl Fn(&Path), words: &[&str]) {
    let folder = copied("v3");
    forget_consolidated(folder.path());
    damage(folder.path());
    let read = open(folder.path()).and_then(|anndata| {
        let x = anndata.x()?;
        rows(&x, &[0..x.shape().0])
    });
    let text = chain(&read.unwrap_err());
    assert!(words.iter().all(|word| text.contains(word)), "{text}");
}

/// Replaces the elements of an array by others that are not compressed.
fn replace(folder: &Path, array: &str, bytes: &[u8]) {
    edit_json(&folder.join(array).join("zarr.json"), |json| {
        let codecs = json["codecs"].as_array_mut().unwrap();
        codecs.truncate(1);
        assert_eq!(codecs[0]["name"], "bytes");
    });
    fs::write(folder.join(array).join("c/0"), bytes).unwrap();
}

fn numbers(numbers: &[i32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

/// Where the rows of X begin in the undamaged store.
const INDPTR: [i32; 8] = [0, 3, 3, 4, 6, 8, 10, 11];

#[test]
fn the_replaced_arrays_of_these_tests_are_read() {
    let folder = copied("v3");
    forget_consolidated(folder.path());
    replace(folder.path(), "X/indptr", &numbers(&INDPTR));
    let x = open(folder.path()).unwrap().x().unwrap();
    assert_eq!(rows(&x, &[0..7]).unwrap().nnz(), 11);
}

#[test]
fn missing_pieces_are_named() {
    let remove =
        |name: &'static str| move |folder: &Path| fs::remove_dir_all(folder.join(name)).unwrap();
    fails(remove("X"), &["no element X"]);
    for array in ["X/indptr", "X/indices", "X/data"] {
        fails(remove(array), &["no element", array]);
    }
    for array in ["X/indptr", "X/indices", "X/data"] {
        let chunks = |folder: &Path| fs::remove_dir_all(folder.join(array).join("c")).unwrap();
        fails(chunks, &[array, "chunk [0] is not stored"]);
    }
}

#[test]
fn truncated_chunks_are_named() {
    for array in ["X/indptr", "X/indices", "X/data"] {
        for len in [0, 3, 15] {
            let cut = |folder: &Path| {
                let chunk = folder.join(array).join("c/0");
                let bytes = fs::read(&chunk).unwrap();
                fs::write(chunk, &bytes[..len]).unwrap();
            };
            fails(cut, &[array, "chunk"]);
        }
    }
}

#[test]
fn places_of_rows_that_do_not_ascend_are_named() {
    let with = |at: usize, number: i32| {
        move |folder: &Path| {
            let mut indptr = INDPTR;
            indptr[at] = number;
            replace(folder, "X/indptr", &numbers(&indptr));
        }
    };
    fails(with(0, 1), &["X/indptr", "begin at 0"]);
    fails(with(2, 2), &["X/indptr", "does not ascend at row 1"]);
    fails(with(2, -1), &["X/indptr", "its number at 2 is -1"]);
    fails(with(7, 12), &["X/indptr", "11 values"]);
    fails(with(7, 10), &["X/indptr", "11 values"]);
    fails(with(1, 8), &["X/indptr", "row 0 has 8 values"]);
}

#[test]
fn columns_beyond_the_matrix_are_named() {
    for (column, what) in [(4, "column 4"), (-1, "negative")] {
        let damage = |folder: &Path| {
            let mut indices = [1, 2, 3, 3, 1, 3, 2, 3, 0, 1, 1];
            indices[4] = column;
            replace(folder, "X/indices", &numbers(&indices));
        };
        fails(damage, &["X/indices", "row 3 has", what, "4 columns"]);
    }
}

#[test]
fn columns_that_are_twice_in_a_row_are_named() {
    for (of_row, twice) in [([3, 1, 3], 3), ([1, 1, 2], 1), ([2, 3, 3], 3)] {
        let damage = |folder: &Path| {
            let indices = [of_row.to_vec(), vec![3, 1, 3, 2, 3, 0, 1, 1]].concat();
            replace(folder, "X/indices", &numbers(&indices));
        };
        let what = format!("row 0 has column {twice} more than once");
        fails(damage, &["X/indices", &what, "sum_duplicates"]);
    }
}

#[test]
fn shapes_and_lengths_that_do_not_fit_are_named() {
    let shape = |array: &'static str, shape: serde_json::Value| {
        move |folder: &Path| {
            edit_json(&folder.join(array).join("zarr.json"), |json| json["shape"] = shape.clone());
        }
    };
    fails(shape("X/indptr", json!([9])), &["X/indptr", "9 numbers for 7 rows"]);
    fails(shape("X/data", json!([12])), &["X/indices", "11 columns for 12 values"]);
    fails(shape("X/data", json!([11, 1])), &["X/data"]);
    let matrix = |shape: serde_json::Value| {
        move |folder: &Path| {
            edit_json(&folder.join("X/zarr.json"), |json| {
                json["attributes"]["shape"] = shape.clone();
            });
        }
    };
    fails(matrix(json!([7])), &["X", "shape"]);
    fails(matrix(json!([u64::MAX, 4])), &["X/indptr"]);
    fails(matrix(json!([7, u64::MAX])), &["X", "columns"]);
    fails(matrix(json!([7, 2])), &["X/indptr"]);
}

#[test]
fn unknown_codecs_and_encodings_are_named() {
    let codec = |folder: &Path| {
        edit_json(&folder.join("X/data/zarr.json"), |json| {
            json["codecs"].as_array_mut().unwrap().push(json!({"name": "secret"}));
        });
    };
    fails(codec, &["X/data", "secret"]);
    let encoding = |folder: &Path| {
        edit_json(&folder.join("X/zarr.json"), |json| {
            json["attributes"]["encoding-type"] = json!("diagonal");
        });
    };
    fails(encoding, &["X", "diagonal"]);
    fails(|folder| fs::write(folder.join("X/zarr.json"), "{").unwrap(), &["X/zarr.json"]);
}

#[test]
fn rows_beyond_the_matrix_are_refused() {
    let x = open(copied("v3").path()).unwrap().x().unwrap();
    for wanted in [vec![0..8], vec![3..4, 0..1], vec![0..2, 1..3], vec![8..9]] {
        let text = rows(&x, &wanted).unwrap_err().to_string();
        assert!(text.contains("rows") && text.contains("has 7 rows"), "{text}");
    }
}

#[test]
fn damaged_columns_of_tables_are_named_and_the_others_are_read() {
    let folder = copied("v3");
    forget_consolidated(folder.path());
    edit_json(&folder.path().join("obs/zarr.json"), |json| {
        assert_eq!(json["attributes"]["column-order"][0], "cell_type");
    });
    replace(folder.path(), "obs/cell_type/codes", &[0, 255, 2, 254, 0, 0, 0]);
    let text =
        chain(&open(folder.path()).unwrap().obs().unwrap().read(&["cell_type"], 0..7).unwrap_err());
    assert!(text.contains("obs/cell_type") && text.contains("code at place 3 is -2"), "{text}");
    replace(folder.path(), "obs/cell_type/codes", &[0, 1, 2, 3, 0, 0, 0]);
    edit_json(&folder.path().join("obs/age/zarr.json"), |json| {
        json["attributes"]["encoding-type"] = json!("nullable-secret");
    });
    let obs = open(folder.path()).unwrap().obs().unwrap();
    let text = chain(&obs.read(&["cell_type"], 0..7).unwrap_err());
    assert!(text.contains("obs/cell_type") && text.contains("code at place 3 is 3"), "{text}");
    let unsupported: Vec<_> = obs.unsupported().collect();
    assert_eq!(unsupported, [("age", "its encoding-type is `nullable-secret`")]);
    let text = obs.read(&["age"], 0..7).unwrap_err().to_string();
    assert!(text.contains("obs/age") && text.contains("nullable-secret"), "{text}");
    assert_eq!(obs.read(&["donor"], 0..7).unwrap().num_rows(), 7);
    let text = obs.read(&["nobody"], 0..7).unwrap_err().to_string();
    assert!(text.contains("no column `nobody`"), "{text}");

    edit_json(&folder.path().join("obs/donor/zarr.json"), |json| json["shape"] = json!([6]));
    let text = open(folder.path()).unwrap().obs().unwrap_err().to_string();
    assert!(text.contains("obs/donor") && text.contains("6 rows"), "{text}");
    edit_json(&folder.path().join("obs/zarr.json"), |json| {
        drop(json["attributes"].as_object_mut().unwrap().remove("column-order"));
    });
    let text = open(folder.path()).unwrap().obs().unwrap_err().to_string();
    assert!(text.contains("obs") && text.contains("column-order"), "{text}");
}
