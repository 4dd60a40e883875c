//! Dividing each spectrum by its norm.

use clap::ValueEnum;
use images::files::{Norm, normalize};
use serde::{Deserialize, Serialize};

/// How the spectrum of each pixel is normalised before it is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Normalization {
    /// Not at all: reflectances as measured, like htc's folders raw16 and raw32
    #[default]
    None,
    /// Divided by the sum of absolute values, like htc's folder L1
    L1,
    /// Divided by the square root of the sum of squares
    L2,
}

impl Normalization {
    /// Normalises spectra of `n_channels` values each.
    pub(crate) fn apply(self, values: &mut [f32], n_channels: usize) {
        match self {
            Self::None => {}
            Self::L1 => normalize(values, n_channels, Norm::L1),
            Self::L2 => normalize(values, n_channels, Norm::L2),
        }
    }
}
