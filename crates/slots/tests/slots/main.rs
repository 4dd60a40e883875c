//! Rings and pools against naive models, with the locks of the standard library. The orders of
//! events between threads are in the crate's unit tests.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should end")]

mod allocators;
mod pool;
mod ring;
mod threads;
