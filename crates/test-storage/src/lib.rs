//! An S3 server on the loopback interface, in the process of the test that starts it. Only tests
//! depend on this crate.
//!
//! The server is `s3s` with its store of files, `s3s-fs`: a full implementation of S3's protocol,
//! signatures included, that builds with cargo alone. It is served by hyper here, so that we
//! control what comes between client and store: connections refused or cut, answers late, short or
//! not at all, refusals, objects that change. MinIO or Python's moto would have to be installed,
//! and a proxy put before it.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![expect(clippy::missing_panics_doc, reason = "as above")]

mod certificate;
mod faults;
mod server;

pub use certificate::{Certificate, certificate};
pub use faults::{Seen, What};
pub use server::{CENSUS, DOMAIN, KEY_ID, PRIVATE, PUBLIC, SECRET, Server};
