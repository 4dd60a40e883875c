//! Samples whose steps are found by their times: gaps, doubled times, dates, stores that touch.

use std::path::Path;
use std::sync::Arc;

use arrays::{ArrayBatch, ArraySamples, LeftOut, Period, SampleSpec, TimeSpan, Variable};
use pipeline::{Pipeline, PipelineSpec};
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use shuffle::Order;
use storage::{LocalStorage, Storage};
use zarrs::array::{ArrayBuilder, data_type};
use zarrs::filesystem::FilesystemStore;

use crate::{chain, open_with};

/// An array of `i16`, with names of its dimensions.
pub(crate) struct Grid {
    pub(crate) values: Vec<i16>,
    pub(crate) shape: Vec<u64>,
    pub(crate) names: Vec<String>,
    /// Scale and offset.
    pub(crate) packing: Option<(f64, f64)>,
}

impl Default for Grid {
    /// The only dimension is `time`, with as many steps as there are values.
    fn default() -> Self {
        let names = vec!["time".to_owned()];
        Self { values: Vec::new(), shape: Vec::new(), names, packing: None }
    }
}

pub(crate) fn write_grid(folder: &Path, name: &str, grid: &Grid) {
    let store = Arc::new(FilesystemStore::new(folder).unwrap());
    let shape =
        if grid.shape.is_empty() { vec![grid.values.len() as u64] } else { grid.shape.clone() };
    let chunk = shape.iter().map(|len| len.div_ceil(2)).collect::<Vec<_>>();
    let mut attributes = Map::new();
    if let Some((scale, offset)) = grid.packing {
        attributes.extend([
            ("scale_factor".to_owned(), json!(scale)),
            ("add_offset".to_owned(), json!(offset)),
        ]);
    }
    let array = ArrayBuilder::new(shape, chunk, data_type::int16(), -1_i16)
        .dimension_names(Some(grid.names.iter().map(|name| Some(name.clone()))))
        .attributes(attributes)
        .build(store, &format!("/{name}"))
        .unwrap();
    array.store_metadata().unwrap();
    array.store_array_subset(&array.subset_all(), &grid.values).unwrap();
}

pub(crate) fn write_times(folder: &Path, times: &[i64], units: &str, calendar: &str) {
    let store = Arc::new(FilesystemStore::new(folder).unwrap());
    let attributes = json!({"units": units, "calendar": calendar});
    let n = times.len() as u64;
    let array = ArrayBuilder::new(vec![n], vec![n], data_type::int64(), 0_i64)
        .dimension_names(Some([Some("time")]))
        .attributes(attributes.as_object().unwrap().clone())
        .build(store, "/time")
        .unwrap();
    array.store_metadata().unwrap();
    array.store_array_subset(&array.subset_all(), times).unwrap();
}

/// A store whose variable `t` numbers its steps, at these hours since 2000.
fn store(hours: &[i64]) -> tempfile::TempDir {
    store_from(hours, 0, "standard")
}

fn store_from(hours: &[i64], first: i16, calendar: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let values = (first..).take(hours.len()).collect();
    write_grid(folder.path(), "t", &Grid { values, ..Grid::default() });
    write_times(folder.path(), hours, "hours since 2000-01-01", calendar);
    folder
}

fn hours(hours: &[i64]) -> Vec<TimeSpan> {
    hours.iter().map(|hours| TimeSpan::hours(*hours)).collect()
}

fn spec(spans: &[i64]) -> SampleSpec {
    SampleSpec::new([Variable::new("t").spans(hours(spans))])
}

