//! The loader of a point and its batches: tensors, or without the feature `torch` the buffers that
//! tensors are made of. A tensor takes the buffer as it is, so both cost about the same.

#[cfg(not(feature = "torch"))]
mod buffers;
#[cfg(feature = "torch")]
mod tensors;

#[cfg(not(feature = "torch"))]
pub(crate) use buffers::*;
#[cfg(feature = "torch")]
pub(crate) use tensors::*;

/// Why a program without torch does not learn.
pub(crate) const NO_TORCH: &str = "it trains with torch, which this program does not contain: take \
    none or a time per batch, 20ms for example";
