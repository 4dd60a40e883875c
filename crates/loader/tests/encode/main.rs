//! Tests of encoders: against a naive oracle, on every Arrow type, saved and restored, in sets.
#![expect(clippy::unwrap_used, reason = "a failing test panics where it fails")]

mod arrow_types;
mod labels;
mod oracle;
mod saved;
mod set;
