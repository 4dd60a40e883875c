//! Encoders of several threads, kept for their memory.

use std::sync::{Mutex, PoisonError};

use crate::filter::encode::Encoder;

/// As many encoders as threads have used at once.
#[derive(Debug, Default)]
pub(super) struct Encoders(Mutex<Vec<Encoder>>);

impl Encoders {
    /// Lends an encoder.
    pub(super) fn with<T>(&self, encode: impl FnOnce(&mut Encoder) -> T) -> T {
        let lock = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut encoder = lock().pop().unwrap_or_default();
        let encoded = encode(&mut encoder);
        lock().push(encoder);
        encoded
    }
}
