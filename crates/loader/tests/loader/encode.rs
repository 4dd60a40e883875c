//! Encoders of obs columns: against a naive oracle, on every Arrow type, saved and restored, and
//! several at once.
mod arrow_types;
mod labels;
mod oracle;
mod saved;
mod set;
