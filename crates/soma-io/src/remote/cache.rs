//! The cache that X in an object store is read through where the config names a folder for it.

use std::sync::Arc;

use tiledb_native::{CacheSpec, CacheStats, CachedStorage, Storage};

use super::settings::{Settings, refused};
use crate::Error;

/// The folder; without it nothing is cached.
const FOLDER: &str = "soma.cache_folder";
/// The most bytes of it.
const LIMIT: &str = "soma.cache_limit_bytes";

const DEFAULT_LIMIT_BYTES: u64 = 32 << 30;

/// What a reader's cache has done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheUse {
    /// Its counts.
    pub stats: CacheStats,
    /// Why the last block that could not be kept was not; reading goes on without the cache then.
    pub problem: Option<String>,
}

/// A storage of X, and the cache in front of it.
pub(crate) type Cached = (Arc<dyn Storage>, Option<Arc<CachedStorage>>);

/// `storage`, behind a cache where the config names a folder.
pub(super) fn cached(
    uri: &str,
    storage: Arc<dyn Storage>,
    settings: &Settings<'_>,
) -> Result<Cached, Error> {
    let Some(folder) = settings.text(FOLDER) else {
        if settings.text(LIMIT).is_some() {
            return Err(refused(LIMIT, "there is no soma.cache_folder that it could limit"));
        }
        return Ok((storage, None));
    };
    let limit = settings.number(LIMIT)?.unwrap_or(DEFAULT_LIMIT_BYTES);
    let cached = CachedStorage::new(storage, &CacheSpec::new(folder, limit)).map_err(|source| {
        Error::Cache { folder: folder.to_owned(), uri: uri.to_owned(), source }
    })?;
    let cached = Arc::new(cached);
    Ok((Arc::<CachedStorage>::clone(&cached), Some(cached)))
}
