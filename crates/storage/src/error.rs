//! What can go wrong: an address or setting that cannot be used, and a file that cannot be read.

use std::io;

/// A storage could not be opened or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An address that names no place.
    #[error("{address} is not a usable address: {problem}")]
    Address {
        /// The address.
        address: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The client of the address's store was not compiled.
    #[error(
        "{address} cannot be opened: this program was built without the Cargo feature `{feature}`; build it with that feature"
    )]
    NotBuilt {
        /// The address.
        address: String,
        /// The feature that adds the client.
        feature: &'static str,
    },
    /// The address or a setting needs what the clients of this crate cannot do. Nothing was
    /// requested yet.
    #[error("{address} cannot be opened: {reason}")]
    Unsupported {
        /// The address.
        address: String,
        /// What is not supported.
        reason: String,
    },
    /// A setting that cannot be used.
    #[error("the parameter {name} cannot be used: {problem}")]
    Parameter {
        /// Its name. The value is left out, since it may be a secret.
        name: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The cache in front of an object store cannot be used.
    #[error(
        "what is read of {address} cannot be kept in {folder}, which soma.cache_folder names: {source}"
    )]
    Cache {
        /// The cache's folder.
        folder: String,
        /// The address of the store.
        address: String,
        /// Why not.
        source: io::Error,
    },
    /// The client of an object store could not be made.
    #[error(
        "no client for {address} could be made: check the credentials and certificates that the config names"
    )]
    Client {
        /// The address.
        address: String,
        /// The client's own error.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A file or folder could not be listed, read or written.
    #[error("could not {action} {file}")]
    File {
        /// What was tried: "list", "read 120 bytes at 4096 of".
        action: String,
        /// The file or folder.
        file: String,
        /// The system's error.
        source: io::Error,
    },
}
