//! Numbers on the way: clipped, their logarithm, less those at another step, normalised, rounded.

use std::path::Path;
use std::sync::Arc;

use arrays::{
    ArrayBatch, ArraySamples, ElementType, Indices, PatchDimension, Patches, ReadStrategy,
    SampleSpec, Selection, Variable, VariableValues,
};
use half::{bf16, f16};
use pipeline::{Pipeline, PipelineSpec, Source as _};
use proptest::prelude::*;
use zarrs::array::{ArrayBuilder, data_type};
use zarrs::filesystem::FilesystemStore;

use crate::oracle::{Stored, expected, stored, variable, write};
use crate::timed::{Grid, write_grid};
use crate::{chain, in_order, open_with};

/// The numbers of 16 bits, by their bits.
trait Half: arrays::Element + Copy {
    fn of(bits: u16) -> Self;
    fn bits(self) -> u16;
    fn number(self) -> f64;
}

impl Half for f16 {
    fn of(bits: u16) -> Self {
        Self::from_bits(bits)
    }
    fn bits(self) -> u16 {
        self.to_bits()
    }
    fn number(self) -> f64 {
        self.to_f64()
    }
}

impl Half for bf16 {
    fn of(bits: u16) -> Self {
        Self::from_bits(bits)
    }
    fn bits(self) -> u16 {
        self.to_bits()
    }
    fn number(self) -> f64 {
        self.to_f64()
    }
}

/// The nearest number of a type, of two the even one, found among all of them.
fn nearest<H: Half>(number: f64) -> u16 {
    if number.is_nan() {
        return H::of(0x7fff).bits();
    }
    let sign = if number.is_sign_negative() { 0x8000 } else { 0 };
    let size = number.abs();
    // Those of one sign ascend with their bits.
    let (mut low, mut high) = (0_u16, 0x7fff);
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        let is_below = H::of(middle).number() <= size;
        if is_below { low = middle } else { high = middle - 1 }
    }
    let (below, above) = (H::of(low), H::of(low + 1));
    if below.number() == size || below.number().is_infinite() {
        return sign | low;
    }
    // Beyond the greatest, rounding is as if there were another one.
    let step = below.number() - H::of(low - u16::from(low != 0)).number();
    let next = if above.number().is_infinite() { below.number() + step } else { above.number() };
    let middle = f64::midpoint(below.number(), next);
    let is_up = middle < size || (middle == size && low % 2 == 1);
    sign | (low + u16::from(is_up))
}

/// The bits of numbers, with one kind of NaN.
fn bits<H: Half>(values: &VariableValues<'_>) -> Vec<u16> {
    let of = |x: &H| if x.number().is_nan() { H::of(0x7fff).bits() } else { x.bits() };
    values.values::<H>().unwrap().iter().map(of).collect()
}

/// What is asked of numbers.
#[derive(Debug, Clone)]
struct Asked {
    clip: Option<(f64, f64)>,
    log: Option<f64>,
    /// None, one step, or one for each.
    minus: Vec<i64>,
    by: Vec<(f64, f64)>,
}

fn asked() -> impl Strategy<Value = Asked> {
    let clip = prop::option::of((-5..400_i32, 0..900_i32).prop_map(|(low, more)| {
        let low = if low < 0 { f64::NEG_INFINITY } else { f64::from(low) };
        (low, low.max(0.0) + f64::from(more))
    }));
    let log = prop::option::of(prop::sample::select(vec![1e-5, 1.0, 0.25]));
    let by = prop::collection::vec((-9..9_i32, 1..5_i32), 0..3);
    let by = by.prop_map(|by| {
        by.into_iter().map(|(mean, by)| (f64::from(mean), f64::from(by) * 0.3)).collect()
    });
    (clip, log, prop::collection::vec(-2..=2_i64, 0..4), by)
        .prop_map(|(clip, log, minus, by)| Asked { clip, log, minus, by })
}

