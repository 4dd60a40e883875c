//! Tensors of arrays have the arrays' numbers, in the memory that these were decoded into, which is
//! reused only when nobody has them any more.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use arrays::{ArrayBatch, ArraySamples, ElementType, SampleSpec, Variable};
use loader::Order;
use pipeline::{Pipeline, PipelineSpec};
use proptest::prelude::*;
use storage::LocalStorage;
use tch::{Device, Kind, Tensor};
use torch_feed::{ArrayTensorLoader, ArrayTensors, Error};

/// Writes an array of Zarr 3, uncompressed, in chunks of one step.
fn write(folder: &Path, name: &str, element: ElementType, [n_steps, n]: [usize; 2], bytes: &[u8]) {
    let array = folder.join(name);
    let fill = if element == ElementType::Bool { "false" } else { "0" };
    let metadata = format!(
        r#"{{"zarr_format": 3, "node_type": "array", "shape": [{n_steps}, {n}],
            "data_type": "{element}", "fill_value": {fill}, "dimension_names": ["time", null],
            "chunk_grid": {{"name": "regular", "configuration": {{"chunk_shape": [1, {n}]}}}},
            "chunk_key_encoding": {{"name": "default", "configuration": {{"separator": "/"}}}},
            "codecs": [{{"name": "bytes", "configuration": {{"endian": "little"}}}}]}}"#
    );
    fs::create_dir_all(&array).unwrap();
    fs::write(array.join("zarr.json"), metadata).unwrap();
    for (step, bytes) in bytes.chunks(n * element.n_bytes()).enumerate() {
        let chunk = array.join(format!("c/{step}/0"));
        fs::create_dir_all(chunk.parent().unwrap()).unwrap();
        fs::write(chunk, bytes).unwrap();
    }
}

fn open(folder: &Path, spec: &SampleSpec) -> ArraySamples {
    ArraySamples::open(Arc::new(LocalStorage::new(folder)), spec).unwrap()
}

/// 24 steps of 5 values: a sample is its number, five times.
fn numbered(folder: &Path) -> ArraySamples {
    let values = (0..24_u8).flat_map(|step| [f32::from(step); 5]);
    let bytes: Vec<u8> = values.flat_map(f32::to_le_bytes).collect();
    write(folder, "numbers", ElementType::F32, [24, 5], &bytes);
    open(folder, &SampleSpec::new([Variable::new("numbers")]))
}

/// Blocks of four samples.
fn blocks(batch_rows: u64) -> PipelineSpec {
    PipelineSpec { chunk_rows: 1, chunks_per_block: 4, batch_rows, ..PipelineSpec::default() }
}

fn address(tensor: &Tensor) -> usize {
    tensor.data_ptr() as usize
}

fn address_of(batch: &ArrayBatch, variable: &str) -> usize {
    batch.variable(variable).unwrap().bytes().as_ptr() as usize
}

/// The values of a tensor as bytes.
fn bytes(tensor: &Tensor) -> Vec<u8> {
    let mut bytes = vec![0; tensor.numel() * tensor.kind().elt_size_in_bytes()];
    tensor.copy_data_u8(&mut bytes, tensor.numel());
    bytes
}

#[track_caller]
fn check_numbers(batch: &ArrayTensors) {
    let values = Vec::<f32>::try_from(batch.tensor("numbers").unwrap().view([-1])).unwrap();
    let expected: Vec<f32> =
        batch.samples().iter().flat_map(|sample| [*sample as f32; 5]).collect();
    assert_eq!(values, expected);
}

const KINDS: [(ElementType, Kind); 10] = [
    (ElementType::Bool, Kind::Bool),
    (ElementType::I8, Kind::Int8),
    (ElementType::I16, Kind::Int16),
    (ElementType::I32, Kind::Int),
    (ElementType::I64, Kind::Int64),
    (ElementType::U8, Kind::Uint8),
    (ElementType::F16, Kind::Half),
    (ElementType::BF16, Kind::BFloat16),
    (ElementType::F32, Kind::Float),
    (ElementType::F64, Kind::Double),
];

