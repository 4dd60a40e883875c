//! The exception for each error: a type that fits, and the messages of the error and its causes,
//! without secrets.

use std::error::Error as StdError;
use std::io;

use bench_run::{Secrets, without_credentials};
use loader::{OpenError, encode};
use pyo3::exceptions::{
    PyConnectionError, PyFileExistsError, PyFileNotFoundError, PyKeyboardInterrupt, PyMemoryError,
    PyNotADirectoryError, PyOSError, PyPermissionError, PyRuntimeError, PyValueError,
};
use pyo3::prelude::*;

pyo3::create_exception!(
    somafeed._somafeed,
    SomafeedError,
    PyRuntimeError,
    "An error that no built-in exception fits. Its message names the place and what to do."
);

/// The exception types in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// An argument, a filter, a name, or a combination of settings.
    Value,
    NotFound,
    NotADirectory,
    Exists,
    Permission,
    /// A server cannot be reached.
    Connection,
    /// Storage failed in another way.
    Os,
    Memory,
    /// A signal asked for it.
    Stopped,
    Other,
}

impl Kind {
    fn exception(self, message: String) -> PyErr {
        match self {
            Self::Value => PyValueError::new_err(message),
            Self::NotFound => PyFileNotFoundError::new_err(message),
            Self::NotADirectory => PyNotADirectoryError::new_err(message),
            Self::Exists => PyFileExistsError::new_err(message),
            Self::Permission => PyPermissionError::new_err(message),
            Self::Connection => PyConnectionError::new_err(message),
            Self::Os => PyOSError::new_err(message),
            Self::Memory => PyMemoryError::new_err(message),
            Self::Stopped => PyKeyboardInterrupt::new_err(message),
            Self::Other => SomafeedError::new_err(message),
        }
    }
}

/// A ValueError without the credentials of addresses, which may stand where a name is expected.
pub(crate) fn value_error(problem: &str) -> PyErr {
    PyValueError::new_err(without_credentials(problem))
}

/// An error of one of the crates below, as a Python exception.
pub(crate) trait IntoException: Sized {
    /// The exception, without these secrets and without the credentials of any address.
    fn without_secrets(self, secrets: &Secrets) -> PyErr;

    /// The exception, without the credentials of any address.
    fn into_exception(self) -> PyErr {
        self.without_secrets(&Secrets::of_environment(Vec::new()))
    }
}

macro_rules! exceptions {
    ($($error:ty => $kind:expr),+ $(,)?) => {$(
        impl IntoException for $error {
            fn without_secrets(self, secrets: &Secrets) -> PyErr {
                $kind(&self).exception(secrets.hide(&message(&self)))
            }
        }
    )+};
}

exceptions! {
    arrays::Error => of_arrays,
    images::Error => of_images,
    storage::Error => of_storage,
    loader::DatasetError => of_dataset,
    loader::ConcatError => |_| Kind::Value,
    loader::SubsetError => of_subset,
    loader::WeightError => |_| Kind::Value,
    loader::ColumnsError => |_| Kind::Value,
    loader::ReaderError => |_| Kind::Other,
    loader::LoaderError => of_loader,
    loader::UnknownForm => |_| Kind::Value,
    pipeline::Error => of_engine,
    sequences::Error => of_sequences,
    soma_io::Error => of_soma,
    encode::FitError => of_fit,
    encode::EncodeError => of_encode,
    encode::InverseError => of_inverse,
    encode::SavedError => |_| Kind::Value,
    encode::DuplicateName => |_| Kind::Value,
    shuffle::sample::Error => of_sampling,
    shuffle::split::Error => of_split,
    shuffle::split::UnknownMethod => |_| Kind::Value,
    shuffle::RowOrderError => |_| Kind::Value,
    shuffle::Stopped => |_| Kind::Stopped,
    tiledb::Error => of_tiledb,
    doc2vec::Error => of_doc2vec,
    example_data::Error => of_example,
    tokens::Error => of_tokens,
}

/// `map_err` to the exception that fits.
pub(crate) trait OrException<T> {
    /// The value, or the exception.
    fn or_exception(self) -> PyResult<T>;
}

impl<T, E: IntoException> OrException<T> for Result<T, E> {
    fn or_exception(self) -> PyResult<T> {
        self.map_err(IntoException::into_exception)
    }
}

/// A message that is not raised, without secrets.
pub(crate) fn hidden(message: &str) -> String {
    Secrets::of_environment(Vec::new()).hide(message)
}

/// The messages of an error and its causes, each once, joined by colons.
fn message(error: &(dyn StdError + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let of_cause = cause.to_string();
        if !text.contains(&of_cause) {
            text.push_str(": ");
            text.push_str(&of_cause);
        }
        source = cause.source();
    }
    text
}

fn of_io(error: &io::Error) -> Kind {
    match error.kind() {
        io::ErrorKind::NotFound => Kind::NotFound,
        io::ErrorKind::NotADirectory => Kind::NotADirectory,
        io::ErrorKind::PermissionDenied => Kind::Permission,
        io::ErrorKind::OutOfMemory => Kind::Memory,
        _ => Kind::Os,
    }
}

