//! Labels of fields: how mixed they are in batches says how random an order is.

use arrays::ArraySamples;
use bench_run::LabelCodes;
use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// A label of samples.
///
/// There is none for the place: every sample has the same part of the grid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
pub(crate) enum FieldLabel {
    /// The part of the steps, one of 64 equal ones
    Time,
    /// The month of the year, by the coordinates of the steps
    Month,
}

impl FieldLabel {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Time => "time",
            Self::Month => "month",
        }
    }

    /// The class of each sample. Fails if steps have no times and the label is the month.
    pub(crate) fn codes(self, samples: &ArraySamples) -> Result<LabelCodes, arrays::Error> {
        Ok(match self {
            Self::Time => LabelCodes::of_positions(self.name(), samples.n_samples()),
            Self::Month => LabelCodes::of_values(self.name(), &samples.months()?),
        })
    }
}
