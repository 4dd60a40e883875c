//! Variables that are stacked as channels, and normalised elements, against a naive oracle.

use std::path::Path;
use std::sync::Arc;

use arrays::{ArrayBatch, ArraySamples, Indices, SampleSpec, Variable};
use pipeline::Pipeline;
use proptest::prelude::*;
use storage::LocalStorage;

use crate::oracle::{Stored, expected, write};
use crate::timed::{Grid, write_grid};
use crate::{chain, in_order, open_with};

/// A surface (time, lat, lon) and levels (time, level, lat, lon), stored in any chunks.
#[derive(Debug, Clone)]
struct Weather {
    surface: Stored,
    levels: Stored,
}

fn weather() -> impl Strategy<Value = Weather> {
    let shape = (1..6_u64, 1..5_u64, 1..5_u64, 1..6_u64);
    let chunks = prop::collection::vec(1..5_u64, 7);
    (shape, chunks, any::<[bool; 2]>()).prop_map(|((time, level, lat, lon), chunks, is_sharded)| {
        let surface = Stored {
            shape: vec![time, lat, lon],
            chunk: chunks[..3].to_vec(),
            is_sharded: is_sharded[0],
            codec: None,
        };
        let levels = Stored {
            shape: vec![time, level, lat, lon],
            chunk: chunks[3..].to_vec(),
            is_sharded: is_sharded[1],
            codec: None,
        };
        Weather { surface, levels }
    })
}

/// Normalises the values of a step as a variable says.
fn normalized(values: Vec<f64>, by: &[(f64, f64)]) -> Vec<f64> {
    let plane = values.len() / by.len().max(1);
    let each = values.into_iter().enumerate().map(|(at, value)| match by.get(at / plane.max(1)) {
        Some((mean, deviation)) => (value - mean) / deviation,
        None => value,
    });
    each.collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn channels_are_those_of_their_variables(
        weather in weather(),
        chosen in prop::collection::vec(0..4_u64, 1..4),
        by in prop::collection::vec((-9..9_i32, 1..5_i32), 4),
        n_by in 0..3_usize,
        n_steps in 1..3_i64,
        threads in 1..3_usize,
    ) {
        let Weather { surface, levels } = &weather;
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), "s", surface);
        write(folder.path(), "z", levels);
        let chosen: Vec<u64> = chosen.into_iter().map(|at| at % levels.shape[1]).collect();
        let pairs: Vec<(f64, f64)> = by.iter().map(|(mean, by)| (f64::from(*mean), f64::from(*by))).collect();
        // None, one for all, or one for each level.
        let of_levels: Vec<(f64, f64)> = match n_by {
            0 => Vec::new(),
            1 => pairs[..1].to_vec(),
            _ => pairs.iter().copied().cycle().take(chosen.len()).collect(),
        };
        let s = Variable::new("s").normalized(pairs[3..].to_vec());
        let z = Variable::new("z").select(1, Indices::List(chosen)).normalized(of_levels);
        let rest = Variable::new("z").named("rest");
        let steps: Vec<i64> = (0..n_steps).collect();
        let members = [z, s.clone(), rest];
        let stack = Variable::stacked("x", members.clone()).steps(steps.clone());
        let spec = SampleSpec { threads, ..SampleSpec::new([stack, s.clone().named("alone")]) };
        let samples = open_with(folder.path(), &spec);
        if surface.shape[0] < n_steps as u64 {
            prop_assert!(samples.is_err());
            return Ok(());
        }
        let pipeline = Pipeline::new(Arc::new(samples.unwrap()), in_order(), ArrayBatch::n_samples).unwrap();
        for batch in pipeline.epoch(0).unwrap() {
            let batch = batch.unwrap();
            let x = batch.variable("x").unwrap();
            let n_channels = x.coordinates("channel").unwrap().len();
            let mut shape = vec![batch.n_samples()];
            if n_steps > 1 {
                shape.push(n_steps as usize);
            }
            shape.extend([n_channels, surface.shape[1] as usize, surface.shape[2] as usize]);
            prop_assert_eq!(x.shape(), shape);
            let mut all = Vec::new();
            let mut alone = Vec::new();
            for sample in batch.samples() {
                for step in &steps {
                    let step = sample + *step as u64;
                    for member in &members {
                        let stored = if member.path == "s" { surface } else { levels };
                        let values = expected((&stored.shape, 0), member, step);
                        all.extend(normalized(values, &member.normalize));
                    }
                }
                let values = expected((&surface.shape, 0), &s, *sample);
                alone.extend(normalized(values, &s.normalize));
            }
            prop_assert_eq!(nearly(x.values::<f64>().unwrap()), nearly(&all));
            let found = batch.variable("alone").unwrap();
            prop_assert_eq!(nearly(found.values::<f64>().unwrap()), nearly(&alone));
        }
    }
}

/// The numbers, without what another order of operations changes.
fn nearly(values: &[f64]) -> Vec<i64> {
    values.iter().map(|value| (value * 1e9).round() as i64).collect()
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn store() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let surface = Grid {
        values: (0..12).collect(),
        shape: vec![3, 2, 2],
        names: names(&["time", "lat", "lon"]),
        packing: Some((0.5, 10.0)),
    };
    write_grid(folder.path(), "t2m", &surface);
    let levels = Grid {
        values: (0..24).collect(),
        shape: vec![3, 2, 2, 2],
        names: names(&["time", "level", "lat", "lon"]),
        packing: None,
    };
    write_grid(folder.path(), "z", &levels);
    write_grid(
        folder.path(),
        "level",
        &Grid { values: vec![850, 500], shape: vec![2], names: names(&["level"]), packing: None },
    );
    folder
}

