//! Tests of the program as users run it: a module per command, and some for common requirements.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should end")]
#![expect(clippy::print_stderr, reason = "a test that shows nothing says so")]

mod anndata;
mod bed;
mod going_on;
mod grid;
mod growth;
mod guide;
mod io_limit;
mod killed;
mod launchers;
mod markdown;
mod measuring;
mod memory;
mod over_link;
mod peers;
mod program;
mod ranks;
mod read_chunks;
mod relayout;
mod report;
mod scale_out;
mod secrets;
mod slice;
mod tune;
mod unread;
