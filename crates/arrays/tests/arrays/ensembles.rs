//! Members of an ensemble in several stores or arrays, against a naive oracle.

use std::sync::Arc;

use arrays::{
    ArrayBatch, ArraySamples, CoordinateValues, PatchDimension, Patches, SampleSpec, TimeSpan,
    Variable,
};
use pipeline::Pipeline;
use proptest::prelude::*;
use storage::{LocalStorage, Storage};

use crate::patches::{Stored, engine, expected, stored};
use crate::timed::{Grid, write_grid, write_times};
use crate::{chain, in_order, open_with};

fn stores(folders: &[tempfile::TempDir]) -> Vec<Arc<dyn Storage>> {
    let open = |folder: &tempfile::TempDir| -> Arc<dyn Storage> {
        Arc::new(LocalStorage::new(folder.path()))
    };
    folders.iter().map(open).collect()
}

/// The members of an ensemble, one in each store.
fn members(n: usize) -> impl Iterator<Item = Variable> {
    (0..n).map(|at| Variable::new("x").named(at.to_string()).of_stores([at]))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// Stores of one shape come as a first dimension, whatever the layout of each.
    #[test]
    fn members_in_several_stores_are_a_dimension(
        of_stores in prop::collection::vec(stored(&[&[0, 1, 2], &[0, 3, 1, 2], &[1, 0, 2]]), 1..4),
        lens in (2..6_u64, 1..6_u64, 1..4_u64, 1..4_u64),
        steps in prop::sample::select(vec![vec![0_i64], vec![-1, 0], vec![0, 1]]),
        patch in prop::option::of(1..4_u64),
        (spec, read, threads) in engine(),
    ) {
        let lens = [lens.0, lens.1, lens.2, lens.3];
        let n = of_stores.len();
        // All have the dimensions of the first, and chunks of their own.
        let layouts: Vec<Stored> = of_stores
            .iter()
            .map(|of| {
                let chunk = (0..of_stores[0].dims.len()).map(|at| of.chunk[at % of.chunk.len()]);
                Stored { dims: of_stores[0].dims.clone(), chunk: chunk.collect(), ..of.clone() }
            })
            .collect();
        let folders: Vec<_> = layouts.iter().map(|_| tempfile::tempdir().unwrap()).collect();
        for (folder, layout) in folders.iter().zip(&layouts) {
            layout.write(folder.path(), "x", lens);
        }
        // Members differ by what their numbers stand for.
        let each = members(n).enumerate().map(|(at, of)| of.normalized([(at as f64, 1.0)]));
        let ensemble = Variable::ensemble("x", "number", each).steps(steps.clone());
        let size = patch.map(|size| size.min(lens[1]));
        let sample = SampleSpec {
            along: Some("t".into()),
            patches: size.map(|size| Patches::grid([PatchDimension::new("y", size)])),
            read,
            threads,
            ..SampleSpec::new([ensemble])
        };
        let samples = ArraySamples::open_all(&stores(&folders), &sample);
        let before = steps.iter().min().unwrap().min(&0).unsigned_abs();
        let after = steps.iter().max().unwrap().max(&0).unsigned_abs();
        let n_steps = lens[0].saturating_sub(before + after);
        prop_assume!(0 < n_steps);
        let samples = Arc::new(samples.unwrap());
        let size = size.unwrap_or(lens[1]);
        let n_patches = lens[1] / size;
        prop_assert_eq!(samples.n_samples(), n_steps * n_patches);
        let dimensions = samples.sample_dimensions("x").unwrap();
        let shape = samples.sample_shape("x").unwrap();
        let place = usize::from(1 < steps.len());
        prop_assert_eq!((dimensions[place], shape[place]), ("number", n));
        let numbers = CoordinateValues::Integers((0..n as i64).collect());
        prop_assert_eq!(samples.coordinates("x", "number").unwrap().values(), &numbers);
        let pipeline = Pipeline::new(Arc::clone(&samples), spec, ArrayBatch::n_samples).unwrap();
        let mut n_seen = 0;
        for batch in pipeline.epoch(0).unwrap() {
            let batch = batch.unwrap();
            for (at, sample) in batch.samples().iter().enumerate() {
                n_seen += 1;
                let step = before + sample / n_patches;
                let first = sample % n_patches * size;
                let indices = [
                    Vec::new(),
                    (first..first + size).collect(),
                    (0..lens[2]).collect(),
                    (0..lens[3]).collect(),
                ];
                let right: Vec<f64> = steps
                    .iter()
                    .flat_map(|by| layouts.iter().enumerate().map(move |of| (by, of)))
                    .flat_map(|(by, (number, layout))| {
                        let step = step.checked_add_signed(*by).unwrap();
                        let all = expected((layout, &[]), lens, &[step], &indices);
                        all.into_iter().map(move |value| value - number as f64)
                    })
                    .collect();
                let values = batch.variable("x").unwrap().values::<f64>().unwrap();
                prop_assert_eq!(&values[at * right.len()..][..right.len()], &right[..]);
            }
        }
        prop_assert_eq!(n_seen, samples.n_samples());
    }
}

