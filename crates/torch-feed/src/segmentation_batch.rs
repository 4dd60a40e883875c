//! Batches of image cubes with labels, as a model for segmentation takes them.

use tch::{Kind, TchError, Tensor};

use crate::array_tensors::ArrayTensors;
use crate::error::Error;
use crate::image_augmentation::ImageMaps;

/// Cubes with the class of each pixel, on the device of their tensors.
#[derive(Debug)]
pub struct SegmentationBatch {
    /// The images, samples x channels x height x width, f32.
    pub cubes: Tensor,
    /// The class of each pixel or [`IGNORED`](Self::IGNORED), samples x height x width, int64.
    pub labels: Tensor,
}

impl SegmentationBatch {
    /// The label of pixels that are not valid. A loss leaves them out.
    pub const IGNORED: i64 = 255;

    /// Makes a batch of the keys `features`, `labels` and `valid_pixels` of a loaded batch, mapped
    /// by `maps` if there are any.
    ///
    /// # Errors
    /// A key is missing; the maps are of another number or size of images; torch's errors.
    pub fn new(tensors: &ArrayTensors, maps: Option<&ImageMaps>) -> Result<Self, Error> {
        let features = tensors.tensor("features")?;
        let (labels, valid) = (tensors.tensor("labels")?, tensors.tensor("valid_pixels")?);
        let failed = Error::torch("a batch for segmentation");
        let Some(maps) = maps else {
            return Self::from_tensors(features, labels, valid).map_err(failed);
        };
        let features = maps.warp_images(features, Kind::Float)?;
        let (labels, valid) = (maps.warp_masks(labels)?, maps.warp_masks(valid)?);
        Self::from_tensors(&features, &labels, &valid).map_err(failed)
    }

    fn from_tensors(features: &Tensor, labels: &Tensor, valid: &Tensor) -> Result<Self, TchError> {
        let cubes = features.f_to_kind(Kind::Float)?.f_permute([0, 3, 1, 2])?;
        let labels = labels.f_to_kind(Kind::Int64)?;
        let labels = labels.f_masked_fill(&valid.f_logical_not()?, Self::IGNORED)?;
        Ok(Self { cubes, labels })
    }
}
