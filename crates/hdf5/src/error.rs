//! Errors of opening and reading an HDF5 file.

use std::error::Error as _;
use std::io;

/// An error of opening or reading an HDF5 file. As the methods of a storage return [`io::Error`],
/// it is the source of one there.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file, or an object in it, cannot be read.
    #[error("cannot read {object} in the HDF5 file {place}: {source}")]
    Read {
        /// The file.
        place: String,
        /// Path of the group or dataset; `the file` for the file itself.
        object: String,
        /// The cause.
        source: Box<hdf5_reader::error::Error>,
    },

    /// The file does not begin as HDF5 does.
    #[error(
        "{place} is no HDF5 file, or was not written to its end: open it with the program that \
         wrote it, and write it anew, for example by adata.write_h5ad(...)"
    )]
    OtherKind {
        /// The file.
        place: String,
    },

    /// A dataset does not match the format.
    #[error("{object} in the HDF5 file {place} is damaged: {what}")]
    Damaged {
        /// The file.
        place: String,
        /// Path of the dataset.
        object: String,
        /// The finding.
        what: String,
    },
}

impl Error {
    /// The kind of the error: that of the storage if it failed, else `InvalidData`.
    pub fn kind(&self) -> io::ErrorKind {
        let mut cause = self.source();
        while let Some(error) = cause {
            if let Some(error) = error.downcast_ref::<io::Error>() {
                return error.kind();
            }
            cause = error.source();
        }
        io::ErrorKind::InvalidData
    }
}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        Self::new(error.kind(), error)
    }
}
