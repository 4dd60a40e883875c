//! Labels of cubes: how mixed they are in batches says how random an order is.

use anyhow::ensure;
use bench_run::LabelCodes;
use clap::ValueEnum;
use images::{DataSet, Image};
use serde::{Deserialize, Serialize};

use super::settings::value_name;

/// A label of images.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum CubeLabel {
    /// Whom an image shows
    Subject,
    /// Where it comes from
    Domain,
    /// The part of the list, one of 64 equal ones
    Position,
}

impl CubeLabel {
    pub(crate) fn name(self) -> String {
        value_name(&self)
    }

    /// The class of each image. Fails if the list of images does not have the label.
    pub(crate) fn codes(self, data: &DataSet) -> anyhow::Result<LabelCodes> {
        let of_image: fn(&Image) -> &str = match self {
            Self::Subject => |image| &image.subject,
            Self::Domain => |image| &image.domain,
            Self::Position => {
                return Ok(LabelCodes::of_positions(&self.name(), data.n_images() as u64));
            }
        };
        let values: Vec<&str> = data.images().iter().map(of_image).collect();
        ensure!(
            values.iter().any(|value| !value.is_empty()),
            "no image in images.json has a {}",
            self.name()
        );
        Ok(LabelCodes::of_values(&self.name(), &values))
    }
}
