//! Tests of crate `images`.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod augment;
mod files;
mod image_data;
mod samplers;
mod samples;
