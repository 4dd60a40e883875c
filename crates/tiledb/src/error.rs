//! What can go wrong, with libtiledb's own words where it has any.

use std::path::PathBuf;

/// An error of libtiledb, or of finding and using it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No libtiledb was found.
    #[error(
        "libtiledb was not found: run `cargo xtask native`, or set {variable} to the file of libtiledb (looked in {cache})"
    )]
    NotFound {
        /// The environment variable that names the file.
        variable: &'static str,
        /// The folder of the user's cache that was searched.
        cache: String,
    },
    /// The file could not be loaded as libtiledb.
    #[error("{path} could not be loaded as libtiledb: {message}")]
    Load {
        /// The file.
        path: PathBuf,
        /// What the dynamic loader said.
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
        /// The least version that has every function that is called.
        least: &'static str,
    },
    /// A call into libtiledb failed.
    #[error("{operation} failed for {uri}: {message}")]
    Call {
        /// What was tried.
        operation: &'static str,
        /// On what: an URI, or the name of a key or column.
        uri: String,
        /// libtiledb's own message. Calls from several threads on one context can swap their messages.
        message: String,
    },
    /// A name, URI or value with a zero byte, which C cannot take.
    #[error("{what} holds a zero byte: {text:?}")]
    ZeroByte {
        /// What the text was to be.
        what: &'static str,
        /// The text.
        text: String,
    },
    /// Another library is already the one of this process.
    #[error("{path} cannot be loaded: this process already uses {loaded}")]
    AlreadyLoaded {
        /// The file that was to be loaded.
        path: PathBuf,
        /// The file that is loaded.
        loaded: PathBuf,
    },
    /// A schema that contradicts itself.
    #[error("the schema for {uri} cannot be made: {message}")]
    Schema {
        /// Where the array was to be.
        uri: String,
        /// What is wrong.
        message: String,
    },
    /// A metadata value that cannot be stored.
    #[error("metadata key {key} cannot be written: {message}")]
    Metadata {
        /// The key.
        key: String,
        /// What is wrong.
        message: String,
    },
    /// A step of a read or a write that cannot follow what came before it.
    #[error("{operation} failed for {uri}: {message}")]
    Query {
        /// What was tried.
        operation: &'static str,
        /// The array.
        uri: String,
        /// Why it cannot be, and what to do.
        message: &'static str,
    },
    /// A value of libtiledb that this crate does not know.
    #[error("{uri} has {what} {value}, which this version does not know")]
    Unknown {
        /// What kind of value.
        what: &'static str,
        /// Its number.
        value: i64,
        /// Where it was met.
        uri: String,
    },
    /// A column was read or written as another type than it has, or does not exist.
    #[error("column {column} of {uri}: {message}")]
    Column {
        /// The column.
        column: String,
        /// The array.
        uri: String,
        /// What is wrong.
        message: String,
    },
    /// One cell of a column did not fit into the read buffer, and the buffer could not grow further.
    #[error("reading {uri} needs more than {buffer_bytes} bytes of buffer for a single cell")]
    Buffer {
        /// The array.
        uri: String,
        /// The size that was not enough, in bytes.
        buffer_bytes: usize,
    },
}
