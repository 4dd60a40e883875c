//! Tests of `side_by_side`.

use std::fs;

use tempfile::TempDir;

use super::*;
use crate::{EpochRecord, Measured, append, fixture};

/// Two folders with a grid each, the second on twice the cells; the first has stages and times of
/// batches.
fn folders(root: &Path) -> Vec<PathBuf> {
    let mut grid = fixture::grid();
    for record in &mut grid {
        record.stages.read_wall_secs = Some(1.5);
        record.stages.consume_wall_secs = Some(0.5);
    }
    let mut larger = grid.clone();
    for record in &mut larger {
        record.data.total_rows *= 2;
    }
    [("small", grid), ("large", larger)]
        .into_iter()
        .map(|(name, records): (&str, Vec<EpochRecord>)| {
            append(&root.join(name), &records).unwrap();
            root.join(name)
        })
        .collect()
}

fn names(files: &[WrittenFile]) -> Vec<String> {
    files.iter().map(|file| file.path.file_name().unwrap().to_string_lossy().into_owned()).collect()
}

#[test]
fn every_view_has_its_pictures() {
    let root = TempDir::new().unwrap();
    let sources = Source::read_all(&folders(root.path())).unwrap();
    let out = root.path().join("report/of/both");
    let files =
        write_side_by_side(&sources, &out, &ReportFormat::ALL, &ReportOptions::default()).unwrap();
    let views = [
        "speed-vs-memory",
        "speed-vs-memory-without-first-batch",
        "speed-by-chunk-size",
        "speed-by-chunks-per-block",
        "speed-vs-entropy",
        "waits",
        "slowest-waits",
        "busy-share",
        "growth-time",
        "growth-memory",
        "stages",
    ];
    let mut expected = vec!["report.html".to_owned()];
    expected.extend(views.iter().flat_map(|view| [format!("{view}.svg"), format!("{view}.png")]));
    expected.extend(["table.md".to_owned(), "table.csv".to_owned()]);
    assert_eq!(names(&files), expected);
    for file in &files {
        let bytes = fs::read(&file.path).unwrap();
        match file.format {
            ReportFormat::Png => assert!(bytes.starts_with(b"\x89PNG") && bytes.len() > 10_000),
            _ => assert!(!String::from_utf8(bytes).unwrap().is_empty()),
        }
    }
    let table = fs::read_to_string(out.join("table.md")).unwrap();
    assert!(table.starts_with("| results | method |") && table.contains("| small | np.array |"));
    let svg = fs::read_to_string(out.join("speed-vs-memory.svg")).unwrap();
    assert!(svg.contains("large") && svg.contains("small"), "the legend names the folders");
}

#[test]
fn what_was_not_measured_has_no_picture() {
    let root = TempDir::new().unwrap();
    let mut record = fixture::epoch("native", (64, 16), 0.5);
    record.measured.batch_wait_secs = Vec::new();
    record.measured.order_entropy = Vec::new();
    append(root.path(), &[record]).unwrap();
    let sources = Source::read_all(&[root.path().to_owned()]).unwrap();
    let svg = [ReportFormat::Svg];
    let files = write_side_by_side(&sources, root.path(), &svg, &ReportOptions::default()).unwrap();
    let expected = [
        "speed-vs-memory.svg",
        "speed-vs-memory-without-first-batch.svg",
        "speed-by-chunk-size.svg",
        "speed-by-chunks-per-block.svg",
    ];
    assert_eq!(names(&files), expected);
}

#[test]
fn where_all_failed_there_is_a_report_all_the_same() {
    let root = TempDir::new().unwrap();
    let mut failed = fixture::killed("native", (64, 16));
    failed.measured = Measured::failed(crate::Status::Crashed, "it died");
    append(root.path(), &[failed]).unwrap();
    let sources = Source::read_all(&[root.path().to_owned()]).unwrap();
    let out = root.path().join("out");
    let files =
        write_side_by_side(&sources, &out, &ReportFormat::ALL, &ReportOptions::default()).unwrap();
    assert_eq!(names(&files).len(), 7);
    assert!(fs::read_to_string(out.join("table.csv")).unwrap().contains("it died"));
}

#[test]
fn pictures_of_series_are_what_they_were() {
    let root = TempDir::new().unwrap();
    let sources = Source::read_all(&folders(root.path())[..1]).unwrap();
    let points = summarize_all(&sources);
    let pictures = picture::draw_views(&sources, &points).unwrap();
    let svg_of = |view: &str| &pictures.iter().find(|picture| picture.view == view).unwrap().svg;
    insta::assert_snapshot!("chunk_size", svg_of("speed-by-chunk-size"));
    insta::assert_snapshot!("stages", svg_of("stages"));
}