/// The values of all samples in their order.
fn values(samples: ArraySamples) -> Vec<Vec<i16>> {
    let spec = PipelineSpec {
        order: Order::InOrder,
        chunk_rows: 2,
        chunks_per_block: 1,
        batch_rows: 3,
        ..PipelineSpec::default()
    };
    let pipeline = Pipeline::new(Arc::new(samples), spec, ArrayBatch::n_samples).unwrap();
    let mut all = Vec::new();
    for batch in pipeline.epoch(0).unwrap() {
        let batch = batch.unwrap();
        let values = batch.variables().next().unwrap();
        let n = values.values::<i16>().unwrap().len() / batch.n_samples();
        all.extend(values.values::<i16>().unwrap().chunks(n).map(<[i16]>::to_vec));
    }
    all
}

#[test]
fn windows_do_not_cross_gaps_or_doubled_times() {
    let folder = store(&[0, 6, 12, 24, 30]);
    let samples = open_with(folder.path(), &spec(&[-6, 0, 6])).unwrap();
    assert_eq!(samples.left_out(), LeftOut { ends: 2, gaps: 2, ..LeftOut::default() });
    assert_eq!(values(samples), [[0, 1, 2]]);
    let samples = open_with(folder.path(), &spec(&[0, 6])).unwrap();
    let steps: Vec<u64> = (0..3).map(|sample| samples.step(sample)).collect();
    assert_eq!(steps, [0, 1, 3]);
    assert_eq!(values(samples), [[0, 1], [1, 2], [3, 4]]);
    // Not the step two further, but that at the time.
    let samples = open_with(folder.path(), &spec(&[0, 12])).unwrap();
    assert_eq!(values(samples), [[0, 2], [2, 3]]);

    let doubled = store(&[0, 6, 6, 12]);
    let samples = open_with(doubled.path(), &spec(&[0, 12])).unwrap();
    assert_eq!(values(samples), [[0, 3]]);
    let failed = chain(&open_with(doubled.path(), &spec(&[0, 6])).unwrap_err());
    assert!(failed.contains("no sample") && failed.contains("doubled"), "{failed}");
}

/// Files of a year that touch give windows over their border; 360_day has 1,440 steps a year.
#[test]
fn windows_cross_the_border_of_stores_that_touch() {
    let years = [(365, 0), (366, 1_460)].map(|(days, first)| {
        let from = 6 * i64::from(first);
        let hours: Vec<i64> = (0..4 * days).map(|step| from + 6 * step).collect();
        // 2001 and a leap year have these numbers of days in this calendar only if it is theirs.
        store_from(&hours, first, "proleptic_gregorian")
    });
    let stores: Vec<Arc<dyn Storage>> = years
        .iter()
        .map(|folder| Arc::new(LocalStorage::new(folder.path())) as Arc<dyn Storage>)
        .collect();
    let samples = ArraySamples::open_all(&stores, &spec(&[-6, 0, 6])).unwrap();
    assert_eq!(samples.n_samples(), 2_922);
    assert_eq!((samples.store(1_458), samples.store(1_459)), (0, 1));
    let found = values(samples);
    assert_eq!(found[1_458..1_460], [[1_458, 1_459, 1_460], [1_459, 1_460, 1_461]]);
}

