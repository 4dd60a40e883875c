//! What the stages of an epoch took, each summed over the threads that did it.

use soma_io::{ReadTimes, ThreadTime};

/// A stage's time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StageTime {
    /// Seconds of the monotonic clock: more than those of the processor by what was waited for.
    pub wall_secs: f64,
    /// Seconds of the processor; none where a library's own threads did it.
    pub cpu_secs: Option<f64>,
}

impl From<ThreadTime> for StageTime {
    fn from(time: ThreadTime) -> Self {
        Self { wall_secs: time.wall.as_secs_f64(), cpu_secs: Some(time.cpu.as_secs_f64()) }
    }
}

/// The stages. They overlap, and several threads may do one, so that they add up to more than the epoch's time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct StageTimes {
    /// Bytes from storage. Of a reader that does not tell that from decoding, as libtiledb, both.
    pub read: StageTime,
    /// Cells of those bytes. None where `read` has it.
    pub decode: Option<StageTime>,
    /// Drawing the order of chunks and of rows.
    pub shuffle: StageTime,
    /// Rows of a block, in that order, into batches, with their obs rows; COO into blocks before that.
    pub densify: StageTime,
    /// The consumer's waits for batches, without the making of those that its own thread makes.
    pub wait: StageTime,
}

/// The sums behind [`StageTimes`].
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct StageSums {
    /// Of readers that tell what their threads did.
    told: ReadTimes,
    /// On the reading thread, of readers that do not.
    untold: ThreadTime,
    n_told: u64,
    n_untold: u64,
    pub(crate) shuffle: ThreadTime,
    /// Making batches, on the thread that does it: its own one or the consumer's.
    pub(crate) cut: ThreadTime,
    /// The rest of densifying: on the reading thread, and on those that write parts of a batch.
    pub(crate) densify_apart: ThreadTime,
    pub(crate) wait: ThreadTime,
}

impl StageSums {
    /// A reader was in use so long, as the reading thread saw it, and told or did not what it did.
    pub(crate) fn read(&mut self, on_thread: ThreadTime, told: Option<ReadTimes>) {
        if let Some(times) = told {
            self.told += times;
            self.n_told += 1;
        } else {
            self.untold += on_thread;
            self.n_untold += 1;
        }
    }

    pub(crate) fn times(&self) -> StageTimes {
        let mut read = StageTime::from(self.told.fetch + self.untold);
        if self.n_untold > 0 {
            read.cpu_secs = None;
        }
        StageTimes {
            read,
            decode: (self.n_told > 0 || self.n_untold == 0).then(|| self.told.decode.into()),
            shuffle: self.shuffle.into(),
            densify: (self.cut + self.densify_apart).into(),
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
    fn a_reader_that_does_not_tell_leaves_open_what_it_cannot_know() {
        let mut sums = StageSums::default();
        sums.read(time(9, 1), Some(ReadTimes { fetch: time(4, 2), decode: time(8, 7) }));
        let told = sums.times();
        assert_eq!(told.read, StageTime { wall_secs: 4.0, cpu_secs: Some(2.0) });
        assert_eq!(told.decode, Some(StageTime { wall_secs: 8.0, cpu_secs: Some(7.0) }));

        sums.read(time(3, 1), None);
        let mixed = sums.times();
        assert_eq!(mixed.read, StageTime { wall_secs: 7.0, cpu_secs: None });
        assert_eq!(mixed.decode, told.decode);

        let mut alone = StageSums::default();
        alone.read(time(3, 1), None);
        assert_eq!(alone.times().decode, None);
    }
}
