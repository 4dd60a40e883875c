//! The loader with torch's memory under it.

use std::sync::Arc;

use loader::{Dataset, Epoch, EpochStats, Loader, LoaderSpec, LoaderState};
use tch::{Device, Kind};

use crate::batch::TensorBatch;
use crate::buffers::TensorBuffers;
use crate::error::Error;
use crate::stored_type::stored_kind;

/// Gives the batches of a data set as tensors, epoch by epoch.
#[derive(Debug)]
pub struct TensorLoader {
    loader: Loader<TensorBuffers>,
    device: Device,
    /// Of the tensors of X, where it is to be X's own.
    stored: Option<Kind>,
}

impl TensorLoader {
    /// A loader of `dataset` whose tensors are on the CPU.
    pub fn new(dataset: Dataset, spec: LoaderSpec) -> Result<Self, Error> {
        // As many as are on their way at once: ready, in the making, and with the consumer; each in up to three parts.
        let buffers = TensorBuffers::new(3 * spec.prefetch_batches.saturating_add(2));
        let loader = Loader::with_buffers(dataset, spec, Arc::new(buffers))?;
        Ok(Self { loader, device: Device::Cpu, stored: None })
    }

    /// The same, with each batch copied to `device` when it is handed over, on the consumer's thread.
    #[must_use]
    pub fn to_device(mut self, device: Device) -> Self {
        self.device = device;
        self
    }

    /// The same, with tensors of the type that X is stored as, whole numbers for example. Each batch is copied once more.
    ///
    /// # Errors
    /// Experiments of different types; a type that torch does not have, or f64, since values are read as f32; values that are
    /// transformed, or wanted as f16. In an epoch: a whole number from 2^24 on.
    pub fn in_stored_type(self) -> Result<Self, Error> {
        let stored = stored_kind(self.loader.dataset(), self.loader.spec())?;
        Ok(Self { stored: Some(stored), ..self })
    }

    /// The loader underneath: its data set, settings and number of batches.
    pub fn loader(&self) -> &Loader<TensorBuffers> {
        &self.loader
    }

    /// Starts an epoch. The same number gives the same batches again.
    pub fn epoch(&self, epoch: u64) -> Result<TensorEpoch, Error> {
        Ok(self.tensors_of(self.loader.epoch(epoch)?))
    }

    /// Goes on with an epoch from where a state was taken, as [`Loader::resume`] does.
    pub fn resume(&self, state: &LoaderState) -> Result<TensorEpoch, Error> {
        Ok(self.tensors_of(self.loader.resume(state)?))
    }

    fn tensors_of(&self, epoch: Epoch<TensorBuffers>) -> TensorEpoch {
        TensorEpoch { epoch, device: self.device, stored: self.stored, failed: false }
    }
}

/// The batches of one epoch as tensors. As for [`loader::Epoch`], dropping it ends its threads, and an error ends it.
#[derive(Debug)]
pub struct TensorEpoch {
    epoch: Epoch<TensorBuffers>,
    device: Device,
    stored: Option<Kind>,
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
        let tensors = batch.and_then(|batch| TensorBatch::new(batch, self.device, self.stored));
        self.failed = tensors.is_err();
        Some(tensors)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.epoch.size_hint()
    }
}