impl Asked {
    fn of_one(&self, number: f64) -> f64 {
        let clipped = match self.clip {
            Some((low, high)) if number < low => f64::min(low, high),
            Some((_, high)) if high < number => high,
            _ => number,
        };
        self.log.map_or(clipped, |by| (clipped + by).ln())
    }

    /// Those of a sample with these numbers, each step's one after another.
    fn of_sample(&self, steps: &[f64], minus: &[f64], n_steps: usize) -> Vec<f64> {
        let row = steps.len() / n_steps;
        let plane = row / self.by.len().max(1);
        let each = steps.iter().enumerate().map(|(at, number)| {
            let less = match minus.len() / row {
                0 => 0.0,
                1 => self.of_one(minus[at % row]),
                _ => self.of_one(minus[at]),
            };
            let number = self.of_one(*number) - less;
            self.by.get(at % row / plane).map_or(number, |(mean, by)| (number - mean) / by)
        });
        each.collect()
    }
}

fn are_near(found: &[f64], right: &[f64]) -> bool {
    let is_near = |(one, other): (&f64, &f64)| (one - other).abs() <= 1e-9 * (1.0 + other.abs());
    found.len() == right.len() && found.iter().zip(right).all(is_near)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(160))]

    /// In double precision they are what a naive program computes; in 16 and 32 bits those, rounded
    /// once.
    #[test]
    fn numbers_are_those_of_a_naive_program(
        (stored, x) in stored().prop_flat_map(|stored| {
            let x = variable("x", (&stored.shape, 0));
            (Just(stored), x)
        }),
        asked in asked(),
        each in any::<bool>(),
        per_sample in any::<bool>(),
        threads in 1..3_usize,
    ) {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), "x", &stored);
        let n = x.steps.len();
        let mut asked = asked;
        let wanted = if each { n } else { 1 };
        asked.minus = asked.minus.into_iter().cycle().take(wanted).collect();
        let outer = row_shape(&stored.shape, &x).first().copied().unwrap_or(1);
        if asked.by.len() > 1 {
            asked.by = asked.by.iter().copied().cycle().take(outer).collect();
        }
        let x = Variable { clip: asked.clip, log: asked.log, ..x };
        let x = x.minus(asked.minus.clone()).normalized(asked.by.clone());
        let typed = |name: &str, element| x.clone().named(name).delivered_as(element);
        let spec = SampleSpec {
            threads,
            read: if per_sample { ReadStrategy::PerSample } else { ReadStrategy::Stacked },
            ..SampleSpec::new([
                typed("f64", ElementType::F64),
                typed("f32", ElementType::F32),
                typed("f16", ElementType::F16),
                typed("bf16", ElementType::BF16),
            ])
        };
        // The array may be shorter than the window.
        let Ok(samples) = open_with(folder.path(), &spec) else { return Ok(()) };
        let pipeline = Pipeline::new(Arc::new(samples), in_order(), ArrayBatch::n_samples).unwrap();
        for batch in pipeline.epoch(0).unwrap() {
            let batch = batch.unwrap();
            let mut right = Vec::new();
            for sample in batch.samples() {
                let step = pipeline.source().step(*sample);
                let minus = x.clone().steps(asked.minus.clone());
                let steps = expected((&stored.shape, 0), &x, step);
                let less = if asked.minus.is_empty() {
                    Vec::new()
                } else {
                    expected((&stored.shape, 0), &minus, step)
                };
                right.extend(asked.of_sample(&steps, &less, n));
            }
            let of = |name: &str| batch.variable(name).unwrap();
            let exact = of("f64").values::<f64>().unwrap().to_vec();
            prop_assert!(are_near(&exact, &right), "{exact:?} is not {right:?}");
            let single: Vec<f32> = exact.iter().map(|x| *x as f32).collect();
            prop_assert_eq!(of("f32").values::<f32>().unwrap(), single);
            let half: Vec<u16> = exact.iter().map(|x| nearest::<f16>(*x)).collect();
            prop_assert_eq!(bits::<f16>(&of("f16")), half);
            let brain: Vec<u16> = exact.iter().map(|x| nearest::<bf16>(*x)).collect();
            prop_assert_eq!(bits::<bf16>(&of("bf16")), brain);
            prop_assert_eq!(of("f16").dimensions(), of("f64").dimensions());
        }
    }
}