/// Bytes of an array of these elements, any that `bool` may have.
fn stored(element: ElementType, n_values: usize, seed: u8) -> Vec<u8> {
    let numbers = (0..n_values * element.n_bytes()).map(|at| (at * 37) as u8 ^ seed);
    if element == ElementType::Bool { numbers.map(|n| n & 1).collect() } else { numbers.collect() }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn tensors_have_the_values_and_shapes_of_the_batch(
        kinds in prop::collection::vec(prop::sample::select(&KINDS[..]), 1..4),
        n_steps in 4..30_usize,
        n_values in 1..7_usize,
        steps in prop::sample::select(vec![vec![0], vec![-1, 0], vec![2, 0, 1]]),
        (chunk_rows, chunks_per_block, batch_rows) in (1..3_u64, 1..5_u64, 1..9_u64),
        (prefetch_blocks, read_threads, prefetch_batches) in (0..3_usize, 0..3_usize, 0..3_usize),
        seed in any::<u8>(),
    ) {
        let folder = tempfile::tempdir().unwrap();
        for (idx, (element, _)) in kinds.iter().enumerate() {
            let bytes = stored(*element, n_steps * n_values, seed);
            write(folder.path(), &idx.to_string(), *element, [n_steps, n_values], &bytes);
        }
        let variables = (0..kinds.len()).map(|idx| {
            let variable = Variable::new(idx.to_string());
            if idx == 0 { variable.steps(steps.clone()) } else { variable }
        });
        let spec = SampleSpec::new(variables);
        let sizes = PipelineSpec { chunk_rows, chunks_per_block, batch_rows, ..PipelineSpec::default() };
        let ahead = PipelineSpec { prefetch_blocks, read_threads, prefetch_batches, ..sizes };
        let plain = open(folder.path(), &spec);
        let plain = Pipeline::new(Arc::new(plain), ahead.clone(), ArrayBatch::n_samples).unwrap();
        let tensors = ArrayTensorLoader::new(open(folder.path(), &spec), ahead).unwrap();
        for epoch in 0..2 {
            let mut batches = tensors.epoch(epoch).unwrap();
            // All tensors are kept until the end of the epoch.
            let found: Vec<ArrayTensors> = batches.by_ref().map(Result::unwrap).collect();
            prop_assert_eq!(found.len() as u64, batches.n_batches());
            for (found, expected) in found.iter().zip(plain.epoch(epoch).unwrap()) {
                let expected = expected.unwrap();
                prop_assert_eq!(found.samples(), expected.samples());
                prop_assert_eq!(found.place(), expected.place());
                for ((values, (name, tensor)), (_, kind)) in
                    expected.variables().zip(found.tensors()).zip(&kinds)
                {
                    let shape: Vec<i64> = values.shape().iter().map(|len| *len as i64).collect();
                    prop_assert_eq!((name, tensor.kind()), (values.name(), *kind));
                    prop_assert_eq!(tensor.size(), shape);
                    prop_assert_eq!(found.dimensions(name).unwrap(), values.dimensions());
                    prop_assert_eq!(bytes(tensor), values.bytes());
                }
            }
        }
    }
}

#[test]
fn a_batch_that_is_its_block_is_not_copied() {
    let folder = tempfile::tempdir().unwrap();
    for (batch_rows, is_copied) in [(4, false), (2, true)] {
        for prefetch_batches in [0, 1] {
            let samples = Arc::new(numbered(folder.path()));
            let spec = PipelineSpec { prefetch_batches, ..blocks(batch_rows) };
            let pipeline = Pipeline::new(samples, spec, ArrayBatch::n_samples).unwrap();
            for batch in pipeline.epoch(0).unwrap() {
                let batch = batch.unwrap();
                let decoded = address_of(&batch, "numbers");
                let tensors = ArrayTensors::new(batch).unwrap();
                check_numbers(&tensors);
                let found = address(tensors.tensor("numbers").unwrap());
                assert_eq!(found != decoded, is_copied, "{batch_rows} {prefetch_batches}");
            }
        }
    }
}

