//! Writes experiments and reads them back through soma-io.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod contents;
mod generate;
mod import;
mod killed;
mod visium;
