//! Errors between a selection and its batches.

mod dataset;
mod loader;
mod matrix;
mod tokens;

use arrow_schema::ArrowError;

pub use dataset::{ConcatError, DatasetError, ReaderError};
pub use loader::LoaderError;
pub use matrix::MatrixError;
pub use tokens::TokenError;

/// A part of an experiment could not be opened or read.
#[derive(Debug, thiserror::Error)]
#[error("cannot open or read {what}")]
pub struct OpenError {
    /// The part.
    pub what: String,
    /// The reason.
    #[source]
    pub source: Box<soma_io::Error>,
}

/// Columns could not be selected or combined.
#[derive(Debug, thiserror::Error)]
#[error("cannot select or combine the requested columns of {of}")]
pub struct ColumnsError {
    /// The table: obs, var or the codes.
    pub of: &'static str,
    /// The reason.
    #[source]
    pub source: ArrowError,
}

/// For `map_err`: names the part that could not be opened or read.
pub(crate) fn open_error(what: String) -> impl FnOnce(soma_io::Error) -> OpenError {
    move |source| OpenError { what, source: Box::new(source) }
}

/// For `map_err`: names the table whose columns could not be selected or combined.
pub(crate) fn columns_error(of: &'static str) -> impl Fn(ArrowError) -> ColumnsError + Copy {
    move |source| ColumnsError { of, source }
}