fn open(folder: &Path, variable: Variable) -> Result<ArraySamples, arrays::Error> {
    ArraySamples::open(Arc::new(LocalStorage::new(folder)), &SampleSpec::new([variable]))
}

/// A stack normalises its channels as its variables would.
#[test]
fn a_stack_may_be_normalised_as_a_whole() {
    let folder = store();
    let pairs = [(11.0, 0.5), (4.0, 2.0), (0.0, 1.0)];
    let members = || [Variable::new("t2m"), Variable::new("z")];
    let whole = Variable::stacked("x", members()).as_f32().normalized(pairs);
    let [t2m, z] = members();
    let each = [t2m.normalized(pairs[..1].to_vec()), z.normalized(pairs[1..].to_vec())];
    let each = Variable::stacked("x", each).as_f32();
    let [whole, each] =
        [whole, each].map(|one| crate::values::<f32>(open(folder.path(), one).unwrap()).unwrap());
    assert_eq!(whole, each);
}

/// Numbers are unpacked, then normalised, and missing ones stay missing.
#[test]
fn channels_have_the_names_of_their_variables_and_levels() {
    let folder = store();
    let z = Variable::new("z").select("level", arrays::Selection::labels([500, 850]));
    let z = z.normalized([(4.0, 2.0), (0.0, 1.0)]).named("geopotential");
    let stack =
        Variable::stacked("x", [Variable::new("t2m").normalized([(11.0, 0.5)]), z]).as_f32();
    let samples = open(folder.path(), stack).unwrap();
    assert_eq!(samples.sample_dimensions("x").unwrap(), ["channel", "lat", "lon"]);
    let channels = samples.coordinates("x", "channel").unwrap();
    assert_eq!(channels.strings().unwrap(), ["t2m", "geopotential_500", "geopotential_850"]);
    let (found, shape) = crate::values::<f32>(samples).unwrap();
    assert_eq!(shape, [3, 2, 2]);
    assert_eq!(found[..12], [-2.0, -1.0, 0.0, 1.0, 0.0, 0.5, 1.0, 1.5, 0.0, 1.0, 2.0, 3.0]);
    // -1 is the fill value, which is missing of packed numbers: of step 0 there is none.
    assert!(found.iter().all(|value| !value.is_nan()));
}

#[test]
fn chunks_that_are_not_stored_are_normalised_fill() {
    let folder = store();
    std::fs::remove_dir_all(folder.path().join("z/c")).unwrap();
    let z = Variable::new("z").normalized([(1.0, 2.0), (3.0, 4.0)]);
    let (found, _) = crate::values::<f32>(open(folder.path(), z).unwrap()).unwrap();
    assert_eq!(found[..8], [-1.0; 8]);
    let z = Variable::new("z").normalized([(1.0, 1.0), (3.0, 1.0)]);
    let (found, _) = crate::values::<f32>(open(folder.path(), z).unwrap()).unwrap();
    assert_eq!(found[..8], [-2.0, -2.0, -2.0, -2.0, -4.0, -4.0, -4.0, -4.0]);
}

#[test]
fn what_cannot_be_stacked_or_normalised_is_named() {
    let folder = store();
    write_grid(
        folder.path(),
        "short",
        &Grid {
            values: (0..8).collect(),
            shape: vec![2, 2, 2],
            names: names(&["time", "lat", "lon"]),
            packing: Some((1.0, 0.0)),
        },
    );
    write_grid(
        folder.path(),
        "wide",
        &Grid {
            values: (0..18).collect(),
            shape: vec![3, 2, 3],
            names: names(&["time", "lat", "lon"]),
            packing: Some((1.0, 0.0)),
        },
    );
    let refused = |variable: Variable, words: &[&str]| {
        let text = chain(&open(folder.path(), variable).unwrap_err());
        assert!(words.iter().all(|word| text.contains(word)), "{text}");
    };
    let with = |other: &str| Variable::stacked("x", [Variable::new("t2m"), Variable::new(other)]);
    refused(with("z"), &["x cannot be stacked", "t2m and z", "float32"]);
    refused(with("wide"), &["t2m and wide", "alike"]);
    refused(with("short"), &["t2m and short", "3 and 2 steps"]);
    refused(with("absent"), &["absent", "zarr.json"]);
    let one = || Variable::stacked("x", [Variable::new("t2m")]);
    refused(one().normalized([(0.0, 1.0); 2]), &["1 channels", "2 pairs"]);
    let two = Variable::stacked("x", [Variable::new("t2m"), Variable::new("z")]).as_f32();
    refused(two.normalized([(0.0, 1.0); 2]), &["2 pairs only"]);
    refused(Variable::new("z").normalized([(0.0, 0.0)]), &["z in ", "deviation 0"]);
    refused(Variable::new("z").normalized([(f64::NAN, 1.0)]), &["mean NaN"]);
    refused(Variable::new("z").normalized([(0.0, 1.0); 3]), &["3 pairs", "2 indices"]);
}
