#![doc = include_str!("../README.md")]
//!
//! The first touch of new memory costs as much as decoding into it, and memory that a device reads
//! without a detour (pinned memory) is slow to allocate. So a loader keeps its memory:
//!
//! - A [`Ring`] has a fixed number of slots of the same size. Each [`Slot`] has the bytes of
//!   several keys, for example images and their labels. It fits batches of a known size.
//! - A [`Pool`] grows as needed. It fits blocks whose size differs.
//!
//! Nothing is overwritten while it is in use: a slot is a value with one owner, and its memory goes
//! back when it is dropped. To share it, put it in an [`Arc`](std::sync::Arc). When the host needs
//! a batch no longer but a device still copies it, [`Slot::copying`] makes it a [`CopyGuard`].
//!
//! The crate's unit tests are models that [loom](https://docs.rs/loom) runs through every order of
//! events: in them, the lock and the condition of module `sync` are loom's.
#[cfg(all(feature = "cuda", target_os = "linux"))]
mod cuda;
mod error;
mod layout;
mod memory;
mod pool;
mod ring;
mod slot;
mod sync;

#[cfg(test)]
mod models;

pub use error::Error;
pub use memory::{Allocate, Mapped, SlotMemory};
pub use pool::{Pool, PooledSlot};
pub use ring::{Ring, Usage};
pub use slot::{CopyGuard, Slot};
