//! A stand-in for a device, where there is none.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use anyhow::Context as _;
use images::{ImageBatch, ImageMemory};
use slots::{Allocate, Mapped};

use super::clock::Clock;
use super::timeline::{DeviceSpec, Timeline};
use super::{Device, Mark};
use crate::bench::Release;

/// Memory of a batch, which is free when it is dropped.
type Held = Box<dyn Send>;

/// Takes the time that copies and training steps would take, and does nothing else. Copies and
/// steps are times in the future; only waits for them sleep.
pub(crate) struct StandIn {
    timeline: Timeline,
    clock: Arc<dyn Clock>,
    release: Release,
    /// Batches that are kept until all work is done.
    held: Vec<Held>,
    /// The end of the work before each mark.
    marks: Vec<Duration>,
    copies: Option<Sender<(Duration, Held)>>,
    /// Frees the memory of batches when they are copied.
    thread: Option<JoinHandle<()>>,
}

impl StandIn {
    /// Starts the thread that frees memory when it is copied.
    pub(crate) fn start(
        spec: DeviceSpec,
        release: Release,
        clock: Arc<dyn Clock>,
    ) -> anyhow::Result<Self> {
        let (copies, copied) = channel();
        let of_thread = Arc::clone(&clock);
        let thread = Builder::new()
            .name("stand-in-copies".to_owned())
            .spawn(move || free_when_copied(&copied, &*of_thread))
            .context("cannot start the thread of the stand-in")?;
        let (timeline, held, marks) = (Timeline::new(spec), Vec::new(), Vec::new());
        let (copies, thread) = (Some(copies), Some(thread));
        Ok(Self { timeline, clock, release, held, marks, copies, thread })
    }

    /// Begins the copy of `n_bytes` and then the compute on `n_cubes`; returns the end of the copy.
    fn begin(&mut self, n_bytes: u64, n_cubes: u64) -> Duration {
        self.clock.sleep_until(self.timeline.room_at());
        let now = self.clock.now();
        self.timeline.submit(now, n_bytes, n_cubes).copied
    }

    /// Drops memory at the end of its copy.
    fn free_at(&mut self, copied: Duration, memory: Held) -> anyhow::Result<()> {
        let copies = self.copies.as_ref().context("the stand-in has ended")?;
        copies.send((copied, memory)).ok().context("the stand-in's thread ended")
    }
}

/// The memory of a batch that only a copy needs still.
fn while_copied(batch: ImageBatch) -> Held {
    match batch.into_memory() {
        Ok(ImageMemory::Slot(slot)) => Box::new(slot.copying()),
        Ok(owned) => Box::new(owned),
        Err(batch) => Box::new(batch),
    }
}

/// Drops each memory at its time. The times ascend.
fn free_when_copied(copied: &Receiver<(Duration, Held)>, clock: &dyn Clock) {
    for (at, memory) in copied {
        clock.sleep_until(at);
        drop(memory);
    }
}

impl Device for StandIn {
    /// There is nothing to pin memory for.
    fn memory(&self) -> Arc<dyn Allocate> {
        Arc::new(Mapped)
    }

    fn submit(&mut self, batch: ImageBatch) -> anyhow::Result<()> {
        let n_bytes = batch.keys().map(|key| key.bytes().len() as u64).sum();
        let copied = self.begin(n_bytes, batch.n_samples() as u64);
        match self.release {
            Release::Sync => {
                self.held.push(Box::new(batch));
                Ok(())
            }
            Release::Event => self.free_at(copied, while_copied(batch)),
        }
    }

    fn synchronize(&mut self) -> anyhow::Result<()> {
        self.clock.sleep_until(self.timeline.idle_at());
        self.held.clear();
        Ok(())
    }

    fn mark(&mut self) -> Mark {
        self.marks.push(self.timeline.idle_at());
        Mark(self.marks.len() - 1)
    }

    fn reached(&mut self, mark: Mark) -> anyhow::Result<Duration> {
        let at = *self.marks.get(mark.0).context("a mark of another device")?;
        self.clock.sleep_until(at);
        Ok(at)
    }

    fn busy_shares(
        &mut self,
        from: Duration,
        to: Duration,
        interval: Duration,
    ) -> anyhow::Result<Vec<f64>> {
        Ok(self.timeline.steps().busy_shares(from, to, interval))
    }

    fn busy_secs(&mut self, from: Duration, to: Duration) -> anyhow::Result<f64> {
        Ok(self.timeline.steps().busy(from, to).as_secs_f64())
    }
}

impl Drop for StandIn {
    fn drop(&mut self) {
        self.copies = None;
        if let Some(thread) = self.thread.take() {
            // A panic of the thread is one of a batch's destructor, which has been reported.
            let _panicked = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{RecvTimeoutError, TryRecvError};

    use super::*;
    use crate::device::clock::ManualClock;

    /// Memory that says when it is dropped.
    struct Noted(Sender<u32>, u32);

    impl Drop for Noted {
        fn drop(&mut self) {
            self.0.send(self.1).unwrap();
        }
    }

    #[test]
    fn memory_is_free_when_its_copy_is_done_and_not_before() {
        let clock = Arc::new(ManualClock::default());
        let spec =
            DeviceSpec { step_millis: 60.0, full_batch: 6, copy_rate: 1000, copies_beside: true };
        let (note, dropped) = channel();
        let of_device = Arc::<ManualClock>::clone(&clock);
        let mut device = StandIn::start(spec, Release::Event, of_device).unwrap();
        for number in 0..2 {
            let copied = device.begin(10, 6);
            device.free_at(copied, Box::new(Noted(note.clone(), number))).unwrap();
        }
        assert_eq!(dropped.try_recv(), Err(TryRecvError::Empty));
        clock.set(Duration::from_millis(15));
        assert_eq!(dropped.recv(), Ok(0), "its copy ends after 10 ms");
        assert_eq!(dropped.try_recv(), Err(TryRecvError::Empty), "that one ends after 20 ms");
        let mark = device.mark();
        clock.set(Duration::from_millis(130));
        assert_eq!(dropped.recv(), Ok(1));
        device.synchronize().unwrap();
        assert_eq!(device.reached(mark).unwrap(), Duration::from_millis(130));
        assert_eq!(device.busy_secs(Duration::ZERO, clock.now()).unwrap(), 0.12);
        drop(device);
        let never = dropped.recv_timeout(Duration::ZERO);
        assert_eq!(never, Err(RecvTimeoutError::Timeout), "each is dropped once");
    }
}
