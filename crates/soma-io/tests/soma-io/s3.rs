//! Experiments in an object store, through both readers, against the S3 server of `test-storage`.
//!
//! A fault may end in the cells of the folder, or in an error within the time allowed; never in
//! other cells, fewer, or waiting on.

mod cached;
mod census;
mod changed;
mod environment;
mod failures;
mod places;
mod reads;
mod requests;
mod tls;
mod writes;
