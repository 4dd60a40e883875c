//! Values by number in a Redis or Valkey cluster, or in a single server.
//!
//! A store is a *namespace* of the servers: value `i` has the key `namespace:i`, without expiry, so
//! values spread over all slots, and several data sets share a cluster. One more key,
//! `namespace:manifest`, describes the data set for whoever opens it next.
//!
//! - [`KeyValues::put_all`] fills the store: one thread packs the values into pipelines, one for
//!   each master sends them. Full pipelines make the packer wait.
//! - [`KeyValues::get_many`] reads values by their numbers, from all masters at once. Threads that
//!   read at the same time use connections of their own.
//! - Slots may move and masters may be replaced meanwhile: redirections are followed, lost
//!   connections opened again, and what failed is repeated, until a key has failed for
//!   [`ServerSpec::retry_for`]. Then the error names server and key.
//! - Nothing is dropped silently: a missing value, a server at its limit on memory, or one that
//!   evicts keys is an error.
//!
//! With the feature `local-cluster`, module `local_cluster` starts real servers on this machine.
//!
//! ```no_run
//! use key_values::{KeyValues, ServerSpec};
//!
//! let store = KeyValues::connect(&ServerSpec::new(["redis://127.0.0.1:7001"], "dna"))?;
//! let values = ["ACGT", "TTAG"];
//! let report = store.put_all((0..).zip(values), 2, &|| false)?;
//! println!("{:.0} MB/s", report.mb_per_sec());
//! let mut read = vec![Vec::new(); 2];
//! store.get_many(&[1, 0], &|| false, |at, value| read[at] = value.to_vec())?;
//! assert_eq!(read, [b"TTAG", b"ACGT"]);
//! # Ok::<(), key_values::Error>(())
//! ```
#![forbid(unsafe_code)]

mod address;
mod batch;
mod census;
mod clock;
mod connections;
mod error;
mod fetch;
mod fill;
mod lanes;
#[cfg(feature = "local-cluster")]
pub mod local_cluster;
mod memory;
mod reply;
mod requests;
mod servers;
mod size;
mod slot;
mod spec;
mod stats;
mod store;
mod strays;
mod topology;

pub use address::NodeAddress;
pub use census::NodeCount;
pub use error::{Error, MemoryFull};
pub use fill::{FillReport, NodeFill};
pub use size::{estimated_memory, full_value};
pub use spec::ServerSpec;
pub use stats::{NodeStats, balance};
pub use store::KeyValues;
