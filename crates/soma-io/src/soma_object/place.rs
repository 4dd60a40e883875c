//! Where an object is, how its files are opened, and as of which time.

use std::num::NonZero;
use std::sync::{Arc, OnceLock};

use storage::{Client, Config, GatheredStorage, OpenedStorage, ReadLimit, Storage, Subfolder};
use tiledb_native::Threads;

use crate::native::NotNative;
use crate::{Error, OpenOptions, ReaderChoice};

/// TileDB's parameter for the number of threads that decode and encode.
pub(crate) const THREADS_PARAMETER: &str = "sm.compute_concurrency_level";

/// Why objects are not read natively if another reader was chosen.
const CHOSEN: &str = "it was chosen";

/// The place of an object, and the time as of which to read it.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) uri: String,
    pub(crate) timestamp: Option<u64>,
    /// The rate limit of reads of X.
    pub(crate) read_limit: Option<Arc<ReadLimit>>,
    /// What reads groups, metadata and data frames.
    pub(crate) reader: ReaderChoice,
    root: Arc<Root>,
}

/// What the objects of an experiment share.
#[derive(Debug)]
struct Root {
    uri: String,
    config: Config,
    /// The files below the root, or the reason why only libtiledb reads them.
    files: Result<RootFiles, String>,
    /// The threads that decode, started when they are first needed.
    threads: OnceLock<Threads>,
    #[cfg(feature = "libtiledb")]
    context: OnceLock<tiledb::Context>,
}

/// The files below an experiment's root.
#[derive(Debug)]
struct RootFiles {
    client: Client,
    storage: Arc<dyn Storage>,
    /// The same storage, if it is remote: what opening needs is gathered.
    gathered: Option<Arc<GatheredStorage>>,
}

impl RootFiles {
    fn open(uri: &str, config: &Config) -> Result<Self, storage::Error> {
        let client = Client::open(uri, config)?;
        let storage = client.storage("", None, Some(tiledb_native::is_in_fragment))?.storage;
        // Only storages with requests are remote.
        if storage.request_counts().is_none() {
            return Ok(Self { client, storage, gathered: None });
        }
        let gathered = Arc::new(GatheredStorage::new(storage));
        let storage = Arc::<GatheredStorage>::clone(&gathered);
        Ok(Self { client, storage, gathered: Some(gathered) })
    }
}

impl Place {
    /// Whether the address is one of AnnData, MuData or of a matrix of 10x Genomics in HDF5, by its
    /// name. A folder of such a name is not.
    pub(crate) fn names_hdf5(&self) -> bool {
        let name = self.uri.to_ascii_lowercase();
        [".h5ad", ".h5", ".h5mu"].iter().any(|ending| name.ends_with(ending))
            && !storage::local_path(&self.uri).is_some_and(std::path::Path::is_dir)
    }

    /// Whether the address is one of a plain server, which lists nothing.
    pub(crate) fn is_on_the_web(&self) -> bool {
        ["http://", "https://"].iter().any(|scheme| self.uri.starts_with(scheme))
    }

    /// The place of an experiment at `uri`.
    pub(crate) fn of_root(
        uri: &str,
        config: &Config,
        options: &OpenOptions,
    ) -> Result<Self, Error> {
        let config = storage::complete_config(uri, config)?;
        let files = if options.reader == ReaderChoice::Libtiledb {
            Err(CHOSEN.to_owned())
        } else {
            match RootFiles::open(uri, &config) {
                Ok(files) => Ok(files),
                Err(storage::Error::Unsupported { reason, .. }) => Err(reason),
                Err(error) => return Err(error.into()),
            }
        };
        let root = Root {
            uri: uri.to_owned(),
            config,
            files,
            threads: OnceLock::new(),
            #[cfg(feature = "libtiledb")]
            context: OnceLock::new(),
        };
        Ok(Self {
            uri: uri.to_owned(),
            timestamp: options.timestamp,
            read_limit: None,
            reader: options.reader,
            root: Arc::new(root),
        })
    }

    /// The place at another URI of the same experiment.
    pub(crate) fn at(&self, uri: &str) -> Self {
        Self { uri: uri.to_owned(), ..self.clone() }
    }

    /// The URI of a member of the group here, by the URI that the group stores.
    pub(crate) fn uri_of_member(&self, uri: &str, is_relative: bool) -> String {
        if is_relative {
            format!("{}/{}", self.uri.trim_end_matches('/'), uri.trim_matches('/'))
        } else {
            uri.trim_end_matches('/').to_owned()
        }
    }

    pub(crate) fn config(&self) -> &Config {
        &self.root.config
    }

    /// The number of threads that decode: that of the config, otherwise one per processor.
    pub(crate) fn n_threads(&self) -> Result<usize, Error> {
        let here = || std::thread::available_parallelism().map_or(1, NonZero::get);
        Ok(self.parameter(THREADS_PARAMETER, "threads")?.unwrap_or_else(here))
    }

