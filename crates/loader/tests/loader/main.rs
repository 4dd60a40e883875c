//! The loader: its encoders, its pipeline, and its batches against tiledbsoma.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod encode;
mod interop;
mod pipeline;
mod usual_values;
