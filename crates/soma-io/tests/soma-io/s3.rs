//! Experiments in an object store, through both readers, against the S3 server of `test-storage`.
//!
//! A read with a fault returns the cells of the folder, or fails in time; it never returns other or
//! fewer cells, and never hangs.

mod anndata;
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
