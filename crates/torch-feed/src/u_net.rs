//! A small U-Net that segments image cubes. Examples train it, and measurements use it as a
//! consumer of batches.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng as _};
use tch::nn::{Path, VarStore};
use tch::{Device, Kind, Reduction, TchError, Tensor, no_grad};

use crate::adam::Adam;
use crate::error::Error;
use crate::segmentation_batch::SegmentationBatch;

/// Keeps our stream apart from other users of ChaCha with the same numbers.
const DOMAIN: [u8; 24] = *b"somafeed U-Net's weights";

/// Mean and standard deviation of each channel, on the device of the cubes.
#[derive(Debug)]
pub struct ChannelScale {
    /// Channels x 1 x 1, like `deviation`.
    mean: Tensor,
    deviation: Tensor,
}

impl ChannelScale {
    /// Measures the channels of the cubes of several batches. A channel that is constant is only
    /// shifted.
    ///
    /// # Errors
    /// There is no batch, or their sizes differ; torch's errors.
    pub fn measure(batches: &[&SegmentationBatch]) -> Result<Self, Error> {
        let measure = || {
            let cubes: Vec<&Tensor> = batches.iter().map(|batch| &batch.cubes).collect();
            let cubes = match cubes[..] {
                [one] => one.shallow_clone(),
                _ => Tensor::f_cat(&cubes, 0)?,
            };
            let pixels = [0, 2, 3].as_slice();
            let mean = cubes.f_mean_dim(pixels, true, Kind::Float)?.f_squeeze_dim(0)?;
            let deviation = cubes.f_std_dim(pixels, false, true)?.f_squeeze_dim(0)?;
            Ok(Self { mean, deviation: deviation.f_clamp_min(1e-12)? })
        };
        measure().map_err(Error::torch("the scale of the channels"))
    }
}

/// The sizes of a [`UNet`] and its training.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct UNetSpec {
    /// Features at the full resolution; twice and three times as many at a half and a quarter.
    pub width: usize,
    /// Number of classes.
    pub n_classes: usize,
    /// Learning rate of Adam.
    pub learning_rate: f64,
    /// Decides the first parameters, on any machine and device.
    pub seed: u64,
}

/// A U-Net of three levels (Ronneberger et al., 2015) that predicts the class of each pixel, and
/// its optimizer.
///
/// The first layer reduces a spectrum to features, pixel by pixel.
#[derive(Debug)]
pub struct UNet {
    scale: ChannelScale,
    /// Reduces a spectrum to features.
    spectrum: Convolution,
    down: [Convolution; 3],
    up: [Convolution; 2],
    classes: Convolution,
    adam: Adam,
}

impl UNet {
    /// Makes an untrained model on the device of `scale`.
    ///
    /// # Errors
    /// torch's errors, if there is no memory.
    pub fn new(scale: ChannelScale, spec: &UNetSpec) -> Result<Self, Error> {
        Self::make(scale, spec).map_err(Error::torch("a U-Net"))
    }

    fn make(scale: ChannelScale, spec: &UNetSpec) -> Result<Self, TchError> {
        let variables = VarStore::new(scale.mean.device());
        let root = variables.root();
        let mut random = generator(spec.seed);
        let n_channels = scale.mean.size().first().copied().unwrap_or(0);
        let [high, middle, low] = [1, 2, 3].map(|factor| factor * spec.width as i64);
        let mut layer = |name: &str, sizes| Convolution::new(&(&root / name), sizes, &mut random);
        Ok(Self {
            spectrum: layer("spectrum", [n_channels, high, 1])?,
            down: [
                layer("high", [high, high, 3])?,
                layer("middle", [high, middle, 3])?,
                layer("low", [middle, low, 3])?,
            ],
            up: [
                layer("up_middle", [low + middle, middle, 3])?,
                layer("up_high", [middle + high, high, 3])?,
            ],
            classes: layer("classes", [high, spec.n_classes as i64, 1])?,
            scale,
            adam: Adam::new(&variables, spec.learning_rate),
        })
    }

    /// The device of the parameters.
    pub fn device(&self) -> Device {
        self.scale.mean.device()
    }

    /// Sets the learning rate of the steps to come.
    pub fn set_learning_rate(&mut self, learning_rate: f64) {
        self.adam.learning_rate = learning_rate;
    }

    /// The logits of each class, samples x classes x height x width. `cubes` are samples x channels
    /// x height x width, f32.
    ///
    /// # Errors
    /// torch's errors: cubes of another number of channels or on another device, no memory.
    pub fn logits(&self, cubes: &Tensor) -> Result<Tensor, Error> {
        self.forward(cubes).map_err(Error::torch("the logits of a U-Net"))
    }

    /// Trains on a batch: forward, backward, a step of Adam. Returns the loss before the step, on
    /// the device: cross entropy per valid pixel, in nats. Reading it waits for the device.
    ///
    /// # Errors
    /// torch's errors, as for [`logits`](Self::logits), or a label that is not a class. On a GPU
    /// such a label is an error of a later operation: when the loss is read, at the latest.
    pub fn step(&mut self, batch: &SegmentationBatch) -> Result<Tensor, Error> {
        self.train(batch).map_err(Error::torch("a step of a U-Net"))
    }

