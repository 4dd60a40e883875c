//! Samples of image cubes, as a source of the engine of crate `pipeline`.
#![forbid(unsafe_code)]

pub mod augment;
pub mod files;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzz;
