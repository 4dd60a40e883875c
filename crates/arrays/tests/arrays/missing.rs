//! Missing numbers, counted by what they are, against a naive count; samples that have some.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use arrays::{
    ArraySamples, Error, Indices, LeftOut, Missing, MissingCounts, MissingPolicy, SampleSpec,
    TimeSpan, Variable, WhenMissing,
};
use pipeline::Stop;
use proptest::prelude::*;
use serde_json::json;
use zarrs::array::{ArrayBuilder, codec, data_type};
use zarrs::filesystem::FilesystemStore;

use crate::timed::{Grid, write_grid, write_times};
use crate::{chain, open_with};

/// An array of three dimensions in chunks, some of which are not stored.
#[derive(Debug, Clone)]
struct Stored {
    shape: [u64; 3],
    chunk: [u64; 3],
    is_sharded: bool,
    is_compressed: bool,
    seed: u64,
}

/// What an element is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    InChunk,
    Fill,
    Nan,
    Number,
}

fn scattered(seed: u64, n: u64) -> u64 {
    let mixed = (seed ^ n.wrapping_mul(0x9e37_79b9_7f4a_7c15)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (mixed ^ (mixed >> 31)) >> 8
}

impl Stored {
    fn kind(&self, at: [u64; 3]) -> Kind {
        let chunk = [0, 1, 2].map(|dim| at[dim] / self.chunk[dim]);
        let number = |at: [u64; 3]| (at[0] * 64 + at[1]) * 64 + at[2];
        if scattered(self.seed, number(chunk)).is_multiple_of(5) {
            return Kind::InChunk;
        }
        // Chunks without a number of these would be like those that have no element of theirs.
        match scattered(!self.seed, number(at)) % 16 {
            0 => Kind::Fill,
            1 => Kind::Nan,
            _ => Kind::Number,
        }
    }
}

/// Writes an array whose chunks are not stored if all elements are its fill value, 0.
fn write(folder: &Path, name: &str, stored: &Stored) {
    let store = Arc::new(FilesystemStore::new(folder).unwrap());
    let Stored { shape, chunk, is_sharded, is_compressed, .. } = stored;
    let outer = if *is_sharded { chunk.map(|len| 2 * len) } else { *chunk };
    let mut builder =
        ArrayBuilder::new(shape.to_vec(), outer.to_vec(), data_type::float32(), 0.0_f32);
    builder.attributes(json!({"missing_value": -9.0}).as_object().unwrap().clone());
    if *is_compressed {
        builder.bytes_to_bytes_codecs(vec![Arc::new(codec::GzipCodec::new(1).unwrap())]);
    }
    if *is_sharded {
        builder.subchunk_shape(chunk.to_vec());
    }
    let array = builder.build(store, &format!("/{name}")).unwrap();
    array.store_metadata().unwrap();
    let mut values = Vec::new();
    for step in 0..shape[0] {
        for a in 0..shape[1] {
            values.extend((0..shape[2]).map(|b| match stored.kind([step, a, b]) {
                Kind::InChunk => 0.0,
                Kind::Fill => -9.0,
                Kind::Nan => f32::NAN,
                Kind::Number => 1.0_f32,
            }));
        }
    }
    array.store_array_subset(&array.subset_all(), &values).unwrap();
}

fn stored() -> impl Strategy<Value = Stored> {
    let shape = [2..9_u64, 1..6, 1..6];
    let chunk = [1..4_u64, 1..4, 1..4];
    let stored = (any::<[bool; 2]>(), any::<u64>());
    (shape, chunk, stored).prop_map(|(shape, chunk, ([is_sharded, is_compressed], seed))| Stored {
        shape,
        chunk,
        is_sharded,
        is_compressed,
        seed,
    })
}

/// The counts of a step, of the selected indices.
fn naive(stored: &Stored, [of_a, of_b]: [&[u64]; 2], step: u64) -> MissingCounts {
    let mut counts = MissingCounts::default();
    for a in of_a {
        for b in of_b {
            match stored.kind([step, *a, *b]) {
                Kind::InChunk => counts.in_chunks += 1,
                Kind::Fill => counts.fills += 1,
                Kind::Nan => counts.nans += 1,
                Kind::Number => {}
            }
        }
    }
    counts
}

fn chosen(len: u64, seed: u64) -> Vec<u64> {
    let some: Vec<u64> = (0..len).filter(|at| scattered(seed, *at).is_multiple_of(2)).collect();
    if some.is_empty() { (0..len).rev().collect() } else { some }
}

fn by_step(missing: &Missing, name: &str) -> BTreeMap<u64, MissingCounts> {
    let found = missing.variables.iter().find(|of| of.name == name).unwrap();
    found.steps.iter().copied().zip(found.counts.iter().copied()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn missing_numbers_are_those_of_a_naive_count(
        stored in stored(),
        other in stored(),
        seeds in any::<[u64; 2]>(),
        is_ordered in any::<bool>(),
        done in prop::collection::vec(any::<bool>(), 3),
        threads in 1..3_usize,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let mut other = other;
        other.shape = stored.shape;
        write(folder.path(), "x", &stored);
        write(folder.path(), "y", &other);
        let [a, b] = [1, 2].map(|dim| chosen(stored.shape[dim], seeds[dim - 1]));
        let part = |path: &str| {
            let part = Variable::new(path).select(1, Indices::List(a.clone()));
            let part = part.select(2, Indices::List(b.clone()));
            if is_ordered { part.ordered([2, 1]) } else { part }
        };
        let stack = Variable::stacked("z", [part("x"), part("y")]).as_f32().steps([0, 1]);
        let variables = [part("x"), part("x").named("next").steps([1]), stack];
        let [chunks, fills, nans] = [0, 1, 2].map(|at| {
            if done[at] { WhenMissing::LeaveOut } else { WhenMissing::Keep }
        });
        let spec = SampleSpec { threads, ..SampleSpec::new(variables) };
        let samples = open_with(folder.path(), &spec).unwrap();
        let missing = samples.missing(0..samples.n_samples(), &Stop::default()).unwrap();
        let n_steps = stored.shape[0];
        let count = |of: &Stored, step| naive(of, [&a, &b], step);
        let sum = |one: MissingCounts, two: MissingCounts| MissingCounts {
            in_chunks: one.in_chunks + two.in_chunks,
            fills: one.fills + two.fills,
            nans: one.nans + two.nans,
        };
        let of_x = |steps: std::ops::Range<u64>| steps.map(|step| (step, count(&stored, step))).collect::<BTreeMap<_, _>>();
        prop_assert_eq!(by_step(&missing, "x"), of_x(0..n_steps - 1));
        prop_assert_eq!(by_step(&missing, "next"), of_x(1..n_steps));
        let both = (0..n_steps).map(|step| (step, sum(count(&stored, step), count(&other, step))));
        prop_assert_eq!(by_step(&missing, "z"), both.collect());
        prop_assert_eq!(missing.variables[2].n_elements, 2 * (a.len() * b.len()) as u64);

        let policy = MissingPolicy { chunks, fills, nans };
        let (mut kept, mut left_out) = (Vec::new(), LeftOut::default());
        for sample in 0..n_steps - 1 {
            let both = [sample, sample + 1].map(|step| sum(count(&stored, step), count(&other, step)));
            let all = sum(both[0], both[1]);
            let has = [all.in_chunks, all.fills, all.nans].map(|n| 0 < n);
            match (0..3).find(|at| done[*at] && has[*at]) {
                Some(0) => left_out.chunks += 1,
                Some(1) => left_out.fills += 1,
                Some(_) => left_out.nans += 1,
                None => kept.push(sample),
            }
        }
        let counted = [None, Some(missing)];
        for counted in counted {
            let spec = SampleSpec { missing: policy, counted, ..spec.clone() };
            match open_with(folder.path(), &spec) {
                Err(error) => {
                    prop_assert!(kept.is_empty() && chain(&error).contains("no sample"), "{error}");
                }
                Ok(samples) => {
                    let steps: Vec<u64> = (0..samples.n_samples()).map(|of| samples.step(of)).collect();
                    prop_assert_eq!(&steps, &kept);
                    prop_assert_eq!(samples.left_out(), left_out);
                }
            }
        }
    }
}

fn one() -> (tempfile::TempDir, Stored) {
    let folder = tempfile::tempdir().unwrap();
    let stored = Stored {
        shape: [12, 4, 4],
        chunk: [1, 4, 4],
        is_sharded: false,
        is_compressed: true,
        seed: 3,
    };
    write(folder.path(), "x", &stored);
    (folder, stored)
}

/// Chunks that are not stored are found without reading those that are.
#[test]
fn chunks_are_looked_for_and_not_read() {
    let (folder, stored) = one();
    let is_there = |step: &u64| stored.kind([*step, 0, 0]) != Kind::InChunk;
    let there: Vec<u64> = (0..12).filter(is_there).collect();
    assert!(there.len() < 12 && !there.is_empty());
    std::fs::write(folder.path().join(format!("x/c/{}/0/0", there[0])), [1, 2, 3]).unwrap();
    let leave_out = MissingPolicy { chunks: WhenMissing::LeaveOut, ..MissingPolicy::default() };
    let spec = SampleSpec { missing: leave_out, ..SampleSpec::new([Variable::new("x")]) };
    let samples = open_with(folder.path(), &spec).unwrap();
    let steps: Vec<u64> = (0..samples.n_samples()).map(|sample| samples.step(sample)).collect();
    assert_eq!(steps, there);
    assert_eq!(samples.left_out().chunks, 12 - there.len() as u64);
    assert!(!samples.counted().unwrap().has_values);
    let nans = MissingPolicy { nans: WhenMissing::LeaveOut, ..leave_out };
    let error =
        open_with(folder.path(), &SampleSpec { missing: nans, ..spec.clone() }).unwrap_err();
    let text = chain(&error);
    assert!(text.contains(&format!("chunk [{}, 0, 0]", there[0])), "{text}");
    // What was counted of chunks alone says nothing of numbers in others.
    let counted = samples.counted().cloned();
    let error = open_with(folder.path(), &SampleSpec { missing: nans, counted, ..spec });
    assert!(chain(&error.unwrap_err()).contains("no numbers in others"));
}

#[test]
fn what_must_not_be_missing_is_named() {
    let (folder, stored) = one();
    let fail = |chunks, nans| SampleSpec {
        missing: MissingPolicy { chunks, nans, ..MissingPolicy::default() },
        ..SampleSpec::new([Variable::new("x")])
    };
    let first = (0..12).find(|step| stored.kind([*step, 0, 0]) == Kind::InChunk).unwrap();
    let error = open_with(folder.path(), &fail(WhenMissing::Fail, WhenMissing::Keep)).unwrap_err();
    assert!(matches!(error, Error::Missing { step, .. } if step == first), "{error}");
    let text = error.to_string();
    assert!(text.contains("variable x has 16 numbers in chunks that are not stored"), "{text}");
    let error = open_with(folder.path(), &fail(WhenMissing::Keep, WhenMissing::Fail)).unwrap_err();
    assert!(error.to_string().contains("numbers that are NaN at step"), "{error}");

    // Counts of another part, of other steps and of fewer samples.
    let samples = open_with(folder.path(), &SampleSpec::new([Variable::new("x")])).unwrap();
    let spec = fail(WhenMissing::LeaveOut, WhenMissing::Keep);
    let counted = Some(samples.missing([0, 1], &Stop::default()).unwrap());
    let error = open_with(folder.path(), &SampleSpec { counted: counted.clone(), ..spec.clone() });
    assert!(chain(&error.unwrap_err()).contains("counted at step 2"));
    let part = Variable::new("x").select(1, Indices::Range(0..2));
    let error = open_with(folder.path(), &SampleSpec { counted, variables: vec![part], ..spec });
    assert!(chain(&error.unwrap_err()).contains("not of the variable x"));
}

/// Slots outside of the valid dates are absent although their chunks read as fill; a missing chunk
/// inside is all fill, and valid unless the settings say otherwise.
#[test]
fn a_missing_chunk_within_the_valid_dates_is_valid() {
    let folder = tempfile::tempdir().unwrap();
    // Daily, in chunks of 4 days.
    let grid = Grid { values: (1..9).collect(), ..Grid::default() };
    write_grid(folder.path(), "t", &grid);
    write_times(folder.path(), &[0, 1, 2, 3, 4, 5, 6, 7], "days since 2000-01-01", "standard");
    let attributes = json!({
        "zarr_format": 3, "node_type": "group",
        "attributes": {"valid_time_start": "2000-01-02", "valid_time_stop": "2000-01-07"}
    });
    std::fs::write(folder.path().join("zarr.json"), attributes.to_string()).unwrap();
    std::fs::remove_file(folder.path().join("t/c/1")).unwrap();
    let spec = SampleSpec::new([Variable::new("t").spans([TimeSpan::hours(0)])]);
    let samples = open_with(folder.path(), &spec).unwrap();
    assert_eq!(samples.left_out(), LeftOut { invalid: 2, ..LeftOut::default() });
    let missing = samples.missing(0..samples.n_samples(), &Stop::default()).unwrap();
    let in_chunks = |n| MissingCounts { in_chunks: n, ..MissingCounts::default() };
    let expected = [1, 2, 3].map(|step| (step, in_chunks(0)));
    let expected = expected.into_iter().chain([4, 5, 6].map(|step| (step, in_chunks(1))));
    assert_eq!(by_step(&missing, "t"), expected.collect());
    assert_eq!(crate::values::<i16>(samples).unwrap().0, [2, 3, 4, -1, -1, -1]);
    let missing = MissingPolicy { chunks: WhenMissing::LeaveOut, ..MissingPolicy::default() };
    let samples: ArraySamples = open_with(folder.path(), &SampleSpec { missing, ..spec }).unwrap();
    assert_eq!(samples.left_out(), LeftOut { invalid: 2, chunks: 3, ..LeftOut::default() });
    assert_eq!(crate::values::<i16>(samples).unwrap().0, [2, 3, 4]);
}

/// A variable as stored has no fill values, and is not taken for the same array unpacked.
#[test]
fn numbers_as_stored_are_others_than_unpacked() {
    let folder = tempfile::tempdir().unwrap();
    let grid = Grid { values: vec![2, 4], packing: Some((0.5, 0.0)), ..Grid::default() };
    write_grid(folder.path(), "t", &grid);
    let raw = Variable::new("t").named("raw").as_stored().as_f32();
    let samples = open_with(folder.path(), &SampleSpec::new([raw, Variable::new("t")])).unwrap();
    assert_eq!(crate::values::<f32>(samples.clone()).unwrap().0, [2.0, 4.0]);
    let mut into = [0.0_f32; 4];
    let (raw, unpacked) = into.split_at_mut(2);
    let mut slices = [bytemuck::cast_slice_mut(raw), bytemuck::cast_slice_mut(unpacked)];
    let mut scratch = arrays::ReadScratch::default();
    samples.read_into(&[0, 1], &mut slices, &mut scratch, &Stop::default()).unwrap();
    assert_eq!(into, [2.0, 4.0, 1.0, 2.0]);
}
