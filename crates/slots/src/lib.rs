//! Memory of batches that goes round.
#![forbid(unsafe_code)]
