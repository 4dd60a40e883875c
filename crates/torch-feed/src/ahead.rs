//! Batches that a device copies, the next one while the consumer works on the one before.

use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use loader::LoaderState;

use crate::device::CopyDevice;
use crate::error::Error;

/// Delivers copies of batches, and keeps the batch after the one that the consumer has: its copies
/// have begun.
///
/// Copies wait for all work that the device has when they begin (see
/// [`CopyStream`](crate::copy_stream::CopyStream)). So they run beside the consumer's work only if
/// they begin before it is queued: when the batch before is delivered.
#[derive(Debug)]
pub(crate) struct Ahead<T> {
    device: Arc<dyn CopyDevice>,
    /// Whether copies begin before their batch is asked for.
    begins_early: bool,
    next: Option<Begun<T>>,
    /// The place of a batch that is being delivered, or could not be. Nothing follows it then.
    undelivered: Option<LoaderState>,
}

/// A batch whose copies have begun, or the error of making it.
#[derive(Debug)]
struct Begun<T> {
    made: Result<T, Error>,
    /// The consumer's place before it.
    place: LoaderState,
}

impl<T> Ahead<T> {
    /// Goes ahead only if `is_allowed`, and copies run beside the device's other work.
    pub(crate) fn new(device: Arc<dyn CopyDevice>, is_allowed: bool) -> Self {
        let begins_early = is_allowed && device.copies_beside();
        Self { device, begins_early, next: None, undelivered: None }
    }

    /// The consumer's place, of which the epoch's is ahead; `None` if it is the epoch's.
    pub(crate) fn place(&self) -> Option<&LoaderState> {
        self.undelivered.as_ref().or_else(|| Some(&self.next.as_ref()?.place))
    }

    /// Delivers the next batch of `epoch`, and begins the copies of the one after it if that is
    /// ready.
    ///
    /// `begin` takes a batch from the epoch and begins its copies; it waits at most for the given
    /// time, or without a limit. `finish` is called when the device orders its work after them.
    pub(crate) fn next<E, D>(
        &mut self,
        epoch: &mut E,
        place: impl Fn(&E) -> LoaderState,
        mut begin: impl FnMut(&mut E, Option<Duration>) -> Poll<Option<Result<T, Error>>>,
        finish: impl FnOnce(T) -> Result<D, Error>,
    ) -> Option<Result<D, Error>> {
        if self.undelivered.is_some() {
            return None;
        }
        let Begun { made, place: before } = if let Some(begun) = self.next.take() {
            begun
        } else {
            let place = place(epoch);
            let made = loop {
                if let Poll::Ready(made) = begin(epoch, None) {
                    break made?;
                }
            };
            Begun { made, place }
        };
        self.undelivered = Some(before);
        let finished = made.and_then(|begun| {
            self.device.join()?;
            finish(begun)
        });
        if finished.is_err() {
            return Some(finished);
        }
        if self.begins_early {
            let place = place(epoch);
            if let Poll::Ready(Some(made)) = begin(epoch, Some(Duration::ZERO)) {
                self.next = Some(Begun { made, place });
            }
        }
        self.undelivered = None;
        Some(finished)
    }
}