/// A store of a packed variable at these hours.
fn packed(packing: (f64, f64), hours: &[i64]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let values = (0..).map(|step| 10 * step).take(hours.len()).collect();
    let grid = Grid { values, packing: Some(packing), ..Grid::default() };
    write_grid(folder.path(), "x", &grid);
    write_times(folder.path(), hours, "hours since 2000-01-01", "standard");
    folder
}

/// Each member is unpacked as its own store packs it.
#[test]
fn packing_may_differ_by_member() {
    let folders = [packed((0.5, 100.0), &[0, 6, 12]), packed((2.0, -1.0), &[0, 6, 12])];
    let ensemble = Variable::ensemble("x", "number", members(2));
    let samples = ArraySamples::open_all(&stores(&folders), &SampleSpec::new([ensemble])).unwrap();
    let pipeline = Pipeline::new(Arc::new(samples), in_order(), ArrayBatch::n_samples).unwrap();
    let batch = pipeline.epoch(0).unwrap().next().unwrap().unwrap();
    let values = batch.variable("x").unwrap();
    assert_eq!(values.dimensions(), ["sample", "number"]);
    assert_eq!(values.values::<f32>().unwrap(), [100.0, -1.0, 105.0, 19.0, 110.0, 39.0]);
}

#[test]
fn members_of_other_shapes_or_times_are_named() {
    let refused = |folders: &[tempfile::TempDir], variable: Variable, words: &[&str]| {
        let spec = SampleSpec::new([variable]);
        let error = ArraySamples::open_all(&stores(folders), &spec).unwrap_err();
        assert!(matches!(error, arrays::Error::Spec { .. }), "{error:?}");
        let text = chain(&error);
        assert!(words.iter().all(|word| text.contains(word)), "{text}");
    };
    let of = |n| Variable::ensemble("x", "number", members(n));
    let pair = |hours: &[i64]| [packed((1.0, 0.0), &[0, 6]), packed((1.0, 0.0), hours)];
    refused(&pair(&[0, 6, 12]), of(2), &["x cannot be stacked", "2 and 3 steps"]);
    refused(&pair(&[0, 7]), of(2), &["other coordinates"]);

    // The grids of channels run the same way.
    let turned = |latitudes: [i16; 2]| {
        let folder = packed((1.0, 0.0), &[0, 6]);
        let grid = |values: Vec<i16>, names: &[&str]| {
            let shape = names.iter().map(|_| 2);
            let names = names.iter().map(|name| (*name).to_owned()).collect();
            Grid { shape: shape.collect(), values, names, packing: None }
        };
        write_grid(folder.path(), "y", &grid((0..8).collect(), &["time", "lat", "lon"]));
        write_grid(folder.path(), "lat", &grid(latitudes.to_vec(), &["lat"]));
        folder
    };
    let y = |at: usize| Variable::new("y").named(at.to_string()).of_stores([at]);
    let opposite = [turned([10, 20]), turned([20, 10])];
    refused(&opposite, Variable::stacked("x", [y(0), y(1)]), &["coordinates of lat", "orient"]);
    refused(&opposite, Variable::ensemble("x", "n", [y(0), y(1)]), &["coordinates of lat"]);
    let stack = SampleSpec::new([Variable::stacked("x", [y(0), y(1)])]);
    ArraySamples::open_all(&stores(&[turned([10, 20]), turned([10, 20])]), &stack).unwrap();
}

/// All values of a variable, as a data set of it alone delivers them.
fn all_of(variable: Variable, folder: &std::path::Path) -> Vec<f32> {
    let samples = open_with(folder, &SampleSpec::new([variable])).unwrap();
    let pipeline = Pipeline::new(Arc::new(samples), in_order(), ArrayBatch::n_samples).unwrap();
    let batches = pipeline.epoch(0).unwrap();
    batches
        .flat_map(|batch| {
            let batch = batch.unwrap();
            batch.variables().next().unwrap().values::<f32>().unwrap().to_vec()
        })
        .collect()
}

/// Differences are normalised as those of each alone, however deep the pairs of each go.
#[test]
fn differences_beside_each_other_have_their_own_pairs() {
    let folder = tempfile::tempdir().unwrap();
    let of = Stored {
        dims: vec![0, 1, 2, 3],
        chunk: vec![2; 4],
        is_sharded: false,
        is_compressed: false,
    };
    of.write(folder.path(), "z", [4, 3, 2, 5]);
    let pairs = |n: i32| (1..=n).map(|at| (f64::from(at), 0.5 * f64::from(at)));
    let z = |n: i32| {
        let name = n.to_string();
        let by_step = Variable { minus: vec![0], ..Variable::new("z") }.as_f32();
        by_step.named(name).steps([1]).normalized(pairs(n).collect::<Vec<_>>())
    };
    for depths in [vec![1, 3, 6], vec![6, 1], vec![3, 6, 6, 1]] {
        let alone: Vec<Vec<f32>> = depths.iter().map(|n| all_of(z(*n), folder.path())).collect();
        let right: Vec<f32> = (0..3)
            .flat_map(|sample| alone.iter().flat_map(move |of| of[sample * 30..][..30].to_vec()))
            .collect();
        let members = || depths.iter().map(|n| z(*n));
        for joined in
            [Variable::ensemble("x", "number", members()), Variable::stacked("x", members())]
        {
            let joined = Variable { minus: vec![0], ..joined }.as_f32().steps([1]);
            assert_eq!(all_of(joined, folder.path()), right, "{depths:?}");
        }
    }
    let wrong = [vec![(0.0, 0.0)], vec![(f64::NAN, 1.0)], vec![(0.0, 1.0); 2]];
    for by in wrong {
        let members = [Variable::new("z").named("a"), Variable::new("z").named("b")];
        let ensemble = Variable::ensemble("x", "number", members).normalized(by);
        let spec = SampleSpec::new([Variable { minus: vec![0], ..ensemble }.steps([1])]);
        assert!(chain(&open_with(folder.path(), &spec).unwrap_err()).contains("normalised"));
    }
}

