//! The model: a U-Net of three levels.

use tch::nn::{self, Conv2D, ConvConfig, Module as _, Path, VarStore};
use tch::{Device, Kind, Tensor};

use crate::data::Batch;

/// Features of each level, from the full resolution down.
const N_FEATURES: [i64; 3] = [16, 32, 48];

/// Mean and standard deviation of each channel, channels x 1 x 1.
#[derive(Debug)]
pub(crate) struct Scale {
    mean: Tensor,
    deviation: Tensor,
}

impl Scale {
    /// Measures the channels of some batches.
    pub(crate) fn of(batches: &[Batch]) -> Self {
        let cubes: Vec<&Tensor> = batches.iter().map(|batch| &batch.cubes).collect();
        let cubes = Tensor::cat(&cubes, 0).to_kind(Kind::Double);
        let mean = cubes.mean_dim([0, 2, 3].as_slice(), true, Kind::Double).squeeze_dim(0);
        let deviation = cubes.std_dim([0, 2, 3].as_slice(), false, true).squeeze_dim(0);
        // A constant channel is left as it is.
        let deviation = deviation.clamp_min(1e-12);
        Self { mean: mean.to_kind(Kind::Float), deviation: deviation.to_kind(Kind::Float) }
    }
}

/// Predicts the class of each pixel.
#[derive(Debug)]
pub(crate) struct UNet {
    pub(crate) variables: VarStore,
    scale: Scale,
    /// Reduces a spectrum to features.
    spectrum: Conv2D,
    down: [Conv2D; 3],
    up: [Conv2D; 2],
    classes: Conv2D,
}

impl UNet {
    /// Makes an untrained model.
    pub(crate) fn new(scale: Scale, n_classes: usize, device: Device) -> Self {
        let variables = VarStore::new(device);
        let root = variables.root();
        let n_channels = scale.mean.size().first().copied().unwrap_or(0);
        let [high, middle, low] = N_FEATURES;
        let wide = |name: &str, from, to| around(&(&root / name), from, to);
        let point =
            |name: &str, from, to| nn::conv2d(&root / name, from, to, 1, ConvConfig::default());
        Self {
            spectrum: point("spectrum", n_channels, high),
            down: [
                wide("high", high, high),
                wide("middle", high, middle),
                wide("low", middle, low),
            ],
            up: [wide("up_middle", low + middle, middle), wide("up_high", middle + high, high)],
            classes: point("classes", high, n_classes as i64),
            scale,
            variables,
        }
    }

    /// The logits of each class, samples x classes x height x width.
    pub(crate) fn logits(&self, cubes: &Tensor) -> Tensor {
        let [down_high, down_middle, down_low] = &self.down;
        let [up_middle, up_high] = &self.up;
        let scaled = (cubes - &self.scale.mean) / &self.scale.deviation;
        let features = self.spectrum.forward(&scaled).gelu("none");
        let high = down_high.forward(&features).gelu("none");
        let middle = down_middle.forward(&halved(&high)).gelu("none");
        let low = down_low.forward(&halved(&middle)).gelu("none");
        let middle = up_middle.forward(&joined(&low, &middle)).gelu("none");
        let high = up_high.forward(&joined(&middle, &high)).gelu("none");
        self.classes.forward(&high)
    }
}

/// A convolution of 3 x 3 pixels that keeps the size.
fn around(path: &Path<'_>, from: i64, to: i64) -> Conv2D {
    nn::conv2d(path, from, to, 3, ConvConfig { padding: 1, ..ConvConfig::default() })
}

/// Halves height and width.
fn halved(features: &Tensor) -> Tensor {
    features.max_pool2d([2, 2], [2, 2], [0, 0], [1, 1], true)
}

/// Features of a lower level beside those of this one, at its size.
fn joined(lower: &Tensor, here: &Tensor) -> Tensor {
    let size = here.size();
    let lower = lower.upsample_nearest2d([size[2], size[3]], None, None);
    Tensor::cat(&[&lower, here], 1)
}
