//! Samples that are patches, against a naive oracle.

use std::collections::{BTreeSet, HashSet};
use std::path::Path;
use std::sync::Arc;

use arrays::{
    ArrayBatch, ArraySamples, Indices, Padding, PatchDimension, Patches, ReadScratch, ReadStrategy,
    SampleSpec, Variable,
};
use pipeline::{Budget, Pipeline, PipelineSpec, Stop, WhenDamaged, World};
use proptest::prelude::*;
use shuffle::Remainder;
use zarrs::array::{ArrayBuilder, BytesToBytesCodecTraits, codec, data_type};
use zarrs::filesystem::FilesystemStore;

use crate::far::far;
use crate::{chain, in_order, open_with};

/// Lengths of the dimensions that arrays are made of.
pub(crate) const NAMES: [&str; 4] = ["t", "y", "x", "c"];

/// An array whose element i is i, with dimensions of these numbers.
#[derive(Debug, Clone)]
pub(crate) struct Stored {
    pub(crate) dims: Vec<usize>,
    pub(crate) chunk: Vec<u64>,
    pub(crate) is_sharded: bool,
    pub(crate) is_compressed: bool,
}

impl Stored {
    fn shape(&self, lens: [u64; 4]) -> Vec<u64> {
        self.dims.iter().map(|dim| lens[*dim]).collect()
    }

    fn has_steps(&self) -> bool {
        self.dims.contains(&0)
    }

    pub(crate) fn write(&self, folder: &Path, name: &str, lens: [u64; 4]) {
        let store = Arc::new(FilesystemStore::new(folder).unwrap());
        let shape = self.shape(lens);
        let mut builder =
            ArrayBuilder::new(shape, self.chunk.clone(), data_type::float64(), 0.0_f64);
        let names = self.dims.iter().map(|dim| Some(NAMES[*dim]));
        builder.dimension_names(Some(names));
        if self.is_compressed {
            let zstd: Arc<dyn BytesToBytesCodecTraits> = Arc::new(codec::ZstdCodec::new(1, true));
            builder.bytes_to_bytes_codecs(vec![zstd]);
        }
        if self.is_sharded {
            builder.subchunk_shape(vec![1_u64; self.chunk.len()]);
        }
        let array = builder.build(store, &format!("/{name}")).unwrap();
        array.store_metadata().unwrap();
        let n: u64 = array.shape().iter().product();
        let values: Vec<f64> = (0..n).map(|i| i as f64).collect();
        array.store_array_subset(&array.subset_all(), &values).unwrap();
    }
}

pub(crate) fn stored(layouts: &'static [&'static [usize]]) -> impl Strategy<Value = Stored> {
    let chunk = prop::collection::vec(1..4_u64, 4);
    (prop::sample::select(layouts), chunk, any::<bool>(), any::<bool>()).prop_map(
        |(dims, chunk, is_sharded, is_compressed)| Stored {
            dims: dims.to_vec(),
            chunk: chunk[..dims.len()].to_vec(),
            is_sharded,
            is_compressed,
        },
    )
}

/// A dimension that is cut, and its padding.
#[derive(Debug, Clone)]
struct CutOf {
    dim: usize,
    size: u64,
    step: u64,
    padding: Padding,
}

fn cut(dim: usize) -> impl Strategy<Value = CutOf> {
    let padding = (0..4_u64, 0..4_u64, 0..4_usize).prop_map(|(before, after, kind)| match kind {
        0 => Padding::None,
        1 => Padding::Reflect { before, after: Some(after) },
        2 => Padding::Reflect { before, after: None },
        _ => Padding::Periodic { before },
    });
    (1..7_u64, 1..5_u64, padding).prop_map(move |(size, step, padding)| {
        let step = if matches!(padding, Padding::None) { step } else { step.min(size) };
        CutOf { dim, size, step, padding }
    })
}

/// The places of a dimension's indices, as padded by hand; `None` if that cannot be.
fn padded(len: u64, before: u64, after: u64) -> Option<Vec<u64>> {
    let most = len.checked_sub(1)?;
    if most < before || most < after {
        return None;
    }
    let front = (1..=before).rev();
    let back = (0..after).map(|at| most - 1 - at);
    Some(front.chain(0..len).chain(back).collect())
}

