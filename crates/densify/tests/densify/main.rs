//! The kernels against naive ones, and input that does not fit.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod bad_input;
mod paths;
mod transforms;
