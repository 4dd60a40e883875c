//! Training, and the errors on samples that were held out.

use std::f64::consts::PI;
use std::time::Instant;

use tch::nn::{Adam, OptimizerConfig as _};
use tch::{Device, Kind, Tensor, no_grad};

use crate::Failure;
use crate::arguments::Arguments;
use crate::data::{Batch, Data};
use crate::model::{Forecaster, Scale};

/// Training batches from which means and standard deviations are measured.
const N_SCALE_BATCHES: usize = 4;

/// Root mean square errors over all points and channels, in standard deviations of the channels.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Errors {
    /// The loss of each training batch, before its step.
    pub(crate) training: Vec<f64>,
    /// On the held-out samples: before training, and after each epoch.
    pub(crate) held_out: Vec<f64>,
    /// The loss of persistence on the held-out samples.
    pub(crate) persistence: f64,
}

/// Trains a model, and prints its errors after each epoch.
pub(crate) fn train(
    data: &Data,
    arguments: &Arguments,
    device: Device,
    print: &mut dyn FnMut(&str),
) -> Result<Errors, Failure> {
    tch::manual_seed(arguments.seed as i64);
    let model = Forecaster::new(measure(data)?, device);
    let mut adam = Adam::default().build(&model.variables, arguments.learning_rate)?;
    let (before, persistence) = score(data, &model)?;
    print(&format!("persistence: RMSE {persistence:.4}"));
    let mut errors = Errors { training: Vec::new(), held_out: vec![before], persistence };
    let n_steps = data.training.pipeline().n_batches() * arguments.epochs;
    let mut started = Instant::now();
    for (epoch, batches) in data.training.epochs(0..arguments.epochs).enumerate() {
        let (mut sum, n_before) = (0.0, errors.training.len());
        for tensors in batches? {
            let batch = Batch::from_tensors(&tensors?)?;
            let share = errors.training.len() as f64 / n_steps as f64;
            adam.set_lr(arguments.learning_rate * 0.5 * (1.0 + (PI * share).cos()));
            let loss =
                (model.change(&batch) - model.true_change(&batch)).square().mean(Kind::Float);
            adam.backward_step(&loss);
            let loss = f64::try_from(&loss)?;
            sum += loss;
            errors.training.push(loss.sqrt());
        }
        let training = (sum / (errors.training.len() - n_before) as f64).sqrt();
        let (held_out, _) = score(data, &model)?;
        errors.held_out.push(held_out);
        print(&format!(
            "epoch {}: RMSE in training {training:.4}, held out {held_out:.4}, {:.2} of persistence's; {:.1} s",
            epoch + 1,
            held_out / persistence,
            started.elapsed().as_secs_f64(),
        ));
        started = Instant::now();
    }
    Ok(errors)
}

/// Measures means and standard deviations on a few training batches.
fn measure(data: &Data) -> Result<Scale, Failure> {
    let batches = data.training.epoch(0)?.take(N_SCALE_BATCHES);
    let batches: Result<Vec<Batch>, _> =
        batches.map(|tensors| Batch::from_tensors(&tensors?)).collect();
    Ok(Scale::measure(&batches?))
}

/// The errors of the model and of persistence on the held-out samples.
fn score(data: &Data, model: &Forecaster) -> Result<(f64, f64), Failure> {
    let (mut of_model, mut of_persistence, mut n_values) = (0.0, 0.0, 0);
    let sum = |errors: &Tensor| f64::try_from(errors.square().sum(Kind::Double));
    for tensors in data.held_out.epoch(0)? {
        let batch = Batch::from_tensors(&tensors?)?;
        let change = model.true_change(&batch);
        of_persistence += sum(&change)?;
        of_model += sum(&(no_grad(|| model.change(&batch)) - &change))?;
        n_values += change.numel();
    }
    let root_mean = |sum: f64| (sum / n_values as f64).sqrt();
    Ok((root_mean(of_model), root_mean(of_persistence)))
}
