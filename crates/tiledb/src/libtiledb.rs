//! libtiledb: its C functions, and the safe types over them.
#![expect(unsafe_code, reason = "this module is the one that calls libtiledb's C functions")]

mod array;
mod config;
mod context;
mod datatype;
mod enumeration;
mod error;
mod ffi;
mod filter;
mod fragment;
mod group;
mod load;
mod metadata;
mod query;
mod schema;
mod sys;
mod vfs;

pub use array::Array;
pub use config::Config;
pub use context::Context;
pub use datatype::Value;
pub use error::Error;
pub use fragment::{Fragment, FragmentInfo};
pub use group::{Group, Member};
pub use load::{PATH_VARIABLE, library, load_from, loaded_library, named_by_environment, suggest};
pub use query::{
    Column, Comparison, Condition, Layout, Piece, ReadQuery, WriteColumn, WriteOrder, WriteQuery,
};
pub use schema::Evolution;
pub use vfs::Vfs;
