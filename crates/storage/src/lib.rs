#![doc = include_str!("../README.md")]
//!
//! A [`Storage`] lists folders, gives sizes, and reads ranges of bytes. It is rooted at one data
//! set (an array, a store of samples); paths below it are relative, with `/` between names. A
//! reader hands over many ranges in one call, so that a remote storage may fetch them at once, and
//! joins ranges that lie as close as the storage's [`Coalesce`] allows.
//!
//! [`open`] takes an address: a local path, `file://`, or, with the Cargo features `s3`, `gcs` and
//! `azure`, an address in an object store. If it ends with `.zip`, the entries of that Zip archive
//! are the files. Its settings have the names that TileDB gives them (`vfs.s3.region`); the page of
//! [`open`] lists them. [`Files`] wraps a storage and names the
//! file and the action in each error.
//!
//! # Storages
//!
//! | type | where the bytes are |
//! |---|---|
//! | [`LocalStorage`] | a folder of this machine, read by positioned reads |
//! | [`ObjectStorage`] | below a prefix of any [`object_store::ObjectStore`]; requests run on threads of its own |
//!
//! # Decorators
//!
//! A decorator is a storage around another. It changes how bytes are fetched, never their content.
//!
//! | type | what it adds |
//! |---|---|
//! | [`CachedStorage`] | keeps on disk what was read, for later reads and processes |
//! | [`GatheredStorage`] | remembers listings and small files that were read ahead, many at a time |
//! | [`LimitedStorage`] | limits reads to a rate that several storages may share |
//! | [`Subfolder`] | makes a folder of another storage the root |
//!
//! [`open`] adds both on request. By hand the limit goes below the cache, so that bytes from the
//! cache do not count:
//!
//! ```
//! use std::num::NonZeroU64;
//! use std::sync::Arc;
//! use storage::{
//!     CacheSpec, CachedStorage, LimitedStorage, LocalStorage, Piece, ReadLimit, Storage,
//! };
//!
//! # let (data, cache) = (tempfile::tempdir()?, tempfile::tempdir()?);
//! std::fs::write(data.path().join("chunk-7"), vec![7; 100_000])?;
//! let folder = Arc::new(LocalStorage::new(data.path()));
//! let limit = Arc::new(ReadLimit::new(NonZeroU64::new(100_000_000).unwrap()));
//! let limited = Arc::new(LimitedStorage::new(folder, Arc::clone(&limit)));
//! let spec = CacheSpec::new(cache.path(), 1 << 30);
//! let cached = CachedStorage::new(limited, &spec, |file| file.starts_with("chunk-"))?;
//!
//! let mut bytes = vec![0; 1000];
//! for _ in 0..2 {
//!     cached.read(&[Piece { file: "chunk-7", range: 500..1500 }], &mut bytes)?;
//! }
//! assert_eq!(bytes, vec![7; 1000]);
//! assert_eq!((cached.stats().misses, cached.stats().hits), (1, 1));
//! assert_eq!(limit.used().bytes, 100_000);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The cache's folder is a [`BlockStore`], which keeps any bytes by number, within a limit that
//! threads and processes share. What a reader decoded stays in memory in a [`NextUseCache`], which
//! evicts what will be needed last.
//!
//! # Writing
//!
//! A [`Destination`] is a place where a new data set appears whole or not at all: it is written
//! inside a marked folder beside its place, synced to disk, and renamed at the end.
//!
//! ```
//! use storage::{Destination, Existing};
//!
//! let folder = tempfile::tempdir()?;
//! let place = folder.path().join("genes");
//! let destination = Destination::claim(place.to_str().unwrap(), Existing::Keep, &[])?;
//! std::fs::create_dir(destination.uri())?;
//! std::fs::write(format!("{}/chr1", destination.uri()), "ACGT")?;
//! assert!(!place.exists());
//! assert_eq!(destination.publish()?, Some(4));
//! assert_eq!(std::fs::read(place.join("chr1"))?, b"ACGT");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Features
//!
//! `s3`, `gcs` and `azure` add the clients of these stores, `web` that of plain servers of files,
//! which list nothing; each with an HTTP client and TLS. None is on by default. Without the feature
//! of its store an address is an [`Error::NotBuilt`] that names the feature. [`ObjectStorage`]
//! itself needs none: it takes any store of the crate [`object_store`].
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

mod address;
mod cache;
mod client;
#[cfg(feature = "http")]
mod cloud;
mod destination;
mod environment;
mod error;
mod files;
mod forward;
#[cfg(any(test, somafeed_fuzz))]
pub mod fuzz;
mod gathered;
mod limited;
mod local;
mod memory;
mod names;
mod next_use;
mod object;
mod open;
mod options;
mod profile;
#[cfg(feature = "http")]
mod settings;
mod storage;
mod subfolder;
mod zip;

pub use bytes::Bytes;
pub use object_store;

pub use address::{local_path, split_file};
pub use cache::{
    BlockId, BlockStore, CacheSpec, CacheStats, CacheUse, CachedStorage, Eviction, KeepOutcome,
    Lookup, NeverChanges, ObjectId, WrittenBlock,
};
pub use client::Client;
pub use destination::{Destination, DestinationError, Existing, Replaceable, check_apart};
pub use error::Error;
pub use files::Files;
pub use gathered::GatheredStorage;
pub use limited::{LimitedStorage, ReadLimit, ReadLimitUse};
pub use local::LocalStorage;
pub use memory::MemoryStorage;
pub use next_use::{Begun, Kept, NextReads, NextUseCache};
pub use object::{ObjectOptions, ObjectStorage};
pub use open::{complete_config, environment_secrets, open};
pub use options::{Config, OpenOptions, OpenedStorage};
pub use storage::{
    Coalesce, Entry, Expected, FailedPiece, FileVersion, ListedFile, Piece, RequestCounts, Storage,
};
pub use subfolder::Subfolder;
pub use zip::names_archive;