/// The shape of a step as delivered, of an array whose steps come first.
fn row_shape(shape: &[u64], variable: &Variable) -> Vec<usize> {
    let len = |at: usize| match variable.select.iter().find(|(of, _)| *of == at.into()) {
        Some((_, Selection::Indices(Indices::Range(range)))) => range.clone().count(),
        Some((_, Selection::Indices(Indices::List(list)))) => list.len(),
        _ => shape[at] as usize,
    };
    let is_named = |at: &usize| variable.order.contains(&(*at).into());
    let others = (1..shape.len()).filter(|at| !is_named(at));
    let named = (1..shape.len()).filter(|at| variable.order.iter().any(|of| *of == (*at).into()));
    let mut named: Vec<usize> = named.collect();
    named.sort_by_key(|at| variable.order.iter().position(|of| *of == (*at).into()));
    others.chain(named).map(len).collect()
}

/// Writes one step of these numbers.
fn write_numbers(folder: &Path, numbers: &[f64]) {
    let store = Arc::new(FilesystemStore::new(folder).unwrap());
    let n = numbers.len() as u64;
    let array = ArrayBuilder::new(vec![1, n], vec![1, n], data_type::float64(), 0.0_f64)
        .build(store, "/a")
        .unwrap();
    array.store_metadata().unwrap();
    array.store_array_subset(&array.subset_all(), numbers).unwrap();
}

/// Each would be another number if it were rounded to single precision first.
#[test]
fn numbers_are_rounded_to_16_bits_once() {
    let tiny = 2_f64.powi(-40);
    let numbers = [
        1.0 + 2_f64.powi(-11) + tiny,
        1.0 + 2_f64.powi(-11),
        1.0 + 3.0 * 2_f64.powi(-11) - tiny,
        -1.0 - 2_f64.powi(-8) - tiny,
        2_f64.powi(-25),
        2_f64.powi(-25) * (1.0 + tiny),
        2_f64.powi(-150),
        65_519.999_999_999,
        65_520.0,
        -1e300,
        f64::MAX,
        f64::INFINITY,
        f64::NAN,
        0.0,
        -0.0,
    ];
    let folder = tempfile::tempdir().unwrap();
    write_numbers(folder.path(), &numbers);
    let spec = SampleSpec::new([
        Variable::new("a").named("f16").delivered_as(ElementType::F16),
        Variable::new("a").named("bf16").delivered_as(ElementType::BF16),
    ]);
    let samples = open_with(folder.path(), &spec).unwrap();
    let pipeline = Pipeline::new(Arc::new(samples), in_order(), ArrayBatch::n_samples).unwrap();
    let batch = pipeline.epoch(0).unwrap().next().unwrap().unwrap();
    let [half, brain] = ["f16", "bf16"].map(|name| batch.variable(name).unwrap());
    let right: Vec<u16> = numbers.iter().map(|x| nearest::<f16>(*x)).collect();
    assert_eq!(bits::<f16>(&half), right);
    let right: Vec<u16> = numbers.iter().map(|x| nearest::<bf16>(*x)).collect();
    assert_eq!(bits::<bf16>(&brain), right);
    // What is beyond the range is infinite, what is nearer to it than to the next power is not.
    let half = half.values::<f16>().unwrap();
    assert_eq!(half[0], f16::from_f64(1.0 + 2_f64.powi(-10)));
    assert_eq!((half[7], half[8], half[9]), (f16::MAX, f16::INFINITY, f16::NEG_INFINITY));
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// Levels (time, level, lat, lon), packed, and a mask (lat, lon).
fn packed() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let levels = Grid {
        values: (0..6 * 2 * 4 * 5).collect(),
        shape: vec![6, 2, 4, 5],
        names: names(&["time", "level", "lat", "lon"]),
        packing: Some((0.5, 1.0)),
    };
    write_grid(folder.path(), "z", &levels);
    let surface = Grid {
        values: (0..6 * 4 * 5).map(|n| n % 7).collect(),
        shape: vec![6, 4, 5],
        names: names(&["time", "lat", "lon"]),
        packing: None,
    };
    write_grid(folder.path(), "t", &surface);
    let mask = Grid {
        values: (0..20).collect(),
        shape: vec![4, 5],
        names: names(&["lat", "lon"]),
        packing: None,
    };
    write_grid(folder.path(), "mask", &mask);
    folder
}

