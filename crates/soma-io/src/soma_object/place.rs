//! Where an object is, how its files are opened, and as of which time.

use std::num::NonZero;
use std::sync::Arc;

use storage::{Config, OpenedStorage, ReadLimit, Storage, Subfolder};

use crate::native::NotNative;
use crate::{Error, OpenOptions, ReaderChoice};

/// TileDB's parameter for the number of threads that decode and encode.
pub(crate) const THREADS_PARAMETER: &str = "sm.compute_concurrency_level";

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
    storage: Result<Arc<dyn Storage>, String>,
    #[cfg(feature = "libtiledb")]
    context: std::sync::OnceLock<tiledb::Context>,
}

impl Place {
    /// The place of an experiment at `uri`.
    pub(crate) fn of_root(
        uri: &str,
        config: &Config,
        options: &OpenOptions,
    ) -> Result<Self, Error> {
        let config = storage::complete_config(uri, config)?;
        let storage = match storage::open(uri, &storage_options(&config)) {
            Ok(opened) => Ok(opened.storage),
            Err(storage::Error::Unsupported { reason, .. }) => Err(reason),
            Err(error) => return Err(error.into()),
        };
        let root = Root {
            uri: uri.to_owned(),
            config,
            storage,
            #[cfg(feature = "libtiledb")]
            context: std::sync::OnceLock::new(),
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

    /// Opens the files of an array of X: with the limit on the rate, and with the counts of its own
    /// cache.
    pub(crate) fn open_x(&self) -> Result<OpenedStorage, storage::Error> {
        let read_limit = self.read_limit.clone();
        storage::open(
            &self.uri,
            &storage::OpenOptions { read_limit, ..storage_options(self.config()) },
        )
    }

    /// The files here, if the native reader may read them. Below the experiment's root they share
    /// its client.
    pub(crate) fn files(&self) -> Result<Arc<dyn Storage>, NotNative> {
        if self.reader == ReaderChoice::Libtiledb {
            return Err(NotNative::Unsupported("it was chosen".to_owned()));
        }
        let below = self.uri.strip_prefix(&self.root.uri);
        match below.filter(|below| below.is_empty() || below.starts_with('/')) {
            Some(folder) => match &self.root.storage {
                Ok(storage) => Ok(Subfolder::of(Arc::clone(storage), folder)),
                Err(reason) => Err(NotNative::Unsupported(reason.clone())),
            },
            None => Ok(storage::open(&self.uri, &storage_options(self.config()))?.storage),
        }
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

fn storage_options(config: &Config) -> storage::OpenOptions<'_> {
    storage::OpenOptions {
        never_changes: Some(tiledb_native::is_in_fragment),
        ..storage::OpenOptions::new(config)
    }
}
