//! A stand-in for a device, where there is none.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use anyhow::Context as _;

use super::clock::Clock;
use super::timeline::{DeviceSpec, Timeline};
use super::{Device, Mark, Work};

/// Takes the time that copies and training steps would take, and does nothing else. Copies and
/// steps are times in the future; only waits for them sleep.
pub(crate) struct StandIn {
    timeline: Timeline,
    clock: Arc<dyn Clock>,
    /// The end of the work before each mark.
    marks: Vec<Duration>,
    copies: Option<Sender<(Duration, Box<dyn Send>)>>,
    /// Frees the memory of batches when they are copied.
    thread: Option<JoinHandle<()>>,
}

impl StandIn {
    /// Starts the thread that frees memory when it is copied.
    pub(crate) fn start(spec: DeviceSpec, clock: Arc<dyn Clock>) -> anyhow::Result<Self> {
        let (copies, copied) = channel();
        let of_thread = Arc::clone(&clock);
        let thread = Builder::new()
            .name("stand-in-copies".to_owned())
            .spawn(move || free_when_copied(&copied, &*of_thread))
            .context("cannot start the thread of the stand-in")?;
        let timeline = Timeline::new(spec);
        let (copies, thread) = (Some(copies), Some(thread));
        Ok(Self { timeline, clock, marks: Vec::new(), copies, thread })
    }
}

/// Drops each memory at its time. The times ascend.
fn free_when_copied(copied: &Receiver<(Duration, Box<dyn Send>)>, clock: &dyn Clock) {
    for (at, memory) in copied {
        clock.sleep_until(at);
        drop(memory);
    }
}

impl Device for StandIn {
    fn submit(&mut self, work: Work) -> anyhow::Result<()> {
        self.clock.sleep_until(self.timeline.room_at());
        let now = self.clock.now();
        let scheduled = self.timeline.submit(now, work.n_bytes, work.n_cubes);
        let copies = self.copies.as_ref().context("the stand-in has ended")?;
        copies.send((scheduled.copied, work.memory)).ok().context("the stand-in's thread ended")
    }

    fn synchronize(&mut self) -> anyhow::Result<()> {
        self.clock.sleep_until(self.timeline.idle_at());
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
        Ok(self.timeline.busy_shares(from, to, interval))
    }

    fn busy_secs(&mut self, from: Duration, to: Duration) -> anyhow::Result<f64> {
        Ok(self.timeline.busy(from, to).as_secs_f64())
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
        let mut device = StandIn::start(spec, Arc::<ManualClock>::clone(&clock)).unwrap();
        for number in 0..2 {
            let memory = Box::new(Noted(note.clone(), number));
            device.submit(Work { n_bytes: 10, n_cubes: 6, memory }).unwrap();
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
