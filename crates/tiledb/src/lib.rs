#![doc = include_str!("../README.md")]
//!
//! The plain data ([`Schema`] and its parts, [`Enumeration`], [`Filter`], [`MetadataValue`],
//! [`ObjectType`]) knows no files and no C. Crate `tiledb-native` reads and writes it without
//! libtiledb. The numbers that stand for datatypes, filters, orders and kinds of objects are the
//! same in the [C API](https://github.com/TileDB-Inc/TileDB/tree/main/tiledb/api/c_api) and in
//! files.
//!
//! libtiledb is loaded at run time, when the first `Context` is made. `library` describes where
//! it is searched, and `load_from` names the file explicitly. So every crate compiles on a
//! machine without libtiledb, and reports clearly what is missing there.
//!
//! # Contents of the feature `libtiledb`
//!
//! | type | purpose |
//! |---|---|
//! | `Context`, `Config` | the library's threads, caches and parameters |
//! | `Vfs` | files and folders, local or in an object store |
//! | `Group`, `Array` | creating and opening them, members, metadata, upkeep |
//! | `ReadQuery`, `WriteQuery`, `Condition` | reading, writing and deleting cells of sparse arrays |
//! | `Evolution` | changes to a schema |
//! | `FragmentInfo` | the parts of an array on storage |
//!
//! # Rules
//!
//! The C functions are declared in one file, `libtiledb/sys.rs`; no pointer and no `unsafe` leaves
//! this crate. Objects free themselves before their context. Errors contain libtiledb's message,
//! the operation and the URI.
#![cfg_attr(docsrs, feature(doc_cfg))]

mod datatype;
mod enumeration;
mod filter;
#[cfg(feature = "libtiledb")]
mod libtiledb;
mod metadata;
mod object_type;
mod schema;

pub use datatype::Datatype;
pub use enumeration::{Enumeration, EnumerationValues};
pub use filter::Filter;
#[cfg(feature = "libtiledb")]
pub use libtiledb::{
    Array, Column, Comparison, Condition, Config, Context, Error, Evolution, Fragment,
    FragmentInfo, Group, Layout, Member, PATH_VARIABLE, Piece, ReadQuery, Value, Vfs, WriteColumn,
    WriteOrder, WriteQuery, library, load_from, loaded_library, named_by_environment, suggest,
};
pub use metadata::MetadataValue;
pub use object_type::ObjectType;
pub use schema::{ArrayType, Attribute, CellOrder, Dimension, Schema};
