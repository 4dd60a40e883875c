//! Data read over a link, or through a cache on disk: the flags, and how the storage is opened.

use std::path::PathBuf;

use anyhow::Context as _;
use bench_report::{GridPoint, HostInfo};
use bench_run::{LinkAccess, LinkFlags, LinkMeter, LinkServers, UsageError};
use bytesize::ByteSize;
use clap::Args;
use serde::{Deserialize, Serialize};
use storage::{OpenOptions, OpenedStorage, local_path};

/// Flags for data that is read from far away.
#[derive(Debug, Args)]
pub(crate) struct FarFlags {
    #[command(flatten)]
    link: LinkFlags,
    /// Keep chunks from a link or an object store in this folder, for later processes, too
    #[arg(long, value_name = "FOLDER", conflicts_with = "cold")]
    cache: Option<PathBuf>,
    /// Most bytes in that folder
    #[arg(long, value_name = "SIZE", default_value = "32GiB", requires = "cache")]
    cache_size: ByteSize,
}

impl FarFlags {
    /// The flags as typed, each with its value.
    pub(crate) fn typed(&self) -> Vec<(&'static str, String)> {
        let cache = self.cache.as_ref().map(|folder| ("--cache", folder.display().to_string()));
        let size = cache.as_ref().map(|_| ("--cache-size", self.cache_size.as_u64().to_string()));
        self.link.typed().chain(cache).chain(size).collect()
    }

    /// Starts the server if there is a link; returns it, and how to read the store at `uri`.
    pub(crate) fn begin(
        &self,
        uri: &str,
        host: &HostInfo,
    ) -> anyhow::Result<(Option<LinkServers>, FarAccess)> {
        let local = local_path(uri);
        if self.cache.is_some() && self.link.link.is_none() && local.is_some() {
            let text = "--cache keeps what comes from far away, and this store is on this machine; \
                        give --link, too";
            return Err(UsageError::new(text).into());
        }
        if self.link.link.is_some() && local.is_none() {
            return Err(UsageError::new("--link takes a store on a local disk").into());
        }
        let mut servers = self.link.servers(host)?;
        let link = match (&mut servers, local) {
            (Some(servers), Some(store)) => Some(servers.serve(store, None)?),
            _ => None,
        };
        let cache = self.cache.clone().map(|folder| {
            // The processes that measure read it from the same folder.
            let folder = std::path::absolute(&folder).unwrap_or(folder);
            ChunkCache { folder, limit_bytes: self.cache_size.as_u64() }
        });
        Ok((servers, FarAccess { link, cache }))
    }
}

/// How to read a store over a link or through a cache.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct FarAccess {
    link: Option<LinkAccess>,
    cache: Option<ChunkCache>,
}

/// A cache on disk of chunks from far away.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct ChunkCache {
    folder: PathBuf,
    limit_bytes: u64,
}

impl FarAccess {
    /// Opens the store at `uri`.
    pub(crate) fn open(&self, uri: &str) -> anyhow::Result<OpenedStorage> {
        let mut config = storage::Config::new();
        let mut set = |name: &str, value: &str| {
            config.insert(name.to_owned(), value.to_owned());
        };
        if let Some(ChunkCache { folder, limit_bytes }) = &self.cache {
            let folder = folder.to_str().context("the path of the cache is not UTF-8")?;
            set("soma.cache_folder", folder);
            set("soma.cache_limit_bytes", &limit_bytes.to_string());
        }
        let (address, config) = match &self.link {
            Some(link) => {
                link.configure(&mut config)?;
                (link.uri(), config)
            }
            None => (uri.to_owned(), storage::complete_config(uri, &config)?),
        };
        let options = OpenOptions { never_changes: Some(is_chunk), ..OpenOptions::new(&config) };
        storage::open(&address, &options).with_context(|| format!("cannot open {uri}"))
    }

    /// The link, if there is one.
    pub(crate) fn link(&self) -> Option<&LinkAccess> {
        self.link.as_ref()
    }

    /// `point` with the link and the cache.
    pub(crate) fn recorded(&self, mut point: GridPoint) -> GridPoint {
        if let Some(link) = &self.link {
            link.enter(&mut point);
        }
        let limit = self.cache.as_ref().map(|cache| cache.limit_bytes);
        GridPoint { settings: point.settings.with_bytes(STORAGE_CACHE, limit), ..point }
    }

    /// Begins to count the requests to the link's server, if there is a link.
    pub(crate) fn meter(&self) -> anyhow::Result<Option<LinkMeter>> {
        self.link.as_ref().map(LinkMeter::start).transpose()
    }

    /// Whether the store lies in a local folder all the same.
    pub(crate) fn is_served(&self) -> bool {
        self.link.is_some()
    }
}

/// The limit of the cache on disk in front of an object store.
const STORAGE_CACHE: &str = "storage_cache";

/// The link and the cache of a row as a sentence; empty if there were none.
pub(crate) fn sentence(point: &GridPoint) -> String {
    let link = point.format_link().map(|link| format!(" Read over a link of {link}."));
    let cache = point.settings.number(STORAGE_CACHE).map(|bytes| {
        format!(" Chunks were kept in a cache on disk of {}.", ByteSize(bytes).display().iec())
    });
    [link, cache].into_iter().flatten().collect()
}

/// Whether a file is a chunk or a shard, which is never written again.
fn is_chunk(file: &str) -> bool {
    let name = file.rsplit('/').next().unwrap_or(file);
    name != "zarr.json" && !name.starts_with(".z")
}

#[cfg(test)]
mod tests {
    use bench_report::LINK;

    use super::*;

    #[test]
    fn metadata_is_not_kept() {
        for file in ["inputs/zarr.json", ".zmetadata", "inputs/.zarray", ".zattrs", ".zgroup"] {
            assert!(!is_chunk(file), "{file}");
        }
        for file in ["inputs/c/0/0/0/0", "inputs/0.0.0.0", "c"] {
            assert!(is_chunk(file), "{file}");
        }
    }

    #[test]
    fn flags_that_do_not_fit_are_refused() {
        let flags = |link: Option<&str>, cache: Option<&str>| FarFlags {
            link: LinkFlags {
                link: link.map(|link| link.parse().unwrap()),
                ..LinkFlags::default()
            },
            cache: cache.map(PathBuf::from),
            cache_size: ByteSize::gib(1),
        };
        let host = HostInfo::default();
        for (flags, uri, part) in [
            (flags(None, Some("cache")), "store", "give --link"),
            (flags(Some("30ms"), None), "s3://bucket/store", "local disk"),
            (flags(Some("30ms"), None), "/nowhere/store", "cannot serve"),
        ] {
            let error = flags.begin(uri, &host).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
        let (servers, access) =
            flags(None, Some("cache")).begin("s3://bucket/store", &host).unwrap();
        assert!(servers.is_none());
        let point = access.recorded(GridPoint::default());
        assert_eq!(point.settings.get(LINK), None);
        assert_eq!(point.settings.number(STORAGE_CACHE), Some(1 << 30));
        assert_eq!(sentence(&point), " Chunks were kept in a cache on disk of 1.0 GiB.");
    }
}
