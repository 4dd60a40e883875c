//! Training, and the scores on images that were held out.

use std::f64::consts::PI;
use std::time::Instant;

use torch_feed::tch::{Kind, no_grad};
use torch_feed::{ChannelScale, Error, SegmentationBatch, UNet, UNetSpec};

use crate::Failure;
use crate::arguments::Arguments;
use crate::data::Data;

/// Training batches from which means and standard deviations are measured.
const N_SCALE_BATCHES: usize = 4;

/// Features of the model at the full resolution.
const WIDTH: usize = 16;

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
    print: &mut dyn FnMut(&str),
) -> Result<(UNet, Scores), Failure> {
    let batches = data.training.epoch(0)?.take(N_SCALE_BATCHES);
    let batches = batches.map(|tensors| SegmentationBatch::new(&tensors?, None));
    let batches = batches.collect::<Result<Vec<SegmentationBatch>, Error>>()?;
    let scale = ChannelScale::measure(&batches.iter().collect::<Vec<_>>())?;
    let (learning_rate, seed) = (arguments.learning_rate, arguments.seed);
    let spec = UNetSpec { width: WIDTH, n_classes: data.n_classes(), learning_rate, seed };
    let mut model = UNet::new(scale, &spec)?;
    drop(batches);
    let (before, most_frequent) = score(data, &model)?;
    print(&format!("the most frequent class: accuracy {most_frequent:.3}"));
    let mut scores = Scores { losses: Vec::new(), accuracy: vec![before], most_frequent };
    let n_steps = data.training.pipeline().n_batches() * arguments.epochs;
    let mut started = Instant::now();
    for (epoch, batches) in data.training.epochs(0..arguments.epochs).enumerate() {
        let n_before = scores.losses.len();
        for tensors in batches? {
            let share = scores.losses.len() as f64 / n_steps as f64;
            model.set_learning_rate(learning_rate * 0.5 * (1.0 + (PI * share).cos()));
            let loss = model.step(&SegmentationBatch::new(&tensors?, None)?)?;
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

/// The accuracy of the model and of the most frequent class on the held-out images.
fn score(data: &Data, model: &UNet) -> Result<(f64, f64), Failure> {
    let n_classes = data.n_classes();
    let (mut n_correct, mut n_of_class) = (0, vec![0; n_classes]);
    for tensors in data.held_out.epoch(0)? {
        let batch = SegmentationBatch::new(&tensors?, None)?;
        let predicted = no_grad(|| model.logits(&batch.cubes))?.argmax(1, false);
        n_correct += i64::try_from(&predicted.eq_tensor(&batch.labels).sum(Kind::Int64))?;
        for (class, n) in n_of_class.iter_mut().enumerate() {
            *n += i64::try_from(&batch.labels.eq(class as i64).sum(Kind::Int64))?;
        }
    }
    let n_valid = n_of_class.iter().sum::<i64>().max(1) as f64;
    let most_frequent = n_of_class.into_iter().max().unwrap_or(0);
    Ok((n_correct as f64 / n_valid, most_frequent as f64 / n_valid))
}
