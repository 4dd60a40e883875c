//! A device of torch, which trains a U-Net on the batches in a thread of its own.
//!
//! torch does everything in one stream, and tch has neither CUDA's streams nor its events. So a
//! batch is copied after the step on the one before, never beside it, and times are taken where
//! the host waits for the device anyway: a step has ended when its loss is read.
//!
//! **Training on a GPU has never run.** It is the code that runs on the CPU, with another
//! processor; only pinned memory, [`nvml`] and torch itself differ. Copies from a ring of pinned
//! slots have run on one (tests of `torch-feed`).

mod nvml;
mod progress;
mod sampled_use;
mod training;

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use anyhow::Context as _;
use images::ImageBatch;
use slots::{Allocate, Mapped};
use torch_feed::{ArrayTensors, PinnedSlots};

use self::progress::Progress;
use self::sampled_use::{busy_secs, busy_shares};
use self::training::{Training, processor};
use super::torch_spec::{TorchProcessor, TorchSpec, TorchWork};
use super::{Clock, Device, Mark};
use crate::bench::Release;
use crate::sampler::{INTERVAL, Sampler};

/// Batches that may wait for the one that is trained on.
const N_WAITING: usize = 1;

/// Versions of libtorch and tch, for a record.
pub(crate) fn versions() -> [Option<&'static str>; 2] {
    [torch_feed::LIBTORCH_VERSION, torch_feed::TCH_VERSION]
}

/// Checks that the processor is there, and that its use can be measured.
///
/// # Errors
/// torch sees no such GPU, or NVML cannot be opened.
pub(crate) fn check(spec: &TorchSpec) -> anyhow::Result<()> {
    let TorchProcessor::Cuda(_) = processor_of(spec)? else { return Ok(()) };
    nvml::check()
}

/// Starts the thread that trains.
///
/// # Errors
/// As for [`check`], or the data has no classes to learn.
pub(crate) fn start(
    spec: &TorchSpec,
    work: TorchWork,
    clock: Arc<dyn Clock>,
) -> anyhow::Result<Box<dyn Device>> {
    Ok(Box::new(TorchDevice::start(spec, work, clock)?))
}

/// Times training steps on a batch that is on the device already: `within` a time, but at most that
/// many.
///
/// # Errors
/// As for [`start`]; torch's errors.
pub(crate) fn time_steps(
    spec: &TorchSpec,
    work: TorchWork,
    batch: ImageBatch,
    (within, most): (Duration, usize),
    clock: &dyn Clock,
) -> anyhow::Result<Vec<Duration>> {
    processor_of(spec)?;
    let mut training = Training::new(spec, work)?;
    let maps = training.maps(&batch)?;
    let batch = ArrayTensors::from_images(batch)?.copy_to(processor(spec.processor))?;
    // The first step makes the model, and torch chooses its kernels.
    training.step(&batch, maps.as_deref())?;
    let mut times: Vec<Duration> = Vec::new();
    while times.len() < most && (times.is_empty() || times.iter().sum::<Duration>() < within) {
        let begin = clock.now();
        training.step(&batch, maps.as_deref())?;
        times.push(clock.now().saturating_sub(begin));
    }
    Ok(times)
}

/// The processor, if this machine and this libtorch have it.
fn processor_of(spec: &TorchSpec) -> anyhow::Result<TorchProcessor> {
    let choice = torch_feed::DeviceChoice::Is(processor(spec.processor));
    choice.find().with_context(|| {
        format!(
            "no --consumer {}: a GPU needs LIBTORCH to name a libtorch for CUDA, since the one that \
             cargo xtask installs is for CPUs",
            spec.processor
        )
    })?;
    Ok(spec.processor)
}

/// Trains on batches in its own thread: on one, while another waits.
struct TorchDevice {
    memory: Arc<dyn Allocate>,
    batches: Option<SyncSender<ImageBatch>>,
    n_submitted: usize,
    progress: Arc<Progress>,
    usage: Usage,
    thread: Option<JoinHandle<()>>,
}

/// Where the share of busy time comes from.
enum Usage {
    /// The steps that were under way.
    Steps,
    /// What NVML says, and what it said before the first sample.
    Sampled { before: f64, sampler: Sampler<f64> },
}