fn opened(folder: &Path, variables: impl IntoIterator<Item = Variable>) -> ArraySamples {
    let spec = SampleSpec { along: Some("time".into()), ..SampleSpec::new(variables) };
    open_with(folder, &spec).unwrap()
}

/// All batches' values of a variable of `f32`, one after another.
fn all(samples: ArraySamples, name: &str) -> Vec<f32> {
    let pipeline = Pipeline::new(Arc::new(samples), in_order(), ArrayBatch::n_samples).unwrap();
    let batches = pipeline.epoch(0).unwrap().map(Result::unwrap);
    batches
        .flat_map(|batch| batch.variable(name).unwrap().values::<f32>().unwrap().to_vec())
        .collect()
}

#[test]
fn missing_numbers_stay_missing_and_what_is_not_stored_is_changed_alike() {
    let folder = packed();
    let log = Variable::new("z").log(0.0).as_f32();
    let right: Vec<f32> = (0..240).map(|n| (f64::from(n) * 0.5 + 1.0).ln() as f32).collect();
    assert_eq!(all(opened(folder.path(), [log.clone()]), "z"), right);
    std::fs::remove_dir_all(folder.path().join("z/c/0")).unwrap();
    let found = all(opened(folder.path(), [log]), "z");
    // Without `_FillValue` the fill value -1 of Zarr v3 is a number, 0.5.
    assert_eq!(found[..3], [0.5_f64.ln() as f32; 3]);
    let clipped = Variable::new("t").clipped(f64::NEG_INFINITY, 3.0);
    let found = all(opened(folder.path(), [clipped]), "t");
    assert_eq!(found[..8], [0.0, 1.0, 2.0, 3.0, 3.0, 3.0, 3.0, 0.0]);
    // A logarithm of nothing, and of less than nothing.
    let log = Variable::new("t").log(-1.0);
    let found = all(opened(folder.path(), [log]), "t");
    assert!(found[0].is_nan() && found[1] == f32::NEG_INFINITY && found[2] == 0.0);
    // A mask without steps.
    let mask = Variable::new("mask").clipped(2.0, 4.0).log(0.0);
    let found = opened(folder.path(), [Variable::new("t"), mask]);
    let pipeline = Pipeline::new(Arc::new(found), in_order(), ArrayBatch::n_samples).unwrap();
    let batch = pipeline.epoch(0).unwrap().next().unwrap().unwrap();
    let mask = batch.variable("mask").unwrap().values::<f32>().unwrap().to_vec();
    assert_eq!(mask[..2], [2_f64.ln() as f32; 2]);
    assert_eq!(mask[4..], [4_f64.ln() as f32; 16]);
}

