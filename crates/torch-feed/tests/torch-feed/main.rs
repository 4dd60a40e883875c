//! Batches as tensors: the loader's numbers, in memory that is reused.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod stored_type;
mod tensors;
