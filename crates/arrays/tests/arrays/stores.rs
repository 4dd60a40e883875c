//! Samples of several stores, and arrays without steps: as one store of all steps has them.

use std::sync::Arc;

use arrays::{
    ArrayBatch, ArraySamples, Error, Indices, ReadScratch, SampleSpec, TimeSpan, Variable,
};
use pipeline::{Pipeline, PipelineSpec, Stop};
use proptest::prelude::*;
use storage::{LocalStorage, Storage};

use crate::epochs::{arrays, reading};
use crate::oracle::{Stored, write, write_steps};
use crate::timed::{Grid, write_grid, write_times};
use crate::{chain, in_order};

fn stores(folders: &[tempfile::TempDir]) -> Vec<Arc<dyn Storage>> {
    let open = |folder: &tempfile::TempDir| -> Arc<dyn Storage> {
        Arc::new(LocalStorage::new(folder.path()))
    };
    folders.iter().map(open).collect()
}

fn batches(samples: ArraySamples, spec: PipelineSpec) -> Vec<ArrayBatch> {
    let pipeline = Pipeline::new(Arc::new(samples), spec, ArrayBatch::n_samples).unwrap();
    pipeline.epoch(0).unwrap().map(Result::unwrap).collect()
}

fn refused(stores: &[Arc<dyn Storage>], spec: &SampleSpec, words: &[&str]) {
    let text = chain(&ArraySamples::open_all(stores, spec).unwrap_err());
    assert!(words.iter().all(|word| text.contains(word)), "{text}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Steps that lie in several stores make the samples of one store that has them all.
    #[test]
    fn several_stores_are_one(
        (stored, axis, variables) in arrays(),
        ([start, end], stride, read, threads) in reading(),
        cuts in prop::collection::btree_set(1..40_u64, 0..4),
        seed in any::<u64>(),
    ) {
        let n_steps = stored[0].shape[axis];
        let whole = tempfile::tempdir().unwrap();
        write(whole.path(), "a", &stored[0]);
        write(whole.path(), "b", &stored[1]);
        let ends: Vec<u64> =
            cuts.into_iter().filter(|cut| *cut < n_steps).chain([n_steps]).collect();
        let mut folders = Vec::new();
        let mut first = 0;
        for end in ends {
            let folder = tempfile::tempdir().unwrap();
            write_steps(folder.path(), "a", (&stored[0], axis), first..end);
            write_steps(folder.path(), "b", (&stored[1], axis), first..end);
            folders.push(folder);
            first = end;
        }
        let end = end.map(|end| end.min(n_steps));
        let along = (0 < axis).then_some(axis.into());
        let spec = SampleSpec { start, end, stride, along, read, threads, ..SampleSpec::new(variables) };
        let of_one = ArraySamples::open(Arc::new(LocalStorage::new(whole.path())), &spec);
        let of_all = ArraySamples::open_all(&stores(&folders), &spec);
        let (of_one, of_all) = match (of_one, of_all) {
            (Ok(one), Ok(all)) => (one, all),
            (one, all) => {
                prop_assert!(one.is_err() && all.is_err());
                return Ok(());
            }
        };
        let spec = PipelineSpec { seed, chunk_rows: 2, chunks_per_block: 3, batch_rows: 5, ..PipelineSpec::default() };
        let of_one = batches(of_one, spec.clone());
        let of_all = batches(of_all, spec);
        prop_assert_eq!(of_one.len(), of_all.len());
        for (one, all) in of_one.iter().zip(&of_all) {
            prop_assert_eq!(one.samples(), all.samples());
            for (one, all) in one.variables().zip(all.variables()) {
                prop_assert_eq!(one.shape(), all.shape());
                prop_assert_eq!(one.bytes(), all.bytes());
            }
        }
    }
}

fn plain(shape: &[u64]) -> Stored {
    Stored { chunk: vec![1; shape.len()], shape: shape.to_vec(), is_sharded: false, codec: None }
}

#[test]
fn stores_that_do_not_follow_each_other_are_named() {
    let folders = [(); 3].map(|()| tempfile::tempdir().unwrap());
    write(folders[0].path(), "x", &plain(&[4, 3]));
    write(folders[1].path(), "x", &plain(&[4, 2]));
    write(folders[2].path(), "y", &plain(&[4, 3]));
    let spec = SampleSpec::new([Variable::new("x")]);
    let place = folders[1].path().display().to_string();
    let [a, b, c] = &stores(&folders)[..] else { unreachable!() };
    let [a, b, c] = [a, b, c].map(Arc::clone);
    refused(&[Arc::clone(&a), b], &spec, &[&place, "x in ", "[3]", "[2]"]);
    refused(&[Arc::clone(&a), Arc::clone(&c)], &spec, &["x", "zarr.json"]);
    refused(&[], &spec, &["no store"]);
    // A store need not have all variables.
    let both = SampleSpec::new([Variable::new("x"), Variable::new("y")]);
    let samples = ArraySamples::open_all(&[Arc::clone(&a), c], &both).unwrap();
    assert_eq!((samples.n_samples(), samples.store(3)), (4, 0));
    let as_f32 = SampleSpec::new([Variable::new("x").as_f32()]);
    let twice = ArraySamples::open_all(&[Arc::clone(&a), a], &as_f32).unwrap();
    assert_eq!((twice.n_samples(), twice.store(3), twice.store(4)), (8, 0, 1));
}

/// Numbers are unpacked as each store packs them.
#[test]
fn packing_may_differ_by_store() {
    let folders = [(0.01, 280.0), (0.02, 270.0)].map(|(scale, offset)| {
        let folder = tempfile::tempdir().unwrap();
        let grid = Grid { values: vec![100; 2], packing: Some((scale, offset)), ..Grid::default() };
        write_grid(folder.path(), "t", &grid);
        folder
    });
    let samples =
        ArraySamples::open_all(&stores(&folders), &SampleSpec::new([Variable::new("t")])).unwrap();
    let spec = PipelineSpec { batch_rows: 4, chunk_rows: 4, ..in_order() };
    let found = batches(samples, spec);
    let values = found[0].variable("t").unwrap().values::<f32>().unwrap().to_vec();
    assert_eq!(values, [281.0, 281.0, 272.0, 272.0]);
}

/// A mask without steps comes once a batch; it may be changed without changing another's.
#[test]
fn an_array_without_steps_comes_once_a_batch() {
    let folder = tempfile::tempdir().unwrap();
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let steps = Grid {
        values: (0..30).collect(),
        shape: vec![5, 2, 3],
        names: names(&["time", "lat", "lon"]),
        ..Grid::default()
    };
    write_grid(folder.path(), "t", &steps);
    let mask = Grid {
        values: (0..6).collect(),
        shape: vec![3, 2],
        names: names(&["lon", "lat"]),
        ..Grid::default()
    };
    write_grid(folder.path(), "mask", &mask);
    let storage: Arc<dyn Storage> = Arc::new(LocalStorage::new(folder.path()));
    let along = |variables: Vec<Variable>| SampleSpec {
        along: Some("time".into()),
        ..SampleSpec::new(variables)
    };
    let part = Variable::new("mask").select("lon", Indices::List(vec![2, 0]));
    let spec = along(vec![part.clone(), Variable::new("t").steps([0, 1])]);
    let samples = ArraySamples::open(Arc::clone(&storage), &spec).unwrap();
    assert_eq!((samples.is_static("mask"), samples.is_static("t")), (Some(true), Some(false)));
    assert_eq!((samples.n_samples(), samples.sample_shape("mask")), (4, Some(vec![2, 2])));

    let mut into = [vec![0_u64; 1], vec![0_u64; 2 * 3 * 2 * 2]];
    let [of_mask, of_t] = &mut into;
    let mut slices =
        [&mut bytemuck::cast_slice_mut(of_mask)[..8], &mut bytemuck::cast_slice_mut(of_t)[..48]];
    let mut scratch = ReadScratch::default();
    samples.read_into(&[1, 3], &mut slices, &mut scratch, &Stop::default()).unwrap();
    assert_eq!(bytemuck::cast_slice::<u8, i16>(slices[0]), [4, 5, 0, 1]);

    let found = batches(samples, in_order());
    assert_eq!(found.len(), 2);
    for batch in found {
        let [mask, t] = ["mask", "t"].map(|name| batch.variable(name).unwrap());
        assert_eq!((mask.shape(), mask.dimensions()), (vec![2, 2], vec!["lon", "lat"]));
        assert_eq!(mask.values::<i16>().unwrap(), [4, 5, 0, 1]);
        assert!(mask.is_static() && mask.sample_coordinates().is_none());
        assert_eq!(t.shape(), [batch.n_samples(), 2, 2, 3]);
        let mut owned = batch.into_values().next().unwrap();
        owned.bytes_mut().unwrap().fill(9);
    }

    let stores = [storage];
    refused(&stores, &along(vec![Variable::new("mask")]), &["no array has the dimension time"]);
    let with_steps = along(vec![Variable::new("t"), part.clone().steps([-1])]);
    refused(&stores, &with_steps, &["mask has no dimension time"]);
    let with_spans = along(vec![Variable::new("t"), part.spans([TimeSpan::hours(1)])]);
    refused(&stores, &with_spans, &["mask has no dimension time"]);
}

/// Times go on in the units of the first store.
#[test]
fn coordinates_of_steps_have_the_units_of_the_first_store() {
    let folders = ["hours since 2000-01-01", "days since 2000-01-02"].map(|units| {
        let folder = tempfile::tempdir().unwrap();
        write_grid(folder.path(), "t", &Grid { values: vec![1, 2], ..Grid::default() });
        write_times(folder.path(), &[0, 1], units, "standard");
        folder
    });
    let samples =
        ArraySamples::open_all(&stores(&folders), &SampleSpec::new([Variable::new("t")])).unwrap();
    let spec = PipelineSpec { batch_rows: 4, chunk_rows: 4, ..in_order() };
    let found = batches(samples, spec);
    let times = found[0].variable("t").unwrap().sample_coordinates().unwrap();
    assert_eq!(times.integers().unwrap(), [0, 1, 24, 48]);
    assert_eq!(times.attribute("units"), Some("hours since 2000-01-01"));
}

#[test]
fn a_variable_with_steps_in_one_store_alone_is_refused() {
    let [a, b] = [["time", "lat"], ["lon", "lat"]].map(|names| {
        let folder = tempfile::tempdir().unwrap();
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        write_grid(
            folder.path(),
            "t",
            &Grid { values: vec![0; 4], shape: vec![2, 2], names, ..Grid::default() },
        );
        folder
    });
    let spec = SampleSpec { along: Some("time".into()), ..SampleSpec::new([Variable::new("t")]) };
    let folders = [a, b];
    let found = ArraySamples::open_all(&stores(&folders), &spec).unwrap_err();
    assert!(matches!(found, Error::Spec { .. }));
    assert!(chain(&found).contains("in one only"), "{found}");
}

/// A folder with nothing in it is an error that names it.
#[test]
fn a_store_without_any_of_the_arrays_is_named() {
    let [a, b] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    write_grid(a.path(), "t", &Grid { values: vec![0, 1], ..Grid::default() });
    let place = b.path().display().to_string();
    let folders = [a, b];
    refused(&stores(&folders), &SampleSpec::new([Variable::new("t")]), &[&place, "zarr.json"]);
}
