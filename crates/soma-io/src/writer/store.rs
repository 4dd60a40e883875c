//! How the arrays and groups of a new experiment are made: natively in a folder, otherwise by
//! libtiledb.

use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use storage::Config;
use tiledb::{MetadataValue, ObjectType, Schema};
use tiledb_native::{GroupMember, Threads, WriteOptions};

use super::check::folder_of;
#[cfg(feature = "libtiledb")]
use super::through_libtiledb;
use super::{ExperimentSpec, unfinished};
use crate::Error;
use crate::soma_object::{CURRENT_ENCODING, ENCODING_VERSION, OBJECT_TYPE, THREADS_PARAMETER};

/// Maker of the files of a new experiment.
#[derive(Debug)]
pub(super) enum Store {
    /// This process, in a folder.
    Folder {
        /// Shared by all arrays.
        threads: Threads,
        /// Whether arrays that already have rows are kept.
        resumes: bool,
        /// libtiledb's settings, and its context if fragments will be merged.
        #[cfg(feature = "libtiledb")]
        config: Config,
        #[cfg(feature = "libtiledb")]
        merges: Option<tiledb::Context>,
    },
    /// libtiledb.
    #[cfg(feature = "libtiledb")]
    Libtiledb {
        /// Its context.
        context: tiledb::Context,
        /// Whether fragments will be merged.
        merges: bool,
    },
}

impl Store {
    /// The way to write to `uri`.
    pub(super) fn open(uri: &str, spec: &ExperimentSpec, resumes: bool) -> Result<Self, Error> {
        if storage::local_path(uri).is_none() {
            return Self::remote(uri, spec);
        }
        let threads = Threads::start(n_threads(uri, &spec.config)?)?;
        let merges = spec.consolidate && spec.fragment_rows.is_some();
        #[cfg(not(feature = "libtiledb"))]
        return if merges {
            Err(needs_libtiledb(uri, "only libtiledb merges fragments"))
        } else {
            Ok(Self::Folder { threads, resumes })
        };
        #[cfg(feature = "libtiledb")]
        {
            let config = spec.config.clone();
            let context = || through_libtiledb::context(uri, &config);
            let merges = if merges { Some(context()?) } else { None };
            Ok(Self::Folder { threads, resumes, config, merges })
        }
    }

    #[cfg(feature = "libtiledb")]
    fn remote(uri: &str, spec: &ExperimentSpec) -> Result<Self, Error> {
        let context = through_libtiledb::context(uri, &spec.config)?;
        Ok(Self::Libtiledb { context, merges: spec.consolidate })
    }

    #[cfg(not(feature = "libtiledb"))]
    fn remote(uri: &str, _: &ExperimentSpec) -> Result<Self, Error> {
        Err(needs_libtiledb(uri, "only libtiledb writes to an object store"))
    }

    /// Creates the folder at `uri`, in which nothing may be yet unless an unfinished writer left
    /// it, and other folders.
    pub(super) fn create_folders(&self, uri: &str, others: &[&str]) -> Result<(), Error> {
        match self {
            Self::Folder { resumes, .. } => {
                let path = folder(uri)?;
                let is_used = if path.is_dir() {
                    has_entries(&path)?
                } else {
                    path.symlink_metadata().is_ok()
                };
                if is_used && !resumes {
                    return Err(storage::DestinationError::Exists { uri: uri.to_owned() }.into());
                }
                for path in [uri].iter().chain(others) {
                    let path = folder(path)?;
                    std::fs::create_dir_all(&path).map_err(file_error("create", &path))?;
                }
                Ok(())
            }
            #[cfg(feature = "libtiledb")]
            Self::Libtiledb { context, .. } => {
                through_libtiledb::create_folders(context, uri, others)
            }
        }
    }

