//! Batches on a device have the values that they have on the CPU: on the first GPU if torch sees
//! one, otherwise on the CPU.
//!
//! With `SOMAFEED_REQUIRE_GPU` in the environment these tests fail on a machine without a GPU. On a
//! GPU a long kernel is queued before each batch, so that its copy is late: host memory that is
//! written too early shows up as wrong values.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::thread;

use arrays::{ArraySamples, SampleSpec, Variable};
use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use fields::generate::{FieldSpec, GenerateSpec, generate};
use loader::encode::{Encoders, LabelEncoder, Rules};
use loader::{BatchForm, BlockForm, Cells, Dataset, GeneSelection, LoaderSpec};
use pipeline::PipelineSpec;
use soma_io::{CsrBuffers, MemoryReader};
use storage::LocalStorage;
use tch::{Device, Kind, Tensor};

use super::late_device::values;
use crate::{ArrayTensorLoader, ArrayTensors, TensorBatch, TensorLoader, TensorSource};
#[cfg(feature = "images")]
use {super::copies_of_images, crate::PinnedSlots};

const N_GENES: usize = 300;

/// The device under test.
fn device() -> Device {
    let device = Device::cuda_if_available();
    let is_required = std::env::var_os("SOMAFEED_REQUIRE_GPU").is_some();
    assert!(device.is_cuda() || !is_required, "SOMAFEED_REQUIRE_GPU is set, and torch sees no GPU");
    device
}

/// Work that keeps a GPU busy; does nothing on the CPU.
struct LongKernel(Option<Tensor>);

impl LongKernel {
    /// One queued product takes a third of a millisecond (2,048 rows) on an H100, eight times as
    /// long with twice as many rows.
    fn new(n_rows: i64, device: Device) -> Self {
        let options = (Kind::Float, device);
        Self(device.is_cuda().then(|| Tensor::f_randn([n_rows, n_rows], options).unwrap()))
    }

    fn queue(&self) {
        if let Some(matrix) = &self.0 {
            drop(matrix.f_matmul(matrix).unwrap());
        }
    }
}

/// The value of a gene that is stored for a cell; every value is exact in f16.
fn stored(cell: u64, gene: usize) -> Option<f32> {
    let hash = (cell * 31 + gene as u64 * 17).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
    hash.is_multiple_of(9).then_some((hash % 2_000 + 1) as f32)
}

fn matrix(n_cells: u64, sign: f32) -> Arc<MemoryReader> {
    let mut csr = CsrBuffers { row_offsets: vec![0], n_columns: N_GENES, ..CsrBuffers::default() };
    for cell in 0..n_cells {
        for gene in 0..N_GENES {
            if let Some(value) = stored(cell, gene) {
                csr.columns.push(gene as u32);
                csr.values.push(sign * value);
            }
        }
        csr.row_offsets.push(csr.values.len());
    }
    Arc::new(MemoryReader::new(csr).unwrap())
}

/// Cells with a label, a second layer and an array of obsm.
fn dataset(n_cells: u64) -> Dataset {
    let kinds = Int64Array::from_iter_values((0..n_cells).map(|cell| cell as i64 % 5));
    let obs = RecordBatch::try_from_iter([("kind", Arc::new(kinds) as ArrayRef)]).unwrap();
    let encoder = LabelEncoder::fit("kind", obs.column(0), Rules::default()).unwrap();
    let encoders = Encoders::new(vec![Arc::new(encoder)]).unwrap();
    let genes = GeneSelection::All;
    let dataset = Dataset::new(matrix(n_cells, 1.0), Cells::Range(0..n_cells), obs, genes).unwrap();
    let dataset = dataset.with_layer("negative", matrix(n_cells, -1.0)).unwrap();
    let dataset = dataset.with_obsm("X_pca", matrix(n_cells, 0.5)).unwrap();
    dataset.with_encoders(&encoders).unwrap()
}

