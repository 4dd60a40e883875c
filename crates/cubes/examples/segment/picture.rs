//! The picture: held-out images, their labels and the predictions, side by side.

use torch_feed::tch::{Device, Kind, Tensor, no_grad};
use torch_feed::{SegmentationBatch, UNet};

use crate::Failure;
use crate::data::Data;

/// Images in the picture.
const N_IMAGES: i64 = 3;
/// White pixels between the parts.
const GAP: i64 = 4;

/// Colors of classes, used again from the start if there are more.
const COLORS: [[u8; 3]; 10] = [
    [0x1f, 0x77, 0xb4],
    [0xff, 0x7f, 0x0e],
    [0x2c, 0xa0, 0x2c],
    [0xd6, 0x27, 0x28],
    [0x94, 0x67, 0xbd],
    [0x8c, 0x56, 0x4b],
    [0xe3, 0x77, 0xc2],
    [0x7f, 0x7f, 0x7f],
    [0xbc, 0xbd, 0x22],
    [0x17, 0xbe, 0xcf],
];
/// Color of pixels that are not valid.
const NOT_VALID: [u8; 3] = [0xee, 0xee, 0xee];

/// Draws the first held-out images: 3 x height x width, u8. Each row has an image (three of its
/// channels as red, green and blue), its labels and the prediction.
pub(crate) fn tensor(data: &Data, model: &UNet) -> Result<Tensor, Failure> {
    let first = data.held_out.epoch(0)?.next().ok_or("no image is held out")??;
    let batch = SegmentationBatch::new(&first, None)?;
    let n_images = batch.cubes.size()[0].min(N_IMAGES);
    let predicted = no_grad(|| model.logits(&batch.cubes))?.argmax(1, false);
    // What is not valid is not judged.
    let predicted = predicted
        .masked_fill(&batch.labels.eq(SegmentationBatch::IGNORED), SegmentationBatch::IGNORED);
    let rows = (0..n_images).map(|image| {
        let parts = [
            shown(&batch.cubes.get(image)),
            colored(&batch.labels.get(image)),
            colored(&predicted.get(image)),
        ];
        joined(&parts, 2)
    });
    let rows: Vec<Tensor> = rows.collect();
    Ok(joined(&rows, 1).to_device(Device::Cpu))
}

/// Three channels of a cube as red, green and blue, each from its smallest to its largest value.
fn shown(cube: &Tensor) -> Tensor {
    let n_channels = cube.size()[0];
    let channels = [3, 2, 1].map(|quarter| (n_channels * quarter / 4).min(n_channels - 1));
    let channels = channels.map(|channel| {
        let values = cube.get(channel);
        let (least, most) = (values.min(), values.max());
        (&values - &least) / (most - least).clamp_min(1e-12) * 255.0
    });
    Tensor::stack(&channels, 0).to_kind(Kind::Uint8)
}

/// Classes as colors.
fn colored(classes: &Tensor) -> Tensor {
    let mut colors: Vec<u8> =
        (0..SegmentationBatch::IGNORED as usize).flat_map(|at| COLORS[at % COLORS.len()]).collect();
    colors.extend(NOT_VALID);
    let colors = Tensor::from_slice(&colors).view([-1, 3]).to_device(classes.device());
    let size = classes.size();
    colors.index_select(0, &classes.flatten(0, -1)).view([size[0], size[1], 3]).permute([2, 0, 1])
}

/// Pictures beside each other along a dimension, with white between them.
fn joined(pictures: &[Tensor], dimension: i64) -> Tensor {
    let mut parts = Vec::new();
    for picture in pictures {
        let mut size = picture.size();
        size[dimension as usize] = GAP;
        if !parts.is_empty() {
            parts.push(Tensor::full(&size, 255, (Kind::Uint8, picture.device())));
        }
        parts.push(picture.shallow_clone());
    }
    Tensor::cat(&parts, dimension)
}