#[test]
fn an_ensemble_is_not_cut_along_its_members_and_has_them_first() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a", "b"] {
        let of = Stored {
            dims: vec![0, 1, 2],
            chunk: vec![2; 3],
            is_sharded: false,
            is_compressed: false,
        };
        of.write(folder.path(), name, [4, 5, 6, 1]);
    }
    let each = || ["a", "b"].map(Variable::new);
    let ensemble = || Variable::ensemble("x", "member", each());
    let refused = |spec: SampleSpec, words: &[&str]| {
        let text = chain(&open_with(folder.path(), &spec).unwrap_err());
        assert!(words.iter().all(|word| text.contains(word)), "{text}");
    };
    let patches = |dim: &str| Some(Patches::grid([PatchDimension::new(dim, 1)]));
    let spec = || SampleSpec::new([ensemble()]);
    refused(SampleSpec { patches: patches("member"), ..spec() }, &["member", "not cut"]);
    let order = ["y", "member"].map(str::to_owned).to_vec();
    refused(SampleSpec { order, ..spec() }, &["dimension member comes first"]);
    refused(
        SampleSpec::new([Variable::ensemble("x", "y", each())]),
        &["its members have the dimension y already"],
    );
    // Named first, it is where it would be.
    let order = ["member", "x", "y"].map(str::to_owned).to_vec();
    let samples = open_with(folder.path(), &SampleSpec { order, ..spec() }).unwrap();
    assert_eq!(samples.sample_dimensions("x"), Some(vec!["member", "x", "y"]));
    let names = CoordinateValues::Strings(vec!["a".to_owned(), "b".to_owned()]);
    assert_eq!(samples.coordinates("x", "member").unwrap().values(), &names);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// Variables of stores with times of their own are found at the times of the first one.
    #[test]
    fn stores_with_other_times_are_matched_by_them(
        of_stores in prop::collection::vec(
            (prop::collection::vec(1..5_i64, 2..30), prop::collection::vec(-6..6_i64, 1..4)), 1..4,
        ),
        every in prop::option::of(1..9_i64),
    ) {
        let times = |distances: &[i64]| -> Vec<i64> {
            let each = distances.iter().scan(0, |time, distance| { *time += distance; Some(*time) });
            each.collect()
        };
        let all: Vec<(Vec<i64>, Vec<i64>)> =
            of_stores.iter().map(|(distances, spans)| (times(distances), spans.clone())).collect();
        let folders: Vec<_> = all.iter().map(|(times, _)| packed((1.0, 0.0), times)).collect();
        let variables = all.iter().enumerate().map(|(at, (_, spans))| {
            let spans = spans.iter().map(|hours| TimeSpan::hours(*hours));
            Variable::new("x").named(at.to_string()).of_stores([at]).spans(spans)
        });
        let spec = SampleSpec { frequency: every.map(TimeSpan::hours), ..SampleSpec::new(variables) };
        let own = &all[0].0;
        let right: Vec<Vec<Vec<f32>>> = own
            .iter()
            .filter(|time| every.is_none_or(|every| (*time - own[0]) % every == 0))
            .filter_map(|time| {
                let each = all.iter().map(|(times, spans)| {
                    let steps = spans.iter().map(|by| times.iter().position(|at| *at == time + by));
                    steps.map(|step| Some(10.0 * step? as f32)).collect::<Option<Vec<f32>>>()
                });
                each.collect()
            })
            .collect();
        match ArraySamples::open_all(&stores(&folders), &spec) {
            Err(error) => prop_assert!(right.is_empty(), "{error}"),
            Ok(samples) => {
                prop_assert_eq!(samples.n_samples(), right.len() as u64);
                let pipeline = Pipeline::new(Arc::new(samples), in_order(), ArrayBatch::n_samples).unwrap();
                for batch in pipeline.epoch(0).unwrap() {
                    let batch = batch.unwrap();
                    for (of, values) in batch.variables().enumerate() {
                        let each = batch.samples().iter().flat_map(|sample| &right[*sample as usize][of]);
                        let each: Vec<f32> = each.copied().collect();
                        prop_assert_eq!(values.values::<f32>().unwrap(), each);
                    }
                }
            }
        }
    }
}
