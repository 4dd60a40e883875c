//! Memory of batches that goes round: allocated once, filled, delivered, freed, filled again.
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
//! ```
//! use slots::{Mapped, Ring};
//!
//! // Two slots with two keys each: 6 images of 1000 bytes and 6 labels of 1 byte.
//! let ring = Ring::new(2, &[6 * 1000, 6], &Mapped)?;
//!
//! let mut filling = ring.take()?;
//! let [images, labels] = &mut filling.keys_mut()[..] else { unreachable!("two keys") };
//! images.fill(7);
//! labels.fill(1);
//! let batch = filling;
//! assert_eq!((batch.key(0).len(), batch.key(1)), (6000, &[1; 6][..]));
//!
//! // A ring never waits for its user: taking a slot fails if all are kept.
//! let other = ring.take()?;
//! assert!(ring.take().is_err());
//! drop(other);
//!
//! // The device copies the first batch; the other slot is free meanwhile.
//! let copy = batch.copying();
//! let other = ring.take()?;
//! // When the copy has ended, its slot is free, too. `take` waits for that.
//! drop(copy);
//! let third = ring.take()?;
//! assert_eq!(ring.usage().kept, 2);
//! # drop((other, third));
//! # Ok::<(), slots::Error>(())
//! ```
//!
//! The crate's unit tests are models that [loom](https://docs.rs/loom) runs through every order of
//! events: in them, the lock and the condition of module `sync` are loom's.
#![forbid(unsafe_code)]

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
