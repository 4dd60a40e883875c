//! Rewrites an experiment's X for training: the genes of a cell together, rows in the order in
//! which training reads them, with a codec chosen by measurement. All cells can be shuffled once.
//! The result is a SOMA experiment like any other.
//!
//! In the Census's X, the values of one row are in about thirty places, among those of a thousand
//! other rows. That suits reading all cells of a few genes, but reading a few cells with all genes
//! costs many times the necessary work. Training reads cells, epoch after epoch, so one rewrite in
//! reading order pays for itself after a few epochs; [`RelayoutReport::epochs_until_paid`] gives
//! their number.
//!
//! ```
//! use std::ops::ControlFlow;
//!
//! use example_data::{GenerateSpec, generate};
//! use relayout::{RelayoutSpec, relayout};
//! use soma_io::{Experiment, OpenOptions};
//!
//! let folder = tempfile::tempdir()?;
//! let path = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
//! let (from, to) = (path("from"), path("to"));
//! let example = GenerateSpec { n_cells: 500, n_genes: 200, seed: 1, ..GenerateSpec::default() };
//! generate(&from, &example, &mut |_| {})?;
//!
//! let source = Experiment::open(&from, &OpenOptions::default())?;
//! let spec = RelayoutSpec { shuffle_seed: Some(42), ..RelayoutSpec::default() };
//! let report = relayout(&source, &to, &spec, &mut |_| ControlFlow::Continue(()))?;
//! assert_eq!(report.n_cells, 500);
//! let copy = Experiment::open(&to, &OpenOptions::default())?;
//! assert!(copy.obs()?.schema().index_of("source_joinid").is_ok());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod ahead;
mod buckets;
mod codec;
mod error;
mod frames;
mod layout;
mod measure;
mod order;
mod record;
mod rewrite;
mod source;
mod spec;
mod speed;
mod temporary;

pub use codec::{Codec, CodecChoice, Codecs, GENE_CODECS, MeasuredCodecs, VALUE_CODECS};
pub use error::Error;
pub use rewrite::relayout;
pub use spec::{RelayoutEvent, RelayoutReport, RelayoutSpec, Spilled};
pub use speed::ReadSpeed;
