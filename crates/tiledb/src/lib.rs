//! A safe wrapper over the C functions of libtiledb that somafeed needs.
//!
//! libtiledb is loaded at run time, when the first [`Context`] is made. [`library`] describes where
//! it is searched, and [`load_from`] names the file explicitly. So every crate compiles on a
//! machine without libtiledb, and reports clearly what is missing there.
//!
//! # Contents
//!
//! | type | purpose |
//! |---|---|
//! | [`Context`], [`Config`] | the library's threads, caches and parameters |
//! | [`Vfs`] | files and folders, local or in an object store |
//! | [`Group`], [`Array`] | creating and opening them, members, metadata, upkeep |
//! | [`Schema`] and its parts, [`Enumeration`], [`Filter`] | plain data of crate `tiledb-schema`, read from an array or used to create one |
//! | [`ReadQuery`], [`WriteQuery`], [`Condition`] | reading, writing and deleting cells of sparse arrays |
//! | [`Evolution`] | changes to a schema |
//! | [`FragmentInfo`] | the parts of an array on storage |
//!
//! # Rules
//!
//! The C functions are declared in one file, `sys.rs`; no pointer and no `unsafe` leaves this
//! crate. Objects free themselves before their context. Errors contain libtiledb's message, the
//! operation and the URI.
#![expect(unsafe_code, reason = "this crate is the one that calls libtiledb's C functions")]

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
pub use tiledb_schema::{
    ArrayType, Attribute, CellOrder, Datatype, Dimension, Enumeration, EnumerationValues, Filter,
    MetadataValue, ObjectType, Schema,
};
pub use vfs::Vfs;
