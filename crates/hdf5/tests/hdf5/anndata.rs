//! AnnData as Python writes it, and with parts that are not read.

use std::path::Path;
use std::sync::Arc;

use ::anndata::{AnnData, UnsValue};
use arrays::{DecodeMemory, Scalar, StoredArray};
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::{open, python};

fn opened(folder: &Path, name: &str) -> AnnData {
    let pool: ThreadPool = ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    AnnData::open(open(folder, name).unwrap(), Arc::new(pool)).unwrap()
}

#[test]
fn parts_that_are_not_read_hinder_no_others() {
    let Some(interpreter) = python::interpreter() else { return };
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    python::run(&interpreter, "write_anndata.py", &[folder.to_str().unwrap()]);
    for name in ["lzf", "external", "uns", "uns_link", "committed", "many"] {
        let anndata = opened(folder, &format!("{name}.h5ad"));
        let obs = anndata.obs().unwrap();
        assert_eq!(obs.n_rows(), 30, "{name}");
        assert_eq!(obs.read(&["kind", "count"], 0..30).unwrap().num_rows(), 30, "{name}");
        assert!(anndata.version().unwrap().contains("obs"), "{name}");
        assert_eq!(anndata.x().is_ok(), name != "external", "{name}");
        let uns = anndata.uns().unwrap();
        let title = ("title".to_owned(), UnsValue::Single(Scalar::Text("text".to_owned())));
        assert_eq!(uns.values.contains(&title), name != "uns_link", "{name}");
        assert_eq!(uns.unread.is_empty(), !["uns", "uns_link"].contains(&name), "{name}");
    }
    let obs = opened(folder, "column.h5ad").obs().unwrap();
    assert!(obs.read(&["kind"], 0..30).is_ok());
    let error = obs.read(&["count"], 0..30).unwrap_err().to_string();
    assert!(error.contains("datatype compound"), "{error}");
    let many = opened(folder, "many.h5ad").uns().unwrap();
    assert_eq!(many.values.len(), 3003);
}

#[test]
fn zeros_that_expand_a_thousandfold_are_read_in_pieces() {
    let Some(interpreter) = python::interpreter() else { return };
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    python::run(&interpreter, "write_anndata.py", &[folder.to_str().unwrap()]);
    let file = folder.join("zeros.h5");
    assert!(file.metadata().unwrap().len() < 1 << 20);
    let storage = open(folder, "zeros.h5").unwrap();
    for name in ["X", "lzf"] {
        let array = StoredArray::open(&storage, name).unwrap();
        assert_eq!(array.shape(), [4000, 2000]);
        let mut bytes = vec![1; 2 * 2000 * 4];
        let request = array.request_bytes(&[49..50, 3999..4000], &mut bytes).unwrap();
        let read = arrays::read_requests(&*storage, &DecodeMemory::default(), vec![request]);
        assert!(read.unwrap().bytes_decoded <= Some(2 * 50 * 2000 * 4), "two chunks");
        assert!(bytes.iter().all(|byte| *byte == 0));
    }
}

#[test]
fn more_paths_than_objects_are_an_error() {
    let Some(interpreter) = python::interpreter() else { return };
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    python::run(&interpreter, "write_anndata.py", &[folder.to_str().unwrap()]);
    let storage = open(folder, "paths.h5").unwrap();
    let mut paths = vec![String::new()];
    for at in 0..20_000 {
        let path = paths[at].clone();
        match storage.list(&path) {
            Ok(entries) => {
                let folders = entries.into_iter().filter(|entry| entry.is_folder);
                let below = folders.map(|entry| format!("{path}/{}", entry.name));
                paths.extend(below.map(|path| path.trim_start_matches('/').to_owned()));
            }
            Err(error) => {
                assert!(error.to_string().contains("more paths"), "{error}");
                return;
            }
        }
    }
    panic!("{} paths are listed", paths.len());
}

#[test]
fn an_error_says_why_and_what_to_do() {
    let Some(interpreter) = python::interpreter() else { return };
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    python::run(&interpreter, "write_anndata.py", &[folder.to_str().unwrap()]);
    let error = opened(folder, "external.h5ad").x().unwrap_err().to_string();
    assert!(error.contains("external storage") && error.contains("write_h5ad"), "{error}");
    let unread = opened(folder, "uns.h5ad").uns().unwrap().unread;
    let reason = |name: &str| {
        let found = unread.iter().find(|(path, _)| path == name);
        found.map_or("", |(_, reason)| reason.as_str())
    };
    for (name, word) in [
        ("outside", "external link"),
        ("nowhere", "soft link"),
        ("circle", "group that it lies in"),
        ("type", "committed datatype"),
        ("compound", "compound"),
        ("latin", "UTF-8"),
        ("virtual", "virtual"),
    ] {
        assert!(reason(name).contains(word), "{name}: {unread:?}");
    }
}
