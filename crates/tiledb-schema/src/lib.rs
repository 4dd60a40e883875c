//! The parts that TileDB arrays and groups are made of, as plain data: no files, no C.
//!
//! Crates `tiledb` (through libtiledb) and `tiledb-native` (without it) read and write these types.
//! The numbers that stand for datatypes, filters, orders and kinds of objects are the same in the
//! [C API](https://github.com/TileDB-Inc/TileDB/tree/main/tiledb/api/c_api) and in files.
#![forbid(unsafe_code)]

mod datatype;
mod enumeration;
mod filter;
mod metadata;
mod object_type;
mod schema;

pub use datatype::Datatype;
pub use enumeration::{Enumeration, EnumerationValues};
pub use filter::Filter;
pub use metadata::MetadataValue;
pub use object_type::ObjectType;
pub use schema::{ArrayType, Attribute, CellOrder, Dimension, Schema};
