//! Experiments in an object store, read by both readers from an S3 server that the test starts on
//! the loopback interface.
//!
//! The server is `s3s` with its file store, `s3s-fs`, in this process: a full implementation of
//! S3's protocol, signatures included, that needs only cargo. hyper serves it, so that faults can
//! be injected between the readers and the store ([`faults`]): connections refused or closed,
//! answers late, truncated or missing, refusals, objects that change. A separate program such as
//! MinIO or Python's moto would have to be installed, with a proxy in front of it.
//!
//! A fault may only end in the cells of the folder, or in an error within the time allowed; never
//! in other or fewer cells, or in a hang.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod cached;
#[path = "../support/cells.rs"]
mod cells;
mod census;
mod changed;
mod environment;
mod failures;
mod faults;
mod places;
mod reads;
mod requests;
mod server;
#[path = "../support/small.rs"]
mod small;
mod tls;
mod writes;
