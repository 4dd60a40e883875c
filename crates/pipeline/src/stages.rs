//! Time of the stages of an epoch, each summed over the threads that worked on it.

use worktime::{ReadTimes, ThreadTime};

/// The time of one stage.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StageTime {
    /// Seconds of wall time, including waits.
    pub wall_secs: f64,
    /// Seconds of processor time; `None` if a library's own threads did the work.
    pub cpu_secs: Option<f64>,
}

impl From<ThreadTime> for StageTime {
    fn from(time: ThreadTime) -> Self {
        Self { wall_secs: time.wall.as_secs_f64(), cpu_secs: Some(time.cpu.as_secs_f64()) }
    }
}

/// The time of each stage. Stages overlap, and several threads may work on one, so the sum exceeds
/// the epoch's time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct StageTimes {
    /// Getting bytes from storage. Includes decoding if the reader does not time the two
    /// separately.
    pub read: StageTime,
    /// Turning bytes into values; `None` if `read` includes it.
    pub decode: Option<StageTime>,
    /// Drawing the order of chunks and of rows.
    pub shuffle: StageTime,
    /// Putting rows of blocks into batches, and converting what was read into blocks.
    pub assemble: StageTime,
    /// The consumer's waits for batches, without assembling on its own thread.
    pub wait: StageTime,
}

/// The sums behind [`StageTimes`].
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct StageSums {
    /// Times of readers that measure fetching and decoding separately.
    apart: ReadTimes,
    /// Times of the other readers, on the reading thread.
    together: ThreadTime,
    n_apart: u64,
    n_together: u64,
    pub(crate) shuffle: ThreadTime,
    /// Assembling on the batch thread, or on the consumer's.
    pub(crate) cut: ThreadTime,
    /// Assembling elsewhere: on reading threads, and on threads that help with a batch.
    pub(crate) assemble_elsewhere: ThreadTime,
    pub(crate) wait: ThreadTime,
}

impl StageSums {
    /// Adds a read that took `on_thread` on the reading thread; `apart` if the reader timed its
    /// parts.
    pub(crate) fn read(&mut self, on_thread: ThreadTime, apart: Option<ReadTimes>) {
        if let Some(times) = apart {
            self.apart += times;
            self.n_apart += 1;
        } else {
            self.together += on_thread;
            self.n_together += 1;
        }
    }

    pub(crate) fn times(&self) -> StageTimes {
        let mut read = StageTime::from(self.apart.fetch + self.together);
        if self.n_together > 0 {
            read.cpu_secs = None;
        }
        StageTimes {
            read,
            decode: (self.n_apart > 0 || self.n_together == 0).then(|| self.apart.decode.into()),
            shuffle: self.shuffle.into(),
            assemble: (self.cut + self.assemble_elsewhere).into(),
            wait: self.wait.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn time(wall: u64, cpu: u64) -> ThreadTime {
        ThreadTime { wall: Duration::from_secs(wall), cpu: Duration::from_secs(cpu) }
    }

    #[test]
    fn decoding_is_unknown_if_no_reader_times_it() {
        let mut sums = StageSums::default();
        sums.read(time(9, 1), Some(ReadTimes { fetch: time(4, 2), decode: time(8, 7) }));
        let times = sums.times();
        assert_eq!(times.read, StageTime { wall_secs: 4.0, cpu_secs: Some(2.0) });
        assert_eq!(times.decode, Some(StageTime { wall_secs: 8.0, cpu_secs: Some(7.0) }));

        sums.read(time(3, 1), None);
        let mixed = sums.times();
        assert_eq!(mixed.read, StageTime { wall_secs: 7.0, cpu_secs: None });
        assert_eq!(mixed.decode, times.decode);

        let mut alone = StageSums::default();
        alone.read(time(3, 1), None);
        assert_eq!(alone.times().decode, None);
    }
}
