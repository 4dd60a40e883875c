//! One run: an order of the cells and a seed, trained from the beginning or from a checkpoint, then
//! scored.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Instant;

use loader::{Dataset, LoaderSpec, PipelineSpec};
use tch::{Device, Kind, Tensor};
use torch_feed::{Error, LinearClassifier, TensorBatch, TensorEpoch, TensorLoader};

use crate::Failure;
use crate::arguments::{Arguments, RowOrder};
use crate::checkpoint::{Checkpoint, Position};
use crate::data::{Labeled, Parts};
use crate::score::Confusion;

/// Steps whose losses may stay unread on the device. Reading one waits for the device.
const MOST_UNREAD: usize = 64;

/// The settings of one run.
#[derive(Debug)]
pub(crate) struct Run<'a> {
    pub(crate) data: &'a Labeled,
    pub(crate) arguments: &'a Arguments,
    pub(crate) order: RowOrder,
    pub(crate) seed: u64,
    pub(crate) device: Device,
}

/// The results of one run.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// The mean loss of each step's batch before the step, in order.
    pub(crate) losses: Vec<f32>,
    /// On the held-out cells.
    pub(crate) macro_f1: f64,
    pub(crate) accuracy: f64,
    /// Cells that this process trained on, counted each time.
    pub(crate) n_rows: u64,
    /// Seconds of training.
    pub(crate) seconds: f64,
}

impl Outcome {
    /// A summary for the user.
    pub(crate) fn describe(&self, order: RowOrder, seed: u64) -> String {
        let Self { losses, macro_f1, accuracy, n_rows, seconds } = self;
        let order = order.name();
        let speed = if *n_rows == 0 { 0.0 } else { *n_rows as f64 / seconds };
        format!(
            "{order}, seed {seed}: {} steps, macro-F1 {macro_f1:.3}, accuracy {accuracy:.3}; {n_rows} cells in {seconds:.1} s, {speed:.0} cells/s",
            losses.len(),
        )
    }
}

/// The changing state of a run.
#[derive(Debug)]
struct Progress {
    model: LinearClassifier,
    position: Position,
    losses: Vec<f32>,
    /// Losses of later steps, still on the device.
    unread: Vec<Tensor>,
}

