//! Lengths of time that threads spend, and sums of them.

use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub};
use std::time::Duration;

/// A moment on one thread, or the time between two; times of several threads add up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ThreadTime {
    /// Time on the monotonic clock, counted from an arbitrary start.
    pub wall: Duration,
    /// Processor time of the thread.
    pub cpu: Duration,
}

impl Add for ThreadTime {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { wall: self.wall + other.wall, cpu: self.cpu + other.cpu }
    }
}

impl AddAssign for ThreadTime {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for ThreadTime {
    type Output = Self;

    /// The difference, or zero if `other` is later: the two clocks may differ by nanoseconds.
    fn sub(self, other: Self) -> Self {
        Self { wall: self.wall.saturating_sub(other.wall), cpu: self.cpu.saturating_sub(other.cpu) }
    }
}

impl Sum for ThreadTime {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), Add::add)
    }
}

/// Time that the threads of a read spent, split between storage and decoding.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReadTimes {
    /// Time getting bytes from storage, summed over threads.
    pub fetch: ThreadTime,
    /// Time turning bytes into values (decompression, row indices, placement), summed over threads.
    pub decode: ThreadTime,
}

impl AddAssign for ReadTimes {
    fn add_assign(&mut self, other: Self) {
        self.fetch += other.fetch;
        self.decode += other.decode;
    }
}
