//! Training on the batches: which processor of torch, which model.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::bench::Release;

/// A processor of torch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum TorchProcessor {
    /// All cores, which the loader needs, too.
    Cpu,
    /// The GPU of this number, from 0.
    Cuda(usize),
}

impl fmt::Display for TorchProcessor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cpu => f.write_str("cpu"),
            Self::Cuda(idx) => write!(f, "cuda:{idx}"),
        }
    }
}

/// Training a U-Net on the batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TorchSpec {
    pub(crate) processor: TorchProcessor,
    /// Features of the U-Net at the full resolution.
    pub(crate) width: usize,
}

/// As rows have it: what trained, and where the figures of its use come from.
impl fmt::Display for TorchSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { processor, width } = self;
        let (training, used) = match processor {
            TorchProcessor::Cpu => ("trained on the processor", "the share of time in steps"),
            TorchProcessor::Cuda(_) => ("trained", "by NVML"),
        };
        // torch has one stream, so copies and compute follow each other.
        write!(
            f,
            "{processor}: U-Net of width {width} {training}, copies in order, utilisation {used}"
        )
    }
}

/// What a training depends on besides its spec.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TorchWork {
    /// Number of classes of the labels.
    pub(crate) n_classes: usize,
    /// Seed of the model's first parameters and of augmentation.
    pub(crate) seed: u64,
    /// Whether batches are augmented on the device.
    pub(crate) augments: bool,
    pub(crate) release: Release,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_say_what_trained_and_who_measured() {
        let printed = |processor| TorchSpec { processor, width: 16 }.to_string();
        assert_eq!(
            printed(TorchProcessor::Cpu),
            "cpu: U-Net of width 16 trained on the processor, copies in order, utilisation the \
             share of time in steps"
        );
        assert_eq!(
            printed(TorchProcessor::Cuda(1)),
            "cuda:1: U-Net of width 16 trained, copies in order, utilisation by NVML"
        );
    }
}