    /// A number above 0 from the config.
    pub(crate) fn parameter(&self, name: &str, what: &str) -> Result<Option<usize>, Error> {
        let Some(text) = self.config().get(name) else { return Ok(None) };
        match text.parse() {
            Ok(number) if number > 0 => Ok(Some(number)),
            _ => Err(Error::Schema {
                uri: self.uri.clone(),
                problem: format!("{name} is not a number of {what} above 0"),
            }),
        }
    }

    /// The threads that decode, of all objects of the experiment on this machine, and of frames
    /// anywhere.
    pub(crate) fn threads(&self) -> Result<Threads, Error> {
        if let Some(threads) = self.root.threads.get() {
            return Ok(threads.clone());
        }
        let threads = Threads::start(self.n_threads()?)?;
        Ok(self.root.threads.get_or_init(|| threads).clone())
    }

    /// The path from the experiment's root; `None` if the object lies elsewhere.
    fn below_root(&self) -> Option<&str> {
        let below = self.uri.strip_prefix(&self.root.uri)?;
        (below.is_empty() || below.starts_with('/'))
            .then(|| below.strip_prefix('/').unwrap_or(below))
    }

    /// The files of the root, and the path from there, if the object lies below it.
    fn in_root(&self) -> Option<(&RootFiles, &str)> {
        Some((self.root.files.as_ref().ok()?, self.below_root()?))
    }

    /// Opens the files of an array of X: with the limit on the rate, and with the counts of its own
    /// cache.
    pub(crate) fn open_x(&self) -> Result<OpenedStorage, storage::Error> {
        let limit = self.read_limit.as_ref();
        let never_changes = Some(tiledb_native::is_in_fragment as storage::NeverChanges);
        let Some((files, folder)) = self.in_root() else {
            let client = Client::open(&self.uri, self.config())?;
            return client.storage("", limit, never_changes);
        };
        let opened = files.client.storage(folder, limit, never_changes)?;
        Ok(match &files.gathered {
            Some(gathered) => {
                let storage = Arc::new(gathered.below(folder, opened.storage));
                OpenedStorage { storage, ..opened }
            }
            None => opened,
        })
    }

    /// The files here, if the native reader may read them. Below the experiment's root they share
    /// its client.
    pub(crate) fn files(&self) -> Result<Arc<dyn Storage>, NotNative> {
        if self.reader == ReaderChoice::Libtiledb {
            return Err(NotNative::Unsupported(CHOSEN.to_owned()));
        }
        match (&self.root.files, self.below_root()) {
            (Err(reason), Some(_)) => Err(NotNative::Unsupported(reason.clone())),
            (Ok(files), Some(folder)) => {
                if files.gathered.is_some() && !is_key(folder) {
                    let reason = format!("the key {folder:?} is not supported");
                    return Err(NotNative::Unsupported(reason));
                }
                // In a folder of this machine, reads need no path from the root.
                match &files.gathered {
                    Some(_) => Ok(Subfolder::open(Arc::clone(&files.storage), folder)),
                    None => Ok(files.client.storage(folder, None, None)?.storage),
                }
            }
            (_, None) => {
                let client = Client::open(&self.uri, self.config())?;
                let never_changes = Some(tiledb_native::is_in_fragment as storage::NeverChanges);
                Ok(client.storage("", None, never_changes)?.storage)
            }
        }
    }

    /// The gathered files below the root, and the path of this object there; `None` if nothing is
    /// gathered.
    pub(crate) fn gathered(&self) -> Option<(&GatheredStorage, &str)> {
        let (files, folder) = self.in_root()?;
        Some((files.gathered.as_deref()?, folder)).filter(|_| is_key(folder))
    }

    /// Opens the object natively, or else through libtiledb, as far as the choice of a reader and
    /// the features allow. `through_libtiledb` gets the reason.
    pub(crate) fn open<T>(
        &self,
        native: impl FnOnce(Arc<dyn Storage>) -> Result<T, NotNative>,
        through_libtiledb: impl FnOnce(&Self, String) -> Result<T, Error>,
    ) -> Result<T, Error> {
        match self.files().and_then(native) {
            Ok(object) => Ok(object),
            Err(NotNative::Failed(error)) => Err(error),
            Err(NotNative::Unsupported(reason)) if self.reader == ReaderChoice::Native => {
                Err(Error::NotNative { uri: self.uri.clone(), reason })
            }
            Err(NotNative::Unsupported(reason)) => through_libtiledb(self, reason),
        }
    }

    /// libtiledb's context, made when it is first needed.
    #[cfg(feature = "libtiledb")]
    pub(crate) fn context(&self) -> Result<&tiledb::Context, Error> {
        if let Some(context) = self.root.context.get() {
            return Ok(context);
        }
        let context = tiledb::Context::new(self.config())?;
        Ok(self.root.context.get_or_init(|| context))
    }
}

/// Whether crate `storage` can ask an object store for this key.
fn is_key(key: &str) -> bool {
    key.is_empty() || !key.split('/').any(|part| matches!(part, "" | "." | ".."))
}
