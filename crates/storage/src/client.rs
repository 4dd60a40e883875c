//! One client of an address, and the storages that use it.

use std::sync::Arc;

use crate::address::{Address, local_path, split_file};
use crate::cache::NeverChanges;
use crate::error::Error;
use crate::limited::{LimitedStorage, ReadLimit};
use crate::local::LocalStorage;
use crate::names;
#[cfg(feature = "http")]
use crate::object::ObjectStorage;
use crate::options::{Config, OpenedStorage};
#[cfg(feature = "http")]
use crate::storage::Storage as _;
use crate::subfolder::Subfolder;
use crate::zip::{Archive, ZipStorage, names_archive};

/// The client of the files at an address. Storages of any folders below it share its connections,
/// its threads and its limit of requests at once; of a local folder they share the limit of open
/// files.
///
/// ```
/// use storage::{Client, Config, Storage};
///
/// # let folder = tempfile::tempdir()?;
/// # std::fs::create_dir_all(folder.path().join("obs"))?;
/// # std::fs::write(folder.path().join("obs/a0.tdb"), "0123")?;
/// let client = Client::open(folder.path().to_str().unwrap(), &Config::new())?;
/// let obs = client.storage("obs", None, None)?.storage;
/// assert_eq!(obs.size("a0.tdb")?, 4);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Client {
    base: Base,
    /// The archive in that folder, if the address names one.
    archive: Option<Arc<Archive>>,
    #[cfg(feature = "http")]
    address: String,
    #[cfg(feature = "http")]
    config: Config,
}

#[derive(Debug, Clone)]
enum Base {
    Folder(Arc<LocalStorage>),
    #[cfg(feature = "http")]
    Objects(Arc<ObjectStorage>),
}

impl Client {
    /// Makes the client of `address`, with the settings that [`open`](crate::open) documents. Sends
    /// no request yet.
    ///
    /// # Errors
    /// Those of [`open`](crate::open), except for those of a cache.
    pub fn open(address: &str, config: &Config) -> Result<Self, Error> {
        let (address, archive) = if names_archive(address) {
            let (folder, name) = split_file(address);
            (folder, Some(Arc::new(Archive::new(name))))
        } else {
            (address, None)
        };
        let base = Base::open(address, config)?;
        Ok(Self {
            base,
            archive,
            #[cfg(feature = "http")]
            address: address.to_owned(),
            #[cfg(feature = "http")]
            config: config.clone(),
        })
    }

    /// The files below `folder`, within `read_limit` and, if the settings name a folder for a
    /// cache, behind a cache of those files that never change. A Zip archive, whose version is part
    /// of what is cached, is one of these.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if `folder` is not a path in this store; [`Error::Cache`] and
    /// [`Error::Parameter`] if the cache cannot be used.
    pub fn storage(
        &self,
        folder: &str,
        read_limit: Option<&Arc<ReadLimit>>,
        never_changes: Option<NeverChanges>,
    ) -> Result<OpenedStorage, Error> {
        let Some(archive) = &self.archive else {
            return self.outside(folder, read_limit, never_changes);
        };
        names::check(folder).map_err(|problem| Error::Unsupported {
            address: folder.to_owned(),
            reason: problem.to_string(),
        })?;
        let whole = never_changes.map(|_| (|_: &str| true) as NeverChanges);
        let opened = self.outside("", read_limit, whole)?;
        let files = Arc::new(ZipStorage::new(opened.storage, Arc::clone(archive)));
        Ok(OpenedStorage { storage: Subfolder::open(files, folder), ..opened })
    }

    /// The files below `folder`, outside of archives.
    fn outside(
        &self,
        folder: &str,
        read_limit: Option<&Arc<ReadLimit>>,
        never_changes: Option<NeverChanges>,
    ) -> Result<OpenedStorage, Error> {
        match &self.base {
            Base::Folder(files) => {
                names::check(folder).map_err(|problem| Error::Unsupported {
                    address: format!("{}/{folder}", files.root().display()),
                    reason: problem.to_string(),
                })?;
                let storage = LimitedStorage::around(Arc::new(files.below(folder)), read_limit);
                // Nothing of a folder is cached.
                let _ = never_changes;
                Ok(OpenedStorage { storage, cache: None })
            }
            #[cfg(feature = "http")]
            Base::Objects(objects) => {
                let objects = objects.below(folder).map_err(|problem| Error::Unsupported {
                    address: format!("{}/{folder}", self.address),
                    reason: format!("the key {folder:?} is not supported: {problem}"),
                })?;
                let address = objects.place();
                let storage = LimitedStorage::around(Arc::new(objects), read_limit);
                crate::cloud::cached(storage, &address, &self.config, never_changes)
            }
        }
    }
}

impl Base {
    fn open(address: &str, config: &Config) -> Result<Self, Error> {
        if let Some(parsed) = Address::parse(address)? {
            parsed.kind.check_built(address)?;
            #[cfg(feature = "http")]
            return Ok(Self::Objects(Arc::new(crate::cloud::open(address, &parsed, config)?)));
        }
        let _ = config;
        let Some(folder) = local_path(address) else {
            let scheme = address.split_once("://").map_or("", |(scheme, _)| scheme);
            return Err(Error::Unsupported {
                address: address.to_owned(),
                reason: format!("there is no client for addresses of {scheme}://"),
            });
        };
        Ok(Self::Folder(Arc::new(LocalStorage::new(folder))))
    }
}
