#![doc = include_str!("../README.md")]
//!
//! - [`RecordReader`] reads files of lines, FASTA and FASTQ, compressed or not;
//!   [`SequenceFilesWriter`] writes them to a store.
//! - A [`SequenceStore`] reads sequences by their row numbers: [`SequenceFiles`] from the files of
//!   a folder or an object store, `SequenceServers` (feature `servers`) from a cluster of Redis or
//!   Valkey servers, [`JoinedStores`] from several stores.
//! - [`KmerSpec`] cuts sequences into words of `k` letters over any [`Alphabet`], a [`Vocabulary`]
//!   counts and numbers them, a [`Tokenizer`] applies it, a [`shuffle::AliasTable`] draws words
//!   at random.
//! - [`SequenceSamples`] is the source: batches of letters, names, words, or words with their
//!   context and noise ([`Windows`]), as [`SequenceSpec`] says.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

mod alphabet;
mod assemble;
mod batch;
mod error;
#[cfg(any(test, somafeed_fuzz))]
pub mod fuzz;
mod input;
mod kmers;
mod layout;
mod output;
mod samples;
mod sequence_list;
mod store;
mod tokenizer;
mod tokens;
mod unknown;
mod vocabulary;
mod windows;

pub use alphabet::Alphabet;
pub use assemble::SequenceAssembler;
pub use batch::{SequenceBatch, SequenceParts};
pub use error::Error;
pub use input::{Record, RecordFormat, RecordReader};
#[cfg(feature = "servers")]
pub use key_values;
pub use kmers::KmerSpec;
pub use layout::{Layout, PaddedRows};
pub use output::write_record;
pub use samples::{SequenceBlock, SequenceSamples, SequenceSpec};
pub use sequence_list::SequenceList;
pub use store::{
    JoinedStores, SequenceFiles, SequenceFilesWriter, SequenceStore, Summary, WriteReport,
};
#[cfg(feature = "servers")]
pub use store::{SequenceServers, ServerFill};
pub use tokenizer::{TokenScratch, Tokenizer};
pub use tokens::TokenFrames;
pub use unknown::WhenUnknown;
pub use vocabulary::Vocabulary;
pub use windows::{WindowSpec, Windows};
