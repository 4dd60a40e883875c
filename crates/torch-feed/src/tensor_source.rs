//! Sources whose batches become tensors.

use arrays::{ArrayBatch, ArraySamples};
#[cfg(feature = "images")]
use images::{ImageBatch, ImageSamples};
use pipeline::Source;

use crate::array_tensors::{ArrayTensors, kind_of};
use crate::error::Error;

/// A source of samples that become tensors: the arrays of crate `arrays`, with the feature `images`
/// image cubes, with the feature `sequences` sequences.
pub trait TensorSource: Source + Sealed {
    /// Checks that torch has tensors of all elements.
    ///
    /// # Errors
    /// It has none of some: u16, u32 or u64.
    #[doc(hidden)]
    fn check_elements(&self) -> Result<(), Error>;

    /// Number of samples in a batch.
    #[doc(hidden)]
    fn n_samples_of(batch: &Self::Batch) -> usize;

    /// Makes the tensors of a batch, on the CPU.
    ///
    /// # Errors
    /// torch's errors.
    #[doc(hidden)]
    fn tensors_of(batch: Self::Batch) -> Result<ArrayTensors, Error>;
}

mod sealed {
    /// Other crates cannot implement [`TensorSource`](super::TensorSource).
    pub trait Sealed {}
}
pub(crate) use sealed::Sealed;

impl Sealed for ArraySamples {}

impl TensorSource for ArraySamples {
    fn check_elements(&self) -> Result<(), Error> {
        for (variable, element) in self.elements() {
            kind_of(variable, element)?;
        }
        Ok(())
    }

    fn n_samples_of(batch: &ArrayBatch) -> usize {
        batch.n_samples()
    }

    fn tensors_of(batch: ArrayBatch) -> Result<ArrayTensors, Error> {
        ArrayTensors::new(batch)
    }
}

#[cfg(feature = "images")]
impl Sealed for ImageSamples {}

#[cfg(feature = "images")]
impl TensorSource for ImageSamples {
    fn check_elements(&self) -> Result<(), Error> {
        for (key, element) in self.elements() {
            kind_of(key, element)?;
        }
        Ok(())
    }

    fn n_samples_of(batch: &ImageBatch) -> usize {
        batch.n_samples()
    }

    fn tensors_of(batch: ImageBatch) -> Result<ArrayTensors, Error> {
        ArrayTensors::from_images(batch)
    }
}
