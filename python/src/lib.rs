//! The native module `somafeed._somafeed`: the loader as Python sees it.
//!
//! `_somafeed.pyi` beside the package documents each class and function for its users.
//!
//! - Calls that take long detach from the interpreter and look for signals (`waiting`).
//! - A forked process never uses or drops a value that has threads (`process`).
//! - Arrays are views over memory that the loader gives to Python (`border`, `batch`).
//! - Each error becomes the exception that fits, with its full message (`errors`).
#![expect(clippy::needless_pass_by_value, reason = "PyO3 makes arguments and gives them away")]
#![expect(clippy::too_many_arguments, reason = "Python names them")]

mod arrow_table;
mod batch;
mod border;
mod buffers;
mod dataset;
mod doc2vec;
mod encoders;
mod engine;
mod entropy;
mod epoch;
mod errors;
mod example;
mod experiment;
mod field_missing;
mod field_variables;
mod fields;
mod images;
mod kmers;
mod libtiledb;
mod loader;
mod memory_limit;
mod numpy;
mod own_source;
mod process;
mod program;
mod samples;
mod sequences;
mod splits;
mod tokens;
mod values;
mod waiting;

/// The native module.
#[pyo3::pymodule(gil_used = false)]
mod _somafeed {
    use pyo3::prelude::*;

    use crate::errors::OrException as _;

    #[pymodule_export]
    use super::arrow_table::ArrowTable;
    #[pymodule_export]
    use super::batch::{Batch, Matrix, Neighbours};
    #[pymodule_export]
    use super::dataset::Dataset;
    #[pymodule_export]
    use super::doc2vec::{
        Doc2VecInference, Doc2VecTrainer, read_embeddings, write_embeddings, write_word2vec,
    };
    #[pymodule_export]
    use super::encoders::{BatchKeyEncoder, LabelEncoder};
    #[pymodule_export]
    use super::engine::PlacedBatch;
    #[pymodule_export]
    use super::epoch::Epoch;
    #[pymodule_export]
    use super::errors::SomafeedError;
    #[pymodule_export]
    use super::example::generate_example;
    #[pymodule_export]
    use super::experiment::Experiment;
    #[pymodule_export]
    use super::fields::{FieldBatch, Fields};
    #[pymodule_export]
    use super::images::{ImageBatch, Images, draw_maps};
    #[pymodule_export]
    use super::kmers::KmerVocabulary;
    #[pymodule_export]
    use super::loader::Loader;
    #[pymodule_export]
    use super::memory_limit::Budget;
    #[pymodule_export]
    use super::own_source::{OwnSamples, SampleBatch};
    #[pymodule_export]
    use super::program::run_program;
    #[pymodule_export]
    use super::samples::{SampleLoader, Samples};
    #[pymodule_export]
    use super::sequences::{SequenceBatch, Sequences, fill_sequence_servers, import_sequences};
    #[pymodule_export]
    use super::splits::{Sampling, split_by_fraction, split_by_group, split_by_label};
    #[pymodule_export]
    use super::tokens::Tokenizer;
    #[pymodule_export]
    use super::waiting::stop_at_row;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("version", env!("CARGO_PKG_VERSION"))
    }

    /// Rank and number of processes, as the launcher's variables say.
    #[pyfunction]
    fn world_from_environment() -> PyResult<(u64, u64)> {
        let world = pipeline::World::from_environment().or_exception()?;
        Ok((world.rank, world.size))
    }

    /// A text without the credentials of the addresses in it.
    #[pyfunction]
    fn _without_credentials(text: &str) -> String {
        bench_run::without_credentials(text)
    }

    /// Like `_without_credentials`, of one address: its credentials may have blanks and quotes.
    #[pyfunction]
    fn _address_without_credentials(address: &str) -> String {
        bench_run::Address::from(address).to_string()
    }

    /// Version and file of the libtiledb that this process uses; None if it has loaded none.
    #[pyfunction]
    fn libtiledb() -> Option<(String, String)> {
        tiledb::loaded_library().map(|((major, minor, patch), path)| {
            (format!("{major}.{minor}.{patch}"), path.display().to_string())
        })
    }
}