/// The patches of differences are the patches of the fields, subtracted; stacks have them as their
/// variables do.
#[test]
fn patches_and_stacks_have_differences() {
    let folder = packed();
    let pairs = [(1.0, 2.0), (0.5, 0.25), (3.0, 4.0)];
    let z = || Variable::new("z").select("level", Indices::List(vec![1, 0]));
    let stack = Variable::stacked("x", [Variable::new("t"), z()]).as_f32();
    let stack = stack.steps([1, 2]).minus([0, 1]).normalized(pairs);
    let t = Variable::new("t").steps([1, 2]).minus([0, 1]).normalized(pairs[..1].to_vec());
    let z = z().steps([1, 2]).minus([0, 1]).normalized(pairs[1..].to_vec()).as_f32();
    let plain = Variable::new("t").named("plain").steps([0, 1, 2]).as_f32();
    let whole = || opened(folder.path(), [t.clone(), z.clone(), stack.clone(), plain.clone()]);
    let [of_t, of_z, of_x, of_plain] = ["t", "z", "x", "plain"].map(|name| all(whole(), name));
    assert_eq!(of_t.len(), 4 * 2 * 20);
    for sample in 0..4 {
        for step in 0..2 {
            let row = sample * 2 + step;
            let (t, z) = (&of_t[row * 20..][..20], &of_z[row * 40..][..40]);
            assert_eq!(&of_x[row * 60..][..60], [t, z].concat());
            let before = &of_plain[(sample * 3 + step) * 20..][..40];
            let right: Vec<f32> =
                (0..20).map(|at| (before[20 + at] - before[at] - 1.0) / 2.0).collect();
            assert_eq!(t, right);
        }
    }
    // 40 of a level's numbers from one step to the next.
    assert!(of_z[..20].iter().all(|x| *x == (20.0 - 0.5) / 0.25));

    let patches = Patches::grid([PatchDimension::new("lon", 2), PatchDimension::new("lat", 3)]);
    let spec = SampleSpec {
        along: Some("time".into()),
        patches: Some(patches),
        threads: 2,
        ..SampleSpec::new([t.clone(), stack.clone()])
    };
    let samples = open_with(folder.path(), &spec).unwrap();
    let starts: Vec<_> = (0..samples.n_samples()).map(|n| samples.patch_starts(n, 0)).collect();
    let [of_patches, of_stack] = ["t", "x"].map(|name| {
        let samples = open_with(folder.path(), &spec).unwrap();
        all(samples, name)
    });
    for (sample, start) in starts.iter().enumerate() {
        for step in 0..2 {
            let row = sample / starts.len().div_euclid(4) * 2 + step;
            for lat in 0..3 {
                for lon in 0..2 {
                    let at = (start[1] as usize + lat) * 5 + start[0] as usize + lon;
                    let in_patch = lat * 2 + lon;
                    let found = of_patches[(sample * 2 + step) * 6 + in_patch];
                    assert_eq!(found, of_t[row * 20 + at]);
                    for channel in 0..3 {
                        let found = of_stack[((sample * 2 + step) * 3 + channel) * 6 + in_patch];
                        assert_eq!(found, of_x[row * 60 + channel * 20 + at]);
                    }
                }
            }
        }
    }
}

/// Rows that are subtracted take memory beside the block, which is counted; rollouts subtract from
/// the steps that they have.
#[test]
fn rollouts_have_differences_and_their_memory_is_counted() {
    let folder = packed();
    let rolled = |minus: Vec<i64>| {
        let t = Variable::new("t").steps([1, 2, 3]).minus(minus);
        opened(folder.path(), [t.rollout([(0, 1), (1, 3)])])
    };
    let plain = |minus: Vec<i64>, n: usize| {
        let t = Variable::new("t").steps([1, 2, 3][..n].to_vec()).minus(minus);
        // As many samples as the longest.
        all(opened(folder.path(), [t, Variable::new("t").named("all").steps([1, 2, 3])]), "t")
    };
    for minus in [vec![0], vec![0, 1, 2]] {
        let pipeline =
            Pipeline::new(Arc::new(rolled(minus.clone())), in_order(), ArrayBatch::n_samples)
                .unwrap();
        for (epoch, n) in [(0, 1), (1, 3)] {
            let batches = pipeline.epoch(epoch).unwrap().map(Result::unwrap);
            let found: Vec<f32> = batches
                .flat_map(|batch| batch.variable("t").unwrap().values::<f32>().unwrap().to_vec())
                .collect();
            let of_plain: Vec<i64> = minus.iter().copied().take(n).collect();
            assert_eq!(found, plain(of_plain, n));
        }
    }
    let plain = opened(folder.path(), [Variable::new("t").steps([1, 2, 3]).as_f32()]);
    let (plain, rolled) = (plain.need(4, 2).unwrap(), rolled(vec![0]).need(4, 2).unwrap());
    assert_eq!(rolled.block, plain.block);
    // Four steps of 20 numbers of four bytes, of four samples; stored numbers are small enough.
    assert_eq!(rolled.reading, plain.reading + 4 * 4 * 20 * 4);
}

