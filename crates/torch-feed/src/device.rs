//! Copies from host memory to a device, which may continue while the host works.
//!
//! tch has neither CUDA's events nor its streams, so the host cannot ask for a copy's end. It can
//! only wait for the copy together with all earlier work of the device. That is enough, since waits
//! are rare:
//!
//! - Every copy gets a [`Ticket`], ascending, *after* torch has queued it on the device. So after a
//!   wait for the device, all copies up to the last ticket before the wait are known to be done.
//! - Host memory is not written until the ticket of its copy is known to be done. A
//!   [`Pool`](crate::pool::Pool) keeps it until then, and waits only if the allowed number of
//!   pieces are being copied; after that wait all of these are free.
//! - The device itself orders kernels that read a copy after the copy: torch puts both into the
//!   same stream, the device's default one, which no function of tch can change, whichever thread
//!   calls.
//!
//! So the host waits neither for a copy nor for the work before it: meanwhile it reads, makes and
//! queues the next batches. In one stream the device copies between its kernels, not beside them.
//!
//! Everything except [`TorchDevice`]'s calls for CUDA is tested without a GPU, with a device that
//! copies as late as the interface allows. `tests::on_device` runs on a GPU where there is one.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use tch::{Cuda, Device, Tensor};

use crate::error::Error;

/// Identifies a copy: later copies have greater tickets. 0 is before all copies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ticket(pub(crate) u64);

/// A target for copies of batches.
pub(crate) trait CopyDevice: fmt::Debug + Send + Sync {
    /// The device that host memory should be pinned for, so that copies from it need no wait.
    fn pinned_for(&self) -> Option<Device>;

    /// Begins to copy `host`, a tensor on the CPU, and returns the copy, which later calls to the
    /// device may use at once. `host` must not change until the ticket is done.
    fn begin_copy(&self, host: &Tensor) -> Result<(Tensor, Ticket), Error>;

    /// A ticket up to which all copies are known to be done. Does not wait.
    fn done(&self) -> Ticket;

    /// Waits until all copies up to `ticket` are done. Returns that ticket or a later one.
    fn wait(&self, ticket: Ticket) -> Ticket;
}

/// A device of torch.
#[derive(Debug)]
pub(crate) struct TorchDevice {
    device: Device,
    n_begun: AtomicU64,
    n_done: AtomicU64,
}

impl TorchDevice {
    /// The CPU: copies are done when the call returns.
    pub(crate) fn cpu() -> Self {
        Self { device: Device::Cpu, n_begun: AtomicU64::new(0), n_done: AtomicU64::new(0) }
    }

    /// Opens a torch device.
    ///
    /// # Errors
    /// torch does not see this GPU.
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
        // Only a GPU may return early from a copy.
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
            // Read before the wait: a copy that begins during the wait need not be done after it.
            let n_begun = self.n_begun.load(Ordering::SeqCst);
            Cuda::synchronize(idx as i64);
            self.n_done.fetch_max(n_begun, Ordering::SeqCst);
        }
        self.done()
    }
}