#[test]
fn dates_and_a_frequency_choose_samples() {
    // Hourly, 2000 and 2001.
    let all: Vec<i64> = (0..24 * (366 + 365)).collect();
    let folder = store(&all);
    let period = |start: Option<&str>, end: Option<&str>| Period {
        start: start.map(str::to_owned),
        end: end.map(str::to_owned),
    };
    let open = |periods: Vec<Period>, frequency: Option<TimeSpan>, spans: &[i64]| {
        open_with(folder.path(), &SampleSpec { periods, frequency, ..spec(spans) }).unwrap()
    };
    let year = open(vec![period(Some("2001"), None)], None, &[0]);
    assert_eq!((year.n_samples(), year.step(0)), (24 * 365, 24 * 366));
    // Looks out of the period, not out of the data.
    let february = open(vec![period(Some("2000-02"), Some("2000-02"))], None, &[-6, 0]);
    assert_eq!((february.n_samples(), february.step(0)), (24 * 29, 24 * 31));
    let two = vec![
        period(None, Some("2000-01-01T05:00")),
        period(Some("2001-12-31 22:00:00"), Some("2001")),
    ];
    let two = open(two, None, &[0]);
    let steps: Vec<u64> = (0..two.n_samples()).map(|sample| two.step(sample)).collect();
    let last = 24 * (366 + 365);
    assert_eq!(steps, [0, 1, 2, 3, 4, 5, last - 2, last - 1]);
    let daily = open(vec![period(Some("2000-01-01 06:00"), None)], Some(TimeSpan::days(1)), &[0]);
    assert_eq!((daily.n_samples(), daily.step(1)), (731, 30));

    let refused = |spec: SampleSpec, word: &str| {
        let text = chain(&open_with(folder.path(), &spec).unwrap_err());
        assert!(text.contains(word), "{text}");
    };
    refused(SampleSpec { periods: vec![period(Some("soon"), None)], ..spec(&[0]) }, "soon");
    refused(
        SampleSpec { periods: vec![period(Some("1999"), Some("1999"))], ..spec(&[0]) },
        "no sample",
    );
    refused(SampleSpec { frequency: Some(TimeSpan::hours(0)), ..spec(&[0]) }, "frequency");
    let both = SampleSpec { frequency: Some(TimeSpan::hours(6)), stride: 2, ..spec(&[0]) };
    refused(both, "stride");
}

/// An hourly variable beside a six-hourly one in a store of its own.
#[test]
fn variables_may_have_times_of_their_own() {
    let coarse = store(&[0, 6, 12, 18]);
    let fine = tempfile::tempdir().unwrap();
    write_grid(fine.path(), "p", &Grid { values: (0..16).collect(), ..Grid::default() });
    write_times(fine.path(), &(0..16).collect::<Vec<_>>(), "hours since 2000-01-01", "gregorian");
    let folders = [coarse, fine];
    let stores: Vec<Arc<dyn Storage>> = folders
        .iter()
        .map(|folder| Arc::new(LocalStorage::new(folder.path())) as Arc<dyn Storage>)
        .collect();
    let variables =
        [Variable::new("p").spans(hours(&[-2, -1, 0])), Variable::new("t").steps([0, 1])];
    let reversed = [variables[1].clone(), variables[0].clone()];
    let samples = ArraySamples::open_all(&stores, &SampleSpec::new(reversed)).unwrap();
    assert_eq!(samples.left_out(), LeftOut { ends: 2, ..LeftOut::default() });
    assert_eq!((samples.n_samples(), samples.step(0)), (2, 1));
    assert_eq!(values(samples), [[1, 2], [2, 3]]);
    // The samples' times are those of the first variable.
    let samples = ArraySamples::open_all(&stores, &SampleSpec::new(variables)).unwrap();
    assert_eq!((samples.n_samples(), samples.step(0), samples.step(1)), (2, 6, 12));
    assert_eq!(samples.left_out(), LeftOut { ends: 2, gaps: 12, ..LeftOut::default() });
    assert_eq!(values(samples), [[4, 5, 6], [10, 11, 12]]);
}

/// What a store has before and after its valid dates is not there, although it reads as fill.
#[test]
fn steps_outside_the_valid_dates_are_left_out() {
    let folder = store(&(0..24 * 4).collect::<Vec<_>>());
    let group = json!({
        "zarr_format": 3,
        "node_type": "group",
        "attributes": {"valid_time_start": "2000-01-02", "valid_time_stop": "2000-01-03"},
    });
    std::fs::write(folder.path().join("zarr.json"), group.to_string()).unwrap();
    let samples = open_with(folder.path(), &spec(&[0, 1])).unwrap();
    assert_eq!((samples.n_samples(), samples.step(0)), (47, 24));
    assert_eq!(samples.left_out(), LeftOut { invalid: 49, ..LeftOut::default() });
    // Counted steps take no notice of times.
    let counted = SampleSpec::new([Variable::new("t").steps([0, 1])]);
    assert_eq!(open_with(folder.path(), &counted).unwrap().n_samples(), 95);
}

