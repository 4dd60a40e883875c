//! Samples of image cubes.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod augment;
