//! Other ways to feed the same cubes: a script feeds with each of them, in processes of its own.
//!
//! A reader is measured only if it delivers the values that our loader delivers, which both sides
//! show as a checksum for each sample and array.

mod checksums;
mod reader;
mod table;

pub(crate) use checksums::{Checksums, difference, epochs, ours};
pub(crate) use reader::{ReaderAnswer, ReaderTask, Script, recorded};
pub(crate) use table::{Side, table};
