//! Data read over a link, or through a cache on disk: the flags, and how the storage is opened.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use bench_report::GridPoint;
use bench_run::UsageError;
use bytesize::ByteSize;
use clap::Args;
use link::{BUCKET, LinkSpec};
use serde::{Deserialize, Serialize};
use storage::{OpenOptions, OpenedStorage, local_path};

use super::link_process::LinkProcess;

/// Flags for data that is read from far away.
#[derive(Debug, Args)]
pub(crate) struct FarFlags {
    /// Read a local store over a link: the latency of a request, the rate of each connection and
    /// the rate of all, like 30ms,90MB/s,1GB/s; a single rate is that of all. A process of its own
    /// serves the files in the way of S3
    #[arg(long, value_name = "LINK")]
    link: Option<LinkSpec>,
    /// Keep chunks from a link or an object store in this folder, for later processes, too
    #[arg(long, value_name = "FOLDER", conflicts_with = "cold")]
    cache: Option<PathBuf>,
    /// Most bytes in that folder
    #[arg(long, value_name = "SIZE", default_value = "32GiB", requires = "cache")]
    cache_size: ByteSize,
}

impl FarFlags {
    /// Starts the server if there is a link; returns its process, and how to read the store at
    /// `uri`.
    pub(crate) fn begin(&self, uri: &str) -> anyhow::Result<(Option<LinkProcess>, FarAccess)> {
        let local = local_path(uri);
        if self.cache.is_some() && self.link.is_none() && local.is_some() {
            let text = "--cache keeps what comes from far away, and this store is on this machine; \
                        give --link, too";
            return Err(UsageError::new(text).into());
        }
        let served = match (self.link, local) {
            (None, _) => None,
            (Some(_), None) => {
                return Err(UsageError::new("--link takes a store on a local disk").into());
            }
            (Some(link), Some(store)) => Some(serve(store, link)?),
        };
        let (process, served) = served.unzip();
        let cache = self.cache.clone().map(|folder| {
            // The processes that measure read it from the same folder.
            let folder = std::path::absolute(&folder).unwrap_or(folder);
            ChunkCache { folder, limit_bytes: self.cache_size.as_u64() }
        });
        Ok((process, FarAccess { served, cache }))
    }
}

/// Starts a server over a store. Nothing else is served: any user of the machine may ask it.
fn serve(store: &Path, link: LinkSpec) -> anyhow::Result<(LinkProcess, Served)> {
    let cannot = || format!("cannot serve {}", store.display());
    let store = store.canonicalize().with_context(cannot)?;
    let process = LinkProcess::start(&store, link)?;
    let address = process.address().to_owned();
    Ok((process, Served { link: link.to_string(), address }))
}

/// How to read a store over a link or through a cache.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct FarAccess {
    served: Option<Served>,
    cache: Option<ChunkCache>,
}

/// A server in front of a local store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Served {
    link: String,
    /// Host and port.
    address: String,
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
        let (address, config) = match &self.served {
            Some(Served { address, .. }) => {
                set("vfs.s3.endpoint_override", address);
                set("vfs.s3.scheme", "http");
                set("vfs.s3.region", "us-east-1");
                set("vfs.s3.no_sign_request", "true");
                set("vfs.s3.use_virtual_addressing", "false");
                (format!("s3://{BUCKET}"), config)
            }
            None => (uri.to_owned(), storage::complete_config(uri, &config)?),
        };
        let options = OpenOptions { never_changes: Some(is_chunk), ..OpenOptions::new(&config) };
        storage::open(&address, &options).with_context(|| format!("cannot open {uri}"))
    }

    /// `point` with the link and the cache.
    pub(crate) fn recorded(&self, point: GridPoint) -> GridPoint {
        GridPoint {
            link: self.served.as_ref().map(|served| served.link.clone()),
            storage_cache: self.cache.as_ref().map(|cache| cache.limit_bytes),
            ..point
        }
    }

    /// Whether the store lies in a local folder all the same.
    pub(crate) fn is_served(&self) -> bool {
        self.served.is_some()
    }
}

/// The link and the cache of a row as a sentence; empty if there were none.
pub(crate) fn sentence(point: &GridPoint) -> String {
    let link = point.link.as_ref().map(|link| format!(" Read over a link of {link}."));
    let cache = point.storage_cache.map(|bytes| {
        format!(" Chunks were kept in a cache on disk of {}.", ByteSize(bytes).display().iec())
    });
    [link, cache].into_iter().flatten().collect()
}

/// Whether a file is a chunk or a shard, which nobody writes again.
fn is_chunk(file: &str) -> bool {
    let name = file.rsplit('/').next().unwrap_or(file);
    name != "zarr.json" && !name.starts_with(".z")
}

#[cfg(test)]
mod tests {
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
            link: link.map(|link| link.parse().unwrap()),
            cache: cache.map(PathBuf::from),
            cache_size: ByteSize::gib(1),
        };
        for (flags, uri, part) in [
            (flags(None, Some("cache")), "store", "give --link"),
            (flags(Some("30ms"), None), "s3://bucket/store", "local disk"),
            (flags(Some("30ms"), None), "/nowhere/store", "cannot serve"),
        ] {
            let error = flags.begin(uri).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
        let (process, access) = flags(None, Some("cache")).begin("s3://bucket/store").unwrap();
        assert!(process.is_none());
        let point = access.recorded(GridPoint::default());
        assert_eq!((point.link.as_deref(), point.storage_cache), (None, Some(1 << 30)));
        assert_eq!(sentence(&point), " Chunks were kept in a cache on disk of 1.0 GiB.");
    }
}
