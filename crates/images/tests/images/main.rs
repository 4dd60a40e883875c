//! Tests of crate `images`.

mod files;
mod samples;
