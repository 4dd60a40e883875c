//! Tests of the program.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should end")]

mod sweeps;