#[test]
fn times_that_are_not_understood_are_named() {
    let refused = |times: &[i64], units: &str, calendar: &str, word: &str| {
        let folder = tempfile::tempdir().unwrap();
        let values = (0..).take(times.len()).collect();
        write_grid(folder.path(), "t", &Grid { values, ..Grid::default() });
        write_times(folder.path(), times, units, calendar);
        let text = chain(&open_with(folder.path(), &spec(&[0])).unwrap_err());
        assert!(text.contains("times of t") && text.contains(word), "{text}");
        // They matter to nobody who counts steps.
        assert!(open_with(folder.path(), &SampleSpec::new([Variable::new("t")])).is_ok());
    };
    refused(&[0, 1], "months since 2000-01-01", "standard", "months");
    refused(&[0, 1], "days since 2000-01-01", "foo", "foo");
    refused(&[0, 1], "days since 0000-01-01", "standard", "0000-01-01");
    refused(&[0, 1], "m", "standard", "units");
    refused(&[1, 0], "days since 2000-01-01", "standard", "ascend");
    let folder = tempfile::tempdir().unwrap();
    write_grid(folder.path(), "t", &Grid { values: vec![1, 2], ..Grid::default() });
    let text = chain(&open_with(folder.path(), &spec(&[0])).unwrap_err());
    assert!(text.contains("no coordinates"), "{text}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Each sample has the steps that a search through all times finds, and no other is there.
    #[test]
    fn samples_are_those_that_a_naive_search_finds(
        distances in prop::collection::vec(0..4_i64, 2..40),
        spans in prop::collection::vec(-9..9_i64, 1..4),
        start in 0..5_u64,
        every in prop::option::of(1..5_i64),
    ) {
        let times: Vec<i64> = distances
            .iter()
            .scan(0, |time, distance| {
                *time += 3 * distance.min(&2);
                Some(*time)
            })
            .collect();
        let folder = store(&times);
        let wanted = SampleSpec {
            start: Some(start),
            frequency: every.map(|every| TimeSpan::hours(3 * every)),
            ..spec(&spans.iter().map(|span| 3 * span).collect::<Vec<_>>())
        };
        let origin = times.get(start as usize).copied().unwrap_or(0);
        let expected: Vec<Vec<i16>> = times
            .iter()
            .skip(start as usize)
            .filter(|time| every.is_none_or(|every| (*time - origin) % (3 * every) == 0))
            .filter_map(|time| {
                let steps = spans.iter().map(|span| {
                    let at = time + 3 * span;
                    let found: Vec<usize> = (0..times.len()).filter(|step| times[*step] == at).collect();
                    if let [one] = found[..] { i16::try_from(one).ok() } else { None }
                });
                steps.collect()
            })
            .collect();
        match open_with(folder.path(), &wanted) {
            Ok(samples) => prop_assert_eq!(values(samples), expected),
            Err(error) => prop_assert!(expected.is_empty(), "{error}"),
        }
    }
}

#[test]
fn attributes_may_be_of_zarr_v2() {
    let folder = store(&[0, 1, 2]);
    std::fs::write(folder.path().join(".zattrs"), r#"{"valid_time_stop": "1999-12-31"}"#).unwrap();
    let error = chain(&open_with(folder.path(), &spec(&[0])).unwrap_err());
    assert!(error.contains("3 at times that are not valid"), "{error}");
    std::fs::write(folder.path().join(".zattrs"), "damaged").unwrap();
    assert!(open_with(folder.path(), &spec(&[0])).is_err());
    let value: Value = json!({});
    std::fs::write(folder.path().join(".zattrs"), value.to_string()).unwrap();
    assert!(open_with(folder.path(), &spec(&[0])).is_ok());
}
