//! The native reader against libtiledb, and on stored arrays, whole and damaged.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod differential;
mod stored;
mod visium;
