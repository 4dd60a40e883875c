//! The loader with torch's memory under it.

use std::ops::RangeBounds;
use std::sync::Arc;

use loader::{BatchForm, Dataset, Epoch, EpochStats, Loader, LoaderSpec, LoaderState};
use tch::{Device, Kind};

use crate::batch::{Feed, TensorBatch};
use crate::buffers::TensorBuffers;
use crate::device::{CopyDevice, TorchDevice};
use crate::error::Error;
use crate::staging::Staging;
use crate::stored_type::stored_kind;

/// Gives the batches of a data set as tensors, epoch by epoch.
#[derive(Debug)]
pub struct TensorLoader {
    loader: Loader<TensorBuffers>,
    feed: Arc<Feed>,
}

/// Buffers that are on their way at once: of batches that are ready, in the making, and with the consumer.
fn n_buffers(spec: &LoaderSpec) -> usize {
    let of_batch = match spec.form {
        BatchForm::Dense | BatchForm::F16 => 1,
        BatchForm::Csr => 2,
        BatchForm::Coo => 3,
    };
    spec.prefetch_batches.saturating_add(2).saturating_mul(of_batch)
}

impl TensorLoader {
    /// A loader of `dataset` whose tensors are on the CPU.
    pub fn new(dataset: Dataset, spec: LoaderSpec) -> Result<Self, Error> {
        let buffers = TensorBuffers::new(n_buffers(&spec));
        let loader = Loader::with_buffers(dataset, spec, Arc::new(buffers))?;
        let feed = Feed { device: Device::Cpu, staging: None, dense_kind: None, stored: None };
        Ok(Self { loader, feed: Arc::new(feed) })
    }

    /// The same, with each batch copied to `device` when it is handed over.
    ///
    /// To a GPU batches are copied from pinned memory, without waiting for the copy or for the work before it: the device does both
    /// in the order of the calls. So the tensors may be used at once, and reading a value of one waits. There is pinned memory for at
    /// most `prefetch_batches + 2` batches more than without a GPU; only where all of it is on its way is the device waited for, as
    /// it is when the loader and its epochs are dropped. The thread that makes batches does that, not the consumer's, unless
    /// `prefetch_batches` is 0. COO batches are copied the slow way, waiting.
    ///
    /// This has been tested without a GPU only, with a stand-in for it that copies late.
    ///
    /// # Errors
    /// A GPU that torch does not see.
    pub fn to_device(self, device: Device) -> Result<Self, Error> {
        let copies = match device {
            // Sparse rows are sent to be made dense, to the CPU too.
            Device::Cpu if self.feed.dense_kind.is_none() => None,
            _ => Some(Arc::new(TorchDevice::new(device)?) as Arc<dyn CopyDevice>),
        };
        self.copied_by(copies, device)
    }

    /// The same, copied to `device` by `copies`, or not copied.
    pub(crate) fn copied_by(
        self,
        copies: Option<Arc<dyn CopyDevice>>,
        device: Device,
    ) -> Result<Self, Error> {
        let spec = self.loader.spec().clone();
        let most = n_buffers(&spec);
        let buffers = match &copies {
            Some(copies) => TensorBuffers::copied_to(Arc::clone(copies), most),
            None => TensorBuffers::new(most),
        };
        let Feed { dense_kind, stored, .. } = *self.feed;
        let staging = copies.map(|copies| Staging::new(copies, most));
        let feed = Feed { device, staging, dense_kind, stored };
        let dataset = self.loader.dataset().clone();
        let loader = Loader::with_buffers(dataset, spec, Arc::new(buffers))?;
        Ok(Self { loader, feed: Arc::new(feed) })
    }

