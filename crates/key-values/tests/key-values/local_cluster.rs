//! Real clusters: how they start, change and end.

mod changes;
mod ends;
