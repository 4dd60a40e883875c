//! A loader whose batches are tensors.

use std::ops::RangeBounds;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use loader::{BatchForm, Dataset, Epoch, EpochStats, Loader, LoaderError, LoaderSpec, LoaderState};
use tch::{Device, Kind};

use crate::ahead::Ahead;
use crate::batch::{Feed, SentBatch, TensorBatch};
use crate::buffers::TensorBuffers;
use crate::device::{CopyDevice, TorchDevice};
use crate::error::Error;
use crate::staging::Staging;
use crate::stored_type::stored_kind;

/// Delivers the batches of a data set as tensors, epoch by epoch.
#[derive(Debug)]
pub struct TensorLoader {
    loader: Loader<TensorBuffers>,
    feed: Arc<Feed>,
}

/// Buffers in use at once: of batches that are ready, in the making, and with the consumer.
fn n_buffers(dataset: &Dataset, spec: &LoaderSpec) -> usize {
    let of_matrix = match spec.batch_form {
        BatchForm::Dense | BatchForm::F16 => 1,
        BatchForm::Csr | BatchForm::Packed => 2,
        // COO, and forms that this crate does not know and rejects when a batch comes.
        _ => 3,
    };
    // Arrays of obsm are dense; a modality may have any form.
    let of_modalities = 3 * dataset.modalities().count();
    let of_batch =
        of_matrix * (1 + dataset.layers().count()) + dataset.obsm().count() + of_modalities;
    spec.pipeline.prefetch_batches.saturating_add(2).saturating_mul(of_batch)
}

/// Settings with another form in place of one.
fn with_form(mut spec: LoaderSpec, from: BatchForm, to: BatchForm) -> LoaderSpec {
    let forms = spec.modality_forms.values_mut().chain([&mut spec.batch_form]);
    forms.filter(|form| **form == from).for_each(|form| *form = to);
    spec
}

impl TensorLoader {
    /// Makes a loader of `dataset` whose tensors are on the CPU. Packed batches become CSR, since
    /// torch has no narrow columns.
    ///
    /// # Errors
    /// Those of [`Loader::with_buffers`]; the data set has [neighbours](Dataset::neighbours).
    pub fn new(dataset: Dataset, spec: LoaderSpec) -> Result<Self, Error> {
        if dataset.neighbours().is_some() {
            return Err(Error::Neighbours);
        }
        let spec = with_form(spec, BatchForm::Packed, BatchForm::Csr);
        let buffers = TensorBuffers::new(n_buffers(&dataset, &spec));
        let loader = Loader::with_buffers(dataset, spec, Arc::new(buffers))?;
        let feed = Feed { device: Device::Cpu, staging: None, dense_kind: None, stored: None };
        Ok(Self { loader, feed: Arc::new(feed) })
    }

    /// Copies each batch to `device` when it is delivered.
    ///
    /// To a GPU, batches are copied from pinned memory, and the host waits neither for the copy nor
    /// for earlier work. The tensors may be used at once on torch's current stream, which waits for
    /// the copy; reading a value waits. The copies of a batch begin when the one before is
    /// delivered, if the batch is ready then, so they run beside the work that the consumer queues
    /// after that ([`copies_beside`](Self::copies_beside)); so there is one batch more on the
    /// device than the consumer has.
    ///
    /// Sparse rows are sent packed ([`BatchForm::Packed`], which the settings show) and widened on
    /// the device: 3 or 4 bytes for a count with its column.
    ///
    /// Pinned memory holds at most `prefetch_batches + 2` batches more than without a GPU. The host
    /// waits for copies only if all of that memory is being copied, and when the loader and its
    /// epochs are dropped. The thread that makes batches does the waiting, not the consumer's,
    /// unless `prefetch_batches` is 0. COO batches are copied with waiting.
    ///
    /// # Errors
    /// torch does not see this GPU.
    pub fn to_device(self, device: Device) -> Result<Self, Error> {
        let copies = match device {
            // Rows to be made dense are sent as sparse ones, to the CPU too.
            Device::Cpu if self.feed.dense_kind.is_none() => None,
            _ => Some(Arc::new(TorchDevice::new(device)?) as Arc<dyn CopyDevice>),
        };
        self.copied_by(copies, device)
    }

    /// Copies batches with `copies`; `None` copies nothing.
    pub(crate) fn copied_by(
        self,
        copies: Option<Arc<dyn CopyDevice>>,
        device: Device,
    ) -> Result<Self, Error> {
        let spec = self.loader.spec().clone();
        let spec = match &copies {
            Some(_) => with_form(spec, BatchForm::Csr, BatchForm::Packed),
            None => with_form(spec, BatchForm::Packed, BatchForm::Csr),
        };
        let dataset = self.loader.dataset().clone();
        let most = n_buffers(&dataset, &spec);
        let buffers = match &copies {
            Some(copies) => TensorBuffers::copied_to(Arc::clone(copies), most),
            None => TensorBuffers::new(most),
        };
        let Feed { dense_kind, stored, .. } = *self.feed;
        let staging = copies.map(|copies| Staging::new(copies, most));
        let feed = Feed { device, staging, dense_kind, stored };
        let loader = Loader::with_buffers(dataset, spec, Arc::new(buffers))?;
        Ok(Self { loader, feed: Arc::new(feed) })
    }

