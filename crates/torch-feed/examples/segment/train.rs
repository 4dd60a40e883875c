//! Training, and the scores on images that were held out.

use std::f64::consts::PI;
use std::time::Instant;

use tch::nn::{Adam, OptimizerConfig as _};
use tch::{Device, Kind, Reduction, Tensor, no_grad};

use crate::Failure;
use crate::arguments::Arguments;
use crate::data::{Batch, Data, IGNORED};
use crate::model::{Scale, UNet};

/// Training batches from which means and standard deviations are measured.
const N_SCALE_BATCHES: usize = 4;

/// The course of a training.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Scores {
    /// Loss of each training batch, before its step: cross entropy a valid pixel, in nats.
    pub(crate) losses: Vec<f64>,
    /// Share of the held-out images' valid pixels that are classified correctly: before training,
    /// and after each epoch.
    pub(crate) accuracy: Vec<f64>,
    /// The share that the most frequent class would get.
    pub(crate) most_frequent: f64,
}

/// Trains a model, and prints its scores after each epoch.
pub(crate) fn train(
    data: &Data,
    arguments: &Arguments,
    device: Device,
    print: &mut dyn FnMut(&str),
) -> Result<(UNet, Scores), Failure> {
    tch::manual_seed(arguments.seed as i64);
    let batches = data.training.epoch(0)?.take(N_SCALE_BATCHES);
    let batches: Result<Vec<Batch>, _> = batches.map(|tensors| Batch::of(&tensors?)).collect();
    let model = UNet::new(Scale::of(&batches?), data.n_classes(), device);
    let mut adam = Adam::default().build(&model.variables, arguments.learning_rate)?;
    let (before, most_frequent) = score(data, &model)?;
    print(&format!("the most frequent class: accuracy {most_frequent:.3}"));
    let mut scores = Scores { losses: Vec::new(), accuracy: vec![before], most_frequent };
    let n_steps = data.training.pipeline().n_batches() * arguments.epochs;
    let mut started = Instant::now();
    for (epoch, batches) in data.training.epochs(0..arguments.epochs).enumerate() {
        let n_before = scores.losses.len();
        for tensors in batches? {
            let share = scores.losses.len() as f64 / n_steps as f64;
            adam.set_lr(arguments.learning_rate * 0.5 * (1.0 + (PI * share).cos()));
            let loss = loss(&model, &Batch::of(&tensors?)?);
            adam.backward_step(&loss);
            scores.losses.push(f64::try_from(&loss)?);
        }
        let losses = &scores.losses[n_before..];
        let mean = losses.iter().sum::<f64>() / losses.len() as f64;
        let (accuracy, _) = score(data, &model)?;
        scores.accuracy.push(accuracy);
        print(&format!(
            "epoch {}: loss {mean:.4}, accuracy on held-out images {accuracy:.3}; {:.1} s",
            epoch + 1,
            started.elapsed().as_secs_f64(),
        ));
        started = Instant::now();
    }
    Ok((model, scores))
}

/// Cross entropy over the valid pixels of a batch.
fn loss(model: &UNet, batch: &Batch) -> Tensor {
    let logits = model.logits(&batch.cubes);
    logits.cross_entropy_loss::<Tensor>(&batch.labels, None, Reduction::Mean, IGNORED, 0.0)
}

/// The accuracy of the model and of the most frequent class on the held-out images.
fn score(data: &Data, model: &UNet) -> Result<(f64, f64), Failure> {
    let n_classes = data.n_classes();
    let (mut n_correct, mut n_of_class) = (0, vec![0; n_classes]);
    for tensors in data.held_out.epoch(0)? {
        let batch = Batch::of(&tensors?)?;
        let predicted = no_grad(|| model.logits(&batch.cubes)).argmax(1, false);
        n_correct += i64::try_from(&predicted.eq_tensor(&batch.labels).sum(Kind::Int64))?;
        for (class, n) in n_of_class.iter_mut().enumerate() {
            *n += i64::try_from(&batch.labels.eq(class as i64).sum(Kind::Int64))?;
        }
    }
    let n_valid = n_of_class.iter().sum::<i64>().max(1) as f64;
    let most_frequent = n_of_class.into_iter().max().unwrap_or(0);
    Ok((n_correct as f64 / n_valid, most_frequent as f64 / n_valid))
}
