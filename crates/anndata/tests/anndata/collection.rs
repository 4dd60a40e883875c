//! Tables of collections: the rows of the data sets follow each other.

use std::fs;
use std::path::Path;

use arrow_array::cast::AsArray as _;
use serde_json::json;

use crate::{copied, copy, edit_json, fixtures, forget_consolidated, open};

/// A collection of the store in Zarr v3 and a copy of it, which is changed.
fn collection(change: impl FnOnce(&Path)) -> tempfile::TempDir {
    let changed = copied("v3");
    forget_consolidated(changed.path());
    change(changed.path());
    let folder = tempfile::tempdir().unwrap();
    let attributes = json!({"encoding-type": "annbatch-preshuffled", "encoding-version": "0.1.0"});
    let root = json!({"zarr_format": 3, "node_type": "group", "attributes": attributes});
    fs::write(folder.path().join("zarr.json"), root.to_string()).unwrap();
    copy(&fixtures().join("v3"), &folder.path().join("dataset_0"));
    // Numbers may be missing.
    copy(changed.path(), &folder.path().join("dataset_2"));
    folder
}

/// Calls the index of obs by another name.
fn rename_index(store: &Path) {
    fs::rename(store.join("obs/cell_id"), store.join("obs/barcode")).unwrap();
    edit_json(&store.join("obs/zarr.json"), |json| json["attributes"]["_index"] = json!("barcode"));
}

#[test]
fn an_index_of_another_name_goes_on() {
    let folder = collection(rename_index);
    let obs = open(folder.path()).unwrap().obs().unwrap();
    assert_eq!((obs.index_name(), obs.n_rows()), ("cell_id", 14));
    assert!(obs.unsupported().next().is_none());
    let rows = obs.read(&["cell_id", "cell_type"], 5..9).unwrap();
    let of_one = open(&fixtures().join("v3")).unwrap().obs().unwrap();
    let of_one = of_one.read(&["cell_id", "cell_type"], 0..7).unwrap();
    let text = |column: &arrow_array::ArrayRef, row| {
        let column = arrow_cast::cast(column, &arrow_schema::DataType::LargeUtf8).unwrap();
        column.as_string::<i64>().value(row).to_owned()
    };
    for (row, same) in [(0, 5), (1, 6), (2, 0), (3, 1)] {
        for column in 0..2 {
            assert_eq!(text(rows.column(column), row), text(of_one.column(column), same));
        }
    }
}

#[test]
fn columns_that_a_data_set_lacks_are_named() {
    let folder = collection(|store| {
        edit_json(&store.join("obs/zarr.json"), |json| {
            let order = json["attributes"]["column-order"].as_array_mut().unwrap();
            order.retain(|name| name != "donor");
        });
    });
    let obs = open(folder.path()).unwrap().obs().unwrap();
    let unsupported: Vec<_> = obs.unsupported().collect();
    assert_eq!(unsupported, [("donor", "some data sets do not have it")]);
    assert_eq!(obs.read(&["cell_type"], 0..14).unwrap().num_rows(), 14);
}

#[test]
fn columns_and_elements_that_only_later_data_sets_have_are_named() {
    let folder = collection(|store| {
        edit_json(&store.join("obs/zarr.json"), |json| {
            json["attributes"]["column-order"].as_array_mut().unwrap().push(json!("later"));
        });
        copy(&store.join("obs/donor"), &store.join("obs/later"));
        copy(&store.join("layers/counts"), &store.join("layers/later"));
        copy(&store.join("obsm/X_pca"), &store.join("obsm/later"));
        fs::remove_dir_all(store.join("layers/dense")).unwrap();
        fs::remove_dir_all(store.join("raw")).unwrap();
    });
    let anndata = open(folder.path()).unwrap();
    let obs = anndata.obs().unwrap();
    let unsupported: Vec<_> = obs.unsupported().collect();
    let why = "some data sets do not have it";
    assert_eq!(unsupported, [("later", why)]);
    assert_eq!(obs.read(&["donor"], 0..14).unwrap().num_rows(), 14);
    assert_eq!(anndata.layers().unwrap(), ["by_columns", "counts"]);
    assert_eq!(anndata.obsm_names().unwrap(), ["X_pca"]);
    assert!(anndata.raw().unwrap().is_none());
    let unread = anndata.unread().unwrap();
    let named = ["layers/dense", "layers/later", "obsm/later", "raw"];
    assert_eq!(unread, named.map(|path| (path.to_owned(), why.to_owned())));
}
