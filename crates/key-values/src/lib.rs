#![doc = include_str!("../README.md")]
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
#![cfg_attr(docsrs, feature(doc_cfg))]
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
