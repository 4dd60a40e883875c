//! The device that takes batches: copies them and computes on them.
//!
//! [`Device`] is what a measurement needs of one. [`StandIn`] has no hardware behind it: it takes
//! the time that a copy and a training step would take, and no CPU. Module [`torch`] trains a model
//! on a GPU or on the processor; without the Cargo feature `torch`, an error takes its place.

mod clock;
mod stand_in;
mod steps;
mod timeline;
#[cfg(feature = "torch")]
pub(crate) mod torch;
mod torch_spec;
#[cfg(any(test, not(feature = "torch")))]
pub(crate) mod without_torch;

use std::sync::Arc;
use std::time::Duration;

use images::ImageBatch;
use slots::Allocate;

#[cfg(doc)]
use crate::bench::Release;
pub(crate) use clock::{Clock, SystemClock};
pub(crate) use stand_in::StandIn;
pub(crate) use timeline::{DeviceSpec, NAME as STAND_IN};
pub(crate) use torch_spec::{TorchProcessor, TorchSpec, TorchWork};
#[cfg(not(feature = "torch"))]
pub(crate) use without_torch as torch;

/// A point in the sequence of a device's work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark(usize);

/// Copies batches and computes on them, one after the other, while the host goes on. Times are
/// those of a [`Clock`].
pub(crate) trait Device {
    /// The memory from which it copies best: pinned, if it has such.
    fn memory(&self) -> Arc<dyn Allocate>;

    /// Begins to copy a batch, and to compute on it after that. Waits until there is room for it on
    /// the device, and not for the copy. Keeps the batch's memory until its copy is done or, if
    /// [`Release::Sync`] was asked for, until the next [`synchronize`](Self::synchronize).
    ///
    /// # Errors
    /// The device has failed.
    fn submit(&mut self, batch: ImageBatch) -> anyhow::Result<()>;

    /// Waits for the end of all work.
    ///
    /// # Errors
    /// The device has failed.
    fn synchronize(&mut self) -> anyhow::Result<()>;

    /// Marks the end of the work so far, without a wait.
    fn mark(&mut self) -> Mark;

    /// The time at which all work before a mark was done. Waits until it is.
    ///
    /// # Errors
    /// The device has failed.
    fn reached(&mut self, mark: Mark) -> anyhow::Result<Duration>;

    /// Share of each interval between `from` and `to` in which the device computed.
    ///
    /// # Errors
    /// The device's use cannot be read.
    fn busy_shares(
        &mut self,
        from: Duration,
        to: Duration,
        interval: Duration,
    ) -> anyhow::Result<Vec<f64>>;

    /// Seconds of compute between `from` and `to`.
    ///
    /// # Errors
    /// The device's use cannot be read.
    fn busy_secs(&mut self, from: Duration, to: Duration) -> anyhow::Result<f64>;
}