fn spec(batch_form: BatchForm, prefetch_batches: usize) -> LoaderSpec {
    LoaderSpec {
        pipeline: PipelineSpec {
            chunk_rows: 16,
            chunks_per_block: 64,
            batch_rows: 64,
            prefetch_batches,
            ..PipelineSpec::default()
        },
        batch_form,
        block_form: BlockForm::Csr,
        ..LoaderSpec::default()
    }
}

/// Strided values of a tensor in any form.
fn strided(tensor: &Tensor) -> Tensor {
    let is_sparse = tensor.is_sparse() || tensor.f_crow_indices().is_ok();
    if is_sparse { tensor.to_dense(None::<Kind>, false) } else { tensor.shallow_clone() }
}

fn on_cpu(tensor: &Tensor) -> Vec<f64> {
    values(&strided(tensor).to_device(Device::Cpu))
}

/// A loader for the device; the dense batches of some are made there.
fn loader(dataset: &Dataset, spec: LoaderSpec, densify: bool, device: Device) -> TensorLoader {
    let loader = TensorLoader::new(dataset.clone(), spec).unwrap().to_device(device).unwrap();
    if densify { loader.densify_on_device().unwrap() } else { loader }
}

const WAYS: [(BatchForm, bool); 6] = [
    (BatchForm::Dense, false),
    (BatchForm::F16, false),
    (BatchForm::Csr, false),
    (BatchForm::Coo, false),
    (BatchForm::Dense, true),
    (BatchForm::F16, true),
];

#[track_caller]
fn check_equal(found: &TensorBatch, wanted: &TensorBatch, device: Device) {
    let tensors = |batch: &TensorBatch| {
        let beside = [batch.layer("negative"), batch.obsm("X_pca"), batch.codes("kind")];
        let beside = beside.map(|tensor| tensor.unwrap().shallow_clone());
        [batch.x().shallow_clone(), batch.joinids().shallow_clone()].into_iter().chain(beside)
    };
    for (found, wanted) in tensors(found).zip(tensors(wanted)) {
        assert_eq!((found.device(), found.size()), (device, wanted.size()));
        assert_eq!(on_cpu(&found), on_cpu(&wanted));
    }
    assert_eq!(found.obs(), wanted.obs());
}

#[test]
fn every_form_has_the_values_of_the_cpu() {
    let (device, dataset) = (device(), dataset(500));
    let kernel = LongKernel::new(4_096, device);
    for (batch_form, densify) in WAYS {
        for prefetch_batches in [0, 1, 3] {
            let spec = spec(batch_form, prefetch_batches);
            let plain = TensorLoader::new(dataset.clone(), spec.clone()).unwrap();
            let sent = loader(&dataset, spec, densify, device);
            for epoch in 0..2 {
                kernel.queue();
                // All are kept until the end of the epoch.
                let found: Vec<_> = sent.epoch(epoch).unwrap().map(Result::unwrap).collect();
                let wanted: Vec<_> = plain.epoch(epoch).unwrap().map(Result::unwrap).collect();
                assert_eq!(found.len(), wanted.len());
                for (found, wanted) in found.iter().zip(&wanted) {
                    let kind = if densify { wanted.x().kind() } else { found.x().kind() };
                    assert_eq!(found.x().kind(), kind);
                    check_equal(found, wanted, device);
                }
            }
        }
    }
}

/// A number for each row that depends on each of its values, exact in f64; the joinids below.
fn row_sums(batch: &TensorBatch) -> Tensor {
    let weights = Tensor::arange(N_GENES as i64, (Kind::Double, batch.x().device())) + 1.0;
    let sums = strided(batch.x()).to_kind(Kind::Double).matmul(&weights);
    Tensor::stack(&[sums, batch.joinids().to_kind(Kind::Double)], 0)
}

