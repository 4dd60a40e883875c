//! A loader of array samples whose batches are tensors.

use std::ops::RangeBounds;
use std::sync::Arc;

use arrays::{ArrayBatch, ArraySamples};
use pipeline::{Epoch, EpochStats, LoaderState, Pipeline, PipelineSpec};
use tch::Device;

use crate::array_tensors::{ArrayTensors, kind_of};
use crate::device::TorchDevice;
use crate::error::Error;

/// Delivers samples of arrays as tensors, epoch by epoch.
///
/// With blocks as large as batches (`chunk_rows * chunks_per_block == batch_rows`) no value is
/// copied on the CPU: tensors borrow the memory of their block. Otherwise each batch is copied
/// once. A consumer that keeps tensors keeps that memory, which the budget of the settings does not
/// count.
///
/// ```
/// # let folder = tempfile::tempdir()?;
/// # use fields::generate::{FieldSpec, GenerateSpec, generate};
/// # let sizes = FieldSpec { n_samples: 9, n_lat: 2, n_lon: 4, ..FieldSpec::default() };
/// # let fields = FieldSpec { n_inputs: 3, n_targets: 1, ..sizes };
/// # let weather = folder.path().join("weather");
/// # generate(&weather, &GenerateSpec { fields, ..GenerateSpec::default() }, &mut |_| ())?;
/// use std::sync::Arc;
///
/// use arrays::{ArraySamples, SampleSpec, Variable};
/// use pipeline::PipelineSpec;
/// use storage::LocalStorage;
/// use torch_feed::ArrayTensorLoader;
///
/// // A store of 9 samples: inputs of 2 x 4 x 3 values, targets of 2 x 4 x 1.
/// let spec = SampleSpec::new([Variable::new("inputs").steps([-1, 0]), Variable::new("targets")]);
/// let samples = ArraySamples::open(Arc::new(LocalStorage::new(weather)), &spec)?;
/// let sizes = PipelineSpec { chunk_rows: 1, chunks_per_block: 4, ..Default::default() };
/// let loader = ArrayTensorLoader::new(samples, PipelineSpec { batch_rows: 4, ..sizes })?;
/// for batch in loader.epoch(0)? {
///     let batch = batch?;
///     assert_eq!(batch.tensor("inputs")?.size(), [4, 2, 2, 4, 3]);
///     assert_eq!(batch.tensor("targets")?.size(), [4, 2, 4, 1]);
///     assert_eq!(batch.dimensions("targets")?, ["sample", "lat", "lon", "target_channels"]);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct ArrayTensorLoader {
    pipeline: Pipeline<ArraySamples>,
    device: Device,
}

impl ArrayTensorLoader {
    /// Makes a loader of `samples` whose tensors are on the CPU.
    ///
    /// # Errors
    /// torch has no tensors of a variable's elements; the settings do not fit together.
    pub fn new(samples: ArraySamples, spec: PipelineSpec) -> Result<Self, Error> {
        for (variable, element) in samples.elements() {
            kind_of(variable, element)?;
        }
        let pipeline = Pipeline::new(Arc::new(samples), spec, ArrayBatch::n_samples)?;
        Ok(Self { pipeline, device: Device::Cpu })
    }

    /// Copies each batch to `device` when it is delivered, and waits for the copy. Batches on their
    /// way are not in pinned memory, unlike those of [`TensorLoader`](crate::TensorLoader).
    ///
    /// # Errors
    /// torch does not see this GPU.
    pub fn to_device(self, device: Device) -> Result<Self, Error> {
        TorchDevice::new(device)?;
        Ok(Self { device, ..self })
    }

    /// The inner pipeline: its samples, settings and number of batches.
    pub fn pipeline(&self) -> &Pipeline<ArraySamples> {
        &self.pipeline
    }

    /// The device of the tensors.
    pub fn device(&self) -> Device {
        self.device
    }

    /// Starts an epoch. The same number gives the same batches again.
    ///
    /// # Errors
    /// The epoch cannot be planned, or its memory does not fit the budget.
    pub fn epoch(&self, epoch: u64) -> Result<ArrayTensorEpoch, Error> {
        Ok(self.tensors_of(self.pipeline.epoch(epoch)?))
    }

    /// Continues an epoch from a saved state, like [`Pipeline::resume`].
    ///
    /// # Errors
    /// The state is of other samples or settings.
    pub fn resume(&self, state: &LoaderState) -> Result<ArrayTensorEpoch, Error> {
        Ok(self.tensors_of(self.pipeline.resume(state)?))
    }

    /// Starts a range of epochs without a gap between them, like [`Pipeline::epochs`].
    pub fn epochs(
        &self,
        numbers: impl RangeBounds<u64>,
    ) -> impl Iterator<Item = Result<ArrayTensorEpoch, Error>> + '_ {
        self.pipeline.epochs(numbers).map(|epoch| Ok(self.tensors_of(epoch?)))
    }

    fn tensors_of(&self, epoch: Epoch<ArraySamples>) -> ArrayTensorEpoch {
        ArrayTensorEpoch { epoch, device: self.device, failed: false }
    }
}

/// The batches of one epoch as tensors. It ends its threads when it is dropped, and ends after an
/// error.
#[derive(Debug)]
pub struct ArrayTensorEpoch {
    epoch: Epoch<ArraySamples>,
    device: Device,
    failed: bool,
}

impl ArrayTensorEpoch {
    /// The engine's counts and times so far. Waits do not include making tensors or copying to a
    /// device.
    pub fn stats(&self) -> EpochStats {
        self.epoch.stats()
    }

    /// The consumer's place, to resume from.
    pub fn state(&self) -> LoaderState {
        self.epoch.state()
    }

    /// Number of batches of the epoch, unless an error ends it earlier.
    pub fn n_batches(&self) -> u64 {
        self.epoch.n_batches()
    }
}

impl Iterator for ArrayTensorEpoch {
    type Item = Result<ArrayTensors, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let batch = self.epoch.next()?.map_err(Error::from);
        let tensors = batch.and_then(ArrayTensors::new);
        let tensors = tensors.and_then(|tensors| tensors.to_device(self.device));
        self.failed = tensors.is_err();
        Some(tensors)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.epoch.size_hint()
    }
}
