//! Dimensions in another order than stored, and turned round by their coordinates.

use std::path::Path;
use std::sync::Arc;

use arrays::{
    ArrayBatch, ArraySamples, Direction, Error, Indices, SampleSpec, Selection, Variable,
};
use pipeline::{Pipeline, PipelineSpec};
use proptest::prelude::*;
use storage::{LocalStorage, Storage};
use zarrs::array::{ArrayBuilder, Element, data_type};
use zarrs::filesystem::FilesystemStore;

use crate::timed::{Grid, write_grid};
use crate::{chain, in_order, open_with, values};

/// Elements of each size.
#[derive(Debug, Clone, Copy)]
enum Stored {
    U8,
    I16,
    F32,
    F64,
}

/// Writes an array of 3 steps whose element i is i, modulo 100.
fn write(folder: &Path, stored: Stored, (lens, chunk): ([u64; 2], [u64; 3])) {
    fn fill<T: Element>(array: &zarrs::array::Array<FilesystemStore>, number: fn(u64) -> T) {
        let n = array.shape().iter().product();
        let values: Vec<T> = (0..n).map(|i| number(i % 100)).collect();
        array.store_array_subset(&array.subset_all(), &values).unwrap();
    }
    let store = Arc::new(FilesystemStore::new(folder).unwrap());
    let (shape, chunk) = (vec![3, lens[0], lens[1]], chunk.to_vec());
    let builder = match stored {
        Stored::U8 => ArrayBuilder::new(shape, chunk, data_type::uint8(), 0_u8),
        Stored::I16 => ArrayBuilder::new(shape, chunk, data_type::int16(), 0_i16),
        Stored::F32 => ArrayBuilder::new(shape, chunk, data_type::float32(), 0.0_f32),
        Stored::F64 => ArrayBuilder::new(shape, chunk, data_type::float64(), 0.0_f64),
    };
    let array = builder.build(store, "/x").unwrap();
    array.store_metadata().unwrap();
    match stored {
        Stored::U8 => fill(&array, |n| n as u8),
        Stored::I16 => fill(&array, |n| n as i16),
        Stored::F32 => fill(&array, |n| n as f32),
        Stored::F64 => fill(&array, |n| n as f64),
    }
}

/// Indices of a dimension: all of them, turned round, or with gaps.
fn indices(len: u64) -> impl Strategy<Value = Vec<u64>> {
    let some = prop::collection::btree_set(0..len, 1..=len as usize);
    prop_oneof![
        Just((0..len).collect()),
        Just((0..len).rev().collect()),
        some.prop_map(|some| some.into_iter().collect()),
    ]
}