    /// Makes the dense batches on the device: only stored values are sent, 3 or 4 bytes for a count
    /// with its column and at most 8 for any value, and become f32 or f16 there.
    ///
    /// Worth it if less than half of the values are stored and the transfer to the device is the
    /// bottleneck; in the Census about 3 % are stored. The inner loader then makes packed batches,
    /// and its settings show that.
    ///
    /// The values are bit for bit those of the loader itself; if several values are stored for one
    /// cell and gene, the last counts. One case differs: scaling by a row's own total then adds all
    /// of them, as for CSR batches.
    ///
    /// # Errors
    /// The batches are sparse; or blocks are dense ([`loader::BlockForm::Dense`]), so that no
    /// sparse rows can be made.
    pub fn densify_on_device(self) -> Result<Self, Error> {
        if self.feed.dense_kind.is_some() {
            return Ok(self);
        }
        let spec = self.loader.spec();
        let dense_kind = match spec.batch_form {
            BatchForm::Dense => Kind::Float,
            BatchForm::F16 => Kind::Half,
            // The user asked for CSR, which is packed on its way.
            BatchForm::Packed => return Err(Error::DensifySparse { form: BatchForm::Csr }),
            form => return Err(Error::DensifySparse { form }),
        };
        let spec = LoaderSpec { batch_form: BatchForm::Csr, ..spec.clone() };
        let buffers = Arc::clone(self.loader.buffers());
        let loader = Loader::with_buffers(self.loader.dataset().clone(), spec, buffers)?;
        let Feed { device, stored, .. } = *self.feed;
        let feed = Feed { device, staging: None, dense_kind: Some(dense_kind), stored };
        Self { loader, feed: Arc::new(feed) }.to_device(device)
    }

    /// Gives the tensors of X the type in which it is stored, for example whole numbers. Each batch
    /// is copied once more. Layers and arrays of obsm beside X stay as they are.
    ///
    /// # Errors
    /// The experiments store different types; torch lacks the type, or it is f64, since values are
    /// read as f32; values are transformed, or requested as f16. During an epoch: a whole number
    /// from 2^24 on.
    pub fn in_stored_type(self) -> Result<Self, Error> {
        let mut spec = self.loader.spec().clone();
        if self.feed.dense_kind == Some(Kind::Half) {
            spec.batch_form = BatchForm::F16;
        }
        let stored = Some(stored_kind(self.loader.dataset(), &spec)?);
        let device = self.feed.device;
        let Feed { dense_kind, .. } = *self.feed;
        let feed = Feed { device, staging: None, dense_kind, stored };
        Self { feed: Arc::new(feed), ..self }.to_device(device)
    }

    /// The inner loader: its data set, settings and number of batches.
    pub fn loader(&self) -> &Loader<TensorBuffers> {
        &self.loader
    }

    /// The device of the tensors.
    pub fn device(&self) -> Device {
        self.feed.device
    }

    /// Whether copies to the device run beside its other work. False on the CPU, and where CUDA's
    /// runtime is linked into torch so that its functions cannot be found: then copies run between
    /// the kernels.
    pub fn copies_beside(&self) -> bool {
        self.feed.staging.as_ref().is_some_and(|staging| staging.device().copies_beside())
    }

    /// Starts an epoch. The same number gives the same batches again.
    pub fn epoch(&self, epoch: u64) -> Result<TensorEpoch, Error> {
        Ok(self.tensors_of(self.loader.epoch(epoch)?))
    }

    /// Continues an epoch from a saved state, like [`Loader::resume`].
    pub fn resume(&self, state: &LoaderState) -> Result<TensorEpoch, Error> {
        Ok(self.tensors_of(self.loader.resume(state)?))
    }

    /// Starts a range of epochs without a gap between them, like [`Loader::epochs`].
    pub fn epochs(
        &self,
        numbers: impl RangeBounds<u64>,
    ) -> impl Iterator<Item = Result<TensorEpoch, Error>> + '_ {
        self.loader.epochs(numbers).map(|epoch| Ok(self.tensors_of(epoch?)))
    }

    fn tensors_of(&self, epoch: Epoch<TensorBuffers>) -> TensorEpoch {
        let ahead = self.feed.staging.as_ref().map(Staging::ahead);
        TensorEpoch { epoch, feed: Arc::clone(&self.feed), ahead }
    }
}

/// The batches of one epoch as tensors. Like [`loader::Epoch`], it ends its threads when it is
/// dropped, and ends after an error. A batch whose tensors cannot be made does not count as
/// delivered.
#[derive(Debug)]
pub struct TensorEpoch {
    epoch: Epoch<TensorBuffers>,
    feed: Arc<Feed>,
    /// `None` if tensors are made in place.
    ahead: Option<Ahead<SentBatch>>,
}

impl TensorEpoch {
    /// The loader's counts and times so far. Waits do not include making tensors or copying to a
    /// device. A batch whose copies have begun counts.
    pub fn stats(&self) -> EpochStats {
        self.epoch.stats()
    }

    /// The consumer's place, like [`Epoch::state`].
    pub fn state(&self) -> LoaderState {
        let place = self.ahead.as_ref().and_then(Ahead::place);
        place.cloned().unwrap_or_else(|| self.epoch.state())
    }

    /// Number of batches of the epoch, unless an error ends it earlier.
    pub fn n_batches(&self) -> u64 {
        self.epoch.n_batches()
    }
}

impl Iterator for TensorEpoch {
    type Item = Result<TensorBatch, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let Self { epoch, feed, ahead } = self;
        let Some(ahead) = ahead else {
            return epoch.next_made(|batch| SentBatch::new(batch?, feed)?.finish(feed));
        };
        let begin = |epoch: &mut Epoch<TensorBuffers>, limit: Option<Duration>| {
            let send = |batch: Result<_, LoaderError>| SentBatch::new(batch?, feed);
            match limit {
                Some(limit) => epoch.next_made_within(limit, send),
                None => Poll::Ready(epoch.next_made(send)),
            }
        };
        ahead.next(epoch, Epoch::state, begin, |sent| sent.finish(feed))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.epoch.size_hint()
    }
}
