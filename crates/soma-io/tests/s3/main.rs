//! Experiments in an object store, through both readers, against an S3 server on the loopback interface that the test starts.
//!
//! The server is `s3s` with its store of files, `s3s-fs`, in this process: a full implementation of S3's protocol, signatures included,
//! that builds with cargo alone and is served by hyper here, so that what comes between the readers and the store is ours
//! ([`faults`]): connections refused or cut, answers late, short or not at all, refusals, objects that change. A program of its own, as
//! MinIO or Python's moto, would have to be installed, and a proxy put before it.
//!
//! What a fault may end in is the cells of the folder, or an error within the time allowed; never other cells, fewer, or waiting on.

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
