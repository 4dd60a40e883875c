//! A safe wrapper over the functions of libtiledb's C API that somafeed needs.
//!
//! libtiledb is loaded at run time, when the first [`Context`] is made: see [`library`] for where it is looked for, and [`load_from`] to name the file. Every crate
//! therefore compiles, and says clearly what is missing, on a machine without it.
//!
//! # What is here
//!
//! | type | for |
//! |---|---|
//! | [`Context`], [`Config`] | the library's threads, caches and parameters |
//! | [`Vfs`] | files and folders, local or in an object store |
//! | [`Group`], [`Array`] | opening and making them, members, metadata, upkeep |
//! | [`Schema`] and its parts, [`Enumeration`], [`Filter`] | plain data, read from an array or given to make one |
//! | [`ReadQuery`], [`WriteQuery`], [`Condition`] | the cells of sparse arrays, and which to delete |
//! | [`Evolution`] | changes to a schema |
//! | [`FragmentInfo`] | what an array is made of on storage |
//!
//! # Rules
//!
//! The C functions are declared in one file, `sys.rs`; no pointer and no `unsafe` leaves this crate. Objects free themselves, each
//! before the context it belongs to. Errors carry libtiledb's text, what was tried, and on which URI.
#![expect(unsafe_code, reason = "this crate is the one that calls libtiledb's C functions")]

mod array;
mod config;
mod context;
mod datatype;
mod enumeration;
mod error;
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
pub use context::{Context, ObjectType};
pub use datatype::{Datatype, Value};
pub use enumeration::{Enumeration, EnumerationValues};
pub use error::Error;
pub use filter::Filter;
pub use fragment::{Fragment, FragmentInfo};
pub use group::{Group, Member};
pub use load::{PATH_VARIABLE, library, load_from};
pub use metadata::MetadataValue;
pub use query::{
    Column, Comparison, Condition, Layout, Piece, ReadQuery, WriteColumn, WriteOrder, WriteQuery,
};
pub use schema::{ArrayType, Attribute, CellOrder, Dimension, Evolution, Schema};
pub use vfs::Vfs;