    /// The same dense batches, made on the device: what is stored goes over, 8 bytes a value, and becomes f32 or f16 there.
    ///
    /// Worth it where less than half of the values are stored and the way to the device is what is waited for: of the Census some
    /// three in a hundred are. The loader underneath then makes CSR batches, and says so.
    ///
    /// The values are those that the loader gives itself, to the bit; of values that are stored twice for one cell and gene, the one
    /// that is stored last. But where there are such, and values are scaled by their row's own total, that counts all of them, as it
    /// does for CSR batches.
    ///
    /// # Errors
    /// Batches that are to be sparse; the method `np.array`, which cannot give sparse rows.
    pub fn densify_on_device(self) -> Result<Self, Error> {
        if self.feed.dense_kind.is_some() {
            return Ok(self);
        }
        let spec = self.loader.spec();
        let dense_kind = match spec.form {
            BatchForm::Dense => Kind::Float,
            BatchForm::F16 => Kind::Half,
            form @ (BatchForm::Csr | BatchForm::Coo) => return Err(Error::DensifySparse { form }),
        };
        let spec = LoaderSpec { form: BatchForm::Csr, ..spec.clone() };
        let buffers = Arc::clone(self.loader.buffers());
        let loader = Loader::with_buffers(self.loader.dataset().clone(), spec, buffers)?;
        let Feed { device, stored, .. } = *self.feed;
        let feed = Feed { device, staging: None, dense_kind: Some(dense_kind), stored };
        Self { loader, feed: Arc::new(feed) }.to_device(device)
    }

    /// The same, with tensors of the type that X is stored as, whole numbers for example. Each batch is copied once more.
    ///
    /// # Errors
    /// Experiments of different types; a type that torch does not have, or f64, since values are read as f32; values that are
    /// transformed, or wanted as f16. In an epoch: a whole number from 2^24 on.
    pub fn in_stored_type(self) -> Result<Self, Error> {
        let mut spec = self.loader.spec().clone();
        if self.feed.dense_kind == Some(Kind::Half) {
            spec.form = BatchForm::F16;
        }
        let stored = Some(stored_kind(self.loader.dataset(), &spec)?);
        let device = self.feed.device;
        let Feed { dense_kind, .. } = *self.feed;
        let feed = Feed { device, staging: None, dense_kind, stored };
        Self { feed: Arc::new(feed), ..self }.to_device(device)
    }

    /// The loader underneath: its data set, settings and number of batches.
    pub fn loader(&self) -> &Loader<TensorBuffers> {
        &self.loader
    }

    /// Where the tensors are.
    pub fn device(&self) -> Device {
        self.feed.device
    }

    /// Starts an epoch. The same number gives the same batches again.
    pub fn epoch(&self, epoch: u64) -> Result<TensorEpoch, Error> {
        Ok(self.tensors_of(self.loader.epoch(epoch)?))
    }

    /// Goes on with an epoch from where a state was taken, as [`Loader::resume`] does.
    pub fn resume(&self, state: &LoaderState) -> Result<TensorEpoch, Error> {
        Ok(self.tensors_of(self.loader.resume(state)?))
    }

    /// A range of epochs without a gap between them, as [`Loader::epochs`] gives them.
    pub fn epochs(
        &self,
        numbers: impl RangeBounds<u64>,
    ) -> impl Iterator<Item = Result<TensorEpoch, Error>> + '_ {
        self.loader.epochs(numbers).map(|epoch| Ok(self.tensors_of(epoch?)))
    }

    fn tensors_of(&self, epoch: Epoch<TensorBuffers>) -> TensorEpoch {
        TensorEpoch { epoch, feed: Arc::clone(&self.feed), failed: false }
    }
}

/// The batches of one epoch as tensors. As for [`loader::Epoch`], dropping it ends its threads, and an error ends it.
#[derive(Debug)]
pub struct TensorEpoch {
    epoch: Epoch<TensorBuffers>,
    feed: Arc<Feed>,
    failed: bool,
}

impl TensorEpoch {
    /// What the loader has done so far. The waits do not contain the making of tensors or the copy to a device.
    pub fn stats(&self) -> EpochStats {
        self.epoch.stats()
    }

    /// Where the consumer stands, as [`Epoch::state`] says.
    pub fn state(&self) -> LoaderState {
        self.epoch.state()
    }

    /// How many batches the epoch has, unless an error ends it earlier.
    pub fn n_batches(&self) -> u64 {
        self.epoch.n_batches()
    }
}

impl Iterator for TensorEpoch {
    type Item = Result<TensorBatch, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let batch = self.epoch.next()?.map_err(Error::from);
        let tensors = batch.and_then(|batch| TensorBatch::new(batch, &self.feed));
        self.failed = tensors.is_err();
        Some(tensors)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.epoch.size_hint()
    }
}
