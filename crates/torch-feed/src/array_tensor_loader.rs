//! A loader of array samples whose batches are tensors.

use std::ops::RangeBounds;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use arrays::ArraySamples;
use pipeline::{Epoch, EpochStats, LoaderState, Pipeline, PipelineSpec};
use tch::Device;

use crate::ahead::Ahead;
use crate::array_tensors::ArrayTensors;
use crate::copies_ahead::CopiesAhead;
use crate::device::{CopyDevice, TorchDevice};
use crate::error::Error;
use crate::tensor_source::TensorSource;

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
///
/// With the feature `images` it delivers image cubes, too: `ArrayTensorLoader<ImageSamples>`. In a
/// ring of [`PinnedSlots`](crate::PinnedSlots) they are copied to a GPU without waiting
/// ([`copies_ahead`](Self::copies_ahead)).
#[derive(Debug)]
pub struct ArrayTensorLoader<S: TensorSource = ArraySamples> {
    pipeline: Pipeline<S>,
    /// `None` if tensors stay on the CPU.
    device: Option<Arc<dyn CopyDevice>>,
    target: Device,
    copies_ahead: usize,
}

impl<S: TensorSource<Error: Into<Error>>> ArrayTensorLoader<S> {
    /// Makes a loader of `samples` whose tensors are on the CPU.
    ///
    /// # Errors
    /// torch has no tensors of a variable's elements; the settings do not fit together.
    pub fn new(samples: S, spec: PipelineSpec) -> Result<Self, Error> {
        samples.check_elements()?;
        let pipeline =
            Pipeline::new(Arc::new(samples), spec, S::n_samples_of).map_err(Into::into)?;
        Ok(Self { pipeline, device: None, target: Device::Cpu, copies_ahead: 0 })
    }

    /// Copies each batch to `device` when it is delivered. Waits for the copy before the next batch
    /// is taken, unless [`copies_ahead`](Self::copies_ahead) allows more.
    ///
    /// # Errors
    /// torch does not see this GPU.
    pub fn to_device(self, device: Device) -> Result<Self, Error> {
        let copies = Arc::new(TorchDevice::new(device)?) as Arc<dyn CopyDevice>;
        Ok(self.copied_by((device != Device::Cpu).then_some(copies), device))
    }

    /// Copies batches with `device`; `None` copies nothing.
    pub(crate) fn copied_by(self, device: Option<Arc<dyn CopyDevice>>, target: Device) -> Self {
        Self { device, target, ..self }
    }

    /// Lets copies of up to `n_batches` batches be under way when the next batch is taken, so that
    /// the host does not wait for the device. On a GPU the copies of a batch then begin when the
    /// batch before is delivered, so that they run beside the consumer's work. Their host memory is
    /// kept as long, so a ring needs as many slots more. Only copies from pinned memory go on by
    /// themselves.
    #[must_use]
    pub fn copies_ahead(self, n_batches: usize) -> Self {
        Self { copies_ahead: n_batches, ..self }
    }

    /// The inner pipeline: its samples, settings and number of batches.
    pub fn pipeline(&self) -> &Pipeline<S> {
        &self.pipeline
    }

    /// The device of the tensors.
    pub fn device(&self) -> Device {
        self.target
    }

    /// Starts an epoch. The same number gives the same batches again.
    ///
    /// # Errors
    /// The epoch cannot be planned, or its memory does not fit the budget.
    pub fn epoch(&self, epoch: u64) -> Result<ArrayTensorEpoch<S>, Error> {
        Ok(self.tensors_of(self.pipeline.epoch(epoch).map_err(Into::into)?))
    }

    /// Continues an epoch from a saved state, like [`Pipeline::resume`].
    ///
    /// # Errors
    /// The state is of other samples or settings.
    pub fn resume(&self, state: &LoaderState) -> Result<ArrayTensorEpoch<S>, Error> {
        Ok(self.tensors_of(self.pipeline.resume(state).map_err(Into::into)?))
    }

    /// Starts a range of epochs without a gap between them, like [`Pipeline::epochs`].
    pub fn epochs(
        &self,
        numbers: impl RangeBounds<u64>,
    ) -> impl Iterator<Item = Result<ArrayTensorEpoch<S>, Error>> + '_ {
        let epochs = self.pipeline.epochs(numbers);
        epochs.map(|epoch| Ok(self.tensors_of(epoch.map_err(Into::into)?)))
    }

    fn tensors_of(&self, epoch: Epoch<S>) -> ArrayTensorEpoch<S> {
        let device = self.device.clone();
        let copies = device.map(|device| {
            // A batch ahead is one whose copies are under way when the next batch is taken.
            let ahead = Ahead::new(Arc::clone(&device), 0 < self.copies_ahead);
            (CopiesAhead::new(device, self.copies_ahead), ahead)
        });
        ArrayTensorEpoch { epoch, copies }
    }
}

/// The batches of one epoch as tensors. It ends its threads when it is dropped, and ends after an
/// error. A batch whose tensors cannot be made does not count as delivered.
#[derive(Debug)]
pub struct ArrayTensorEpoch<S: TensorSource = ArraySamples> {
    epoch: Epoch<S>,
    /// `None` if tensors stay on the CPU.
    copies: Option<(CopiesAhead, Ahead<ArrayTensors>)>,
}

impl<S: TensorSource<Error: Into<Error>>> ArrayTensorEpoch<S> {
    /// The engine's counts and times so far. Waits do not include making tensors or copying to a
    /// device. A batch whose copies have begun counts.
    pub fn stats(&self) -> EpochStats {
        self.epoch.stats()
    }

    /// The consumer's place, to resume from.
    pub fn state(&self) -> LoaderState {
        let place = self.copies.as_ref().and_then(|(_, ahead)| ahead.place());
        place.cloned().unwrap_or_else(|| self.epoch.state())
    }

    /// Number of batches of the epoch, unless an error ends it earlier.
    pub fn n_batches(&self) -> u64 {
        self.epoch.n_batches()
    }
}

impl<S: TensorSource<Error: Into<Error>>> Iterator for ArrayTensorEpoch<S> {
    type Item = Result<ArrayTensors, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let Self { epoch, copies } = self;
        let tensors_of =
            |batch: Result<S::Batch, S::Error>| S::tensors_of(batch.map_err(Into::into)?);
        let Some((copies, ahead)) = copies else { return epoch.next_made(tensors_of) };
        let begin = |epoch: &mut Epoch<S>, limit: Option<Duration>| {
            copies.settle();
            let copy = |batch: Result<_, _>| copies.copy(tensors_of(batch)?);
            match limit {
                Some(limit) => epoch.next_made_within(limit, copy),
                None => Poll::Ready(epoch.next_made(copy)),
            }
        };
        ahead.next(epoch, Epoch::state, begin, Ok)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.epoch.size_hint()
    }
}