/// The first index and the places of each patch, or of each box that may be drawn.
fn patches_of(len: u64, cut: &CutOf, is_random: bool) -> Option<Vec<(i64, Vec<u64>)>> {
    let CutOf { size, step, padding, .. } = *cut;
    let step = if is_random { 1 } else { step };
    let windows = |places: &[u64], before: u64, step: u64| -> Vec<(i64, Vec<u64>)> {
        let each = places.windows(size as usize).enumerate().step_by(step as usize);
        each.map(|(at, places)| (at as i64 - before as i64, places.to_vec())).collect()
    };
    let found = match padding {
        Padding::None => windows(&(0..len).collect::<Vec<_>>(), 0, step),
        Padding::Reflect { before, after: Some(after) } => {
            windows(&padded(len, before, after)?, before, step)
        }
        Padding::Reflect { before, after: None } => {
            // The fewest that leave nothing; of boxes, with which there is one.
            let is_enough = |windows: &[(i64, Vec<u64>)]| {
                let end = windows.last().map(|(start, _)| start + size as i64);
                end.is_some_and(|end| is_random || len as i64 <= end)
            };
            let tries = (0..len).filter_map(|after| padded(len, before, after));
            let mut tries = tries.map(|places| windows(&places, before, step));
            tries.find(|windows| is_enough(windows))?
        }
        Padding::Periodic { before } if before < len => {
            let starts = (0..len.div_ceil(step)).map(|at| (at * step) as i64 - before as i64);
            let places = |start: i64| {
                (start..start + size as i64).map(move |at| at.rem_euclid(len as i64) as u64)
            };
            starts.map(|start| (start, places(start).collect())).collect()
        }
        Padding::Periodic { .. } => return None,
    };
    (!found.is_empty()).then_some(found)
}

fn picked(chosen: Option<&Indices>, len: u64) -> Vec<u64> {
    match chosen {
        Some(Indices::Range(range)) => range.clone().collect(),
        Some(Indices::List(list)) => list.clone(),
        _ => (0..len).collect(),
    }
}

/// The elements of an array at some steps and at some indices of its other dimensions, which are
/// delivered with `last` at the end.
pub(crate) fn expected(
    (stored, last): (&Stored, &[usize]),
    lens: [u64; 4],
    steps: &[u64],
    indices: &[Vec<u64>; 4],
) -> Vec<f64> {
    let stride = |dim: &usize| -> u64 {
        stored.dims.iter().skip_while(|other| *other != dim).skip(1).map(|dim| lens[*dim]).product()
    };
    let others = stored.dims.iter().filter(|dim| !last.contains(dim));
    let last = last.iter().filter(|dim| stored.dims.contains(dim));
    let delivered: Vec<usize> = others.chain(last).copied().filter(|dim| *dim != 0).collect();
    let mut all = Vec::new();
    for step in if stored.has_steps() { steps } else { &[0][..] } {
        let mut at = vec![if stored.has_steps() { step * stride(&0) } else { 0 }];
        for dim in &delivered {
            let of_dim = &indices[*dim];
            at = at
                .iter()
                .flat_map(|outer| of_dim.iter().map(move |index| outer + index * stride(dim)))
                .collect();
        }
        all.extend(at.into_iter().map(|n| n as f64));
    }
    all
}

