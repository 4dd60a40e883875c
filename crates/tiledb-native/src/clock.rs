//! Time that threads spend on reads, by a clock that whoever asks brings along: this crate reads none of its own.

use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub};
use std::time::Duration;

/// A moment, or a length of time, of one thread; lengths of several threads add up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ThreadTime {
    /// On the monotonic clock, from any beginning.
    pub wall: Duration,
    /// That the thread has had a processor.
    pub cpu: Duration,
}

/// Tells the moment on the thread that calls it.
pub type Clock = fn() -> ThreadTime;

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

    /// No less than nothing: what two clocks say need not agree to the nanosecond.
    fn sub(self, other: Self) -> Self {
        Self { wall: self.wall.saturating_sub(other.wall), cpu: self.cpu.saturating_sub(other.cpu) }
    }
}

impl Sum for ThreadTime {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), Add::add)
    }
}

/// What a read's threads did, where the array was given a clock; nothing without.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReadTimes {
    /// Getting bytes from the storage, summed over threads.
    pub fetch: ThreadTime,
    /// Making cells of them: filters, row indices, putting them in their places.
    pub decode: ThreadTime,
}

impl AddAssign for ReadTimes {
    fn add_assign(&mut self, other: Self) {
        self.fetch += other.fetch;
        self.decode += other.decode;
    }
}
