//! Figures that htc published, shown beside ours. They are from another machine with a real GPU, so
//! no ratio is computed from them.
//!
//! Source: `paper/PyTorchConf2023/Benchmarking.ipynb` of IMSY-DKFZ/htc at 4da02d0, which backs the
//! poster "Dealing with I/O bottlenecks in high-throughput model training" (PyTorch Conference
//! 2023): 740 cubes of 480 x 640 x 100, batches of 6, RTX 4090, Ryzen 9 7950X, NVMe.

use crate::bench::Strategy;

/// Origin of the figures, shown with them.
pub(crate) const NOTE: &str = "Published: htc's notebook for the PyTorch Conference 2023, 740 cubes, RTX 4090 (a real GPU), Ryzen 9 7950X, NVMe; another machine, so its figures and ours are side by side, not compared. Its seconds are multiplied by our number of cubes over 740";

/// Cubes of a published epoch.
pub(crate) const N_CUBES: u64 = 740;

/// The published limit in bytes a second: Docker reads 1000mb as 1000 MiB.
pub(crate) const LIMIT: u64 = 1000 << 20;

/// Milliseconds of a training step on a full batch: busy time of the fastest published epoch,
/// 24.282 s x 0.936, over its 124 steps.
pub(crate) const STEP_MILLIS: f64 = 183.0;

/// Repetitions of an epoch's duration and the mean utilisation, at one speed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct PublishedEpochs {
    /// Mean and standard deviation in seconds.
    pub(crate) secs: f64,
    pub(crate) std: f64,
    pub(crate) repetitions: [f64; 3],
    /// Mean utilisation, 0 to 1.
    pub(crate) utilization: f64,
}

/// A published strategy.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct PublishedStrategy {
    pub(crate) strategy: Strategy,
    pub(crate) unlimited: PublishedEpochs,
    pub(crate) limited: PublishedEpochs,
}

impl PublishedStrategy {
    /// Mean, deviation and repetitions of both speeds.
    #[cfg(test)]
    pub(crate) fn durations(&self) -> [(f64, f64, [f64; 3]); 2] {
        [self.unlimited, self.limited].map(|of| (of.secs, of.std, of.repetitions))
    }

    /// The epochs without a limit, or with it.
    pub(crate) fn epochs(&self, is_limited: bool) -> &PublishedEpochs {
        if is_limited { &self.limited } else { &self.unlimited }
    }
}

const fn epochs(
    (secs, std): (f64, f64),
    utilization: f64,
    repetitions: [f64; 3],
) -> PublishedEpochs {
    PublishedEpochs { secs, std, repetitions, utilization }
}

/// All published strategies: without a limit, then with reads limited to [`LIMIT`].
pub(crate) const PUBLISHED: [PublishedStrategy; 5] = [
    PublishedStrategy {
        strategy: Strategy::Original,
        unlimited: epochs((58.534, 0.531), 0.369, [58.038, 58.471, 59.094]),
        limited: epochs((92.715, 0.411), 0.231, [92.356, 92.624, 93.164]),
    },
    PublishedStrategy {
        strategy: Strategy::Blosc,
        unlimited: epochs((55.755, 0.231), 0.385, [55.894, 55.882, 55.489]),
        limited: epochs((72.721, 0.492), 0.298, [72.154, 73.023, 72.987]),
    },
    PublishedStrategy {
        strategy: Strategy::Fp16,
        unlimited: epochs((49.917, 0.551), 0.400, [49.508, 50.543, 49.699]),
        limited: epochs((50.301, 0.391), 0.396, [49.879, 50.374, 50.650]),
    },
    PublishedStrategy {
        strategy: Strategy::GpuAug,
        unlimited: epochs((30.594, 0.115), 0.749, [30.662, 30.658, 30.461]),
        limited: epochs((31.261, 0.085), 0.732, [31.328, 31.288, 31.165]),
    },
    PublishedStrategy {
        strategy: Strategy::RingBuffer,
        unlimited: epochs((24.282, 0.066), 0.936, [24.239, 24.357, 24.249]),
        limited: epochs((26.024, 0.052), 0.875, [26.069, 26.036, 25.967]),
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_totals_are_those_of_the_reference() {
        let [original, .., ring_buffer] = PUBLISHED;
        let ratio =
            |is_limited| original.epochs(is_limited).secs / ring_buffer.epochs(is_limited).secs;
        assert!((ratio(false) - 2.4106).abs() < 1e-3 && (ratio(true) - 3.5627).abs() < 1e-3);
        let busy = ring_buffer.unlimited.secs * ring_buffer.unlimited.utilization;
        let n_steps = N_CUBES.div_ceil(6) as f64;
        assert!((busy / n_steps * 1e3 - STEP_MILLIS).abs() < 0.5);
    }
}
