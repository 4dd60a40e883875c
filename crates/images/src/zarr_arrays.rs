//! The Zarr arrays of a data set.

use std::sync::Arc;

use arrays::{ArraySamples, ElementType, ReadScratch, SampleSpec, Variable};
use pipeline::{ReadStats, Stop};

use crate::data_set::{DataSet, Form};
use crate::error::Error;
use crate::spec::Key;

/// The Zarr arrays of a data set, one for each key.
#[derive(Debug, Clone)]
pub(crate) struct ZarrArrays {
    samples: ArraySamples,
    place: String,
}

impl ZarrArrays {
    /// Opens the arrays of `keys` in the data set's Zarr folder.
    pub(crate) fn open(data: &DataSet, keys: &[Key]) -> Result<Self, Error> {
        let folder = Form::Zarr.folder();
        let variables = keys
            .iter()
            .map(|key| Variable::new(format!("{folder}/{}", key.name)).named(key.name.clone()));
        let spec = SampleSpec { coordinates: false, ..SampleSpec::new(variables) };
        let place = data.storage().place();
        let samples = ArraySamples::open(Arc::clone(data.storage()), &spec)
            .map_err(|error| failed(&place, error))?;
        Ok(Self { samples, place })
    }

    /// Shape and elements of an image's array.
    pub(crate) fn describe(&self, key: &str) -> Result<(Vec<usize>, ElementType), Error> {
        let element = self.samples.elements().find(|(name, _)| *name == key);
        let described = self.samples.sample_shape(key).zip(element);
        let (shape, (_, element)) =
            described.ok_or_else(|| failed(&self.place, format!("there is no {key}")))?;
        Ok((shape, element))
    }

    /// The number of images in the arrays.
    pub(crate) fn n_images(&self) -> u64 {
        self.samples.n_samples()
    }

    /// Decodes the image at `position`, each key into its memory.
    pub(crate) fn read(
        &self,
        position: u64,
        into: &mut [&mut [u8]],
        scratch: &mut ReadScratch,
        stop: &Stop,
    ) -> Result<ReadStats, arrays::Error> {
        self.samples.read_into(&[position], into, scratch, stop)
    }
}

fn failed(place: &str, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::Arrays {
        folder: Form::Zarr.folder().to_owned(),
        place: place.to_owned(),
        source: source.into(),
    }
}