/// How samples are read: sizes of chunks of samples, blocks and batches, threads, and what is kept.
pub(crate) fn engine() -> impl Strategy<Value = (PipelineSpec, ReadStrategy, usize)> {
    let sizes = (1..20_u64, 1..4_u64, 1..9_u64, any::<u64>(), any::<bool>());
    let strategy = prop_oneof![Just(ReadStrategy::Stacked), Just(ReadStrategy::PerSample)];
    (sizes, strategy, 1..4_usize).prop_map(
        |((rows, chunks, batch_rows, seed, keeps), read, threads)| {
            let memory = if keeps { Budget::new(128 << 20) } else { Budget::unlimited() };
            let spec = PipelineSpec {
                chunk_rows: rows,
                chunks_per_block: chunks,
                batch_rows,
                seed,
                memory,
                ..PipelineSpec::default()
            };
            (spec, read, threads)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn patches_are_those_of_arrays_that_are_padded_and_cut_by_hand(
        lens in (2..7_u64, 1..9_u64, 1..9_u64, 1..4_u64),
        a in stored(&[&[0, 1, 2], &[0, 1, 2, 3], &[1, 0, 2], &[3, 2, 1, 0], &[0, 3, 1, 2]]),
        b in stored(&[&[0, 1], &[0, 3], &[0], &[2, 0], &[1, 2], &[2, 1, 3], &[3]]),
        of_y in 0..3_usize,
        parts in prop::collection::vec(any::<prop::sample::Index>(), 2),
        cuts in (cut(1), cut(2), cut(3), 0..6_usize),
        n_random in prop::option::of(1..4_u64),
        last in prop::sample::select(vec![vec![], vec![2_usize, 1], vec![1, 2], vec![3]]),
        (steps_of_a, steps_of_b) in (prop::sample::select(vec![vec![0_i64], vec![-1, 0], vec![1]]), prop::sample::select(vec![vec![0_i64], vec![0, 1]])),
        (spec, read, threads) in engine(),
    ) {
        let lens = [lens.0, lens.1, lens.2, lens.3];
        let folder = tempfile::tempdir().unwrap();
        a.write(folder.path(), "a", lens);
        b.write(folder.path(), "b", lens);
        // A part of y: a range or a list, or all of it.
        let first = parts[0].index(lens[1] as usize) as u64;
        let end = first + 1 + parts[1].index((lens[1] - first) as usize) as u64;
        let y = match of_y {
            0 => None,
            1 => Some(Indices::Range(first..end)),
            _ => Some(Indices::List((first..end).rev().chain([first]).collect())),
        };
        let selected = [Vec::new(), picked(y.as_ref(), lens[1]), picked(None, lens[2]), picked(None, lens[3])];
        let (of_y, of_x, of_c, which) = cuts;
        let cuts = match which {
            0 => vec![of_y],
            1 => vec![of_x],
            2 => vec![of_x, of_y],
            3 => vec![of_y, of_c],
            _ => vec![of_y, of_x],
        };
        let has = |dim: &usize| a.dims.contains(dim) || b.dims.contains(dim);
        prop_assume!(cuts.iter().map(|cut| &cut.dim).chain(&last).all(has));
        let variables = [(&a, "a", &steps_of_a), (&b, "b", &steps_of_b)].map(|(stored, name, steps)| {
            let steps = if stored.has_steps() { steps.clone() } else { vec![0] };
            let variable = Variable::new(name).steps(steps);
            match &y {
                Some(y) if stored.dims.contains(&1) => variable.select("y", y.clone()),
                _ => variable,
            }
        });
        let dimensions = cuts.iter().map(|cut| PatchDimension {
            step: cut.step,
            padding: cut.padding,
            ..PatchDimension::new(NAMES[cut.dim], cut.size)
        });
        let patches = match n_random {
            Some(n) => Patches::random(dimensions, n, 11),
            None => Patches::grid(dimensions),
        };
        let sample = SampleSpec {
            patches: Some(patches),
            order: last.iter().map(|dim| NAMES[*dim].to_owned()).collect(),
            along: Some("t".into()),
            read,
            threads,
            ..SampleSpec::new(variables.clone())
        };
        let found: Option<Vec<_>> = cuts
            .iter()
            .map(|cut| patches_of(selected[cut.dim].len() as u64, cut, n_random.is_some()))
            .collect();
        let opened = open_with(folder.path(), &sample);
        let Some(found) = found else {
            prop_assert!(opened.is_err(), "{sample:?}");
            return Ok(());
        };
        let whole = SampleSpec { patches: None, ..sample };
        let Ok(whole) = open_with(folder.path(), &whole) else {
            // There is no step that has all others.
            prop_assert!(opened.is_err());
            return Ok(());
        };
        let samples = opened.unwrap();
        let n_grid: u64 = found.iter().map(|all| all.len() as u64).product();
        let n_patches = n_random.unwrap_or(n_grid);
        let n_samples = whole.n_samples() * n_patches;
        prop_assert_eq!(samples.n_samples(), n_samples);
        let of_found: Vec<u64> = found.iter().map(|all| all.len() as u64).collect();
        let of_samples: Vec<u64> = samples.patches().iter().map(|cut| cut.n).collect();
        prop_assert_eq!(of_found, of_samples);

        let values_of = |sample: u64, starts: &[i64]| -> Vec<Vec<f64>> {
            let step = whole.step(sample / n_patches);
            let mut indices = selected.clone();
            for ((cut, all), start) in cuts.iter().zip(&found).zip(starts) {
                let (_, places) = all.iter().find(|(at, _)| at == start).unwrap();
                indices[cut.dim] = places.iter().map(|at| selected[cut.dim][*at as usize]).collect();
            }
            let each = [&a, &b].into_iter().zip(&variables).map(|(stored, variable)| {
                let steps: Vec<u64> =
                    variable.steps.iter().map(|by| step.checked_add_signed(*by).unwrap()).collect();
                expected((stored, &last), lens, &steps, &indices)
            });
            each.collect()
        };
        let n_dims = cuts.len();
        let samples = Arc::new(samples);
        let pipeline = Pipeline::new(Arc::clone(&samples), spec, ArrayBatch::n_samples).unwrap();
        for epoch in pipeline.epochs(0..2) {
            let mut seen = vec![0; n_samples as usize];
            for batch in epoch.unwrap() {
                let batch = batch.unwrap();
                let starts = batch.patch_starts();
                prop_assert_eq!(starts.len(), batch.n_samples() * n_dims);
                for (at, sample) in batch.samples().iter().enumerate() {
                    seen[*sample as usize] += 1;
                    let starts = &starts[at * n_dims..][..n_dims];
                    prop_assert_eq!(starts, samples.patch_starts(*sample, batch.place().epoch));
                    if n_random.is_none() {
                        // In C order.
                        let mut rest = *sample % n_patches;
                        for (start, all) in starts.iter().zip(&found).rev() {
                            prop_assert_eq!(*start, all[(rest % all.len() as u64) as usize].0);
                            rest /= all.len() as u64;
                        }
                    }
                    for (values, right) in batch.variables().zip(values_of(*sample, starts)) {
                        let all = values.values::<f64>().unwrap();
                        prop_assert_eq!(values.shape().iter().product::<usize>(), all.len());
                        let of = if values.is_static() {
                            all
                        } else {
                            prop_assert_eq!(values.shape()[0], batch.n_samples());
                            &all[at * right.len()..][..right.len()]
                        };
                        prop_assert_eq!(of, &right[..], "{} of sample {}", values.name(), sample);
                    }
                }
            }
            prop_assert!(seen.iter().all(|n| *n == 1), "{:?}", seen);
        }
        // Into the caller's memory.
        let sample = n_samples - 1;
        let right = values_of(sample, &samples.patch_starts(sample, 0));
        let mut memory: Vec<Vec<f64>> = right.iter().map(|values| vec![-1.0; values.len()]).collect();
        let mut into: Vec<&mut [u8]> =
            memory.iter_mut().map(|values| bytemuck::cast_slice_mut(values)).collect();
        samples.read_into(&[sample], &mut into, &mut ReadScratch::default(), &Stop::default()).unwrap();
        prop_assert_eq!(memory, right);
    }
}

/// 6 steps of a map of 40 x 30, in chunks of one step.
fn write_maps(folder: &Path, chunk: &[u64]) {
    let stored = Stored {
        dims: vec![0, 1, 2],
        chunk: chunk.to_vec(),
        is_sharded: false,
        is_compressed: true,
    };
    stored.write(folder, "a", MAPS);
}

const MAPS: [u64; 4] = [6, 40, 30, 1];

fn boxes(n: u64) -> SampleSpec {
    let dims = ["y", "x"].map(|dim| PatchDimension::new(dim, 8));
    SampleSpec {
        patches: Some(Patches::random(dims, n, 5)),
        ..SampleSpec::new([Variable::new("a")])
    }
}

/// The boxes of an epoch by their sample.
type BoxesOf = BTreeSet<(u64, Vec<i64>)>;

fn boxes_in(batches: impl Iterator<Item = Result<ArrayBatch, arrays::Error>>) -> BoxesOf {
    let mut found = BoxesOf::new();
    for batch in batches {
        let batch = batch.unwrap();
        let starts = batch.patch_starts();
        for (sample, starts) in batch.samples().iter().zip(starts.chunks_exact(2)) {
            assert!(found.insert((*sample, starts.to_vec())));
            let values = batch.variable("a").unwrap().values::<f64>().unwrap().to_vec();
            let at = batch.samples().iter().position(|one| one == sample).unwrap();
            let first = (sample / 7 * 40 + starts[0] as u64) * 30 + starts[1] as u64;
            assert_eq!(values[at * 64], first as f64);
        }
    }
    found
}

#[test]
fn boxes_are_the_same_for_any_number_of_ranks_and_after_resuming() {
    let folder = tempfile::tempdir().unwrap();
    write_maps(folder.path(), &[1, 16, 16]);
    let samples = Arc::new(open_with(folder.path(), &boxes(7)).unwrap());
    assert_eq!(samples.n_samples(), 42);
    let pipeline = |rank, size, batch_rows| {
        let spec = PipelineSpec {
            chunk_rows: 7,
            chunks_per_block: 1,
            batch_rows,
            seed: 3,
            world: World { rank, size },
            lanes: Some(6),
            remainder: Remainder::Drop,
            ..PipelineSpec::default()
        };
        Pipeline::new(Arc::clone(&samples), spec, ArrayBatch::n_samples).unwrap()
    };
    let whole = boxes_in(pipeline(0, 1, 6).epoch(4).unwrap());
    for size in [2, 3] {
        let ranks =
            (0..size).flat_map(|rank| boxes_in(pipeline(rank, size, 6 / size).epoch(4).unwrap()));
        assert_eq!(ranks.collect::<BoxesOf>(), whole, "{size} ranks");
    }
    let other = boxes_in(pipeline(0, 1, 6).epoch(5).unwrap());
    assert_ne!(other, whole);

    let first = pipeline(0, 1, 6);
    let mut epoch = first.epoch(4).unwrap();
    let mut found = boxes_in(epoch.by_ref().take(3));
    let state = epoch.state();
    drop(epoch);
    for rank in 0..2 {
        found.extend(boxes_in(pipeline(rank, 2, 3).resume(&state).unwrap()));
    }
    assert_eq!(found, whole);
}

#[test]
fn a_chunk_that_many_patches_want_is_decoded_once_a_block() {
    let folder = tempfile::tempdir().unwrap();
    write_maps(folder.path(), &[1, 40, 30]);
    for storage_is_far in [false, true] {
        let dims = ["y", "x"].map(|dim| PatchDimension::new(dim, 8).overlapping(4));
        let spec = SampleSpec { patches: Some(Patches::grid(dims)), threads: 2, ..boxes(1) };
        let samples = if storage_is_far {
            ArraySamples::open(far(folder.path(), 1 << 20), &spec).unwrap()
        } else {
            open_with(folder.path(), &spec).unwrap()
        };
        let of_step: u64 = samples.patches().iter().map(|cut| cut.n).product();
        assert_eq!(of_step, 9 * 6);
        let engine = PipelineSpec {
            chunk_rows: of_step,
            chunks_per_block: 2,
            batch_rows: 5,
            ..PipelineSpec::default()
        };
        let pipeline = Pipeline::new(Arc::new(samples), engine, ArrayBatch::n_samples).unwrap();
        let mut epoch = pipeline.epoch(0).unwrap();
        let n: usize = epoch.by_ref().map(|batch| batch.unwrap().n_samples()).sum();
        assert_eq!(n as u64, 6 * of_step);
        assert_eq!(epoch.stats().read.bytes_decoded, Some(6 * 40 * 30 * 8));
    }
}

#[test]
fn only_chunks_in_which_a_patch_lies_are_read() {
    let folder = tempfile::tempdir().unwrap();
    write_maps(folder.path(), &[1, 8, 8]);
    let dims = ["y", "x"].map(|dim| PatchDimension::new(dim, 8));
    let spec = SampleSpec { patches: Some(Patches::grid(dims)), ..boxes(1) };
    let samples = open_with(folder.path(), &spec).unwrap();
    assert_eq!(
        samples.patches().iter().map(|cut| (cut.n, cut.left_out)).collect::<Vec<_>>(),
        [(5, 0), (3, 6)]
    );
    let mut values = vec![0.0_f64; 64];
    let mut into = [bytemuck::cast_slice_mut(&mut values)];
    let stats = samples.read_into(&[7], &mut into, &mut ReadScratch::default(), &Stop::default());
    assert_eq!(stats.unwrap().bytes_decoded, Some(8 * 8 * 8));
    // The chunk of step 0 that patch 7 is: the others need it not.
    std::fs::write(folder.path().join("a/c/0/2/1"), [7; 5]).unwrap();
    let engine = PipelineSpec { chunk_rows: 4, when_damaged: WhenDamaged::Skip, ..in_order() };
    let pipeline = Pipeline::new(Arc::new(samples), engine, ArrayBatch::n_samples).unwrap();
    let mut epoch = pipeline.epoch(0).unwrap();
    let seen: HashSet<u64> =
        epoch.by_ref().flat_map(|batch| batch.unwrap().samples().to_vec()).collect();
    assert_eq!((0..90).filter(|sample| !seen.contains(sample)).collect::<Vec<_>>(), [7]);
    let names: Vec<String> = epoch.stats().skipped.iter().map(|one| one.name.clone()).collect();
    assert_eq!(names, ["step 0, y from 16, x from 8"]);
}

#[test]
fn each_sample_has_the_coordinates_of_its_patch() {
    let folder = tempfile::tempdir().unwrap();
    write_maps(folder.path(), &[2, 8, 8]);
    let of_x = Stored { dims: vec![2], chunk: vec![30], is_sharded: false, is_compressed: false };
    of_x.write(folder.path(), "x", MAPS);
    let dims = [
        PatchDimension::new("y", 20),
        PatchDimension::new("x", 12).padded(Padding::Periodic { before: 2 }),
    ];
    let spec = SampleSpec { patches: Some(Patches::grid(dims)), ..boxes(1) };
    let samples = open_with(folder.path(), &spec).unwrap();
    assert_eq!(samples.coordinates("a", "x").unwrap().len(), 30);
    let pipeline = Pipeline::new(Arc::new(samples), in_order(), ArrayBatch::n_samples).unwrap();
    let batch = pipeline.epoch(0).unwrap().next().unwrap().unwrap();
    let values = batch.variable("a").unwrap();
    assert_eq!((values.shape(), values.dimensions()), (vec![3, 20, 12], vec!["sample", "y", "x"]));
    assert_eq!(batch.patch_starts(), [0, -2, 0, 10, 0, 22]);
    assert!(values.coordinates("x").is_none() && values.patch_coordinates("y").is_none());
    assert!(values.is_cut("x") && values.is_cut("y") && !values.is_cut("t"));
    let of_x = values.patch_coordinates("x").unwrap();
    let right: Vec<f64> = [-2, 10, 22]
        .iter()
        .flat_map(|start| (*start..start + 12).map(|at: i64| at.rem_euclid(30) as f64))
        .collect();
    assert_eq!(of_x.floats().unwrap(), right);
}

#[test]
fn ranks_that_each_have_a_slice_of_the_grid_have_the_whole_together() {
    let folder = tempfile::tempdir().unwrap();
    write_maps(folder.path(), &[2, 7, 9]);
    let rows_of = |slice: std::ops::Range<u64>| -> Vec<(u64, Vec<f64>)> {
        let variable = Variable::new("a").select("y", Indices::Range(slice));
        let samples = open_with(folder.path(), &SampleSpec::new([variable])).unwrap();
        let spec = PipelineSpec { seed: 8, batch_rows: 2, ..PipelineSpec::default() };
        let pipeline = Pipeline::new(Arc::new(samples), spec, ArrayBatch::n_samples).unwrap();
        let mut all = Vec::new();
        for batch in pipeline.epoch(1).unwrap() {
            let batch = batch.unwrap();
            let values = batch.variable("a").unwrap().values::<f64>().unwrap();
            let each = values.chunks(values.len() / batch.n_samples());
            all.extend(batch.samples().iter().copied().zip(each.map(<[f64]>::to_vec)));
        }
        all
    };
    // Parts of the grid that differ by a row.
    let [first, second] = [rows_of(0..21), rows_of(21..40)];
    let joined: Vec<(u64, Vec<f64>)> = first
        .into_iter()
        .zip(second)
        .map(|((sample, mut values), (same, rest))| {
            assert_eq!(sample, same);
            values.extend(rest);
            (sample, values)
        })
        .collect();
    assert_eq!(joined, rows_of(0..40));
}

#[test]
fn patches_that_cannot_be_are_named() {
    let folder = tempfile::tempdir().unwrap();
    write_maps(folder.path(), &[2, 8, 8]);
    let b =
        Stored { dims: vec![0, 2, 3], chunk: vec![2; 3], is_sharded: false, is_compressed: false };
    b.write(folder.path(), "b", [6, 1, 29, 4]);
    let refused = |variables: Vec<Variable>, dims: Vec<PatchDimension>, words: &[&str]| {
        let patches = Some(Patches::grid(dims));
        let spec = SampleSpec { patches, ..SampleSpec::new(variables) };
        let error = open_with(folder.path(), &spec).unwrap_err();
        assert!(matches!(error, arrays::Error::Spec { .. }), "{error:?}");
        let text = chain(&error);
        assert!(words.iter().all(|word| text.contains(word)), "{text}");
    };
    let a = || Variable::new("a");
    let of = |dim: &str, size| PatchDimension::new(dim, size);
    refused(vec![a()], vec![of("z", 2)], &["patches of z", "no variable has this dimension"]);
    refused(vec![a()], vec![of("t", 2)], &["patches of t", "beside that of the steps"]);
    refused(vec![a()], vec![PatchDimension::new(0, 2)], &["samples are made of it"]);
    refused(vec![a()], vec![of("y", 41)], &["patches of y", "41 indices", "40"]);
    refused(vec![a()], vec![of("y", 4), PatchDimension::new(1, 4)], &["cut twice"]);
    let both = vec![a(), Variable::new("b")];
    refused(both, vec![of("x", 4)], &["a has 30 indices of it and b has 29"]);
    let levels = vec![(0.0, 1.0); 40];
    refused(
        vec![a().normalized(levels)],
        vec![of("y", 4)],
        &["a in patches", "40 pairs", "dimension that is cut"],
    );
    let stack = Variable::stacked("s", [Variable::new("b")]);
    refused(vec![stack.clone()], vec![of("channel", 1)], &["channels of s", "not cut"]);
    refused(vec![stack], vec![PatchDimension::new(1, 1)], &["stacked", "name the dimension"]);
}

#[test]
fn planes_that_are_normalised_and_channels_are_cut() {
    let folder = tempfile::tempdir().unwrap();
    let lens = [3, 10, 12, 4];
    let of = |dims: &[usize]| Stored {
        dims: dims.to_vec(),
        chunk: vec![2; dims.len()],
        is_sharded: false,
        is_compressed: false,
    };
    of(&[0, 3, 1, 2]).write(folder.path(), "levels", lens);
    of(&[0, 1, 2]).write(folder.path(), "surface", lens);
    let pairs: Vec<(f64, f64)> = (0..4).map(|at| (f64::from(at), 2.0)).collect();
    let levels = Variable::new("levels").normalized(pairs);
    let surface = Variable::new("surface").normalized([(5.0, 4.0)]);
    let stack = Variable::stacked("stack", [levels.clone(), surface.clone()]);
    let dims = [PatchDimension::new("y", 4), PatchDimension::new("x", 5)];
    let spec = SampleSpec {
        patches: Some(Patches::grid(dims)),
        ..SampleSpec::new([stack, levels, surface])
    };
    let samples = open_with(folder.path(), &spec).unwrap();
    assert_eq!(samples.sample_shape("stack"), Some(vec![5, 4, 5]));
    let pipeline = Pipeline::new(Arc::new(samples), in_order(), ArrayBatch::n_samples).unwrap();
    for batch in pipeline.epoch(0).unwrap() {
        let batch = batch.unwrap();
        let [stack, levels, surface] = ["stack", "levels", "surface"]
            .map(|name| batch.variable(name).unwrap().values::<f64>().unwrap());
        for (at, sample) in batch.samples().iter().enumerate() {
            let step = sample / 4;
            let starts = &batch.patch_starts()[2 * at..][..2];
            let places = (0..20_u64).map(|i| (starts[0] as u64 + i / 5, starts[1] as u64 + i % 5));
            let mut right: Vec<f64> = (0..4_u64)
                .flat_map(|level| {
                    let places = places.clone();
                    places.map(move |(y, x)| {
                        let value = ((step * 4 + level) * 10 + y) * 12 + x;
                        (value as f64 - level as f64) / 2.0
                    })
                })
                .collect();
            assert_eq!(&levels[at * 80..][..80], right);
            let of_surface: Vec<f64> =
                places.map(|(y, x)| (((step * 10 + y) * 12 + x) as f64 - 5.0) / 4.0).collect();
            assert_eq!(&surface[at * 20..][..20], of_surface);
            right.extend(of_surface);
            assert_eq!(&stack[at * 100..][..100], right);
        }
    }
}
