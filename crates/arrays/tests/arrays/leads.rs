//! Samples that are an initial time and a lead time, against a naive oracle.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use arrays::{
    ArrayBatch, ArraySamples, Forcing, Indices, LeftOut, MissingPolicy, PatchDimension, Patches,
    Period, SampleSpec, TimeSpan, Variable, WhenMissing,
};
use pipeline::{Pipeline, PipelineSpec, WhenDamaged, World};
use proptest::prelude::*;
use serde_json::json;
use shuffle::Remainder;
use storage::{LocalStorage, Storage};
use zarrs::array::{ArrayBuilder, data_type};
use zarrs::filesystem::FilesystemStore;

use crate::patches::{engine, expected, stored};
use crate::{chain, in_order, open_with};

/// Coordinates in some units, of the dimension of their name.
fn write_coordinates(folder: &Path, name: &str, values: &[i64], units: Option<&str>) {
    let store = Arc::new(FilesystemStore::new(folder).unwrap());
    let attributes = units.map_or_else(|| json!({}), |units| json!({"units": units}));
    let n = values.len() as u64;
    let array = ArrayBuilder::new(vec![n], vec![n], data_type::int64(), 0_i64)
        .dimension_names(Some([Some(name)]))
        .attributes(attributes.as_object().unwrap().clone())
        .build(store, &format!("/{name}"))
        .unwrap();
    array.store_metadata().unwrap();
    array.store_array_subset(&array.subset_all(), values).unwrap();
}

fn stores(folders: &[&tempfile::TempDir]) -> Vec<Arc<dyn Storage>> {
    let open = |folder: &&tempfile::TempDir| -> Arc<dyn Storage> {
        Arc::new(LocalStorage::new(folder.path()))
    };
    folders.iter().map(open).collect()
}

/// Times in hours, from distances between them.
fn times(distances: &[i64]) -> Vec<i64> {
    let each = distances.iter().scan(0, |time, distance| {
        *time += 3 * distance;
        Some(*time)
    });
    each.collect()
}

/// Why a sample has no step at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Absent {
    Outside,
    Gap,
}

/// The place of a time among others, which ascend.
fn find(times: &[i64], wanted: i64) -> Result<u64, Absent> {
    match times.iter().position(|time| *time == wanted) {
        Some(at) => Ok(at as u64),
        None if times.iter().any(|time| *time < wanted)
            && times.iter().any(|time| wanted < *time) =>
        {
            Err(Absent::Gap)
        }
        None => Err(Absent::Outside),
    }
}

fn shifted(own: u64, by: i64, n: usize) -> Result<u64, Absent> {
    own.checked_add_signed(by).filter(|at| *at < n as u64).ok_or(Absent::Outside)
}

/// Steps beside the sample's own: by number, or by time in hours.
#[derive(Debug, Clone)]
enum Beside {
    Counted(Vec<i64>),
    Timed(Vec<i64>),
}

impl Beside {
    fn of(&self, variable: Variable) -> Variable {
        match self {
            Self::Counted(steps) => variable.steps(steps.clone()),
            Self::Timed(hours) => variable.spans(hours.iter().map(|at| TimeSpan::hours(*at))),
        }
    }

    /// The places of the steps of a sample at a time among all times.
    fn places(&self, times: &[i64], own: i64) -> Result<Vec<u64>, Absent> {
        match self {
            Self::Timed(hours) => hours.iter().map(|by| find(times, own + by)).collect(),
            Self::Counted(steps) => {
                let at = find(times, own)?;
                steps.iter().map(|by| shifted(at, *by, times.len())).collect()
            }
        }
    }
}

