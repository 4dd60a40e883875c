//! Encoders of obs columns: against a naive oracle, on every Arrow type, saved and restored, and several at once.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod arrow_types;
mod labels;
mod oracle;
mod saved;
mod set;
