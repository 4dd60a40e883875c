#![doc = include_str!("../README.md")]
//!
//! | tokenizer | a cell's sequence | values beside it | of the model |
//! |---|---|---|---|
//! | [`RankValues`] | genes by descending value | none | Geneformer |
//! | [`BinnedValues`] | genes by ascending column | the bin of each gene's value | scGPT |
//!
//! A [`Vocabulary`] gives each gene's name a token id. Genes that it does not know are left out.
//! Special tokens may begin and end each sequence, and [`Layout`] says whether sequences are padded
//! to one length. Memory is the caller's and is used again from batch to batch.
#![forbid(unsafe_code)]

mod bins;
mod cells;
mod error;
mod order;
mod random;
mod ranks;
mod scratch;
mod sequences;
mod vocabulary;

pub use bins::{BinSpec, BinnedValues, Cut, Ties};
pub use cells::Cells;
pub use error::Error;
pub use ranks::{RankSpec, RankValues};
pub use sequences::{Layout, Places, TokenId, Tokenizer, Workspace};
pub use vocabulary::{Genes, SpecialNames, SpecialTokens, Vocabulary};
