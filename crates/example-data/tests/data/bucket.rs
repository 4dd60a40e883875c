//! An object store to import to; written objects cannot be removed.
//!
//! The server is that of soma-io's tests of object stores.

#[expect(dead_code, reason = "nothing goes wrong on the way here")]
#[path = "../../../soma-io/tests/s3/faults.rs"]
mod faults;
#[expect(dead_code, reason = "more can be asked of it than is asked here")]
#[path = "../../../soma-io/tests/s3/server.rs"]
mod server;
/// The seeds of random faults; none is used here.
mod small {
    pub(crate) fn mix(seed: u64, at: u64) -> u64 {
        seed ^ at
    }
}

pub(crate) use server::{PRIVATE, Server};
