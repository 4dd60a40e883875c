//! Stores, words and the loader of sequences, against naive oracles.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod bed;
mod dialects;
mod loader;
mod servers;
mod stores;
mod words;
