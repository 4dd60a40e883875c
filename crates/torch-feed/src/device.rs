//! Copies from host memory to a device, which may continue while the host works.
//!
//! On a GPU the copies have a stream of their own ([`CopyStream`]), beside torch's:
//!
//! - Every copy gets a [`Ticket`], ascending. Host memory is not written until the ticket of its
//!   copy is known to be done. A [`Pool`](crate::pool::Pool) keeps it until then, and waits only if
//!   the allowed number of pieces are being copied.
//! - The device's kernels wait for the copies by [`CopyDevice::join`]. What a loader copies before
//!   the consumer queues its work on the batch before, is copied beside that work
//!   ([`Ahead`](crate::ahead::Ahead)).
//!
//! So the host waits neither for a copy nor for the work before it: meanwhile it reads, makes and
//! queues the next batches.
//!
//! Where CUDA's runtime is linked into torch in such a way that its functions cannot be found,
//! copies go into torch's own stream, between the kernels, and the host can only wait for the whole
//! device.
//!
//! Everything except the calls for CUDA is tested without a GPU, with a device that copies as late
//! as the interface allows. `tests::on_device` runs on a GPU where there is one.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use tch::{Cuda, Device, Tensor};

use crate::copy_stream::CopyStream;
use crate::error::Error;

/// Identifies a copy: later copies have greater tickets. 0 is before all copies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ticket(pub(crate) u64);

/// A target for copies of batches.
pub(crate) trait CopyDevice: fmt::Debug + Send + Sync {
    /// The device that host memory should be pinned for, so that copies from it need no wait.
    fn pinned_for(&self) -> Option<Device>;

    /// Whether copies run beside the device's other work, so that it pays to begin them early. A
    /// device that does everything in one order needs neither this nor `join`.
    fn copies_beside(&self) -> bool {
        false
    }

    /// Has the work that the calling thread gives the device from now on wait for all copies that
    /// have begun.
    ///
    /// # Errors
    /// The device's errors.
    fn join(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Begins to copy `host`, a tensor on the CPU, and returns the copy, which the device may use
    /// after [`join`](Self::join). `host` must not change until the ticket is done.
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
    /// `None` on the CPU, and where CUDA's functions are not found.
    stream: Option<CopyStream>,
    /// Copies in torch's own order.
    n_begun: AtomicU64,
    n_done: AtomicU64,
}

impl TorchDevice {
    /// The CPU: copies are done when the call returns.
    pub(crate) fn cpu() -> Self {
        let (n_begun, n_done) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { device: Device::Cpu, stream: None, n_begun, n_done }
    }

    /// Opens a torch device.
    ///
    /// # Errors
    /// torch does not see this GPU; CUDA's errors.
    pub(crate) fn new(device: Device) -> Result<Self, Error> {
        let mut stream = None;
        if let Device::Cuda(idx) = device {
            let n_gpus = Cuda::device_count();
            if n_gpus <= idx as i64 {
                return Err(Error::NoGpu { idx, n_gpus });
            }
            stream = CopyStream::new(idx)?;
        }
        Ok(Self { device, stream, ..Self::cpu() })
    }
}

impl CopyDevice for TorchDevice {
    fn pinned_for(&self) -> Option<Device> {
        self.device.is_cuda().then_some(self.device)
    }

    fn copies_beside(&self) -> bool {
        self.stream.is_some()
    }

    fn join(&self) -> Result<(), Error> {
        self.stream.as_ref().map_or(Ok(()), CopyStream::join)
    }

    fn begin_copy(&self, host: &Tensor) -> Result<(Tensor, Ticket), Error> {
        if let Some(stream) = &self.stream {
            return stream.begin(host);
        }
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
        let of_torch = || Ticket(self.n_done.load(Ordering::SeqCst));
        self.stream.as_ref().map_or_else(of_torch, CopyStream::done)
    }

    fn wait(&self, ticket: Ticket) -> Ticket {
        if let Some(stream) = &self.stream {
            return stream.wait(ticket);
        }
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
