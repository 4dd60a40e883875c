//! What is written: number, shape and seed of the samples.

use crate::Error;

const MAX_SAMPLES: u64 = 1_000_000;
const MAX_LATITUDES: u64 = 10_000;
const MAX_LONGITUDES: u64 = 20_000;
const MAX_CHANNELS: u64 = 10_000;

/// Specifies weather-like fields. A sample's values depend on the grid, the seed and the sample's
/// number only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FieldSpec {
    /// Number of samples, 1 to a million.
    pub n_samples: u64,
    /// Number of latitudes, 1 to 10,000.
    pub n_lat: u64,
    /// Number of longitudes, 1 to 20,000.
    pub n_lon: u64,
    /// Number of channels of the inputs, 1 to 10,000.
    pub n_inputs: u64,
    /// Number of channels of the targets, 1 to 10,000.
    pub n_targets: u64,
    /// Seed of all random choices.
    pub seed: u64,
}

impl Default for FieldSpec {
    /// 16 samples in the shape that graph-ufs trains on: 192 x 384 points with 186 channels of
    /// inputs and 83 of targets.
    fn default() -> Self {
        Self { n_samples: 16, n_lat: 192, n_lon: 384, n_inputs: 186, n_targets: 83, seed: 0 }
    }
}

impl FieldSpec {
    /// The number of different channels: the targets are the first channels of a later time.
    pub fn n_channels(&self) -> u64 {
        self.n_inputs.max(self.n_targets)
    }

    /// The number of values in a sample, inputs and targets together.
    pub(crate) fn sample_len(&self) -> u64 {
        self.n_lat * self.n_lon * (self.n_inputs + self.n_targets)
    }

    /// Fails if a size is out of range.
    pub(crate) fn check(&self) -> Result<(), Error> {
        check("the number of samples", self.n_samples, MAX_SAMPLES)?;
        check("the number of latitudes", self.n_lat, MAX_LATITUDES)?;
        check("the number of longitudes", self.n_lon, MAX_LONGITUDES)?;
        check("the number of channels of the inputs", self.n_inputs, MAX_CHANNELS)?;
        check("the number of channels of the targets", self.n_targets, MAX_CHANNELS)
    }
}

/// Fails if `value` is not between 1 and `most`.
pub(crate) fn check(what: &'static str, value: u64, most: u64) -> Result<(), Error> {
    Error::check_size(what, value as f64, (1.0, most as f64))
}
