#![doc = include_str!("../README.md")]
//!
//! [`now`] reads two clocks on the calling thread: the monotonic one, and the processor time of the
//! thread. The difference of two readings is a [`ThreadTime`], and those of several threads add up.
//! No other library of the workspace reads a clock to time itself.
//!
//! [`ReadStats`] has the counts and times of a read, of whatever kind.
//!
//! [`run_in_background`] gives a thread the policy for batch work, so that it does not preempt the
//! thread that waits for its results when it wakes.
#![forbid(unsafe_code)]

mod background;
mod clock;
mod read_stats;
mod time;

pub use background::run_in_background;
pub use clock::now;
pub use read_stats::ReadStats;
pub use time::{ReadTimes, ThreadTime};
