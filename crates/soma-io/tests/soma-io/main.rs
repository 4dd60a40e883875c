//! Experiments written, read and filtered, in folders and in a bucket.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod aligned;
mod anndata;
mod axis_query;
mod bad_input;
mod both_ways;
#[path = "../support/cells.rs"]
mod cells;
#[path = "../support/delete_commit.rs"]
mod delete_commit;
#[path = "../support/deleted.rs"]
mod deleted;
mod deleting;
#[path = "../support/described.rs"]
mod described;
#[path = "../support/described_x.rs"]
mod described_x;
mod far;
#[path = "../support/filter_list.rs"]
mod filter_list;
#[path = "../support/filter_text.rs"]
mod filter_text;
mod frame_copy;
#[path = "../support/frame_of_kinds.rs"]
mod frame_of_kinds;
mod indexed;
mod interop;
mod names;
#[path = "../support/python.rs"]
mod python;
mod random_anndata;
mod random_dense;
mod reader_contract;
mod round_trip;
mod row_cache;
mod s3;
#[path = "../support/small.rs"]
mod small;
mod value_filter;
mod value_filter_errors;
mod value_filter_interop;
mod value_filter_joinids;
mod visium;