fn beside() -> impl Strategy<Value = Beside> {
    let counted = prop::sample::select(vec![vec![0], vec![0, 1], vec![-1, 0, 1], vec![1]]);
    let timed = prop::sample::select(vec![vec![0], vec![-6, 0], vec![0, 3, 6]]);
    prop_oneof![counted.prop_map(Beside::Counted), timed.prop_map(Beside::Timed)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    /// Each pair of an initial and a lead time whose steps are all there is a sample, with the
    /// analysis at its valid time; the others are counted.
    #[test]
    fn samples_are_the_pairs_that_a_naive_search_finds(
        f in stored(&[&[0, 3, 1, 2], &[0, 1, 3, 2], &[3, 0, 1, 2], &[1, 0, 3, 2], &[1, 2, 3, 0]]),
        a in stored(&[&[0, 1, 2], &[1, 0, 2], &[2, 1, 0]]),
        inits in prop::collection::vec(1..4_i64, 1..6),
        of_leads in prop::collection::vec(1..3_i64, 1..6),
        of_analysis in prop::collection::vec(1..4_i64, 1..14),
        (ny, nx) in (1..6_u64, 1..4_u64),
        chosen in prop::option::of(prop::collection::vec(any::<bool>(), 6)),
        (of_f, of_a) in (beside(), beside()),
        analysis_first in any::<bool>(),
        (start, stride) in (0..2_u64, 1..3_u64),
        patch in prop::option::of(1..4_u64),
        (spec, read, threads) in engine(),
    ) {
        let (inits, all_leads, analysis) = (times(&inits), times(&of_leads), times(&of_analysis));
        let [forecast, observed] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let lens = [inits.len() as u64, ny, nx, all_leads.len() as u64];
        f.write(forecast.path(), "x", lens);
        write_coordinates(forecast.path(), "t", &inits, Some("hours since 2020-01-01"));
        write_coordinates(forecast.path(), "c", &all_leads, Some("hours"));
        let lens_of_a = [analysis.len() as u64, ny, nx, 1];
        a.write(observed.path(), "x", lens_of_a);
        write_coordinates(observed.path(), "t", &analysis, Some("hours since 2020-01-01"));
        // A part of the lead times.
        let places: Vec<u64> = match &chosen {
            Some(chosen) => (0..lens[3]).filter(|at| chosen[*at as usize]).collect(),
            None => (0..lens[3]).collect(),
        };
        prop_assume!(!places.is_empty());
        let leads: Vec<i64> = places.iter().map(|at| all_leads[*at as usize]).collect();
        let mut of_forecast = of_f.of(Variable::new("x").named("forecast").of_stores([0]));
        if chosen.is_some() {
            of_forecast = of_forecast.select("c", Indices::List(places.clone()));
        }
        let analysed = of_a.of(Variable::new("x").named("analysis").of_stores([1]));
        let variables =
            if analysis_first { [analysed, of_forecast] } else { [of_forecast, analysed] };
        let patches = patch.map(|size| Patches::grid([PatchDimension::new("y", size.min(ny))]));
        let size = patch.map_or(ny, |size| size.min(ny));
        let n_patches = ny / size;
        let sample = SampleSpec {
            along: Some("t".into()),
            lead: Some("c".to_owned()),
            start: Some(start),
            stride,
            patches,
            read,
            threads,
            ..SampleSpec::new(variables)
        };

        let (mut found, mut left_out) = (Vec::new(), LeftOut::default());
        for init in (0..inits.len()).skip(start as usize).step_by(stride as usize) {
            for lead in &leads {
                // Lead times that are selected count as the only ones.
                let of_forecast = of_f.places(&leads, *lead);
                let of_analysis = of_a.places(&analysis, inits[init] + lead);
                let reason = match (&of_forecast, &of_analysis, analysis_first) {
                    (Ok(forecast), Ok(analysis), _) => {
                        found.push((init as u64, *lead, forecast.clone(), analysis.clone()));
                        continue;
                    }
                    (Err(_), Err(reason), true)
                    | (Err(reason), _, false)
                    | (Err(reason), Ok(_), true)
                    | (Ok(_), Err(reason), _) => *reason,
                };
                match reason {
                    Absent::Outside => left_out.ends += 1,
                    Absent::Gap => left_out.gaps += 1,
                }
            }
        }
        let opened = ArraySamples::open_all(&stores(&[&forecast, &observed]), &sample);
        if found.is_empty() {
            prop_assert!(opened.is_err());
            return Ok(());
        }
        let samples = Arc::new(opened.unwrap());
        prop_assert_eq!(samples.n_samples(), found.len() as u64 * n_patches);
        prop_assert_eq!(samples.left_out(), left_out);
        let pipeline = Pipeline::new(Arc::clone(&samples), spec, ArrayBatch::n_samples).unwrap();
        let mut seen = BTreeSet::new();
        for batch in pipeline.epoch(0).unwrap() {
            let batch = batch.unwrap();
            let of_leads = batch.lead_times();
            for (at, sample) in batch.samples().iter().enumerate() {
                prop_assert!(seen.insert(*sample));
                let (init, lead, of_forecast, of_analysis) = &found[(sample / n_patches) as usize];
                prop_assert_eq!(samples.step(*sample), *init);
                prop_assert_eq!(samples.lead_time(*sample), Some(TimeSpan::hours(*lead)));
                prop_assert_eq!(of_leads[at], TimeSpan::hours(*lead));
                let first = sample % n_patches * size;
                let y: Vec<u64> = (first..first + size).collect();
                let x: Vec<u64> = (0..nx).collect();
                let right_forecast: Vec<f64> = of_forecast
                    .iter()
                    .flat_map(|lead| {
                        let lead = vec![places[*lead as usize]];
                        let indices = [Vec::new(), y.clone(), x.clone(), lead];
                        expected((&f, &[]), lens, &[*init], &indices)
                    })
                    .collect();
                let indices = [Vec::new(), y.clone(), x.clone(), vec![0]];
                let right_analysis = expected((&a, &[]), lens_of_a, of_analysis, &indices);
                for (name, right) in [("forecast", right_forecast), ("analysis", right_analysis)] {
                    let values = batch.variable(name).unwrap().values::<f64>().unwrap();
                    prop_assert_eq!(&values[at * right.len()..][..right.len()], &right[..], "{} of {}", name, sample);
                }
            }
        }
        prop_assert_eq!(seen.len() as u64, samples.n_samples());
    }
}

/// Forecasts of 5 lead times from 4 initial times 12 h apart, on maps of 3 x 2 in the layout of
/// dynamical.org, and the analysis every 6 h.
fn forecasts(chunk: &[u64]) -> [tempfile::TempDir; 2] {
    let [forecast, analysis] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let (inits, leads) = ([0, 12, 24, 36], [0, 6, 12, 18, 24]);
    write(forecast.path(), "t2m", &["init_time", "lead_time", "lat", "lon"], &[4, 5, 3, 2], chunk);
    write_coordinates(forecast.path(), "init_time", &inits, Some("hours since 2020-01-01"));
    let seconds = leads.map(|hours: i64| 3_600 * hours);
    write_coordinates(forecast.path(), "lead_time", &seconds, Some("seconds"));
    write(analysis.path(), "t2m", &["time", "lat", "lon"], &[8, 3, 2], &[3, 3, 2]);
    let times: Vec<i64> = (0..8).map(|step| 360 * step).collect();
    write_coordinates(analysis.path(), "time", &times, Some("minutes since 2020-01-01"));
    [forecast, analysis]
}

fn write(folder: &Path, name: &str, dims: &[&str], shape: &[u64], chunk: &[u64]) {
    let store = Arc::new(FilesystemStore::new(folder).unwrap());
    let array = ArrayBuilder::new(shape.to_vec(), chunk.to_vec(), data_type::float32(), 0.0_f32)
        .dimension_names(Some(dims.iter().map(|name| Some(*name))))
        .bytes_to_bytes_codecs(vec![Arc::new(zarrs::array::codec::ZstdCodec::new(1, true))])
        .build(store, &format!("/{name}"))
        .unwrap();
    array.store_metadata().unwrap();
    let n: u64 = shape.iter().product();
    let values: Vec<f32> = (0..n).map(|i| i as f32).collect();
    array.store_array_subset(&array.subset_all(), &values).unwrap();
}

fn spec() -> SampleSpec {
    SampleSpec {
        along: Some("init_time".into()),
        lead: Some("lead_time".to_owned()),
        ..SampleSpec::new([
            Variable::new("t2m").named("forecast").of_stores([0]),
            Variable::new("t2m").named("target").along("time").of_stores([1]),
        ])
    }
}

fn open(folders: &[tempfile::TempDir; 2], spec: &SampleSpec) -> ArraySamples {
    ArraySamples::open_all(&stores(&[&folders[0], &folders[1]]), spec).unwrap()
}

#[test]
fn targets_are_found_at_the_valid_time_along_another_dimension() {
    let folders = forecasts(&[2, 2, 3, 2]);
    let samples = open(&folders, &spec());
    // The analysis ends after 42 h: one lead time from 24 h and three from 36 h have no target.
    assert_eq!(samples.n_samples(), 16);
    assert_eq!(samples.left_out(), LeftOut { ends: 4, ..LeftOut::default() });
    assert_eq!(samples.sample_shape("forecast"), Some(vec![3, 2]));
    assert_eq!(samples.sample_dimensions("forecast"), Some(vec!["lat", "lon"]));
    assert!(samples.coordinates("forecast", "lead_time").is_none());
    let pipeline = Pipeline::new(Arc::new(samples), in_order(), ArrayBatch::n_samples).unwrap();
    let mut all = Vec::new();
    for batch in pipeline.epoch(0).unwrap() {
        let batch = batch.unwrap();
        let (forecast, target) =
            (batch.variable("forecast").unwrap(), batch.variable("target").unwrap());
        let inits = forecast.sample_coordinates().unwrap();
        let leads = forecast.lead_coordinates().unwrap();
        let valid = target.sample_coordinates().unwrap();
        assert_eq!((inits.dimension(), leads.dimension()), ("init_time", "lead_time"));
        assert!(target.lead_coordinates().is_none() && valid.dimension() == "time");
        let each = inits.integers().unwrap().iter().zip(leads.integers().unwrap());
        for ((init, lead), valid) in each.zip(valid.integers().unwrap()) {
            assert_eq!((60 * init + lead / 60), *valid);
            all.push((*init, lead / 3_600));
        }
        let firsts = forecast.values::<f32>().unwrap().chunks(6).map(|of| of[0]);
        let of_sample = all[all.len() - batch.n_samples()..].iter();
        let right = of_sample.map(|(init, lead)| (6 * (5 * (init / 12) + lead / 6)) as f32);
        assert_eq!(firsts.collect::<Vec<_>>(), right.collect::<Vec<_>>());
    }
    let right = [0, 12, 24, 36].into_iter().flat_map(|init| {
        [0, 6, 12, 18, 24]
            .into_iter()
            .filter(move |lead| init + lead <= 42)
            .map(move |lead| (init, lead))
    });
    assert_eq!(all, right.collect::<Vec<_>>());
}

/// What is computed, and what is subtracted, is that of the lead time.
#[test]
fn forcings_and_differences_are_of_the_valid_time() {
    let folders = forecasts(&[2, 2, 3, 2]);
    let change = Variable { minus: vec![0], ..Variable::new("t2m").named("change") };
    let mut spec = spec();
    spec.variables.insert(0, Variable::computed("time", Forcing::Time));
    spec.variables.push(change.of_stores([0]).steps([1]));
    let samples = open(&folders, &spec);
    // The last lead time of each initial time has none after it.
    assert_eq!((samples.n_samples(), samples.store(0)), (14, 0));
    let pipeline = Pipeline::new(Arc::new(samples), in_order(), ArrayBatch::n_samples).unwrap();
    for batch in pipeline.epoch(0).unwrap() {
        let batch = batch.unwrap();
        let [time, target, change] =
            ["time", "target", "change"].map(|name| batch.variable(name).unwrap());
        let valid = target.sample_coordinates().unwrap();
        let micros = valid.integers().unwrap().iter().map(|minutes| {
            let days_since_1970 = 18_262;
            days_since_1970 * 86_400_000_000 + minutes * 60_000_000
        });
        assert_eq!(time.values::<i64>().unwrap(), micros.collect::<Vec<_>>());
        assert_eq!(change.shape()[1..], [3, 2]);
        assert!(change.values::<f32>().unwrap().iter().all(|by| *by == 6.0));
    }
}

#[test]
fn dates_choose_initial_times_and_the_month_is_theirs() {
    let folders = forecasts(&[1, 5, 3, 2]);
    let day = Period { start: Some("2020-01-02".to_owned()), end: Some("2020-01-02".to_owned()) };
    let samples = open(&folders, &SampleSpec { periods: vec![day], ..spec() });
    let inits: BTreeSet<u64> =
        (0..samples.n_samples()).map(|sample| samples.step(sample)).collect();
    assert_eq!(inits, BTreeSet::from([2, 3]));
    assert_eq!(samples.months().unwrap(), vec![1; samples.n_samples() as usize]);
    assert_eq!(samples.store(0), 0);
    let daily = SampleSpec { frequency: Some(TimeSpan::days(1)), ..spec() };
    let daily = open(&folders, &daily);
    assert_eq!((daily.n_samples(), daily.step(5)), (9, 2));
}

/// The same pairs for any number of ranks, and from a state on.
#[test]
fn ranks_and_resuming_deliver_each_pair_once() {
    let folders = forecasts(&[2, 2, 3, 2]);
    let samples = Arc::new(open(&folders, &spec()));
    let pipeline = |rank, size| {
        let spec = PipelineSpec {
            chunk_rows: 3,
            chunks_per_block: 2,
            batch_rows: 4 / size,
            seed: 3,
            world: World { rank, size },
            remainder: Remainder::Pad,
            ..PipelineSpec::default()
        };
        Pipeline::new(Arc::clone(&samples), spec, ArrayBatch::n_samples).unwrap()
    };
    let delivered = |batches: &mut dyn Iterator<Item = Result<ArrayBatch, arrays::Error>>| {
        let mut found = BTreeMap::new();
        for batch in batches {
            let batch = batch.unwrap();
            let values = batch.variable("forecast").unwrap().values::<f32>().unwrap();
            let each = values.chunks(6).map(<[f32]>::to_vec);
            found.extend(batch.samples().iter().copied().zip(each));
        }
        found
    };
    let whole = delivered(&mut pipeline(0, 1).epoch(1).unwrap());
    assert_eq!(whole.len() as u64, samples.n_samples());
    let ranks = [0, 1].map(|rank| delivered(&mut pipeline(rank, 2).epoch(1).unwrap()));
    assert_eq!(ranks.into_iter().flatten().collect::<BTreeMap<_, _>>(), whole);
    let first = pipeline(0, 1);
    let mut epoch = first.epoch(1).unwrap();
    let mut found = delivered(&mut epoch.by_ref().take(2));
    let state = epoch.state();
    drop(epoch);
    found.extend(delivered(&mut pipeline(0, 1).resume(&state).unwrap()));
    assert_eq!(found, whole);
}

#[test]
fn a_chunk_of_many_lead_times_is_decoded_once_a_block() {
    let folders = forecasts(&[1, 5, 3, 2]);
    let only =
        SampleSpec { variables: vec![Variable::new("t2m").steps([0, 1])], threads: 2, ..spec() };
    let samples = open_with(folders[0].path(), &only).unwrap();
    assert_eq!(samples.n_samples(), 16);
    let engine = PipelineSpec {
        chunk_rows: 16,
        chunks_per_block: 1,
        batch_rows: 5,
        ..PipelineSpec::default()
    };
    let pipeline = Pipeline::new(Arc::new(samples), engine, ArrayBatch::n_samples).unwrap();
    let mut epoch = pipeline.epoch(0).unwrap();
    assert_eq!(epoch.by_ref().map(|batch| batch.unwrap().n_samples()).sum::<usize>(), 16);
    assert_eq!(epoch.stats().read.bytes_decoded, Some(4 * 5 * 6 * 4));
}

#[test]
fn a_damaged_chunk_leaves_out_its_own_lead_times() {
    let folders = forecasts(&[1, 1, 3, 2]);
    std::fs::write(folders[0].path().join("t2m/c/1/2/0/0"), [7; 5]).unwrap();
    let engine = PipelineSpec { chunk_rows: 4, when_damaged: WhenDamaged::Skip, ..in_order() };
    let samples = open(&folders, &spec());
    let pipeline = Pipeline::new(Arc::new(samples), engine, ArrayBatch::n_samples).unwrap();
    let mut epoch = pipeline.epoch(0).unwrap();
    let n: usize = epoch.by_ref().map(|batch| batch.unwrap().n_samples()).sum();
    assert_eq!(n, 15);
    let names: Vec<String> = epoch.stats().skipped.iter().map(|one| one.name.clone()).collect();
    assert_eq!(names, ["step 1, lead time 12h"]);
}

/// Levels are normalised by their own means, beside the lead times and in a stack.
#[test]
fn levels_of_forecasts_are_normalised_and_stacked() {
    let folder = tempfile::tempdir().unwrap();
    let dims = ["time", "prediction_timedelta", "level", "lat", "lon"];
    write(folder.path(), "z", &dims, &[3, 4, 2, 3, 2], &[2, 3, 1, 3, 2]);
    write_coordinates(folder.path(), "time", &[0, 1, 2], Some("days since 2020-01-01"));
    write_coordinates(folder.path(), "prediction_timedelta", &[0, 6, 12, 18], Some("hours"));
    write_coordinates(folder.path(), "level", &[500, 850], None);
    let z = Variable::new("z").normalized([(1.0, 2.0), (3.0, 4.0)]);
    let spec = SampleSpec {
        along: Some("time".into()),
        lead: Some("prediction_timedelta".to_owned()),
        ..SampleSpec::new([z.clone(), Variable::stacked("s", [z.clone().named("z")]), {
            Variable::ensemble("e", "number", [z.clone().named("0"), z.named("1")])
        }])
    };
    let samples = open_with(folder.path(), &spec).unwrap();
    assert_eq!(samples.sample_shape("z"), Some(vec![2, 3, 2]));
    assert_eq!(samples.sample_shape("e"), Some(vec![2, 2, 3, 2]));
    let pipeline = Pipeline::new(Arc::new(samples), in_order(), ArrayBatch::n_samples).unwrap();
    for batch in pipeline.epoch(0).unwrap() {
        let batch = batch.unwrap();
        let values = |name| batch.variable(name).unwrap().values::<f32>().unwrap().to_vec();
        let right: Vec<f32> = batch
            .samples()
            .iter()
            .flat_map(|sample| (0..12).map(move |i| (12 * sample + i) as f32))
            .enumerate()
            .map(|(at, value)| if at % 12 < 6 { (value - 1.0) / 2.0 } else { (value - 3.0) / 4.0 })
            .collect();
        assert_eq!(values("z"), right);
        assert_eq!(values("s"), right);
        let twice = right.chunks(12).flat_map(|of| [of, of].concat());
        assert_eq!(values("e"), twice.collect::<Vec<_>>());
    }
}

#[test]
fn what_is_no_lead_time_is_named() {
    let folders = forecasts(&[2, 2, 3, 2]);
    let refused = |spec: SampleSpec, words: &[&str]| {
        let error =
            ArraySamples::open_all(&stores(&[&folders[0], &folders[1]]), &spec).unwrap_err();
        let text = chain(&error);
        assert!(words.iter().all(|word| text.contains(word)), "{text}");
    };
    let lead = |name: &str| SampleSpec { lead: Some(name.to_owned()), ..spec() };
    refused(lead("step"), &["no array has the dimension of lead times step"]);
    refused(lead("init_time"), &["initial times"]);
    refused(lead("lat"), &["lat", "no coordinates"]);
    let chunks = WhenMissing::LeaveOut;
    let missing = MissingPolicy { chunks, ..MissingPolicy::default() };
    refused(SampleSpec { missing, ..spec() }, &["missing numbers", "lead_time"]);
    let order = vec!["lat".to_owned(), "lead_time".to_owned()];
    refused(SampleSpec { order, ..spec() }, &["samples are made of lead_time"]);
    let far = Variable::new("t2m").of_stores([2]);
    refused(SampleSpec { variables: vec![far], ..spec() }, &["t2m", "stores [2]", "there are 2"]);
    let only = SampleSpec { variables: spec().variables[1..].to_vec(), ..spec() };
    refused(only, &["no array has the dimension of lead times"]);
    let error = open(&folders, &spec()).missing([0], &pipeline::Stop::default()).unwrap_err();
    assert!(chain(&error).contains("lead times"), "{error}");

    write_coordinates(folders[0].path(), "lead_time", &[0, 1, 2, 3, 4], None);
    refused(spec(), &["lead_time", "no attribute `units`"]);
    write_coordinates(folders[0].path(), "lead_time", &[0, 1, 2, 3, 4], Some("kelvin"));
    refused(spec(), &["lead_time", "kelvin"]);
    let twice = [0, 6, 6, 12, 18];
    write_coordinates(folders[0].path(), "lead_time", &twice, Some("hours"));
    let samples = open(&folders, &spec());
    assert_eq!(samples.left_out().doubled, 8);
}
