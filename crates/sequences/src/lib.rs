//! Samples of DNA, RNA, proteins and other sequences of letters, for the engine of crate
//! `pipeline`.
//!
//! - [`RecordReader`] reads files of lines, FASTA and FASTQ, compressed or not;
//!   [`SequenceFilesWriter`] writes them to a store.
//! - A [`SequenceStore`] reads sequences by their row numbers: [`SequenceFiles`] from the files of
//!   a folder or an object store, `SequenceServers` (feature `servers`) from a cluster of Redis or
//!   Valkey servers.
//! - [`KmerSpec`] cuts sequences into words of `k` letters over any [`Alphabet`], a [`Vocabulary`]
//!   counts and numbers them, a [`Tokenizer`] applies it, a [`shuffle::AliasTable`] draws words
//!   at random.
//! - [`SequenceSamples`] is the source: batches of letters, names, words, or words with their
//!   context and noise ([`Windows`]), as [`SequenceSpec`] says.
//!
//! ```
//! use std::sync::Arc;
//!
//! use pipeline::{Pipeline, PipelineSpec};
//! use sequences::{
//!     KmerSpec, RecordReader, SequenceBatch, SequenceFiles, SequenceFilesWriter, SequenceSamples,
//!     SequenceSpec, SequenceStore as _, Tokenizer, Vocabulary, WhenUnknown,
//! };
//! use storage::LocalStorage;
//!
//! let folder = tempfile::tempdir()?;
//! let (fasta, store) = (folder.path().join("genes.fasta"), folder.path().join("genes"));
//! std::fs::write(&fasta, ">one\nACGTACGTAC\n>two\nGGGTTT\n>three\nACGT\n")?;
//! let mut writer = SequenceFilesWriter::create(&store, &[])?;
//! RecordReader::open(&fasta)?.copy_to(&mut writer, &mut |_| {})?;
//! writer.finish()?;
//!
//! let store = Arc::new(SequenceFiles::open(Arc::new(LocalStorage::new(&store)))?);
//! assert_eq!(store.find(b"two")?, Some(1));
//!
//! // All 4-mers in four frames, with padding for a context of one word.
//! let spec = KmerSpec::all_frames(4, 1);
//! let alphabet = store.summary().alphabet()?;
//! let words = Vocabulary::count(&*store, &alphabet, &spec, WhenUnknown::Fail, 2)?;
//! assert_eq!(words.word(0).as_deref(), Some("ACGT"));
//! assert_eq!(words.counts()[0], 3);
//!
//! let tokenizer = Some(Tokenizer::new(spec, Arc::new(words), WhenUnknown::Fail)?);
//! let spec = SequenceSpec { names: true, tokenizer, ..SequenceSpec::default() };
//! let samples = SequenceSamples::new(store, spec)?;
//! let spec = PipelineSpec { batch_rows: 2, ..PipelineSpec::default() };
//! let pipeline = Pipeline::new(Arc::new(samples), spec, SequenceBatch::n_sequences)?;
//! for batch in pipeline.epoch(0)? {
//!     let batch = batch?;
//!     for (idx, row) in batch.rows().iter().enumerate() {
//!         assert_eq!(batch.name(idx), Some([&b"one"[..], b"two", b"three"][*row as usize]));
//!         assert_eq!(batch.frames(idx).count(), 4);
//!     }
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod alphabet;
mod assemble;
mod batch;
mod error;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzz;
mod input;
mod kmers;
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
pub use batch::SequenceBatch;
pub use error::Error;
pub use input::{Record, RecordFormat, RecordReader};
#[cfg(feature = "servers")]
pub use key_values;
pub use kmers::KmerSpec;
pub use output::write_record;
pub use samples::{SequenceBlock, SequenceSamples, SequenceSpec};
pub use sequence_list::SequenceList;
pub use store::{SequenceFiles, SequenceFilesWriter, SequenceStore, Summary, WriteReport};
#[cfg(feature = "servers")]
pub use store::{SequenceServers, ServerFill};
pub use tokenizer::{TokenScratch, Tokenizer};
pub use tokens::TokenFrames;
pub use unknown::WhenUnknown;
pub use vocabulary::Vocabulary;
pub use windows::{WindowSpec, Windows};
