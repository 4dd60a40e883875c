//! Image cubes like those of a hyperspectral camera, from a seed.
//!
//! [`generate()`] writes a data set: `images.json`, a segmentation per image, and the cubes in
//! any of their forms. A cube is a scene of a few smooth regions, one class each, seen through the
//! circle of a lens. A pixel's spectrum is that of its class, more or less of blood and scattering,
//! times the light that falls on it, plus noise. So a model can learn the classes from the spectra.
//!
//! The noise decides how well cubes compress: nothing else in them is random. With the default,
//! htc's codec needs as many bits per value as for htc's own cubes; that real noise is like this
//! one is an assumption. `docs/cubes.md` has the measurements.

mod cube;
mod random;
mod scene;
mod spec;
mod spectra;
mod write;

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use crate::Error;
use crate::forms::FormSpec;
use crate::precision::Precision;
use bench_run::{Threads, claim};
pub(crate) use cube::Segmentation;
pub use cube::{GeneratedImage, image};
pub use spec::CubeSpec;
use write::write_images;

/// Specifies a data set to generate.
#[derive(Debug, Clone, Default)]
pub struct GenerateSpec {
    /// What is written.
    pub cubes: CubeSpec,
    /// The forms in which it is written.
    pub forms: FormSpec,
    /// Threads that make and write images; 0 for one per processor. The data do not depend on their
    /// number.
    pub n_threads: usize,
    /// Ends the run with [`Error::Interrupted`] soon after this is set.
    pub interrupted: Option<&'static AtomicBool>,
}

/// The result of [`generate()`].
#[derive(Debug, Clone, PartialEq)]
pub struct GenerateReport {
    /// Size of all files in bytes.
    pub n_bytes: u64,
    /// The error of the 16-bit forms, if one was written.
    pub precision: Option<Precision>,
    /// Duration in seconds.
    pub seconds: f64,
    /// A killed run's leftover that was removed.
    pub leftover: Option<PathBuf>,
}

/// Generates a data set in `folder`, which does not exist yet.
///
/// It is written to a folder with the suffix `.partial` and renamed at the end; the leftover of a
/// killed run is removed. Each thread needs memory for a cube about four times: as f32, as f16, and
/// as a file. `progress` is called with the number of images written so far.
///
/// # Errors
/// A setting is invalid, something exists at `folder`, writing fails, or the run is interrupted.
pub fn generate(
    folder: &Path,
    spec: &GenerateSpec,
    progress: &mut dyn FnMut(u64),
) -> Result<GenerateReport, Error> {
    let started = Instant::now();
    spec.cubes.check()?;
    spec.forms.check()?;
    let threads =
        Threads { name: "cubes", n_threads: spec.n_threads, interrupted: spec.interrupted };
    let destination = claim(folder, "data set")?;
    let leftover = destination.leftover().map(Into::into);
    let precision = write_images(Path::new(destination.uri()), spec, &threads, progress)?;
    threads.check_interrupted()?;
    let n_bytes = destination.publish()?.unwrap_or(0);
    Ok(GenerateReport { n_bytes, precision, seconds: started.elapsed().as_secs_f64(), leftover })
}
