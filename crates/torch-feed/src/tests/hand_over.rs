//! A batch whose tensors cannot be made does not count as delivered: a resumed epoch has it. Each
//! copy to a device fails in turn, by an error and by a panic, for every kind of tensor loader.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrays::{ArraySamples, SampleSpec, Variable};
use loader::{BatchForm, LoaderState};
use pipeline::PipelineSpec;
use storage::LocalStorage;
use tch::{Device, Tensor};

use super::{copies_of_images, dataset, sequences_as_tensors, spec};
use crate::array_tensor_loader::{ArrayTensorEpoch, ArrayTensorLoader};
use crate::device::{CopyDevice, Ticket};
use crate::{Error, PinnedSlots, TensorEpoch, TensorLoader, TensorSource};

/// A device whose copy of this number fails, counted from 1.
#[derive(Debug)]
struct Failing {
    n_begun: AtomicU64,
    fails_at: u64,
    panics: bool,
    is_beside: bool,
}

impl CopyDevice for Failing {
    fn pinned_for(&self) -> Option<Device> {
        None
    }

    fn copies_beside(&self) -> bool {
        self.is_beside
    }

    fn begin_copy(&self, host: &Tensor) -> Result<(Tensor, Ticket), Error> {
        if self.n_begun.fetch_add(1, Ordering::SeqCst) + 1 == self.fails_at {
            assert!(!self.panics, "scripted panic");
            let source = tch::TchError::Convert("the device is full".to_owned());
            return Err(Error::Torch { what: "a copy", source });
        }
        Ok((host.copy(), Ticket(0)))
    }

    fn done(&self) -> Ticket {
        Ticket(0)
    }

    fn wait(&self, ticket: Ticket) -> Ticket {
        ticket
    }
}

/// An epoch of any tensor loader.
trait Batches {
    /// The samples of the next batch.
    fn next_samples(&mut self) -> Option<Result<Vec<u64>, Error>>;

    fn place(&self) -> LoaderState;
}

impl Batches for TensorEpoch {
    fn next_samples(&mut self) -> Option<Result<Vec<u64>, Error>> {
        let joinids = |of: &Tensor| Vec::<i64>::try_from(of).unwrap();
        let samples = |of: &Tensor| joinids(of).into_iter().map(i64::cast_unsigned).collect();
        self.next().map(|batch| batch.map(|batch| samples(batch.joinids())))
    }

    fn place(&self) -> LoaderState {
        self.state()
    }
}

impl<S: TensorSource<Error: Into<Error>>> Batches for ArrayTensorEpoch<S> {
    fn next_samples(&mut self) -> Option<Result<Vec<u64>, Error>> {
        self.next().map(|batch| batch.map(|batch| batch.samples().to_vec()))
    }

    fn place(&self) -> LoaderState {
        self.state()
    }
}

type Copies = Option<Arc<dyn CopyDevice>>;

/// Starts an epoch over a device, from a state if there is one.
type Start<'a> = &'a dyn Fn(Copies, Option<&LoaderState>) -> Box<dyn Batches>;

fn rest(mut batches: Box<dyn Batches>) -> Vec<Vec<u64>> {
    std::iter::from_fn(|| batches.next_samples().map(Result::unwrap)).collect()
}

/// The samples of the batches up to one that fails, whose copy of this number does. `None` if the
/// epoch has fewer copies.
fn until_failure(batches: &mut dyn Batches) -> Option<Vec<Vec<u64>>> {
    let mut found = Vec::new();
    loop {
        match catch_unwind(AssertUnwindSafe(|| batches.next_samples())) {
            Ok(Some(Ok(samples))) => found.push(samples),
            Ok(Some(Err(_))) | Err(_) => return Some(found),
            Ok(None) => return None,
        }
    }
}

fn check(kind: &str, start: Start<'_>) {
    let whole = rest(start(None, None));
    for (panics, is_beside) in [(false, false), (true, false), (false, true), (true, true)] {
        let mut n_failures = 0;
        for fails_at in 1.. {
            let device = Failing { n_begun: AtomicU64::new(0), fails_at, panics, is_beside };
            let mut batches = start(Some(Arc::new(device)), None);
            let Some(mut found) = until_failure(&mut *batches) else { break };
            let state = batches.place();
            assert_eq!(state.batches_delivered(), found.len() as u64, "{kind}, copy {fails_at}");
            assert!(batches.next_samples().is_none(), "{kind}, copy {fails_at}");
            found.extend(rest(start(None, Some(&state))));
            assert_eq!(found, whole, "{kind}, copy {fails_at}");
            n_failures += 1;
        }
        assert!(n_failures >= whole.len(), "{kind}: {n_failures} failures");
    }
}

fn check_arrays<S: TensorSource<Error: Into<Error>>>(
    kind: &str,
    samples: &dyn Fn() -> (S, PipelineSpec),
) {
    check(kind, &|copies, state| {
        let (samples, spec) = samples();
        let loader = ArrayTensorLoader::new(samples, spec).unwrap();
        let loader = loader.copied_by(copies, Device::Cpu);
        Box::new(match state {
            Some(state) => loader.resume(state).unwrap(),
            None => loader.epoch(1).unwrap(),
        })
    });
}

#[test]
fn cells_whose_tensors_fail_come_again() {
    for form in [BatchForm::Dense, BatchForm::F16, BatchForm::Csr] {
        for on_device in [false, true] {
            if on_device && form == BatchForm::Csr {
                continue;
            }
            check(&format!("{form}, {on_device}"), &|copies, state| {
                let loader = TensorLoader::new(dataset(), spec(form)).unwrap();
                let loader = if on_device { loader.densify_on_device().unwrap() } else { loader };
                let loader = loader.copied_by(copies, Device::Cpu).unwrap();
                Box::new(match state {
                    Some(state) => loader.resume(state).unwrap(),
                    None => loader.epoch(1).unwrap(),
                })
            });
        }
    }
}

/// 12 samples, each an array of three values.
fn write_array(folder: &Path) {
    let metadata = r#"{"zarr_format": 3, "node_type": "array", "shape": [12, 3],
        "data_type": "float32", "fill_value": 1, "attributes": {},
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [1, 3]}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}]}"#;
    std::fs::create_dir_all(folder.join("ones")).unwrap();
    std::fs::write(folder.join("ones/zarr.json"), metadata).unwrap();
}

#[test]
fn arrays_images_and_sequences_whose_tensors_fail_come_again() {
    let folder = tempfile::tempdir().unwrap();
    write_array(folder.path());
    let variables = SampleSpec::new([Variable::new("ones"), Variable::new("ones").named("same")]);
    check_arrays("arrays", &|| {
        let storage = Arc::new(LocalStorage::new(folder.path()));
        let sizes = PipelineSpec { chunk_rows: 1, chunks_per_block: 4, ..PipelineSpec::default() };
        let spec = PipelineSpec { batch_rows: 3, ..sizes };
        (ArraySamples::open(storage, &variables).unwrap(), spec)
    });
    let folder = tempfile::tempdir().unwrap();
    copies_of_images::write(folder.path(), 12);
    let slots = PinnedSlots::new(Device::Cpu).unwrap();
    check_arrays("images", &|| copies_of_images::samples(folder.path(), 1, slots));
    let folder = tempfile::tempdir().unwrap();
    let samples = sequences_as_tensors::samples(folder.path());
    check_arrays("sequences", &|| samples.clone());
}
