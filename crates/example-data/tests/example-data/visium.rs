//! Compares real counts, as written by 10x, with the same experiment written by tiledbsoma.

use std::path::PathBuf;

use example_data::{ImportSpec, import_10x};

use crate::contents::{floats, integers, read, texts};

#[test]
fn an_import_of_visium_is_what_tiledbsoma_wrote() {
    let data = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata"))
        .join("visium-2898x19465");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("visium");
    let report =
        import_10x(&data.join("10x"), path.to_str().unwrap(), &ImportSpec::default(), &mut |_| {})
            .unwrap();
    assert_eq!((report.n_cells, report.n_genes, report.nnz), (2898, 19_465, 1_069_459));
    assert_eq!((report.sum, report.sorted_in_memory), (3_085_005.0, false));
    let (ours, theirs) = (read(&path), read(&data.join("soma")));
    assert_eq!(ours.x, theirs.x);
    assert_eq!(texts(&ours.obs, "obs_id"), texts(&theirs.obs, "barcode"));
    assert_eq!(floats(&ours.obs, "raw_sum"), floats(&theirs.obs, "raw_sum"));
    assert_eq!(integers(&ours.obs, "nnz"), integers(&theirs.obs, "nnz"));
    for column in ["feature_id", "feature_name"] {
        assert_eq!(texts(&ours.var, column), texts(&theirs.var, column));
    }
    assert_eq!(integers(&ours.var, "nnz"), ours.column_nnz());
}