fn of_storage(error: &storage::Error) -> Kind {
    use storage::Error as E;
    match error {
        E::Address { .. } | E::NotBuilt { .. } | E::Unsupported { .. } | E::Parameter { .. } => {
            Kind::Value
        }
        E::File { source, .. } | E::Cache { source, .. } => of_io(source),
        _ => Kind::Os,
    }
}

fn of_destination(error: &storage::DestinationError) -> Kind {
    match error {
        storage::DestinationError::Exists { .. } => Kind::Exists,
        other => cause_of_io(other),
    }
}

/// The kind of the first error of the system among the causes.
fn cause_of_io(error: &(dyn StdError + 'static)) -> Kind {
    of_system(error).unwrap_or(Kind::Os)
}

/// The kind of the first error of the system among the causes; `None` if there is none.
fn of_system(error: &(dyn StdError + 'static)) -> Option<Kind> {
    let mut source = error.source();
    while let Some(cause) = source {
        if let Some(error) = cause.downcast_ref::<io::Error>() {
            return Some(of_io(error));
        }
        source = cause.source();
    }
    None
}

fn of_tiledb(error: &tiledb::Error) -> Kind {
    use tiledb::Error as E;
    match error {
        E::Call { message, .. } if message.contains("ermission denied") => Kind::Permission,
        E::Call { .. } => Kind::Os,
        E::ZeroByte { .. } | E::Column { .. } => Kind::Value,
        _ => Kind::Other,
    }
}

fn of_native(error: &tiledb_native::Error) -> Kind {
    use tiledb_native::Error as E;
    match error {
        E::Storage(error) => of_storage(error),
        E::NotAnArray { .. } => Kind::NotFound,
        E::RowsOutOfBounds { .. }
        | E::ColumnOutOfBounds { .. }
        | E::Selection(_)
        | E::TooManyToPack { .. } => Kind::Value,
        E::Threads { .. } => Kind::Os,
        E::Memory { .. } => Kind::Memory,
        _ => Kind::Other,
    }
}

fn of_soma(error: &soma_io::Error) -> Kind {
    use soma_io::Error as E;
    match error {
        E::Missing { uri } | E::NotA { uri, .. } if is_file(uri) => Kind::NotADirectory,
        E::Missing { .. } => Kind::NotFound,
        E::NotA { .. }
        | E::NoMember { .. }
        | E::Unnamed { .. }
        | E::NoGenomes { .. }
        | E::NoColumn { .. }
        | E::ValueFilter { .. }
        | E::Joinid { .. }
        | E::RowsOutside { .. }
        | E::Genes { .. }
        | E::RowRanges { .. }
        | E::Csr(_)
        | E::Address { .. }
        | E::Census { .. }
        | E::NotNative { .. }
        | E::Inexact { .. }
        | E::NotExact { .. }
        | E::NotForAnnData { .. }
        | E::UnknownReader { .. } => Kind::Value,
        E::AnnData(error) => of_anndata(error),
        E::Destination(error) => of_destination(error),
        E::Storage(error) => of_storage(error),
        E::Native(error) => of_native(error),
        E::TileDb(error) => of_tiledb(error),
        _ => Kind::Other,
    }
}

fn of_anndata(error: &soma_io::AnnDataError) -> Kind {
    use soma_io::AnnDataError as E;
    match error {
        E::Missing { .. } | E::NoColumn { .. } | E::Rows { .. } | E::Unsupported { .. } => {
            Kind::Value
        }
        E::Metadata { source, .. } if source.kind() == io::ErrorKind::InvalidData => Kind::Other,
        E::Metadata { source, .. } => of_io(source),
        E::Array(error) => of_system(error).unwrap_or(Kind::Other),
        _ => Kind::Other,
    }
}

fn is_file(uri: &str) -> bool {
    soma_io::local_path(uri).is_some_and(std::path::Path::is_file)
}

fn of_sampling(error: &shuffle::sample::Error) -> Kind {
    use shuffle::sample::Error as E;
    match error {
        E::TooLarge { .. } => Kind::Memory,
        E::Stopped(_) => Kind::Stopped,
        _ => Kind::Value,
    }
}

fn of_split(error: &shuffle::split::Error) -> Kind {
    use shuffle::split::Error as E;
    match error {
        E::TooLarge { .. } => Kind::Memory,
        E::Stopped(_) => Kind::Stopped,
        _ => Kind::Value,
    }
}

fn of_engine(error: &pipeline::Error) -> Kind {
    use pipeline::Error as E;
    match error {
        E::Memory { .. } | E::Budget { .. } | E::BlockMemory { .. } => Kind::Memory,
        E::Sample(error) => of_sampling(error),
        E::Spawn { source, .. } => of_io(source),
        E::Panicked { .. } | E::Unreadable { .. } => Kind::Other,
        _ => Kind::Value,
    }
}

fn of_labels(error: &encode::LabelsError) -> Kind {
    match error {
        encode::LabelsError::Stopped(_) => Kind::Stopped,
        _ => Kind::Value,
    }
}

fn of_fit(error: &encode::FitError) -> Kind {
    match error {
        encode::FitError::Labels(error) => of_labels(error),
        _ => Kind::Value,
    }
}

fn of_encode(error: &encode::EncodeError) -> Kind {
    match error {
        encode::EncodeError::Labels(error) => of_labels(error),
        encode::EncodeError::Custom { .. } => Kind::Other,
        _ => Kind::Value,
    }
}

fn of_inverse(error: &encode::InverseError) -> Kind {
    match error {
        encode::InverseError::Stopped(_) => Kind::Stopped,
        encode::InverseError::Custom { .. } => Kind::Other,
        _ => Kind::Value,
    }
}

fn of_dataset(error: &loader::DatasetError) -> Kind {
    use loader::DatasetError as E;
    match error {
        E::Open(OpenError { source, .. }) | E::GenesOutsideX { source, .. } => of_soma(source),
        E::Cells(error) => of_subset(error),
        E::JoinidColumn { .. } => Kind::Other,
        _ => Kind::Value,
    }
}

fn of_subset(error: &loader::SubsetError) -> Kind {
    match error {
        loader::SubsetError::Stopped(_) => Kind::Stopped,
        _ => Kind::Value,
    }
}

fn of_loader(error: &loader::LoaderError) -> Kind {
    use loader::LoaderError as E;
    match error {
        E::Pipeline(error) => of_engine(error),
        E::Open(OpenError { source, .. }) | E::Read { source, .. } => of_soma(source),
        E::OutOfMemory { .. } | E::Buffer(_) => Kind::Memory,
        E::SparseFromDense
        | E::NoModality { .. }
        | E::Tokens(_)
        | E::Transform { .. }
        | E::Total { .. }
        | E::NoTotals => Kind::Value,
        _ => Kind::Other,
    }
}

fn of_arrays(error: &arrays::Error) -> Kind {
    use arrays::Error as E;
    match error {
        E::Pipeline(error) => of_engine(error),
        E::Memory { .. } | E::TooLarge { .. } => Kind::Memory,
        E::NoRows { .. }
        | E::Element { .. }
        | E::Attribute { .. }
        | E::WrongElement { .. }
        | E::Missing { .. }
        | E::Select { .. }
        | E::Spec { .. } => Kind::Value,
        other => of_system(other).unwrap_or(Kind::Other),
    }
}

fn of_images(error: &images::Error) -> Kind {
    use images::Error as E;
    match error {
        E::Pipeline(error) => of_engine(error),
        E::Memory { .. } | E::Slots(_) => Kind::Memory,
        E::Missing { .. } => Kind::NotFound,
        E::Spec { .. } | E::WrongElement { .. } => Kind::Value,
        E::Arrays { source, .. } | E::File { source, .. } => {
            let of_source = source.downcast_ref::<arrays::Error>().map(of_arrays);
            of_source.or_else(|| of_system(error)).unwrap_or(Kind::Other)
        }
        other => of_system(other).unwrap_or(Kind::Other),
    }
}

fn of_doc2vec(error: &doc2vec::Error) -> Kind {
    use doc2vec::Error as E;
    match error {
        E::Read { source, .. } | E::Write { source, .. } | E::StartThread { source, .. } => {
            of_io(source)
        }
        E::ThreadEnded { .. } => Kind::Other,
        _ => Kind::Value,
    }
}

fn of_sequences(error: &sequences::Error) -> Kind {
    use sequences::Error as E;
    match error {
        E::File { source, .. } | E::Thread { source } => of_io(source),
        E::Destination(error) => of_destination(error),
        E::OtherData { .. } => Kind::Exists,
        E::NotAStore { .. } => Kind::NotFound,
        E::Read { .. } => cause_of_io(error),
        E::Damaged { .. } => Kind::Other,
        E::Servers(error) => of_servers(error),
        E::Stopped => Kind::Stopped,
        E::Engine(error) => of_engine(error),
        _ => Kind::Value,
    }
}

fn of_servers(error: &sequences::key_values::Error) -> Kind {
    use sequences::key_values::Error as E;
    match error {
        E::Spec { .. } | E::NotCluster { .. } | E::Evicts { .. } => Kind::Value,
        E::Connect { .. } | E::GaveUp { .. } => Kind::Connection,
        E::Login { .. } => Kind::Permission,
        E::Stopped => Kind::Stopped,
        _ => Kind::Other,
    }
}

fn of_tokens(error: &tokens::Error) -> Kind {
    match error {
        tokens::Error::Spawn { .. } => Kind::Os,
        _ => Kind::Value,
    }
}

fn of_example(error: &example_data::Error) -> Kind {
    use example_data::Error as E;
    match error {
        E::Size { .. } => Kind::Value,
        E::Io { source, .. } => of_io(source),
        E::Write(error) => of_soma(error),
        E::Destination(error) => of_destination(error),
        _ => Kind::Other,
    }
}
