//! An S3 server on the loopback interface, within the process of the test that starts it. Only
//! tests depend on this crate.
//!
//! The server is `s3s` with its store of files, `s3s-fs`: a complete implementation of S3's
//! protocol, signatures included, that builds with cargo alone. hyper serves it here, so that tests
//! control the traffic between client and store: refused or cut connections, late, short or missing
//! answers, error statuses, changing objects. MinIO or Python's moto would have to be installed,
//! with a proxy in front.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![expect(clippy::missing_panics_doc, reason = "as above")]

mod certificate;
mod faults;
mod pack;
mod server;

pub use certificate::{Certificate, certificate};
pub use faults::{Seen, What};
pub use pack::pack;
pub use server::{CENSUS, DOMAIN, KEY_ID, PRIVATE, PUBLIC, SECRET, Server};
