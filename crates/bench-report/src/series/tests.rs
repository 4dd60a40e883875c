//! Tests of `series`.

use super::*;
use crate::{EpochRecord, Source, fixture, source::summarize_all, summarize};

#[track_caller]
fn check(records: &[EpochRecord], named_by: NamedBy, names: &[&str]) -> SeriesNames {
    let series = SeriesNames::from_points(&summarize(records));
    assert_eq!((series.named_by, series.names.as_slice()), (named_by, &to_strings(names)[..]));
    series
}

fn to_strings(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn on(uri: &str, mut record: EpochRecord) -> EpochRecord {
    record.data.uri = uri.to_owned();
    record
}

/// Our loader and another on `/data/x`, and ours on `copy`.
fn two_loaders(copy: &str, layout: Option<&str>) -> Vec<EpochRecord> {
    let own = fixture::epoch_of(("somafeed", "native"), "csr", 16, (1.0, 1.0));
    let mut copied = on(copy, own.clone());
    copied.data.layout = layout.map(str::to_owned);
    let other = |label| fixture::epoch_of(("other", label), "csr", 16, (1.0, 1.0));
    vec![
        on("/data/x", other("other documented")),
        copied,
        on("/data/x", other("other")),
        on("/data/x", own),
    ]
}

#[test]
fn of_one_loader_the_methods_are_series() {
    let series = check(&fixture::grid(), NamedBy::Method, &["np.array", "scipy.csr", "native"]);
    assert_eq!((series.heading(), series.name(0)), ("method", "np.array"));
}

#[test]
fn of_several_loaders_ours_comes_first_and_its_copies_behind() {
    let names = ["somafeed", "somafeed, relaid", "other", "other documented"];
    // Rows as written now; older rows as they read now; both named by their place.
    check(&two_loaders("/cache/experiment", Some("relaid")), NamedBy::Loader, &names);
    check(&two_loaders("/data/x-relaid", None), NamedBy::Loader, &names);
    let names = ["somafeed", "somafeed, experiment", "other", "other documented"];
    let series = check(&two_loaders("/cache/experiment", None), NamedBy::Loader, &names);
    let of_points: Vec<&str> = (0..4).map(|idx| series.name(idx)).collect();
    assert_eq!(of_points, ["other documented", "somafeed, experiment", "other", "somafeed"]);
}

#[test]
fn copies_made_alike_and_methods_of_ours_are_told_apart() {
    let mut records = two_loaders("/cache/a", Some("relaid"));
    records.extend(two_loaders("/cache/b", Some("relaid")));
    let mut array = records[3].clone();
    array.point.chunk_method = "np.array".to_owned();
    records.push(array);
    let names = [
        "somafeed, native",
        "somafeed, native, relaid a",
        "somafeed, native, relaid b",
        "somafeed, np.array",
        "other",
        "other documented",
    ];
    check(&records, NamedBy::Loader, &names);
}

#[test]
fn of_one_loader_and_method_the_data_sets_are_series() {
    let record = fixture::epoch("native", (64, 16), 0.5);
    let same_end = [on("/a/x/soma", record.clone()), on("/a/y/soma", record)];
    check(&same_end, NamedBy::Data, &["x/soma", "y/soma"]);
    let mut with_methods = same_end.to_vec();
    with_methods.push(on("/a/x/soma", fixture::epoch("np.array", (64, 16), 0.5)));
    check(&with_methods, NamedBy::Method, &["np.array", "native, x/soma", "native, y/soma"]);
}

#[test]
fn folders_are_told_where_a_series_is_in_several() {
    let source = |name: &str, records: Vec<EpochRecord>| Source { name: name.to_owned(), records };
    let own = fixture::epoch_of(("somafeed", "native"), "csr", 16, (1.0, 1.0));
    let other = fixture::epoch_of(("other", "other"), "csr", 16, (1.0, 1.0));
    let both = [source("one", vec![own.clone(), other]), source("two", vec![own])];
    let names = SeriesNames::from_points(&summarize_all(&both)).names;
    assert_eq!(names, ["somafeed, one", "somafeed, two", "other"]);
    let grids = [source("z", fixture::grid()), source("a", fixture::grid())];
    let series = SeriesNames::from_points(&summarize_all(&grids));
    assert_eq!((series.named_by, series.names), (NamedBy::Folder, to_strings(&["z", "a"])));
}
