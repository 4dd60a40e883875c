//! The wrapper on real arrays, with and without misuse.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod arrays;
mod load;
mod misuse;