/// Checks all rows of `n_epochs` epochs. The sums are computed where the batches are, and read at
/// the end: until then the host is ahead of the device.
fn check_sums(loader: &TensorLoader, kernel: &LongKernel, n_epochs: u64) {
    let mut sums = Vec::new();
    for epoch in loader.epochs(0..n_epochs) {
        for batch in epoch.unwrap() {
            kernel.queue();
            sums.push(row_sums(&batch.unwrap()));
        }
    }
    let found = values(&Tensor::cat(&sums, 1).to_device(Device::Cpu));
    let (sums, joinids) = found.split_at(found.len() / 2);
    assert_eq!(sums.len() as u64, n_epochs * loader.loader().dataset().n_rows());
    let wanted = |cell: u64| -> f64 {
        let weighted = |gene| stored(cell, gene).map(|value| f64::from(value) * (gene + 1) as f64);
        (0..N_GENES).filter_map(weighted).sum()
    };
    let wrong = sums.iter().zip(joinids).find(|(sum, cell)| wanted(**cell as u64) != **sum);
    assert!(wrong.is_none(), "{wrong:?} after {} batches", sums.len() / 64);
}

#[test]
fn no_slot_is_reused_before_its_copy_is_done() {
    let device = device();
    let dataset = dataset(if device.is_cuda() { 20_000 } else { 1_000 });
    let kernel = LongKernel::new(2_048, device);
    for (batch_form, densify) in WAYS {
        // 313 batches an epoch on a GPU: 10,016 by each way of dense f32.
        let is_long = device.is_cuda() && batch_form == BatchForm::Dense;
        let sent = loader(&dataset, spec(batch_form, 1), densify, device);
        check_sums(&sent, &kernel, if is_long { 32 } else { 2 });
    }
}

#[test]
fn batches_kept_from_a_dropped_epoch_stay_right() {
    let (device, dataset) = (device(), dataset(1_000));
    let kernel = LongKernel::new(4_096, device);
    for (batch_form, densify) in WAYS {
        for n_taken in 0..5 {
            let spec = spec(batch_form, 2);
            let plain = TensorLoader::new(dataset.clone(), spec.clone()).unwrap();
            let sent = loader(&dataset, spec, densify, device);
            kernel.queue();
            let mut epoch = sent.epoch(3).unwrap();
            let kept: Vec<_> = epoch.by_ref().take(n_taken).map(Result::unwrap).collect();
            drop(sent);
            drop(epoch);
            for (found, wanted) in kept.iter().zip(plain.epoch(3).unwrap()) {
                check_equal(found, &wanted.unwrap(), device);
            }
        }
    }
}

#[test]
fn two_loaders_feed_one_device() {
    let (device, dataset) = (device(), dataset(1_000));
    let feed = |densify| {
        let sent = loader(&dataset, spec(BatchForm::Dense, 1), densify, device);
        check_sums(&sent, &LongKernel::new(2_048, device), 3);
    };
    thread::scope(|scope| {
        for densify in [false, true, true] {
            scope.spawn(move || feed(densify));
        }
    });
}

/// Opens a store of 40 samples of fields that is written on the first call.
fn fields(folder: &Path) -> ArraySamples {
    let fields = FieldSpec { n_samples: 40, n_lat: 12, n_lon: 16, ..FieldSpec::default() };
    let fields = FieldSpec { n_inputs: 3, n_targets: 2, ..fields };
    let store = folder.join("weather");
    if !store.exists() {
        generate(&store, &GenerateSpec { fields, ..GenerateSpec::default() }, &mut |_| ()).unwrap();
    }
    let spec = SampleSpec::new([Variable::new("inputs").steps([-1, 0]), Variable::new("targets")]);
    ArraySamples::open(Arc::new(LocalStorage::new(store)), &spec).unwrap()
}

fn blocks(batch_rows: u64) -> PipelineSpec {
    PipelineSpec { chunk_rows: 1, chunks_per_block: 4, batch_rows, ..PipelineSpec::default() }
}

