//! Tests of `report`.

use std::fs;

use tempfile::TempDir;

use super::*;
use crate::{MarkedPoint, append, check_folder, fixture, summarize};

#[test]
fn a_report_is_written_beside_the_epochs_and_again() {
    let folder = TempDir::new().unwrap();
    append(folder.path(), &fixture::grid()).unwrap();
    let marked = MarkedPoint {
        label: "default".to_owned(),
        chunk_size: 64,
        chunks_per_block: 256,
        chunk_method: None,
    };
    let options =
        ReportOptions { title: Some("Example".to_owned()), marked: Some(marked), published: false };
    let files = write_report(folder.path(), &options).unwrap();
    let written =
        [&files.picture, &files.picture_after_first, &files.page, &files.readme].map(|path| {
            assert_eq!(path.parent(), Some(folder.path()));
            fs::read_to_string(path).unwrap()
        });
    insta::assert_snapshot!(written[3]);
    // The same epochs give the same bytes.
    assert_eq!(write_report(folder.path(), &options).unwrap(), files);
    let again = [&files.picture, &files.picture_after_first, &files.page, &files.readme];
    assert_eq!(again.map(|path| fs::read_to_string(path).unwrap()), written);
}

#[test]
fn without_epochs_there_is_no_report() {
    let folder = TempDir::new().unwrap();
    for _ in 0..2 {
        let error = write_report(folder.path(), &ReportOptions::default()).unwrap_err();
        assert!(error.to_string().contains("no epochs"), "{error}");
        // An empty file of epochs is the same.
        check_folder(folder.path()).unwrap();
    }
    assert!(!folder.path().join(README_FILE).exists());
}

#[test]
fn a_file_that_cannot_be_replaced_is_named() {
    let folder = TempDir::new().unwrap();
    append(folder.path(), &fixture::grid()).unwrap();
    fs::create_dir_all(folder.path().join(PAGE_FILE).join("full")).unwrap();
    let error = write_report(folder.path(), &ReportOptions::default()).unwrap_err();
    assert!(
        error.to_string().starts_with("cannot write") && error.to_string().contains(PAGE_FILE),
        "{error}"
    );
}

#[test]
fn the_fastest_of_the_points_meant_is_marked() {
    let points = summarize(&fixture::grid());
    let mut marked =
        MarkedPoint { chunk_size: 64, chunks_per_block: 256, ..MarkedPoint::default() };
    let method = |idx: Option<usize>| idx.map(|idx| points[idx].point.chunk_method.as_str());
    assert_eq!(method(marked.find(&points)), Some("native"));
    marked.chunk_method = Some("np.array".to_owned());
    assert_eq!(method(marked.find(&points)), Some("np.array"));
    // A failed point has no position to mark.
    marked.chunk_method = Some("scipy.csr".to_owned());
    assert_eq!(marked.find(&points), None);
}
