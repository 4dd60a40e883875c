//! Tests of crate `images`.

mod files;
