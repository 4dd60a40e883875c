//! Results folders: those of earlier versions, and several writers of one.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod earlier_results;
mod writers;
