//! An HTTP server over a local folder, on loopback, for measurements: its answers have the latency
//! and the rates of a link to a remote store.
//!
//! A [`LinkServer`] implements the part of S3 for unsigned reads in path style: GET with a range,
//! HEAD, and `ListObjectsV2`. The folder is the bucket [`BUCKET`]. A plain GET of
//! `http://127.0.0.1:PORT/link/KEY` works with any HTTP client.
//!
//! A [`LinkSpec`] is the latency and the rates of the answers:
//!
//! - The latency passes between the end of a request and the first byte of its answer. A new
//!   connection costs nothing more.
//! - Bodies are sent in pieces of at most 128 KiB. Each waits until its connection's rate and the
//!   rate of all connections allow it. Connections that wait take turns, one piece each, so they
//!   share the rate evenly.
//! - After a pause at most 20 ms worth of bytes may come at once. That is also how far a thread
//!   that the system wakes late catches up.
//!
//! [`LinkFaults`] make some requests fail, drawn from a seed. A server counts what it does
//! ([`LinkCounts`]); a client in another process asks it for its counts ([`LinkCounts::take`]).
//!
//! Files are read from the system's page cache in pieces, so memory stays small; the files of a
//! measurement should be in the page cache. The server's threads use the cores of the machine like
//! the measured program does.
//!
//! ```
//! use link::{BUCKET, LinkServer, LinkSpec};
//!
//! let folder = tempfile::tempdir()?;
//! std::fs::write(folder.path().join("chunk-7"), vec![7; 1000])?;
//! let spec: LinkSpec = "30ms,90MB/s,1GB/s".parse()?;
//! let server = LinkServer::start(folder.path(), spec)?;
//! let config = server.config();
//! let options = storage::OpenOptions::new(&config);
//! let opened = storage::open(&format!("s3://{BUCKET}"), &options)?;
//! assert_eq!(opened.storage.size("chunk-7")?, 1000);
//! assert_eq!(server.counts().requests, 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod body;
mod client_settings;
mod counts;
mod error;
mod faults;
mod files;
mod listing;
mod pace;
mod range;
mod request_path;
mod server;
mod service;
mod spec;

pub use client_settings::client_settings;
pub use counts::{COUNTS_PATH, LinkCounts};
pub use error::{Error, FaultsError, SpecError};
pub use faults::LinkFaults;
pub use server::{LinkServer, ServeOptions};
pub use spec::LinkSpec;

/// The bucket whose objects are the files of the served folder.
pub const BUCKET: &str = "link";
