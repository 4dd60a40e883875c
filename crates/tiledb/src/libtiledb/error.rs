//! Errors, with libtiledb's own messages where it gives any.

use std::path::PathBuf;

/// An error of libtiledb, or of finding and using it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No libtiledb was found.
    #[error(
        "libtiledb was not found: run `cargo xtask native`, in Python `pip install tiledb`, or set {variable} to the file of libtiledb (looked in {cache})"
    )]
    NotFound {
        /// The environment variable that names the file.
        variable: &'static str,
        /// The searched folder in the user's cache.
        cache: String,
    },
    /// The file could not be loaded as libtiledb.
    #[error("{path} could not be loaded as libtiledb: {message}")]
    Load {
        /// The file.
        path: PathBuf,
        /// The dynamic loader's message.
        message: String,
    },
    /// The library is too old.
    #[error("{path} is libtiledb {major}.{minor}, but at least {least} is needed")]
    Version {
        /// The file.
        path: PathBuf,
        /// Its major version.
        major: i32,
        /// Its minor version.
        minor: i32,
        /// The oldest version that has every function used here.
        least: &'static str,
    },
    /// A call into libtiledb failed.
    #[error("{operation} failed for {uri}: {message}")]
    Call {
        /// The operation.
        operation: &'static str,
        /// Its object: a URI, or the name of a key or column.
        uri: String,
        /// libtiledb's own message. Calls from several threads on one context can swap their
        /// messages.
        message: String,
    },
    /// A name, URI or value contains a zero byte, which C cannot represent.
    #[error("{what} contains a zero byte: {text:?}")]
    ZeroByte {
        /// The purpose of the text.
        what: &'static str,
        /// The text.
        text: String,
    },
    /// This process has already loaded another libtiledb.
    #[error("{path} cannot be loaded: this process already uses {loaded}")]
    AlreadyLoaded {
        /// The file that should be loaded.
        path: PathBuf,
        /// The loaded file.
        loaded: PathBuf,
    },
    /// A schema contradicts itself.
    #[error("the schema for {uri} cannot be made: {message}")]
    Schema {
        /// The array that should be created.
        uri: String,
        /// What is wrong.
        message: String,
    },
    /// A metadata value cannot be stored.
    #[error("metadata key {key} cannot be written: {message}")]
    Metadata {
        /// The key.
        key: String,
        /// What is wrong.
        message: String,
    },
    /// A step of a read or write cannot follow the previous one.
    #[error("{operation} failed for {uri}: {message}")]
    Query {
        /// The operation.
        operation: &'static str,
        /// The array.
        uri: String,
        /// The reason, and what to do.
        message: &'static str,
    },
    /// libtiledb returned a value that this crate does not know.
    #[error("{uri} has {what} {value}, which this version does not know")]
    Unknown {
        /// The kind of value.
        what: &'static str,
        /// Its number.
        value: i64,
        /// Where it occurred.
        uri: String,
    },
    /// A column does not exist, or was read or written as another type than its own.
    #[error("column {column} of {uri}: {message}")]
    Column {
        /// The column.
        column: String,
        /// The array.
        uri: String,
        /// What is wrong.
        message: String,
    },
    /// One cell of a column exceeded the read buffer, which could not grow further.
    #[error("reading {uri} needs more than {buffer_bytes} bytes of buffer for a single cell")]
    Buffer {
        /// The array.
        uri: String,
        /// The size that was too small, in bytes.
        buffer_bytes: usize,
    },
}
