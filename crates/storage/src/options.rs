//! How an address is opened, and the result.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::cache::{CachedStorage, NeverChanges};
use crate::limited::ReadLimit;
use crate::storage::Storage;

/// Settings by name, as in TileDB's own documentation, for example `vfs.s3.region`.
pub type Config = BTreeMap<String, String>;

/// How [`open`](crate::open) opens an address.
#[derive(Debug, Clone)]
pub struct OpenOptions<'a> {
    /// The settings; what they leave open, the environment may say ([`open`](crate::open)).
    pub config: &'a Config,
    /// The limit that reads keep. Bytes from the cache do not count.
    pub read_limit: Option<Arc<ReadLimit>>,
    /// Which files never change once they are there: the cache that `soma.cache_folder` names
    /// keeps these and no others. `None` if there are none, so that such a cache is an error.
    pub never_changes: Option<NeverChanges>,
}

impl<'a> OpenOptions<'a> {
    /// No limit of rate, and no files that may be cached.
    pub fn new(config: &'a Config) -> Self {
        Self { config, read_limit: None, never_changes: None }
    }
}

/// A storage that was opened by its address.
#[derive(Debug, Clone)]
pub struct OpenedStorage {
    /// The storage, with its decorators.
    pub storage: Arc<dyn Storage>,
    /// The outermost decorator if it is a cache, to ask for its counts.
    pub cache: Option<Arc<CachedStorage>>,
}