/// Two dimensions longer than a tile, a chunk, and indices of both.
fn grid() -> impl Strategy<Value = ([u64; 2], [u64; 3], [Vec<u64>; 2])> {
    ([1..90_u64, 1..90_u64], 1..3_u64).prop_flat_map(|(lens, steps)| {
        let chunk = (Just(steps), 1..=lens[0], 1..=lens[1]);
        let chunk = chunk.prop_map(|(steps, lat, lon)| [steps, lat, lon]);
        (Just(lens), chunk, [indices(lens[0]), indices(lens[1])])
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Elements of each size, as stored, converted and normalised, are those of a naive
    /// transposition.
    #[test]
    fn transposed_elements_are_those_stored(
        (lens, chunk, chosen) in grid(),
        stored in prop::sample::select(vec![Stored::U8, Stored::I16, Stored::F32, Stored::F64]),
        converts in any::<bool>(),
        normalizes in any::<bool>(),
        threads in 1..3_usize,
    ) {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), stored, (lens, chunk));
        let [lats, lons] = &chosen;
        // One for each longitude, which is outermost when it is delivered.
        let pairs: Vec<(f64, f64)> = (0..lons.len()).map(|at| (at as f64, 2.0)).collect();
        let mut variable = Variable::new("x").ordered([2, 1]);
        variable = variable.select(1, Indices::List(lats.clone()));
        variable = variable.select(2, Indices::List(lons.clone()));
        variable.element = (converts || normalizes).then_some(arrays::ElementType::F32);
        if normalizes {
            variable = variable.normalized(pairs.clone());
        }
        let mut expected = Vec::new();
        for step in 0..3 {
            for (lon, pair) in lons.iter().zip(&pairs) {
                expected.extend(lats.iter().map(|lat| {
                    let number = (((step * lens[0] + lat) * lens[1] + lon) % 100) as f64;
                    if normalizes { (number - pair.0) / pair.1 } else { number }
                }));
            }
        }
        let is_f32 = variable.element.is_some();
        let spec = SampleSpec { threads, ..SampleSpec::new([variable]) };
        let samples = open_with(folder.path(), &spec).unwrap();
        let shape = samples.sample_shape("x").unwrap();
        prop_assert_eq!(shape, [lons.len(), lats.len()]);
        let found: Vec<f64> = match stored {
            _ if is_f32 => values::<f32>(samples).unwrap().0.into_iter().map(f64::from).collect(),
            Stored::U8 => values::<u8>(samples).unwrap().0.into_iter().map(f64::from).collect(),
            Stored::I16 => values::<i16>(samples).unwrap().0.into_iter().map(f64::from).collect(),
            Stored::F32 => values::<f32>(samples).unwrap().0.into_iter().map(f64::from).collect(),
            Stored::F64 => values::<f64>(samples).unwrap().0,
        };
        prop_assert_eq!(found, expected);
    }
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn grid_of(values: impl IntoIterator<Item = i16>, shape: &[u64], dimensions: &[&str]) -> Grid {
    Grid {
        values: values.into_iter().collect(),
        shape: shape.to_vec(),
        names: names(dimensions),
        packing: None,
    }
}

/// Fields of (time, latitude, longitude), a mask of (longitude, latitude) whose latitudes go the
/// other way, and levels of (level, time, longitude, latitude): element 100 latitude + longitude.
fn store() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let (lats, lons): (Vec<i16>, Vec<i16>) = (vec![10, 20, 30], vec![0, 1]);
    let number = |lat: i16, lon: i16| 100 * lat + lon;
    let of_lat = |lat: &i16| lons.iter().map(|lon| number(*lat, *lon)).collect::<Vec<_>>();
    let of_lon =
        |lats: &[i16], lon: i16| -> Vec<i16> { lats.iter().map(|lat| number(*lat, lon)).collect() };
    let step: Vec<i16> = lats.iter().flat_map(of_lat).collect();
    let field = (0..4).flat_map(|_| step.clone());
    write_grid(folder.path(), "t", &grid_of(field, &[4, 3, 2], &["time", "lat", "lon"]));
    write_grid(folder.path(), "lat", &grid_of(lats.clone(), &[3], &["lat"]));
    write_grid(folder.path(), "lon", &grid_of(lons.clone(), &[2], &["lon"]));
    let descending: Vec<i16> = lats.iter().rev().copied().collect();
    let mask = lons.iter().flat_map(|lon| of_lon(&descending, *lon));
    write_grid(folder.path(), "of/mask", &grid_of(mask, &[2, 3], &["lon", "lat"]));
    write_grid(folder.path(), "of/lat", &grid_of(descending, &[3], &["lat"]));
    write_grid(folder.path(), "of/lon", &grid_of(lons.clone(), &[2], &["lon"]));
    let level: Vec<i16> = lons.iter().flat_map(|lon| of_lon(&lats, *lon)).collect();
    let levels = [0, 7].iter().flat_map(|level_of| {
        (0..4).flat_map(|_| level.iter().map(|value| value + level_of)).collect::<Vec<_>>()
    });
    let dims = ["level", "time", "lon", "lat"];
    write_grid(folder.path(), "z", &grid_of(levels, &[2, 4, 2, 3], &dims));
    write_grid(folder.path(), "level", &grid_of([850, 500], &[2], &["level"]));
    folder
}

