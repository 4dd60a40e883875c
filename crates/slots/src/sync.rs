//! The lock and the condition: of the standard library, and of loom in this crate's unit tests.

#[cfg(not(test))]
pub(crate) use std::sync::{Condvar, Mutex, MutexGuard};

#[cfg(test)]
pub(crate) use loom::sync::{Condvar, Mutex, MutexGuard};
