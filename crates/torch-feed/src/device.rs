//! Copies from host memory to a device, which may go on while the host does other things.
//!
//! tch has neither CUDA's events nor its streams, so a copy's end cannot be asked for, only waited for together with all that was
//! asked of the device before. That is enough, as waiting is rare:
//!
//! - Every copy gets a [`Ticket`], ascending, *after* torch has put it into the device's queue. So whoever waits for the device
//!   and then looks which ticket was the last before the waiting knows that all copies up to it are done.
//! - Host memory that is copied from is not written before its ticket is known to be done. A [`Pool`](crate::pool::Pool) holds it
//!   until then, and waits only where as many are on their way as it may have; after that wait all of these are free.
//! - What reads the copy on the device is ordered behind it by the device itself: torch puts both into the same stream, the
//!   device's default one, which no function of tch can change, whichever thread calls.
//!
//! So the host neither waits for a copy nor for the work before it: the next batches are read, made and queued meanwhile. In one
//! stream the device does its copies between its kernels, not beside them.
//!
//! **This has not been run on a GPU yet.** What is tested without one is everything but [`TorchDevice`]'s calls for CUDA: by a
//! device that does its copies as late as the interface lets it.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use tch::{Cuda, Device, Tensor};

use crate::error::Error;

/// Which copy it was: of two, the later has the greater ticket. 0 is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ticket(pub(crate) u64);

/// Where batches are copied to.
pub(crate) trait CopyDevice: fmt::Debug + Send + Sync {
    /// The device that host memory should be pinned for, so that copies of it need not be waited for.
    fn pinned_for(&self) -> Option<Device>;

    /// Begins to copy `host`, a tensor on the CPU, and gives its copy, which later calls to the device may use at once. Until the
    /// ticket is done `host` must stay as it is.
    fn begin_copy(&self, host: &Tensor) -> Result<(Tensor, Ticket), Error>;

    /// A ticket up to which all copies are known to be done, without waiting.
    fn done(&self) -> Ticket;

    /// Waits until all copies up to this ticket, or a later one, which it gives, are done.
    fn wait(&self, ticket: Ticket) -> Ticket;
}

/// A device of torch's.
#[derive(Debug)]
pub(crate) struct TorchDevice {
    device: Device,
    n_begun: AtomicU64,
    n_done: AtomicU64,
}

impl TorchDevice {
    /// The CPU itself: copies are done when they return.
    pub(crate) fn cpu() -> Self {
        Self { device: Device::Cpu, n_begun: AtomicU64::new(0), n_done: AtomicU64::new(0) }
    }

    /// # Errors
    /// A GPU that torch does not see.
    pub(crate) fn new(device: Device) -> Result<Self, Error> {
        if let Device::Cuda(idx) = device {
            let n_gpus = Cuda::device_count();
            if n_gpus <= idx as i64 {
                return Err(Error::NoGpu { idx, n_gpus });
            }
        }
        Ok(Self { device, ..Self::cpu() })
    }
}

impl CopyDevice for TorchDevice {
    fn pinned_for(&self) -> Option<Device> {
        self.device.is_cuda().then_some(self.device)
    }

    fn begin_copy(&self, host: &Tensor) -> Result<(Tensor, Ticket), Error> {
        let failed = || Error::torch("a copy of a batch on the device");
        let kind = host.f_kind().map_err(failed())?;
        // Elsewhere than on a GPU torch is not asked to return early, so that the copy is done when it does.
        let returns_early = self.device.is_cuda();
        let copy = host.f_to_device_(self.device, kind, returns_early, true).map_err(failed())?;
        let ticket = self.n_begun.fetch_add(1, Ordering::SeqCst) + 1;
        if !returns_early {
            self.n_done.fetch_max(ticket, Ordering::SeqCst);
        }
        Ok((copy, Ticket(ticket)))
    }

    fn done(&self) -> Ticket {
        Ticket(self.n_done.load(Ordering::SeqCst))
    }

    fn wait(&self, ticket: Ticket) -> Ticket {
        if self.done() < ticket
            && let Device::Cuda(idx) = self.device
        {
            // Before the waiting: a copy that begins meanwhile need not be done after it.
            let n_begun = self.n_begun.load(Ordering::SeqCst);
            Cuda::synchronize(idx as i64);
            self.n_done.fetch_max(n_begun, Ordering::SeqCst);
        }
        self.done()
    }
}