fn spec(variables: impl IntoIterator<Item = Variable>) -> SampleSpec {
    SampleSpec {
        along: Some("time".into()),
        order: names(&["lat", "lon"]),
        directions: vec![("lat".to_owned(), Direction::Descending)],
        ..SampleSpec::new(variables)
    }
}

/// From the north to the south.
const DELIVERED: [i16; 6] = [3000, 3001, 2000, 2001, 1000, 1001];

fn batches(samples: ArraySamples) -> Vec<ArrayBatch> {
    let spec = PipelineSpec { batch_rows: 4, chunk_rows: 4, ..in_order() };
    let pipeline = Pipeline::new(Arc::new(samples), spec, ArrayBatch::n_samples).unwrap();
    pipeline.epoch(0).unwrap().map(Result::unwrap).collect()
}

#[test]
fn a_mask_and_a_field_come_alike_however_they_are_stored() {
    let folder = store();
    let variables = || {
        let stack = Variable::stacked("x", [Variable::new("t"), Variable::new("z")]);
        [Variable::new("t"), Variable::new("of/mask"), Variable::new("z"), stack]
    };
    let samples = open_with(folder.path(), &spec(variables())).unwrap();
    for (name, shape) in
        [("t", vec![3, 2]), ("mask", vec![3, 2]), ("z", vec![2, 3, 2]), ("x", vec![3, 3, 2])]
    {
        assert_eq!(samples.sample_shape(name).unwrap(), shape, "{name}");
        assert!(samples.sample_dimensions(name).unwrap().ends_with(&["lat", "lon"]), "{name}");
        let lat = samples.coordinates(name, "lat").unwrap();
        assert_eq!(lat.integers().unwrap(), [30, 20, 10], "{name}");
    }
    let channels = samples.coordinates("x", "channel").unwrap().strings().unwrap();
    assert_eq!(channels, ["t", "z_850", "z_500"]);
    let levels = [DELIVERED, DELIVERED.map(|value| value + 7)].concat();
    let found = batches(samples);
    let values = |name: &str| found[0].variable(name).unwrap().values::<i16>().unwrap();
    assert_eq!(values("mask"), DELIVERED);
    assert_eq!(values("t"), [DELIVERED; 4].concat());
    assert_eq!(values("z")[..12], levels);
    assert_eq!(values("x")[..18], [&DELIVERED[..], &levels].concat());

    let ascending = vec![("lat".to_owned(), Direction::Ascending)];
    let spec =
        SampleSpec { directions: ascending, order: names(&["lon", "lat"]), ..spec(variables()) };
    let found = batches(open_with(folder.path(), &spec).unwrap());
    let ascending = [1000, 2000, 3000, 1001, 2001, 3001];
    for name in ["mask", "t", "z"] {
        let values = found[0].variable(name).unwrap();
        assert_eq!(values.values::<i16>().unwrap()[..6], ascending, "{name}");
    }
}

/// A part is turned as it is selected, a variable has an order of its own, and one index goes.
#[test]
fn parts_are_turned_and_ordered_as_they_are_selected() {
    let folder = store();
    let part = |indices: &[u64]| Variable::new("t").select("lat", Indices::List(indices.to_vec()));
    for (indices, delivered) in
        [(&[0, 2][..], &[3000, 1000][..]), (&[2, 1], &[3000, 2000]), (&[1], &[2000])]
    {
        let one = part(indices).select("lon", Selection::labels([0.0]));
        let samples = open_with(folder.path(), &spec([one])).unwrap();
        assert_eq!(values::<i16>(samples).unwrap().0[..delivered.len()], *delivered);
    }
    let own = Variable::new("z").ordered(["lon", "level"]);
    let samples = open_with(folder.path(), &spec([own])).unwrap();
    assert_eq!(samples.sample_dimensions("z").unwrap(), ["lat", "lon", "level"]);
    let (found, shape) = values::<i16>(samples).unwrap();
    assert_eq!(shape, [3, 2, 2]);
    assert_eq!(found[..6], [3000, 3007, 3001, 3008, 2000, 2007]);
}