#[test]
fn what_does_not_fit_is_named() {
    let folder = packed();
    let refused = |variable: Variable, words: &[&str]| {
        let spec = SampleSpec {
            along: Some("time".into()),
            ..SampleSpec::new([Variable::new("t").named("other"), variable])
        };
        let text = chain(&open_with(folder.path(), &spec).unwrap_err());
        assert!(words.iter().all(|word| text.contains(word)), "{text}");
    };
    let t = || Variable::new("t");
    refused(t().clipped(2.0, 1.0), &["t in ", "clipped to 2..1"]);
    refused(t().clipped(f64::NAN, 1.0), &["clipped to NaN"]);
    refused(t().log(f64::INFINITY), &["logarithm", "inf"]);
    refused(t().delivered_as(ElementType::I16), &["t: ", "floating point", "int16"]);
    refused(t().steps([1, 2, 3]).minus([0, 1]), &["2 steps are subtracted from 3"]);
    let timed = Variable { minus_spans: vec![arrays::TimeSpan::hours(0)], ..t().steps([1]) };
    refused(timed, &["both be times"]);
    refused(t().steps([1]).minus([9]), &["no sample"]);
    refused(Variable::new("mask").minus([0]), &["mask has no dimension time"]);
    refused(Variable::stacked("x", [t()]).log(0.0), &["x is a stack", "log"]);
    let both = Variable::stacked("x", [t().normalized([(0.0, 2.0)])]).normalized([(0.0, 1.0)]);
    refused(both.clone(), &["by itself and in its stack"]);
    refused(both.steps([1]).minus([0]), &["by itself and in its stack"]);
    let cut = Variable::new("z").steps([1]).minus([0]).normalized([(0.0, 1.0), (1.0, 2.0)]);
    let spec = SampleSpec {
        patches: Some(Patches::grid([PatchDimension::new("level", 1)])),
        ..SampleSpec::new([cut])
    };
    let text = chain(&open_with(folder.path(), &spec).unwrap_err());
    assert!(text.contains("z in patches") && text.contains("2 pairs"), "{text}");
}

/// Batches of several blocks, in any order, have differences like others.
#[test]
fn shuffled_batches_have_differences() {
    let folder = tempfile::tempdir().unwrap();
    let stored = Stored { shape: vec![30, 3], chunk: vec![4, 2], is_sharded: false, codec: None };
    write(folder.path(), "x", &stored);
    let x = Variable::new("x").steps([2]).minus([-1]);
    let samples = open_with(folder.path(), &SampleSpec::new([x])).unwrap();
    let spec =
        PipelineSpec { batch_rows: 5, chunk_rows: 3, read_threads: 2, ..PipelineSpec::default() };
    let pipeline = Pipeline::new(Arc::new(samples), spec, ArrayBatch::n_samples).unwrap();
    let mut n = 0;
    for batch in pipeline.epoch(1).unwrap() {
        let batch = batch.unwrap();
        let x = batch.variable("x").unwrap();
        assert!(x.values::<f64>().unwrap().iter().all(|x| *x == 9.0));
        n += batch.n_samples();
    }
    assert_eq!(n, 27);
}
