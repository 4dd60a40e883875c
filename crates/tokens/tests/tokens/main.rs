//! Tokenizers against oracles written from the definitions, and input that does not fit.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod bad_input;
mod bins;
mod edges;
mod example;
mod oracle;
mod ranks;
