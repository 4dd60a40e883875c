//! Tokens of cells for foundation models. CSR rows in, sequences of token ids out; no I/O.
//!
//! | tokenizer | a cell's sequence | values beside it | of the model |
//! |---|---|---|---|
//! | [`RankValues`] | genes by descending value | none | Geneformer |
//! | [`BinnedValues`] | genes by ascending column | the bin of each gene's value | scGPT |
//!
//! A [`Vocabulary`] gives each gene's name a token id. Genes that it does not know are left out.
//! Special tokens may begin and end each sequence, and [`Layout`] says whether sequences are padded
//! to one length. Memory is the caller's and is used again from batch to batch.
//!
//! ```
//! use std::collections::HashMap;
//!
//! use csr::CsrView;
//! use tokens::{
//!     Cells, Layout, Places, RankSpec, RankValues, SpecialNames, Tokenizer, Vocabulary, Workspace,
//! };
//!
//! let ids = [("<pad>", 0), ("<cls>", 2), ("CD3D", 10), ("MS4A1", 11), ("NKG7", 12)];
//! let special = SpecialNames { pad: "<pad>", cls: Some("<cls>"), eos: None };
//! let ids = ids.map(|(name, id)| (name.to_owned(), id));
//! let vocabulary = Vocabulary::new(ids, special)?;
//! let medians = [("CD3D", 2.0), ("MS4A1", 1.0), ("NKG7", 4.0)];
//! let medians: HashMap<_, _> = medians.map(|(name, median)| (name.to_owned(), median)).into();
//!
//! // The columns of X; the vocabulary does not know the first.
//! let genes = ["XIST", "NKG7", "MS4A1", "CD3D"];
//! let spec = RankSpec { max_length: 4, ..RankSpec::default() };
//! let tokenizer = Tokenizer::Ranks(RankValues::new(&vocabulary, &medians, &genes, spec)?);
//! assert_eq!(tokenizer.genes().n_unknown(), 1);
//!
//! // Two cells; the second has one gene.
//! let rows = CsrView {
//!     row_offsets: &[0, 4, 5],
//!     columns: &[0, 1, 2, 3, 2],
//!     values: &[9.0, 8.0, 1.0, 3.0, 5.0],
//!     n_columns: 4,
//! };
//! let cells = Cells { rows, totals: None, numbers: &[], epoch: 0 };
//! let (mut places, mut workspace) = (Places::default(), Workspace::default());
//! tokenizer.places(&cells, Layout::Padded, 1, &mut places)?;
//! let mut ids = vec![0_i64; places.n_tokens()];
//! tokenizer.fill(&cells, &places, 1, &mut workspace, (&mut ids, &mut []))?;
//! assert_eq!(ids, [2, 12, 10, 11, 2, 11, 0, 0]);
//! assert_eq!(places.lengths(), [4, 2]);
//! # Ok::<(), tokens::Error>(())
//! ```
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
