//! Batches as tensors: the loaders' numbers, in memory that is reused.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod array_tensors;
mod document_model;
mod image_augmentation;
mod stored_type;
mod tensors;
mod u_net;
