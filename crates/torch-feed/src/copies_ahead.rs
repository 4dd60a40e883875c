//! Copies of batches to a device, some of which may be under way while the host goes on.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::array_tensors::ArrayTensors;
use crate::device::{CopyDevice, Ticket};
use crate::error::Error;

/// Copies batches to a device. The host's tensors, and the slots that they borrow, are kept until
/// their copy is known to be done.
#[derive(Debug)]
pub(crate) struct CopiesAhead {
    device: Arc<dyn CopyDevice>,
    /// Most batches whose copies may be under way when the next batch is waited for.
    most: usize,
    /// The host's tensors of each copy, and the ticket of its last tensor.
    under_way: VecDeque<(Ticket, ArrayTensors)>,
}

impl CopiesAhead {
    pub(crate) fn new(device: Arc<dyn CopyDevice>, most: usize) -> Self {
        Self { device, most, under_way: VecDeque::new() }
    }

    /// Begins to copy a batch, and returns the copy.
    pub(crate) fn copy(&mut self, batch: ArrayTensors) -> Result<ArrayTensors, Error> {
        let mut last = Ticket::default();
        let copies = batch.copies(|tensor| {
            let (copy, ticket) = self.device.begin_copy(tensor)?;
            last = last.max(ticket);
            Ok(copy)
        });
        // Kept after an error, too: some of its tensors may be under way.
        self.under_way.push_back((last, batch));
        copies
    }

    /// Frees the memory of copies that are done. Waits for the oldest if too many are under way:
    /// the loader, which is waited for next, needs their memory.
    pub(crate) fn settle(&mut self) {
        let mut done = self.device.done();
        if let Some(too_many) = self.under_way.len().checked_sub(self.most + 1)
            && let Some((ticket, _)) = self.under_way.get(too_many)
        {
            done = self.device.wait(*ticket);
        }
        while self.under_way.front().is_some_and(|(ticket, _)| *ticket <= done) {
            self.under_way.pop_front();
        }
    }
}

impl Drop for CopiesAhead {
    /// Waits for the copies, whose memory is freed after this.
    fn drop(&mut self) {
        if let Some((ticket, _)) = self.under_way.back() {
            self.device.wait(*ticket);
        }
    }
}
