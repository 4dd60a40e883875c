//! Figures that graph-ufs published, shown beside ours. They are from another machine, so no ratio
//! is computed from them.
//!
//! Source: `prototypes/p1/notes.md` of NOAA-PSL/graph-ufs at 22dd8c5 (June 2024): samples of 79 MB
//! (192 x 384, 186 + 83 channels of f32), not compressed, on Azure's Lustre.

/// Origin of the figures, shown with them.
pub(crate) const NOTE: &str = "Published: the notes of graph-ufs, June 2024, on another machine (Lustre on Azure), 79 MB a sample";

/// Bytes of a published sample: 192 x 384 x (186 + 83) values of f32.
const SAMPLE_BYTES: f64 = 192.0 * 384.0 * 269.0 * 4.0;

/// A way of reading batches of one size: seconds for a batch, by the number of threads.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PublishedLine {
    pub(crate) name: &'static str,
    pub(crate) batch: u64,
    /// Threads and seconds for a batch.
    secs: &'static [(u64, f64)],
}

impl PublishedLine {
    /// Threads, and megabytes (10^6 bytes) of samples a second.
    pub(crate) fn rates(&self) -> impl Iterator<Item = (u64, f64)> {
        let n_bytes = SAMPLE_BYTES * self.batch as f64;
        self.secs.iter().map(move |(threads, secs)| (*threads, n_bytes / secs / 1e6))
    }
}

const STACKED: &str = "one dask call a batch";
const PER_SAMPLE: &str = "a dask call for each sample";

/// All lines of the notes that name a number of threads.
pub(crate) const READING: [PublishedLine; 4] = [
    PublishedLine {
        name: STACKED,
        batch: 4,
        secs: &[(1, 1.23), (2, 0.69), (4, 0.49), (8, 0.41), (16, 0.37), (24, 0.37), (32, 0.37)],
    },
    PublishedLine { name: PER_SAMPLE, batch: 4, secs: &[(1, 1.0), (16, 1.0)] },
    PublishedLine {
        name: STACKED,
        batch: 16,
        secs: &[(1, 4.35), (2, 2.7), (4, 1.94), (8, 1.5), (16, 1.33), (24, 1.31), (32, 1.33)],
    },
    PublishedLine {
        name: PER_SAMPLE,
        batch: 16,
        secs: &[(1, 5.8), (2, 4.2), (4, 3.8), (8, 3.7), (16, 3.6)],
    },
];

/// A queue of the notes: batches of 16, a consumer of 1 s, 30 requests.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PublishedQueue {
    pub(crate) workers: u64,
    pub(crate) queue: u64,
    /// Seconds of an iteration.
    pub(crate) secs: f64,
    /// The first request that found no batch.
    pub(crate) first_empty: Option<u64>,
}

/// The rows of the notes that are filled in.
pub(crate) const QUEUES: [PublishedQueue; 5] = [
    PublishedQueue { workers: 0, queue: 0, secs: 3.6, first_empty: None },
    PublishedQueue { workers: 1, queue: 1, secs: 1.2, first_empty: Some(6) },
    PublishedQueue { workers: 1, queue: 2, secs: 1.2, first_empty: Some(11) },
    PublishedQueue { workers: 2, queue: 1, secs: 1.2, first_empty: Some(11) },
    PublishedQueue { workers: 2, queue: 2, secs: 1.2, first_empty: Some(17) },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_follow_from_the_published_seconds() {
        // The notes' best of batch 16, 1.31 s, are 965 MB/s to the nearest 1 %.
        let best = READING[2].rates().map(|(_, rate)| rate).fold(0.0, f64::max);
        assert!((best / 965.0 - 1.0).abs() < 0.01, "{best}");
        assert!(READING.iter().all(|line| line.secs.is_sorted_by_key(|(threads, _)| *threads)));
    }
}