#[test]
fn kept_tensors_are_never_overwritten_and_dropped_memory_is_used_again() {
    let folder = tempfile::tempdir().unwrap();
    for batch_rows in [4, 3, 2] {
        let loader = ArrayTensorLoader::new(numbered(folder.path()), blocks(batch_rows)).unwrap();
        let kept: Vec<ArrayTensors> = loader.epoch(0).unwrap().map(Result::unwrap).collect();
        for epoch in loader.epochs(1..4) {
            epoch.unwrap().map(Result::unwrap).for_each(|batch| check_numbers(&batch));
        }
        kept.iter().for_each(check_numbers);
    }

    let loader = ArrayTensorLoader::new(numbered(folder.path()), blocks(4)).unwrap();
    let mut addresses = BTreeSet::new();
    for epoch in loader.epochs(0..6) {
        for batch in epoch.unwrap() {
            addresses.insert(address(batch.unwrap().tensor("numbers").unwrap()));
        }
    }
    // One block in use and one read ahead, two batches ready or in the making, the consumer's.
    assert!(addresses.len() <= 5, "{addresses:?}");
}

#[test]
fn a_view_keeps_the_memory_and_gives_it_back() {
    let folder = tempfile::tempdir().unwrap();
    let spec =
        PipelineSpec { prefetch_batches: 0, prefetch_blocks: 0, read_threads: 0, ..blocks(4) };
    let loader = ArrayTensorLoader::new(numbered(folder.path()), spec).unwrap();
    let mut batches = loader.epoch(0).unwrap();
    let mut next = || batches.next().unwrap().unwrap();
    let first = next();
    let (sample, view) = (first.samples()[2], first.tensor("numbers").unwrap().get(2));
    let kept = address(first.tensor("numbers").unwrap());
    drop(first);
    for _ in 0..2 {
        assert_ne!(address(next().tensor("numbers").unwrap()), kept);
    }
    assert_eq!(Vec::<f32>::try_from(&view).unwrap(), [sample as f32; 5]);
    drop(view);
    let later = [next(), next()].map(|batch| address(batch.tensor("numbers").unwrap()));
    assert!(later.contains(&kept), "{later:?} {kept}");
}

#[test]
fn a_consumer_that_writes_changes_no_other_batch() {
    let folder = tempfile::tempdir().unwrap();
    for batch_rows in [4, 3, 2] {
        let loader = ArrayTensorLoader::new(numbered(folder.path()), blocks(batch_rows)).unwrap();
        for epoch in loader.epochs(0..3) {
            let mut previous: Option<ArrayTensors> = None;
            for batch in epoch.unwrap() {
                let batch = batch.unwrap();
                check_numbers(&batch);
                if let Some(previous) = &previous {
                    let _filled = previous.tensor("numbers").unwrap().shallow_clone().fill_(-1.0);
                }
                check_numbers(&batch);
                previous = Some(batch);
            }
        }
    }
}

#[test]
fn tensors_outlive_the_loader_on_any_thread() {
    let folder = tempfile::tempdir().unwrap();
    let loader = ArrayTensorLoader::new(numbered(folder.path()), blocks(4)).unwrap();
    let mut batches = loader.epoch(0).unwrap();
    let kept: Vec<ArrayTensors> = batches.by_ref().take(3).map(Result::unwrap).collect();
    drop(batches);
    drop(loader);
    kept.iter().for_each(check_numbers);
    std::thread::spawn(move || kept.iter().for_each(check_numbers)).join().unwrap();
}

