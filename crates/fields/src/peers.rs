//! Other readers of the same store: a script reads with each of them, in a process of its own.
//!
//! A reader is measured only if it delivers the values that our loader delivers, which both sides
//! show as a checksum for each sample and array.

mod checksums;
mod reader;
mod table;

pub(crate) use checksums::{Checksums, batches, difference, ours};
pub(crate) use reader::{ReaderAnswer, ReaderTask, recorded};
pub(crate) use table::{Side, table};
