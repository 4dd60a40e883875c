//! Plans, samples, splits and entropy against what they promise.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod drawn;
mod entropy;
mod plans;
mod samples;
mod splits;