/// Takes all batches of an epoch on the device; the error that ended it, if one did.
fn take_all<S: TensorSource<Error: Into<crate::Error>>>(
    loader: ArrayTensorLoader<S>,
    device: Device,
    copies_ahead: usize,
) -> (Vec<ArrayTensors>, Option<crate::Error>) {
    let kernel = LongKernel::new(4_096, device);
    let loader = loader.to_device(device).unwrap().copies_ahead(copies_ahead);
    let (mut taken, mut failure) = (Vec::new(), None);
    for batch in loader.epoch(1).unwrap() {
        kernel.queue();
        match batch {
            Ok(batch) => taken.push(batch),
            Err(error) => failure = Some(error),
        }
    }
    (taken, failure)
}

#[track_caller]
fn check_same_arrays(found: &[ArrayTensors], wanted: &[ArrayTensors], device: Device) {
    for (found, wanted) in found.iter().zip(wanted) {
        assert_eq!(found.samples(), wanted.samples());
        for ((name, found), (_, wanted)) in found.tensors().zip(wanted.tensors()) {
            assert_eq!((found.device(), found.kind()), (device, wanted.kind()), "{name}");
            assert!(found.to_device(Device::Cpu).equal(wanted), "{name}");
        }
    }
}

#[test]
fn fields_have_the_values_of_the_cpu() {
    let (device, folder) = (device(), tempfile::tempdir().unwrap());
    for batch_rows in [4, 3] {
        let loader = || ArrayTensorLoader::new(fields(folder.path()), blocks(batch_rows)).unwrap();
        let wanted: Vec<_> = loader().epoch(1).unwrap().map(Result::unwrap).collect();
        for copies_ahead in [0, 1, 3] {
            let (found, failure) = take_all(loader(), device, copies_ahead);
            assert!(failure.is_none() && found.len() == wanted.len(), "{failure:?}");
            check_same_arrays(&found, &wanted, device);
        }
    }
}

/// Cuts every file of a folder whose path contains the text to three bytes.
fn truncate(folder: &Path, text: &str) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            truncate(&path, text);
        } else if path.to_str().unwrap().contains(text) {
            fs::write(path, [0; 3]).unwrap();
        }
    }
}

#[test]
fn what_came_before_an_error_stays_right() {
    let (device, folder) = (device(), tempfile::tempdir().unwrap());
    let loader = || ArrayTensorLoader::new(fields(folder.path()), blocks(4)).unwrap();
    let wanted: Vec<_> = loader().epoch(1).unwrap().map(Result::unwrap).collect();
    let damaged = wanted[5].samples()[1];
    truncate(folder.path(), &format!("targets/c/{}/", damaged + 1));
    let (found, failure) = take_all(loader(), device, 2);
    assert!(matches!(failure, Some(crate::Error::Arrays(_))), "{failure:?}");
    assert!(found.len() <= 5);
    check_same_arrays(&found, &wanted, device);
}

#[cfg(feature = "images")]
#[test]
fn cubes_from_a_ring_have_the_values_of_the_cpu() {
    let (device, folder) = (device(), tempfile::tempdir().unwrap());
    copies_of_images::write(folder.path(), 12);
    let loader = |device: Device, n_kept: usize| {
        let slots = PinnedSlots::new(device).unwrap();
        let (samples, spec) = copies_of_images::samples(folder.path(), n_kept, slots);
        ArrayTensorLoader::new(samples, spec).unwrap()
    };
    let plain = loader(Device::Cpu, 8).epoch(1).unwrap();
    let wanted: Vec<_> = plain.map(|batch| batch.unwrap().copy_to(Device::Cpu).unwrap()).collect();
    assert_eq!(wanted.len(), 6);
    for copies_ahead in [0, 1, 3] {
        let (found, failure) = take_all(loader(device, 8), device, copies_ahead);
        assert!(failure.is_none() && found.len() == wanted.len(), "{failure:?}");
        check_same_arrays(&found, &wanted, device);
    }
}
