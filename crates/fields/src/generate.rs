//! Weather-like fields as Zarr arrays, from a seed.
//!
//! [`generate()`] writes a group with the arrays `inputs` (sample, lat, lon, input_channels) and
//! `targets` (sample, lat, lon, target_channels), and the coordinates of each dimension: numbers of
//! samples, degrees, names of channels (`temperature_0`). The targets of a sample are the first
//! channels of the inputs one step of time later. Fields are smooth patterns that move along the
//! circles of latitude, with a little noise. So a model can learn them, and codecs gain as little
//! as they do on real weather.
//!
//! xarray opens the store. Stores of Zarr 2 have consolidated metadata; stores of Zarr 3 have not,
//! because it is not a part of that version's specification.

mod element;
mod layout;
mod metadata;
mod pattern;
mod random;
mod spec;
mod store;
mod weather;
mod write;

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use bench_run::{check_interrupted, claim};
use half::f16;

use crate::Error;
pub use layout::{Codec, Layout, StoredElement, ZarrVersion};
use metadata::ElementType;
pub(crate) use metadata::{chunk_codecs, in_shards, index_codecs, little_endian, strings};
pub use spec::FieldSpec;
use store::Store;
pub use weather::field;
use write::write_samples;

/// Specifies a store to generate.
#[derive(Debug, Clone, Default)]
pub struct GenerateSpec {
    /// What is written.
    pub fields: FieldSpec,
    /// How it is stored.
    pub layout: Layout,
    /// Threads that make and write samples; 0 for one per processor. The store does not depend on
    /// their number.
    pub n_threads: usize,
    /// Ends the run with [`Error::Interrupted`] soon after this is set.
    pub interrupted: Option<&'static AtomicBool>,
}

/// The result of [`generate()`].
#[derive(Debug, Clone, PartialEq)]
pub struct GenerateReport {
    /// Size of the values of inputs and targets in bytes, uncompressed.
    pub n_bytes: u64,
    /// Size of all files in bytes.
    pub bytes_on_disk: Option<u64>,
    /// Duration in seconds.
    pub seconds: f64,
    /// A killed run's leftover that was removed.
    pub leftover: Option<PathBuf>,
}

/// Generates a store at `path`, a folder that does not exist yet.
///
/// The store is written to a folder with the suffix `.partial` and renamed at the end; the leftover
/// of a killed run is removed. Memory does not grow with the number of samples: 8 bytes per value
/// of a sample's inputs, and for each thread a chunk or shard as it is and as it is stored.
/// `progress` is called with the number of samples written so far.
///
/// # Errors
/// A setting is invalid, something exists at `path`, writing fails, or the run is interrupted.
pub fn generate(
    path: &Path,
    spec: &GenerateSpec,
    progress: &mut dyn FnMut(u64),
) -> Result<GenerateReport, Error> {
    let started = Instant::now();
    spec.fields.check()?;
    spec.layout.check()?;
    let destination = claim(path, "store")?;
    let leftover = destination.leftover().map(Into::into);
    let arrays = Store::create(Path::new(destination.uri()))?.define(spec)?;
    match spec.layout.element {
        StoredElement::F32 => write_samples::<f32>(spec, &arrays, progress)?,
        StoredElement::F16 => write_samples::<f16>(spec, &arrays, progress)?,
        StoredElement::I16 => write_samples::<i16>(spec, &arrays, progress)?,
    }
    check_interrupted(spec.interrupted)?;
    let bytes_on_disk = destination.publish()?;
    Ok(GenerateReport {
        n_bytes: spec.fields.n_samples
            * spec.fields.sample_len()
            * ElementType::for_element(spec.layout.element).n_bytes,
        bytes_on_disk,
        seconds: started.elapsed().as_secs_f64(),
        leftover,
    })
}
