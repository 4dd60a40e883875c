//! The Zarr arrays of a data set.

use std::sync::Arc;

use arrays::{ArraySamples, ElementType, ReadScratch, SampleSpec, Variable};
use pipeline::{ReadStats, Stop};
use storage::Storage;

use crate::data_set::{DataSet, Form};
use crate::error::Error;
use crate::spec::Key;

/// The Zarr arrays of a data set: in each of its storages one for each key.
#[derive(Debug, Clone)]
pub(crate) struct ZarrArrays {
    data: DataSet,
    of_storages: Vec<ArraySamples>,
}

impl ZarrArrays {
    /// Opens the arrays of `keys` in the data set's Zarr folders.
    ///
    /// # Errors
    /// Arrays cannot be opened, or have fewer images than the list.
    pub(crate) fn open(data: &DataSet, keys: &[Key]) -> Result<Self, Error> {
        let folder = Form::Zarr.folder();
        let variables = keys
            .iter()
            .map(|key| Variable::new(format!("{folder}/{}", key.name)).named(key.name.clone()));
        let spec = SampleSpec { coordinates: false, ..SampleSpec::new(variables) };
        let open = |storage: &Arc<dyn Storage>| {
            let samples = ArraySamples::open(Arc::clone(storage), &spec);
            samples.map_err(|error| failed(&storage.place(), error))
        };
        let of_storages = data.storages().iter().map(open).collect::<Result<_, Error>>()?;
        let arrays = Self { data: data.clone(), of_storages };
        arrays.check_sizes()?;
        Ok(arrays)
    }

    fn check_sizes(&self) -> Result<(), Error> {
        for (storage, samples) in self.of_storages.iter().enumerate() {
            let (stored, n) = (samples.n_samples(), self.data.samples_in(storage).count());
            if stored < n as u64 {
                let place = self.data.storages()[storage].place();
                return Err(Error::Spec {
                    reason: format!("Zarr arrays of {place} have {stored} images, the list {n}"),
                });
            }
        }
        Ok(())
    }

    /// Shape and elements of an image's array in a storage.
    pub(crate) fn describe(
        &self,
        storage: usize,
        key: &str,
    ) -> Result<(Vec<usize>, ElementType), Error> {
        let samples = &self.of_storages[storage];
        let element = samples.elements().find(|(name, _)| *name == key);
        let missing = || {
            let place = self.data.storages()[storage].place();
            failed(&place, format!("there is no {key}"))
        };
        let (shape, (_, element)) = samples.sample_shape(key).zip(element).ok_or_else(missing)?;
        Ok((shape, element))
    }

    /// Decodes an image, each key into its memory.
    pub(crate) fn read(
        &self,
        sample: usize,
        into: &mut [&mut [u8]],
        scratch: &mut ReadScratch,
        stop: &Stop,
    ) -> Result<ReadStats, arrays::Error> {
        let at = self.data.position(sample);
        let (storage, image) = at.map_or((0, u64::MAX), |at| (at.storage, at.image));
        self.of_storages[storage].read_into(&[image], into, scratch, stop)
    }
}

fn failed(place: &str, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::Arrays {
        folder: Form::Zarr.folder().to_owned(),
        place: place.to_owned(),
        source: source.into(),
    }
}