#[test]
fn an_epoch_is_resumed() {
    let folder = tempfile::tempdir().unwrap();
    let loader = ArrayTensorLoader::new(numbered(folder.path()), blocks(4)).unwrap();
    let whole: Vec<_> = loader.epoch(1).unwrap().map(|of| of.unwrap().samples().to_vec()).collect();
    let mut batches = loader.epoch(1).unwrap();
    let before = batches.by_ref().take(2).map(|of| of.unwrap().samples().to_vec());
    let mut found: Vec<_> = before.collect();
    let state = batches.state();
    found.extend(loader.resume(&state).unwrap().map(|of| of.unwrap().samples().to_vec()));
    assert_eq!(found, whole);
}

#[test]
fn bool_is_0_or_1_whatever_is_stored() {
    let folder = tempfile::tempdir().unwrap();
    let bytes: Vec<u8> = (0..8).map(|n| n * 36).collect();
    write(folder.path(), "mask", ElementType::Bool, [8, 1], &bytes);
    for batch_rows in [4, 2] {
        let samples = open(folder.path(), &SampleSpec::new([Variable::new("mask")]));
        let spec =
            PipelineSpec { order: Order::InOrder, prefetch_batches: 0, ..blocks(batch_rows) };
        let loader = ArrayTensorLoader::new(samples, spec).unwrap();
        let masks = loader.epoch(0).unwrap().map(|of| bytes_of_mask(&of.unwrap()));
        let found: Vec<u8> = masks.flatten().collect();
        assert_eq!(found, [0, 1, 1, 1, 1, 1, 1, 1]);
    }
}

fn bytes_of_mask(batch: &ArrayTensors) -> Vec<u8> {
    bytes(batch.tensor("mask").unwrap())
}

#[test]
fn what_has_no_tensor_is_named_before_anything_is_read() {
    let folder = tempfile::tempdir().unwrap();
    for element in [ElementType::U16, ElementType::U32, ElementType::U64] {
        write(folder.path(), "counts", element, [4, 2], &stored(element, 8, 0));
        let counts = Variable::new("counts");
        let samples = open(folder.path(), &SampleSpec::new([counts.clone()]));
        let refused = ArrayTensorLoader::new(samples, blocks(4)).unwrap_err();
        assert!(
            matches!(&refused, Error::Element { variable, element: of } if variable == "counts" && *of == element)
        );
        let samples = open(folder.path(), &SampleSpec::new([counts.as_f32()]));
        let loader = ArrayTensorLoader::new(samples, blocks(4)).unwrap();
        let batch = loader.epoch(0).unwrap().next().unwrap().unwrap();
        assert_eq!(batch.tensor("counts").unwrap().kind(), Kind::Float);
        says(batch.tensor("count").unwrap_err(), &["no variable count", "but counts"]);
    }
    let n_gpus = usize::try_from(tch::Cuda::device_count()).unwrap();
    let loader = ArrayTensorLoader::new(numbered(folder.path()), blocks(4)).unwrap();
    assert_eq!(loader.device(), Device::Cpu);
    let refused = loader.to_device(Device::Cuda(n_gpus)).unwrap_err();
    assert!(matches!(refused, Error::NoGpu { idx, .. } if idx == n_gpus), "{refused}");
}

#[test]
fn a_chunk_that_cannot_be_read_ends_the_epoch() {
    let folder = tempfile::tempdir().unwrap();
    let samples = numbered(folder.path());
    fs::write(folder.path().join("numbers/c/7/0"), [0; 3]).unwrap();
    let loader = ArrayTensorLoader::new(samples, blocks(4)).unwrap();
    let mut batches = loader.epoch(0).unwrap();
    let error = batches.find_map(Result::err).unwrap();
    assert!(matches!(error, Error::Arrays(_)), "{error}");
    assert!(batches.next().is_none());
}

#[track_caller]
fn says(error: impl Display, words: &[&str]) {
    let text = error.to_string();
    assert!(words.iter().all(|word| text.contains(word)), "{text}");
}
