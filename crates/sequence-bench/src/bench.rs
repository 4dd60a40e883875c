//! Measurements of feeding sequences: each point of a grid in its own process, rows in a results
//! folder.

mod epochs;
mod flags;
mod label;
mod point;
mod task;

use std::path::Path;
use std::sync::Arc;

use sequences::SequenceFiles;
use storage::LocalStorage;

pub(crate) use epochs::serve;
pub(crate) use flags::{FeedFlags, at_least_one};
pub(crate) use label::SequenceLabel;
pub(crate) use point::{Consumer, Form, Point, TRANSFORM};
pub(crate) use task::StoreData;

/// Opens a store in a folder.
pub(crate) fn open(folder: &Path) -> Result<Arc<SequenceFiles>, sequences::Error> {
    Ok(Arc::new(SequenceFiles::open(Arc::new(LocalStorage::new(folder)))?))
}