    /// Creates an array that is a SOMA object, with further metadata. Returns the end of the rows
    /// that it has already, if an unfinished writer left it; otherwise 0.
    pub(super) fn create_array(
        &self,
        uri: &str,
        schema: &Schema,
        object_type: &str,
        metadata: &[(&str, MetadataValue)],
    ) -> Result<u64, Error> {
        let metadata: Vec<_> = identity(object_type).into_iter().chain(metadata.to_vec()).collect();
        match self {
            Self::Folder { resumes, .. } => {
                let path = folder(uri)?;
                let end = if *resumes { unfinished::end_of_rows(&path)? } else { 0 };
                if end > 0 {
                    return Ok(end);
                }
                let time = now();
                tiledb_native::create_array(&path, schema, time)?;
                tiledb_native::write_array_metadata(&path, &metadata, time)?;
            }
            #[cfg(feature = "libtiledb")]
            Self::Libtiledb { context, .. } => {
                tiledb::Array::create(context, uri, schema)?;
                through_libtiledb::mark(context, uri, &metadata)?;
            }
        }
        Ok(0)
    }

    /// Creates a group of members in its folder, that is a SOMA object, with further metadata.
    pub(super) fn create_group(
        &self,
        uri: &str,
        object_type: &str,
        members: &[(&str, ObjectType)],
        metadata: &[(&str, MetadataValue)],
    ) -> Result<(), Error> {
        let mut metadata: Vec<_> =
            identity(object_type).into_iter().chain(metadata.to_vec()).collect();
        if object_type == "SOMAExperiment" {
            metadata.push(("dataset_type", "soma".into()));
        }
        match self {
            Self::Folder { .. } => {
                let member = |(name, kind): &(&str, ObjectType)| {
                    let mut member = GroupMember::inside(name, *kind);
                    member.uri = folder_of(name);
                    member
                };
                let members: Vec<_> = members.iter().map(member).collect();
                Ok(tiledb_native::write_group(folder(uri)?, &members, &metadata, now())?)
            }
            #[cfg(feature = "libtiledb")]
            Self::Libtiledb { context, .. } => {
                through_libtiledb::create_group(context, uri, &metadata, members)
            }
        }
    }

    /// Merges the fragments of an array if that was specified.
    #[cfg(feature = "libtiledb")]
    pub(super) fn merge_fragments(&self, uri: &str) -> Result<(), Error> {
        match self {
            Self::Folder { merges: Some(context), .. }
            | Self::Libtiledb { context, merges: true } => {
                through_libtiledb::consolidate(context, uri)
            }
            _ => Ok(()),
        }
    }

    /// Does nothing: [`Self::open`] refuses what would be merged.
    #[cfg(not(feature = "libtiledb"))]
    #[expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "as with libtiledb")]
    pub(super) fn merge_fragments(&self, _: &str) -> Result<(), Error> {
        Ok(())
    }
}

/// How the native writer writes an array now.
pub(super) fn options(threads: &Threads) -> WriteOptions {
    WriteOptions::new(threads.clone(), now())
}

/// The local folder of an object below a local experiment.
pub(super) fn folder(uri: &str) -> Result<PathBuf, Error> {
    storage::local_path(uri)
        .map(Path::to_owned)
        .ok_or_else(|| needs_libtiledb(uri, "only libtiledb writes to an object store"))
}

/// The error for what libtiledb would write.
pub(super) fn needs_libtiledb(uri: &str, reason: &str) -> Error {
    Error::WriteNeedsLibtiledb { uri: uri.to_owned(), reason: reason.to_owned() }
}

/// The time, in milliseconds since 1970.
fn now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

/// The metadata that makes an array or a group a SOMA object.
fn identity(object_type: &str) -> [(&'static str, MetadataValue); 2] {
    [(OBJECT_TYPE, object_type.into()), (ENCODING_VERSION, CURRENT_ENCODING.into())]
}

/// The number of threads that encode.
fn n_threads(uri: &str, config: &Config) -> Result<usize, Error> {
    let Some(text) = config.get(THREADS_PARAMETER) else {
        return Ok(std::thread::available_parallelism().map_or(1, NonZero::get));
    };
    text.parse().ok().filter(|n| *n > 0).ok_or_else(|| Error::Write {
        what: "an experiment".into(),
        uri: uri.to_owned(),
        problem: format!("{THREADS_PARAMETER} is not a number of threads above 0"),
    })
}

fn has_entries(path: &Path) -> Result<bool, Error> {
    let mut entries = std::fs::read_dir(path).map_err(file_error("list", path))?;
    Ok(entries.next().is_some())
}

pub(super) fn file_error(action: &str, path: &Path) -> impl FnOnce(std::io::Error) -> Error {
    let (action, file) = (action.to_owned(), path.display().to_string());
    move |source| storage::Error::File { action, file, source }.into()
}