impl Run<'_> {
    /// Trains and scores. `after_step` receives the number of steps and may stop the run, like a
    /// power cut; then the result is `None`.
    pub(crate) fn train(
        &self,
        after_step: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<Option<Outcome>, Failure> {
        let Parts { train, held_out } = self.data.parts(self.arguments.held_out, self.seed)?;
        let spec = self.arguments.loader_spec(self.order, self.seed, train.n_rows());
        let loader = self.load(train, spec)?;
        let mut progress = self.begin(&loader)?;
        let (mut n_rows, started) = (0, Instant::now());
        while progress.position.epoch < self.arguments.epochs {
            let mut batches = remaining(&loader, &progress.position)?;
            while let Some(batch) = batches.next() {
                let batch = batch?;
                n_rows += batch.n_rows() as u64;
                let step = progress.step(&batch, self.data.label())?;
                drop(batch);
                if step % self.arguments.checkpoint_every == 0 {
                    progress.position.loader = Some(batches.state());
                    self.save(&loader, &mut progress)?;
                }
                if after_step(step).is_break() {
                    return Ok(None);
                }
            }
            progress.position = Position { epoch: progress.position.epoch + 1, loader: None };
        }
        self.save(&loader, &mut progress)?;
        progress.read_losses()?;
        let seconds = started.elapsed().as_secs_f64();
        let confusion = self.score(&progress.model, held_out)?;
        let (macro_f1, accuracy) = (confusion.macro_f1(), confusion.accuracy());
        let nobody = "no cells are held out: raise --held-out";
        Ok(Some(Outcome {
            losses: progress.losses,
            macro_f1: macro_f1.ok_or(nobody)?,
            accuracy: accuracy.ok_or(nobody)?,
            n_rows,
            seconds,
        }))
    }

    /// Makes a loader of these cells, with batches on the model's device.
    fn load(&self, cells: Dataset, spec: LoaderSpec) -> Result<TensorLoader, Error> {
        let loader = TensorLoader::new(cells, spec)?.to_device(self.device)?;
        if self.arguments.densify_on_device { loader.densify_on_device() } else { Ok(loader) }
    }

    /// Starts with an untrained model, or with a checkpoint's.
    fn begin(&self, loader: &TensorLoader) -> Result<Progress, Failure> {
        let n_genes = loader.loader().dataset().n_columns();
        let (rate, n_classes) = (self.arguments.learning_rate, self.data.n_classes());
        let mut progress = Progress {
            model: LinearClassifier::new(n_genes, n_classes, rate, self.device),
            position: Position::default(),
            losses: Vec::new(),
            unread: Vec::new(),
        };
        let path = self.path().filter(|_| self.arguments.resume);
        let Some(path) = path else { return Ok(progress) };
        if let Some(saved) = Checkpoint::load(&path, &self.identity(loader))? {
            progress.model.restore(&saved.tensors)?;
            progress.position = saved.position;
            progress.losses = saved.losses;
        }
        Ok(progress)
    }

    /// Writes a checkpoint, if they are enabled.
    fn save(&self, loader: &TensorLoader, progress: &mut Progress) -> Result<(), Failure> {
        let Some(path) = self.path() else { return Ok(()) };
        progress.read_losses()?;
        let checkpoint = Checkpoint {
            identity: self.identity(loader),
            position: progress.position.clone(),
            losses: progress.losses.clone(),
            tensors: progress.model.state()?,
        };
        checkpoint.save(&path)
    }

    fn path(&self) -> Option<PathBuf> {
        let folder = self.arguments.checkpoint.as_ref()?;
        Some(folder.join(format!("{}-seed{}.safetensors", self.order.name(), self.seed)))
    }

    /// Everything that the losses depend on, except the number of epochs, which may grow, and the
    /// device, which should not matter.
    fn identity(&self, loader: &TensorLoader) -> String {
        let (dataset, spec) = (loader.loader().dataset(), loader.loader().spec());
        let PipelineSpec { chunk_rows, chunks_per_block, seed, batch_rows, .. } = spec.pipeline;
        let transform = spec.transform;
        let Arguments { experiment, measurement, layer, label, learning_rate, held_out, .. } =
            self.arguments;
        format!(
            "{experiment} {measurement} {layer}: {} cells x {} genes, {} of {label}, {held_out} held out; {} by {chunk_rows} x {chunks_per_block}, \
             seed {seed}, batches of {batch_rows}, values {transform}; Adam, rate {learning_rate}",
            dataset.n_rows(),
            dataset.n_columns(),
            self.data.n_classes(),
            self.order.name(),
        )
    }

    /// Compares the classes of the held-out cells with the model's predictions.
    fn score(&self, model: &LinearClassifier, held_out: Dataset) -> Result<Confusion, Failure> {
        let spec = self.arguments.loader_spec(RowOrder::InOrder, self.seed, held_out.n_rows());
        let loader = self.load(held_out, spec)?;
        let mut confusion = Confusion::new(self.data.n_classes());
        for batch in loader.epoch(0)? {
            let batch = batch?;
            let labels = codes(&batch, self.data.label())?.f_to_device_(
                Device::Cpu,
                Kind::Int64,
                false,
                false,
            )?;
            confusion.add(&Vec::<i64>::try_from(&labels)?, &model.predict(batch.x())?);
        }
        Ok(confusion)
    }
}

impl Progress {
    /// Trains on a batch, and returns the number of steps so far.
    fn step(&mut self, batch: &TensorBatch, label: &str) -> Result<u64, Failure> {
        self.unread.push(self.model.step(batch.x(), codes(batch, label)?)?);
        if MOST_UNREAD <= self.unread.len() {
            self.read_losses()?;
        }
        Ok((self.losses.len() + self.unread.len()) as u64)
    }

    fn read_losses(&mut self) -> Result<(), Failure> {
        if !self.unread.is_empty() {
            let losses = Tensor::f_stack(&self.unread, 0)?;
            self.losses.extend(Vec::<f32>::try_from(&losses)?);
            self.unread.clear();
        }
        Ok(())
    }
}

fn codes<'a>(batch: &'a TensorBatch, label: &str) -> Result<&'a Tensor, Failure> {
    batch.codes(label).ok_or_else(|| format!("the batch has no codes of {label}").into())
}

/// The batches of an epoch from a position on.
fn remaining(loader: &TensorLoader, position: &Position) -> Result<TensorEpoch, Error> {
    match &position.loader {
        Some(state) => loader.resume(state),
        None => loader.epoch(position.epoch),
    }
}
