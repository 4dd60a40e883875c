//! The samples: a training part and a later part to test on.

use std::sync::Arc;

use arrays::{ArraySamples, Indices, SampleSpec, Variable};
use loader::Order;
use pipeline::PipelineSpec;
use storage::{Config, OpenOptions, Storage};
use tch::Device;
use torch_feed::{ArrayTensorLoader, ArrayTensors, Error, tch::Tensor};

use crate::Failure;
use crate::arguments::Arguments;

/// Samples between the parts that belong to neither. Samples that are neighbors in time resemble
/// each other.
const GAP: u64 = 4;

/// Loaders of the two parts.
#[derive(Debug)]
pub(crate) struct Data {
    store: String,
    pub(crate) training: ArrayTensorLoader,
    pub(crate) held_out: ArrayTensorLoader,
}

/// A batch on the model's device: values by latitude, longitude and channel.
#[derive(Debug)]
pub(crate) struct Batch {
    /// Samples x 2 steps x latitudes x longitudes x channels: the step before, and the present.
    pub(crate) inputs: Tensor,
    /// Samples x latitudes x longitudes x channels: one step later.
    pub(crate) targets: Tensor,
}

impl Batch {
    /// The tensors of a loaded batch.
    pub(crate) fn from_tensors(tensors: &ArrayTensors) -> Result<Self, Error> {
        let tensor = |name| Ok::<_, Error>(tensors.tensor(name)?.shallow_clone());
        Ok(Self { inputs: tensor("inputs")?, targets: tensor("targets")? })
    }
}

impl Data {
    /// Opens the store and splits its samples by time.
    pub(crate) fn open(arguments: &Arguments, device: Device) -> Result<Self, Failure> {
        let Arguments { store, batch, held_out, seed, .. } = arguments;
        let storage = storage::open(store, &OpenOptions::new(&Config::new()))?.storage;
        let all = samples(&storage, arguments.channels, (None, None)).map_err(|error| {
            let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}"));
            format!(
                "{error}{}; `cargo xtask fields generate {store}` makes a store to try this on",
                cause.unwrap_or_default()
            )
        })?;
        let (n, first) = (all.n_samples(), all.step(0));
        let n_held_out = (n as f64 * held_out).ceil() as u64;
        let n_training = n.saturating_sub(n_held_out.saturating_add(GAP));
        if n_held_out == 0 || n_training == 0 {
            return Err(format!(
                "{n} samples cannot be split: {n_training} for training, {GAP} between, {n_held_out} to test on"
            )
            .into());
        }
        // A block is a batch, so no sample is copied on its way into a tensor.
        let spec = PipelineSpec {
            chunk_rows: 1,
            chunks_per_block: *batch,
            batch_rows: *batch,
            seed: *seed,
            ..PipelineSpec::default()
        };
        let load = |steps, order| -> Result<_, Failure> {
            let samples = samples(&storage, arguments.channels, steps)?;
            let spec = PipelineSpec { order, ..spec.clone() };
            Ok(ArrayTensorLoader::new(samples, spec)?.to_device(device)?)
        };
        let end = first + n_training;
        Ok(Self {
            store: store.clone(),
            training: load((None, Some(end)), Order::Shuffled)?,
            held_out: load((Some(end + GAP), None), Order::InOrder)?,
        })
    }

    /// A summary for the user.
    pub(crate) fn describe(&self) -> String {
        let n = |loader: &ArrayTensorLoader| loader.pipeline().source().n_samples();
        let (training, held_out) = (n(&self.training), n(&self.held_out));
        format!("{}: {training} samples for training, the last {held_out} to test on", self.store)
    }
}

/// The samples about some of the steps.
fn samples(
    storage: &Arc<dyn Storage>,
    n_channels: u64,
    (start, end): (Option<u64>, Option<u64>),
) -> Result<ArraySamples, arrays::Error> {
    let channels = || Indices::Range(0..n_channels);
    let inputs = Variable::new("inputs").steps([-1, 0]).select("input_channels", channels());
    let targets = Variable::new("targets").select("target_channels", channels());
    let spec = SampleSpec::new([inputs.as_f32(), targets.as_f32()]);
    ArraySamples::open(Arc::clone(storage), &SampleSpec { start, end, ..spec })
}
