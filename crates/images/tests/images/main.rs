//! Tests of crate `images`.

mod samples;