    fn train(&mut self, batch: &SegmentationBatch) -> Result<Tensor, TchError> {
        let loss = self.forward(&batch.cubes)?.f_cross_entropy_loss::<&Tensor>(
            &batch.labels,
            None,
            Reduction::Mean,
            SegmentationBatch::IGNORED,
            0.0,
        )?;
        self.adam.minimise(&loss)
    }

    fn forward(&self, cubes: &Tensor) -> Result<Tensor, TchError> {
        let [down_high, down_middle, down_low] = &self.down;
        let [up_middle, up_high] = &self.up;
        let scaled = cubes.f_sub(&self.scale.mean)?.f_div(&self.scale.deviation)?;
        let features = self.spectrum.activated(&scaled)?;
        let high = down_high.activated(&features)?;
        let middle = down_middle.activated(&halved(&high)?)?;
        let low = down_low.activated(&halved(&middle)?)?;
        let middle = up_middle.activated(&joined(&low, &middle)?)?;
        let high = up_high.activated(&joined(&middle, &high)?)?;
        self.classes.apply(&high)
    }
}

/// A convolution of n x n pixels that keeps the size. Unlike tch's own, it returns torch's errors.
#[derive(Debug)]
struct Convolution {
    weight: Tensor,
    bias: Tensor,
    padding: i64,
}

impl Convolution {
    /// Draws the weights uniformly, as is usual before a rectifier (He et al., "Delving deep into
    /// rectifiers", 2015): the largest is the square root of 6 over the inputs of an output.
    fn new(
        path: &Path<'_>,
        [from, to, size]: [i64; 3],
        random: &mut ChaCha8Rng,
    ) -> Result<Self, TchError> {
        let n_inputs = from * size * size;
        let largest = (6.0 / n_inputs.max(1) as f64).sqrt();
        let drawn = (0..n_inputs * to).map(|_| (unit(random) * 2.0 - 1.0) * largest);
        let drawn: Vec<f32> = drawn.map(|weight| weight as f32).collect();
        let drawn = Tensor::f_from_slice(&drawn)?.f_view([to, from, size, size])?;
        let mut weight = path.f_zeros("weight", &[to, from, size, size])?;
        no_grad(|| weight.f_copy_(&drawn))?;
        Ok(Self { weight, bias: path.f_zeros("bias", &[to])?, padding: size / 2 })
    }

    fn apply(&self, features: &Tensor) -> Result<Tensor, TchError> {
        let Self { weight, bias, padding } = self;
        features.f_conv2d(weight, Some(bias), [1, 1], [*padding, *padding], [1, 1], 1)
    }

    fn activated(&self, features: &Tensor) -> Result<Tensor, TchError> {
        self.apply(features)?.f_gelu("none")
    }
}

/// The generator of a model's first parameters.
fn generator(seed: u64) -> ChaCha8Rng {
    let mut key = [0; 32];
    key[..24].copy_from_slice(&DOMAIN);
    key[24..].copy_from_slice(&seed.to_le_bytes());
    ChaCha8Rng::from_seed(key)
}

/// A number from 0 to below 1.
fn unit(random: &mut ChaCha8Rng) -> f64 {
    (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
}

/// Halves height and width, rounded up.
fn halved(features: &Tensor) -> Result<Tensor, TchError> {
    features.f_max_pool2d([2, 2], [2, 2], [0, 0], [1, 1], true)
}

/// Features of a lower level beside those of this one, at its size.
fn joined(lower: &Tensor, here: &Tensor) -> Result<Tensor, TchError> {
    let [.., height, width] = here.size()[..] else {
        return Err(TchError::Shape(format!("{:?} are not images", here.size())));
    };
    let lower = lower.f_upsample_nearest2d([height, width], None, None)?;
    Tensor::f_cat(&[&lower, here], 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scale_is_that_of_all_batches() {
        let batch = |value: f64| {
            let cubes = Tensor::full([1, 2, 3, 4], value, (Kind::Float, Device::Cpu));
            // The second channel is constant.
            drop(cubes.select(1, 1).fill_(7.0));
            let labels = Tensor::zeros([1, 3, 4], (Kind::Int64, Device::Cpu));
            SegmentationBatch { cubes, labels }
        };
        let ChannelScale { mean, deviation } =
            ChannelScale::measure(&[&batch(1.0), &batch(3.0)]).unwrap();
        assert_eq!((mean.size(), deviation.size()), (vec![2, 1, 1], vec![2, 1, 1]));
        let values = |tensor: &Tensor| Vec::<f32>::try_from(tensor.flatten(0, -1)).unwrap();
        assert_eq!(values(&mean), [2.0, 7.0]);
        assert_eq!(values(&deviation), [1.0, 1e-12]);
    }
}
