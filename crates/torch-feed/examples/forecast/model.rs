//! The model: three convolutions that predict how the fields change in a step.

use std::f64::consts::FRAC_PI_2;

use tch::nn::{self, Conv2D, ConvConfig, Init, Module as _, VarStore};
use tch::{Device, Kind, Tensor};

use crate::data::Batch;

/// Features between the convolutions.
const N_FEATURES: i64 = 32;
/// Points on either side that a convolution sees.
const REACH: i64 = 1;

/// Mean and standard deviation of each channel.
#[derive(Debug)]
pub(crate) struct Scale {
    mean: Tensor,
    deviation: Tensor,
    /// Standard deviation of the change in a step, in standard deviations of the channel.
    change: Tensor,
}

impl Scale {
    /// Measures the present fields of some batches, and their change.
    pub(crate) fn measure(batches: &[Batch]) -> Self {
        // Points x channels. The means are large compared with the deviations.
        let flat = |tensor: Tensor| {
            let n_channels = tensor.size().last().copied().unwrap_or(0);
            tensor.to_kind(Kind::Double).reshape([-1, n_channels])
        };
        let joined = |of: &dyn Fn(&Batch) -> Tensor| {
            Tensor::cat(&batches.iter().map(|batch| flat(of(batch))).collect::<Vec<_>>(), 0)
        };
        let present = joined(&|batch| batch.inputs.select(1, -1));
        let change = joined(&|batch| batch.targets.shallow_clone()) - &present;
        // A constant channel is left as it is.
        let deviation = |of: &Tensor| of.std_dim(0, false, false).clamp_min(1e-12);
        let (mean, deviation, change) =
            (present.mean_dim(0, false, Kind::Double), deviation(&present), deviation(&change));
        let change = change / &deviation;
        let [mean, deviation, change] = [mean, deviation, change].map(|of| of.to_kind(Kind::Float));
        Self { mean, deviation, change }
    }

    /// Values in standard deviations from the mean.
    fn apply(&self, values: &Tensor) -> Tensor {
        (values - &self.mean) / &self.deviation
    }
}

/// Predicts the fields of the next step from those of two steps.
#[derive(Debug)]
pub(crate) struct Forecaster {
    pub(crate) variables: VarStore,
    layers: [Conv2D; 3],
    scale: Scale,
}

impl Forecaster {
    /// Makes an untrained model, which predicts no change.
    pub(crate) fn new(scale: Scale, device: Device) -> Self {
        let variables = VarStore::new(device);
        let root = variables.root();
        let n_channels = scale.mean.size1().unwrap_or(0);
        let config = ConvConfig::default();
        // Zero: without training, nothing changes.
        let last = ConvConfig { ws_init: Init::Const(0.0), ..config };
        let size = 2 * REACH + 1;
        let layers = [
            nn::conv2d(&root / "first", 2 * n_channels + 2, N_FEATURES, size, config),
            nn::conv2d(&root / "second", N_FEATURES, N_FEATURES, size, config),
            nn::conv2d(&root / "last", N_FEATURES, n_channels, size, last),
        ];
        Self { variables, layers, scale }
    }

    /// The predicted change, samples x channels x latitudes x longitudes, in standard deviations of
    /// the channels.
    pub(crate) fn change(&self, batch: &Batch) -> Tensor {
        let [first, second, last] = &self.layers;
        // Samples x (steps and channels) x latitudes x longitudes, and two that say where it is.
        let fields = self.scale.apply(&batch.inputs).permute([0, 1, 4, 2, 3]).flatten(1, 2);
        let fields = Tensor::cat(&[&fields, &latitude(&fields)], 1);
        let features = first.forward(&around(&fields)).gelu("none");
        let features = second.forward(&around(&features)).gelu("none");
        last.forward(&around(&features)) * self.scale.change.view([1, -1, 1, 1])
    }

    /// The true change, in the same form: also the error of persistence.
    pub(crate) fn true_change(&self, batch: &Batch) -> Tensor {
        let change = &batch.targets - batch.inputs.select(1, -1);
        (change / &self.scale.deviation).permute([0, 3, 1, 2])
    }
}

/// Pads fields by the reach of a convolution: around the Earth along longitudes, with zeros beyond
/// the poles.
fn around(fields: &Tensor) -> Tensor {
    let n_lon = fields.size().last().copied().unwrap_or(0);
    let (west, east) = (fields.narrow(3, n_lon - REACH, REACH), fields.narrow(3, 0, REACH));
    Tensor::cat(&[&west, fields, &east], 3).constant_pad_nd([0, 0, REACH, REACH])
}

/// Sine and cosine of the latitude at each point of the fields: winds depend on it.
fn latitude(fields: &Tensor) -> Tensor {
    let &[n_samples, _, n_lat, n_lon] = &fields.size()[..] else {
        unreachable!("fields have samples, channels, latitudes and longitudes")
    };
    let options = (Kind::Float, fields.device());
    let angle = Tensor::linspace(-FRAC_PI_2, FRAC_PI_2, n_lat, options);
    let both = Tensor::stack(&[angle.sin(), angle.cos()], 0);
    both.view([1, 2, n_lat, 1]).expand([n_samples, 2, n_lat, n_lon], false)
}
