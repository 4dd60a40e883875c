//! Doc2Vec on the CPU: vectors of documents and words, such as sequences and their k-mers.
//!
//! [`Trainer`] learns by negative sampling, in plain loops, as word2vec's program and gensim do:
//! PV-DM predicts each word from its document and the words around it, PV-DBOW from the document
//! alone. Similar documents get similar vectors.
//!
//! ```
//! use doc2vec::{Combine, Model, Documents, TrainSpec, Trainer, WindowRule};
//!
//! // Two documents of one frame each, of three words.
//! let batch = Documents {
//!     documents: &[0, 1],
//!     document_ends: &[1, 2],
//!     frame_ends: &[4, 8],
//!     tokens: &[0, 1, 0, 1, 2, 1, 2, 2],
//!     padding: 0,
//! };
//! let model = Model::DistributedMemory {
//!     window: 3,
//!     window_rule: WindowRule::Whole,
//!     combine: Combine::Sum,
//! };
//! let spec = TrainSpec { dimension: 8, ..TrainSpec::new(model, 20 * 8) };
//! let mut trainer = Trainer::new(&spec, 2, &[2, 3, 3])?;
//! for _epoch in 0..20 {
//!     let progress = trainer.train_batch(&batch)?;
//!     assert_eq!(progress.words, 8);
//! }
//! let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
//! let embeddings = trainer.embeddings(names(&["first", "second"]), names(&["AC", "CG", "GT"]))?;
//! assert_eq!(embeddings.documents.unit().nearest(0, 1)[0].row, 1);
//! # Ok::<(), doc2vec::Error>(())
//! ```
//!
//! An [`Inference`] gives vectors of further documents by the words of a trained model.
//!
//! [`Embeddings`] are saved as safetensors, or in word2vec's forms, which gensim opens.
//! [`UnitVectors`] finds nearest neighbours.
//!
//! The crate reads no clock and no environment.

#![forbid(unsafe_code)]

mod batch_training;
mod document;
mod documents;
mod embeddings;
mod error;
mod inference;
mod merge;
mod part;
mod random;
mod row;
mod sigmoid;
mod spec;
mod target;
mod threads;
mod trainer;

pub use documents::Documents;
pub use embeddings::{Embeddings, NamedVectors, Neighbour, UnitVectors, check_word2vec_names};
pub use error::Error;
pub use inference::{InferSpec, Inference, TrainedWords};
pub use spec::{Combine, MAX_DIMENSION, Model, TrainSpec, WindowRule};
pub use trainer::{Progress, Trainer};
