//! The place of torch in a program that is built without it: errors that say how to get it.

use std::sync::Arc;
use std::time::Duration;

use bench_run::UsageError;
use images::ImageBatch;

use super::torch_spec::{TorchSpec, TorchWork};
use super::{Clock, Device};

/// There are no versions to record.
pub(crate) fn versions() -> [Option<&'static str>; 2] {
    [None, None]
}

/// Fails: there is no torch.
pub(crate) fn check(spec: &TorchSpec) -> anyhow::Result<()> {
    Err(absent(spec))
}

/// Fails: there is no torch.
pub(crate) fn start(
    spec: &TorchSpec,
    _work: TorchWork,
    _clock: Arc<dyn Clock>,
) -> anyhow::Result<Box<dyn Device>> {
    Err(absent(spec))
}

/// Fails: there is no torch.
pub(crate) fn time_steps(
    spec: &TorchSpec,
    _work: TorchWork,
    _batch: ImageBatch,
    _within: (Duration, usize),
    _clock: &dyn Clock,
) -> anyhow::Result<Vec<Duration>> {
    Err(absent(spec))
}

fn absent(spec: &TorchSpec) -> anyhow::Error {
    let processor = spec.processor;
    UsageError::new(format!(
        "--consumer {processor} trains with torch, without which this program was built: start it \
         with `cargo xtask cubes sweep`, or build it with `cargo build --release -p cubes \
         --features torch`"
    ))
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::Release;
    use crate::device::{SystemClock, TorchProcessor, torch};

    type Start = fn(&TorchSpec, TorchWork, Arc<dyn Clock>) -> anyhow::Result<Box<dyn Device>>;
    type TimeSteps = fn(
        &TorchSpec,
        TorchWork,
        ImageBatch,
        (Duration, usize),
        &dyn Clock,
    ) -> anyhow::Result<Vec<Duration>>;

    // The functions have the types of those with torch, or this does not compile.
    const _: [fn(&TorchSpec) -> anyhow::Result<()>; 2] = [check, torch::check];
    const _: [fn() -> [Option<&'static str>; 2]; 2] = [versions, torch::versions];
    const _: [Start; 2] = [start, torch::start];
    const _: [TimeSteps; 2] = [time_steps, torch::time_steps];

    #[test]
    fn errors_say_how_to_get_torch() {
        let spec = TorchSpec { processor: TorchProcessor::Cuda(0), width: 16 };
        let work = TorchWork { n_classes: 2, seed: 0, augments: false, release: Release::Sync };
        let clock = Arc::new(SystemClock::default());
        let errors = [check(&spec).unwrap_err(), start(&spec, work, clock).err().unwrap()];
        for error in errors {
            assert!(error.is::<UsageError>(), "{error}");
            assert!(error.to_string().contains("--features torch"), "{error}");
        }
    }
}