/// Chunks that are not stored are fill in the places of their elements.
#[test]
fn missing_chunks_are_fill_where_they_belong() {
    let folder = store();
    // Level 850, the first two times, the first longitude, the first two latitudes.
    std::fs::remove_file(folder.path().join("z/c/0/0/0/0")).unwrap();
    let samples = open_with(folder.path(), &spec([Variable::new("z")])).unwrap();
    let (found, _) = values::<i16>(samples).unwrap();
    assert_eq!(found[..6], [3000, 3001, -1, 2001, -1, 1001]);
}

/// Stores that differ in the order of dimensions and in their directions are one.
#[test]
fn stores_that_are_stored_otherwise_follow_each_other() {
    let folders = [store(), tempfile::tempdir().unwrap()];
    let other = [3000, 2000, 1000, 3001, 2001, 1001];
    let dims = ["time", "lon", "lat"];
    write_grid(folders[1].path(), "t", &grid_of(other, &[1, 2, 3], &dims));
    write_grid(folders[1].path(), "lat", &grid_of([30, 20, 10], &[3], &["lat"]));
    let stores = folders
        .each_ref()
        .map(|folder| -> Arc<dyn Storage> { Arc::new(LocalStorage::new(folder.path())) });
    let samples = ArraySamples::open_all(&stores, &spec([Variable::new("t")])).unwrap();
    assert_eq!(values::<i16>(samples).unwrap().0, [DELIVERED; 5].concat());
}

#[test]
fn axes_that_do_not_fit_are_named() {
    let folder = store();
    let refused = |spec: &SampleSpec, words: &[&str]| {
        let error = open_with(folder.path(), spec).unwrap_err();
        assert!(matches!(error, Error::Select { .. } | Error::Spec { .. }), "{error}");
        let text = chain(&error);
        assert!(words.iter().all(|word| text.contains(word)), "{text}");
    };
    let t = || Variable::new("t");
    let of_all = |order: &[&str]| SampleSpec { order: names(order), ..spec([t()]) };
    let turned = |names: &[&str]| SampleSpec {
        directions: names.iter().map(|name| ((*name).to_owned(), Direction::Ascending)).collect(),
        ..spec([t()])
    };
    refused(&of_all(&["lat", "depth"]), &["no variable has the dimension depth"]);
    refused(&of_all(&["lat", "lon", "lat"]), &["lat comes twice in the order"]);
    refused(&of_all(&["time", "lat"]), &["dimension time", "come first"]);
    refused(&spec([t().ordered(["depth"])]), &["dimension depth", "time, lat, lon"]);
    refused(&spec([t().ordered(["lat", "lat"])]), &["dimension lat", "twice"]);
    refused(&spec([t().ordered(["time"])]), &["dimension time", "come first"]);
    refused(&spec([t().ordered([7])]), &["dimension 7"]);
    let twice = t().ordered([arrays::Dimension::from("lat"), 1.into()]);
    refused(&spec([twice]), &["dimension 1", "twice"]);
    refused(&turned(&["depth"]), &["no variable has the dimension depth"]);
    refused(&turned(&["lat", "lat"]), &["lat comes twice in the directions"]);
    refused(&turned(&["time"]), &["dimension time", "by their steps"]);
    let mixed = t().select("lat", Indices::List(vec![0, 2, 1]));
    refused(&spec([mixed]), &["dimension lat", "neither ascend nor descend"]);
    std::fs::remove_dir_all(folder.path().join("lon")).unwrap();
    refused(&turned(&["lon"]), &["dimension lon", "no coordinates"]);
    let stack = Variable::stacked("x", [t()]);
    refused(&spec([stack.clone().ordered(["lat", "channel"])]), &["x is a stack", "first"]);
    let of_all = SampleSpec { order: names(&["lat", "channel"]), ..spec([stack.clone()]) };
    refused(&of_all, &["x is a stack", "first"]);
    let channels = stack.ordered(["channel", "lon", "lat"]);
    let samples = open_with(folder.path(), &spec([channels])).unwrap();
    assert_eq!(samples.sample_dimensions("x").unwrap(), ["channel", "lon", "lat"]);
}