impl TorchDevice {
    fn start(spec: &TorchSpec, work: TorchWork, clock: Arc<dyn Clock>) -> anyhow::Result<Self> {
        let memory: Arc<dyn Allocate> = match processor_of(spec)? {
            TorchProcessor::Cpu => Arc::new(Mapped),
            TorchProcessor::Cuda(_) => Arc::new(PinnedSlots::new(processor(spec.processor))?),
        };
        let training = Training::new(spec, work)?;
        let usage = match spec.processor {
            TorchProcessor::Cpu => Usage::Steps,
            TorchProcessor::Cuda(_) => {
                let mut read = nvml::share_of_busy_time()?;
                let before = read()?;
                let clock = Arc::clone(&clock);
                Usage::Sampled { before, sampler: Sampler::start("nvml", clock, INTERVAL, read)? }
            }
        };
        let progress = Arc::new(Progress::default());
        let (batches, submitted) = sync_channel(N_WAITING);
        let of_thread = Arc::clone(&progress);
        let thread = Builder::new()
            .name("torch-training".to_owned())
            .spawn(move || {
                let _over = OverWhenDropped(&of_thread);
                if let Err(error) = train(&submitted, training, (work.release, &of_thread), &*clock)
                {
                    of_thread.fail(error);
                }
            })
            .context("cannot start the thread that trains")?;
        let (batches, thread) = (Some(batches), Some(thread));
        Ok(Self { memory, batches, n_submitted: 0, progress, usage, thread })
    }
}

/// Trains on all batches.
fn train(
    batches: &Receiver<ImageBatch>,
    mut training: Training,
    (release, progress): (Release, &Progress),
    clock: &dyn Clock,
) -> anyhow::Result<()> {
    for batch in batches {
        let maps = training.maps(&batch)?;
        let host = ArrayTensors::from_images(batch)?;
        let copied = host.copy_to(training.processor());
        // After an error, other keys may be under way still.
        if release == Release::Sync || copied.is_err() {
            progress.keep(host);
        } else {
            drop(host);
        }
        let copied = copied?;
        let begin = clock.now();
        training.step(&copied, maps.as_deref())?;
        progress.finish_step(begin, clock.now());
    }
    Ok(())
}

/// Tells those who wait that the thread has ended, even by a panic.
struct OverWhenDropped<'a>(&'a Progress);

impl Drop for OverWhenDropped<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

impl Device for TorchDevice {
    fn memory(&self) -> Arc<dyn Allocate> {
        Arc::clone(&self.memory)
    }

    fn submit(&mut self, batch: ImageBatch) -> anyhow::Result<()> {
        let sent = self.batches.as_ref().map(|batches| batches.send(batch));
        if !matches!(sent, Some(Ok(()))) {
            return Err(self.progress.failure());
        }
        self.n_submitted += 1;
        Ok(())
    }

    fn synchronize(&mut self) -> anyhow::Result<()> {
        self.progress.wait_for(self.n_submitted)?;
        self.progress.free_kept();
        Ok(())
    }

    fn mark(&mut self) -> Mark {
        Mark(self.n_submitted)
    }

    fn reached(&mut self, mark: Mark) -> anyhow::Result<Duration> {
        anyhow::ensure!(mark.0 <= self.n_submitted, "a mark of another device");
        self.progress.wait_for(mark.0)
    }

    fn busy_shares(
        &mut self,
        from: Duration,
        to: Duration,
        interval: Duration,
    ) -> anyhow::Result<Vec<f64>> {
        match &self.usage {
            Usage::Steps => {
                Ok(self.progress.with_steps(|steps| steps.busy_shares(from, to, interval)))
            }
            Usage::Sampled { before, sampler } => sampler
                .samples(|samples| busy_shares((*before, samples), (from, to), interval))
                .context("cannot read the GPU's use"),
        }
    }

    fn busy_secs(&mut self, from: Duration, to: Duration) -> anyhow::Result<f64> {
        match &self.usage {
            Usage::Steps => Ok(self.progress.with_steps(|of| of.busy(from, to)).as_secs_f64()),
            Usage::Sampled { before, sampler } => sampler
                .samples(|samples| busy_secs((*before, samples), from, to))
                .context("cannot read the GPU's use"),
        }
    }
}

impl Drop for TorchDevice {
    fn drop(&mut self) {
        self.batches = None;
        if let Some(thread) = self.thread.take() {
            // A panic has been printed by the thread.
            let _panicked = thread.join();
        }
    }
}

#[cfg(test)]
mod tests;
