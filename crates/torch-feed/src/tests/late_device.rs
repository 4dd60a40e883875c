//! A stand-in for a GPU that copies as late as the interface allows, so that memory written too
//! early gives wrong values.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use tch::{Device, Kind, Tensor};

use crate::device::{CopyDevice, Ticket};
use crate::error::Error;

/// Copies are done when the host waits for them, or when the test lets the device work.
#[derive(Debug, Default)]
pub(super) struct LateDevice {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    queue: VecDeque<Copy>,
    n_begun: u64,
    n_done: u64,
    /// The result of `done`: a host learns late what a device has done.
    reported: u64,
    n_waits: u64,
    most_queued: usize,
    /// Addresses of host memory that copies were made from.
    addresses: Vec<usize>,
    /// Addresses of copies that the device's work does not wait for yet.
    unordered: Vec<usize>,
    is_beside: bool,
    fails: bool,
}

/// A copy that the device has still to do.
#[derive(Debug)]
struct Copy {
    from: Tensor,
    to: Tensor,
}

impl State {
    fn work(&mut self, up_to: u64) {
        while self.n_done < up_to {
            let Some(Copy { from, mut to }) = self.queue.pop_front() else { return };
            to.f_copy_(&from).unwrap();
            self.n_done += 1;
        }
    }
}

impl LateDevice {
    pub(super) fn new() -> Arc<Self> {
        Arc::default()
    }

    /// A device whose copies run beside its other work.
    pub(super) fn beside() -> Arc<Self> {
        let device = Self::default();
        device.state.lock().unwrap().is_beside = true;
        Arc::new(device)
    }

    /// Whether the device's work waits for the copy that this tensor is.
    pub(super) fn is_ordered(&self, copy: &Tensor) -> bool {
        !self.state.lock().unwrap().unordered.contains(&(copy.data_ptr() as usize))
    }

    /// Does this many copies, without the host learning of it.
    pub(super) fn work(&self, n_copies: u64) {
        let mut state = self.state.lock().unwrap();
        let up_to = state.n_done + n_copies;
        state.work(up_to);
    }

    /// Lets the host learn which copies are done.
    pub(super) fn report(&self) {
        let mut state = self.state.lock().unwrap();
        state.reported = state.n_done;
    }

    /// Makes all further copies fail.
    pub(super) fn fail(&self) {
        self.state.lock().unwrap().fails = true;
    }

    /// Number of copies that are not done.
    pub(super) fn n_queued(&self) -> usize {
        self.state.lock().unwrap().queue.len()
    }

    /// The largest number of copies that were not done at one time.
    pub(super) fn most_queued(&self) -> usize {
        self.state.lock().unwrap().most_queued
    }

    /// Number of times that the host waited.
    pub(super) fn n_waits(&self) -> u64 {
        self.state.lock().unwrap().n_waits
    }

    /// Number of different pieces of host memory that copies were made from.
    pub(super) fn n_addresses(&self) -> usize {
        let mut addresses = self.state.lock().unwrap().addresses.clone();
        addresses.sort_unstable();
        addresses.dedup();
        addresses.len()
    }
}

impl CopyDevice for LateDevice {
    fn pinned_for(&self) -> Option<Device> {
        None
    }

    fn copies_beside(&self) -> bool {
        self.state.lock().unwrap().is_beside
    }

    fn join(&self) -> Result<(), Error> {
        self.state.lock().unwrap().unordered.clear();
        Ok(())
    }

    fn begin_copy(&self, host: &Tensor) -> Result<(Tensor, Ticket), Error> {
        let mut state = self.state.lock().unwrap();
        if state.fails {
            let source = tch::TchError::Convert("the device is gone".to_owned());
            return Err(Error::Torch { what: "a copy", source });
        }
        // A number of every type that no copy has.
        let to = Tensor::f_full(host.size(), 101.0, (host.kind(), Device::Cpu)).unwrap();
        state.addresses.push(host.data_ptr() as usize);
        state.unordered.push(to.data_ptr() as usize);
        state.queue.push_back(Copy { from: host.shallow_clone(), to: to.shallow_clone() });
        state.n_begun += 1;
        state.most_queued = state.most_queued.max(state.queue.len());
        Ok((to, Ticket(state.n_begun)))
    }

    fn done(&self) -> Ticket {
        Ticket(self.state.lock().unwrap().reported)
    }

    fn wait(&self, ticket: Ticket) -> Ticket {
        let mut state = self.state.lock().unwrap();
        state.n_waits += 1;
        state.work(ticket.0);
        state.reported = state.n_done;
        Ticket(state.reported)
    }
}

/// The values of a tensor of any kind.
pub(super) fn values(tensor: &Tensor) -> Vec<f64> {
    Vec::try_from(tensor.f_flatten(0, -1).unwrap().to_kind(Kind::Double)).unwrap()
}
