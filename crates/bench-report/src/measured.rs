//! The outcome of an epoch, and its computation from the times of the batches.
//!
//! Everything here is arithmetic on seconds that the caller measured; no clock is read.

use jiff::Timestamp;

use crate::{OrderEntropy, Status, column::column_group, statistics::percentile};

/// One batch as its consumer experienced it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BatchSample {
    /// Seconds from the request for the batch to its arrival.
    pub wait_secs: f64,
    /// Seconds that the consumer then spent on it, until it asked for the next.
    pub consume_secs: f64,
    /// Rows in the batch.
    pub n_rows: u64,
    /// Non-zeros in the batch.
    pub nnz: u64,
}

column_group! {
    /// The outcome of an epoch. A figure that was not measured is null.
    pub struct Measured {
        /// How the epoch ended.
        pub status: Status,
        /// The error message if the epoch failed; a warning if it ended well.
        pub message: Option<String>,
        /// Number of the epoch, from 0.
        pub epoch: Option<u64>,
        /// Number of the process that measured this point, from 0, if several did in turn.
        pub repeat: Option<u64>,
        /// The process's rank, from 0, if it was one of `world_size` ranks.
        pub rank: Option<u64>,
        /// Digest of everything that the measurement depends on: data, settings, program, machine.
        /// Rows of a point with the same digest are repetitions of each other; null in older files.
        pub conditions: Option<String>,
        /// Time at which the epoch began.
        pub start_dt: Option<Timestamp>,
        /// Time at which it ended.
        pub end_dt: Option<Timestamp>,
        /// Rows delivered, including the first batch.
        pub n_rows: Option<u64>,
        /// Batches delivered.
        pub n_batches: Option<u64>,
        /// Non-zeros delivered.
        pub nnz: Option<u64>,
        /// Seconds from the request for the first batch to the end.
        pub elapsed: Option<f64>,
        /// Rows per second including the first batch: `n_rows` / `elapsed`.
        pub samples_per_sec: Option<f64>,
        /// Non-zeros per second, including the first batch.
        pub nnz_per_sec: Option<f64>,
        /// Rows delivered after the first batch.
        pub n_rows_after_first: Option<u64>,
        /// Seconds from the request for the second batch to the end. The first batch absorbs the
        /// read of the whole first block.
        pub elapsed_after_first: Option<f64>,
        /// Rows per second without the first batch, like the original benchmark counted; null for
        /// an epoch of one batch.
        pub samples_per_sec_after_first: Option<f64>,
        /// Seconds from opening the experiment until the loader could start an epoch; only for a
        /// process's first epoch.
        pub open_secs: Option<f64>,
        /// Seconds until the first batch arrived.
        pub time_to_first_batch_secs: Option<f64>,
        /// Median wait for a batch, in seconds. Percentiles are over all batches including the
        /// first, and interpolated linearly between neighbors.
        pub wait_p50_secs: Option<f64>,
        /// 95th percentile of the waits for a batch, in seconds.
        pub wait_p95_secs: Option<f64>,
        /// 99th percentile of the waits for a batch, in seconds.
        pub wait_p99_secs: Option<f64>,
        /// Median wait in seconds over the batches after the first; null for an epoch of one batch.
        pub wait_p50_after_first_secs: Option<f64>,
        /// 99th percentile of the waits in seconds over the batches after the first.
        pub wait_p99_after_first_secs: Option<f64>,
        /// Longest wait for a batch, in seconds.
        pub wait_max_secs: Option<f64>,
        /// Mean wait for a batch, in seconds.
        pub wait_mean_secs: Option<f64>,
        /// Share of `elapsed` in which the consumer waited, 0 to 1.
        pub stall_share: Option<f64>,
        /// Share of `elapsed` in which the consumer worked on a batch, 0 to 1.
        pub busy_share: Option<f64>,
        /// Accelerator utilisation (AU) as MLPerf Storage defines it, 0 to 1: the share of
        /// `elapsed_after_first` in which the consumer, or the device, computed. The first batch is
        /// left out on both sides. Null without a consumer, and for an epoch of one batch.
        pub accelerator_utilization: Option<f64>,
        /// Share of `elapsed` in which a device computed, 0 to 1; null without a device.
        pub device_busy_share: Option<f64>,
        /// Bytes of memory that a device copies from without the system's help (pinned memory);
        /// null if nothing could be pinned.
        pub pinned_bytes: Option<u64>,
        /// Seconds of reading X, summed over threads; overlaps with other stages.
        pub read_secs: Option<f64>,
        /// Seconds of assembling rows into batches, summed over threads; overlaps with other
        /// stages.
        pub densify_secs: Option<f64>,
        /// Seconds in which the consumer waited.
        pub wait_secs: Option<f64>,
        /// Seconds that the consumer spent on batches.
        pub consume_secs: Option<f64>,
        /// CPU seconds of the process, user and system, summed over threads.
        pub cpu_secs: Option<f64>,
        /// CPU seconds in user mode, in ticks of 10 ms.
        pub cpu_user_secs: Option<f64>,
        /// CPU seconds in the kernel, in ticks of 10 ms.
        pub cpu_system_secs: Option<f64>,
        /// Bytes read from storage.
        pub bytes_read: Option<u64>,
        /// Bytes read under a rate limit, counted by the limiter: those that the reader requested
        /// (`bucket`), or those that the disk read (`kernel`).
        pub io_bytes: Option<u64>,
        /// Seconds that `io_bytes` took: those in which a read was in progress (`bucket`), or those
        /// of the epoch (`kernel`).
        pub io_secs: Option<f64>,
        /// The resulting rate: `io_bytes` / `io_secs`.
        pub io_bytes_per_sec: Option<f64>,
        /// Requests to an object store, if the reader counts them.
        pub requests: Option<u64>,
        /// Requests that a link's server received during the epoch, the next one's first ones among
        /// them if that is read ahead; null without a link.
        pub link_requests: Option<u64>,
        /// Requests that it received before the epoch, from the start of the process: those of
        /// opening the data. Only for a process's first epoch.
        pub link_open_requests: Option<u64>,
        /// Bytes of bodies that it sent during the epoch.
        pub link_bytes: Option<u64>,
        /// Connections on which a first request came during the epoch.
        pub link_connections: Option<u64>,
        /// The most requests that were under way at once.
        pub link_most_under_way: Option<u64>,
        /// Requests and connections that a fault affected; null for a link without faults.
        pub link_faults_met: Option<u64>,
        /// Stored bytes that the epoch needed: each byte of the files of X once, by the share of
        /// the values that were delivered. Null if it is not known.
        pub link_needed_bytes: Option<u64>,
        /// Seconds that `link_needed_bytes` take at the rate of the whole link; null if that is
        /// unlimited.
        pub link_bytes_floor_secs: Option<f64>,
        /// Seconds that the latency of `link_requests` takes if always `link_most_under_way` of
        /// them are under way.
        pub link_latency_floor_secs: Option<f64>,
        /// CPU time of the link's server per time of the epoch: 1 is one core. It takes them from
        /// the measured process unless it has `link_cores`.
        pub link_server_cpu_share: Option<f64>,
        /// Blocks served by the cache in front of an object store, since the process began.
        pub cache_hits: Option<u64>,
        /// Blocks that this cache did not have.
        pub cache_misses: Option<u64>,
        /// Pages of rows that came from the cache of decoded rows during the epoch; of blocks that
        /// were read ahead for the next one, too. Null without such a cache.
        pub row_cache_hits: Option<u64>,
        /// Pages whose rows that cache did not have, so that X was read.
        pub row_cache_misses: Option<u64>,
        /// Bytes of that cache on disk when the epoch ended, with those of other data.
        pub row_cache_bytes: Option<u64>,
        /// Cells of X (non-zeros) decoded to deliver the requested ones.
        pub cells_decoded: Option<u64>,
        /// Bytes of values kept decoded when the epoch ended, including those of earlier epochs.
        /// Kept values are not decoded again.
        pub kept_decoded_bytes: Option<u64>,
        /// Bytes of memory of which cells are selected, when the epoch ended. This and the next
        /// five grow with the number of cells; null for other loaders.
        pub joinid_bytes: Option<u64>,
        /// Bytes of memory of the obs columns.
        pub obs_bytes: Option<u64>,
        /// Bytes of memory of the codes of labels.
        pub code_bytes: Option<u64>,
        /// Bytes of memory of the totals by which values are scaled.
        pub total_bytes: Option<u64>,
        /// Bytes of memory of the order of one epoch.
        pub order_bytes: Option<u64>,
        /// Bytes of memory of what the readers remember of where rows are stored, up to a limit.
        pub index_bytes: Option<u64>,
        /// Bytes decoded to deliver the requested cells: their rows, columns and values.
        pub bytes_decoded: Option<u64>,
        /// Decoded bytes of the requested cells alone.
        pub bytes_needed: Option<u64>,
        /// Bytes decoded per byte needed: `bytes_decoded` / `bytes_needed`.
        pub bytes_amplification: Option<f64>,
        /// Non-zeros decoded per non-zero delivered: `cells_decoded` / `nnz`.
        pub amplification: Option<f64>,
        /// Peak resident memory of the process in bytes (`VmHWM`) since it began, read when the
        /// epoch ended. For a loader with child processes, the largest sampled sum of their
        /// proportional set sizes, if that is larger. In rows without `epoch_max_mem` it is the
        /// peak since the epoch began, if `peak_reset` is true.
        pub max_mem: Option<u64>,
        /// Peak resident memory in bytes since the epoch began; null if the peak could not be reset
        /// then, and for other loaders.
        pub epoch_max_mem: Option<u64>,
        /// Number of processes that `max_mem` covers, if there were several; null is one.
        pub max_mem_processes: Option<u64>,
        /// Whether the kernel's peak was reset when the epoch began, so that `epoch_max_mem` is
        /// known.
        pub peak_reset: Option<bool>,
        /// Resident memory in bytes when the epoch began.
        pub start_mem_bytes: Option<u64>,
        /// Proportional set size in bytes when the epoch ended: memory shared by n processes counts
        /// as 1/n.
        pub pss_bytes: Option<u64>,
        /// Mean number of batches that were ready when the consumer asked for one.
        pub ready_batches_mean: Option<f64>,
        /// Mean number of blocks that were read but not begun when the consumer asked for a batch.
        pub ready_blocks_mean: Option<f64>,
        /// How random the order was, by each measured label.
        pub order_entropy: Vec<OrderEntropy>,
        /// Seconds waited for each batch, in order; empty if not recorded.
        pub batch_wait_secs: Vec<f64>,
        /// Seconds that the consumer spent on each batch, in order; empty if not recorded.
        pub batch_consume_secs: Vec<f64>,
        /// Number of ready batches at each request of the consumer, in order; empty if not
        /// recorded.
        pub batch_ready_batches: Vec<f64>,
        /// Number of ready blocks at each request of the consumer, in order.
        pub batch_ready_blocks: Vec<f64>,
        /// Seconds between two samples of `device_busy` and of `core_loads`.
        pub sample_interval_secs: Option<f64>,
        /// Share of each interval in which a device computed, 0 to 1, in order; empty if not
        /// recorded.
        pub device_busy: Vec<f64>,
        /// Load of each core of the machine in each interval, 0 to 1: all cores of the first
        /// interval, then those of the second, and so on; empty if not recorded.
        pub core_loads: Vec<f64>,
    }
}

impl Measured {
    /// Computes the outcome of a successful epoch from its batches.
    ///
    /// `end_wait_secs` is the consumer's wait after its last batch for the end of the epoch, 0 if
    /// it did not ask. Times of day, stages, memory, CPU and bytes stay null; the caller fills them
    /// in.
    pub fn from_batches(batches: &[BatchSample], end_wait_secs: f64) -> Self {
        let n_rows = batches.iter().map(|batch| batch.n_rows).sum();
        let nnz = batches.iter().map(|batch| batch.nnz).sum();
        let waits: Vec<f64> = batches.iter().map(|batch| batch.wait_secs).collect();
        let wait_secs = waits.iter().sum::<f64>() + end_wait_secs;
        let consume_secs = batches.iter().map(|batch| batch.consume_secs).sum::<f64>();
        let elapsed = wait_secs + consume_secs;
        let mut sorted = waits.clone();
        sorted.sort_by(f64::total_cmp);
        let at = |percent| percentile(&sorted, percent);
        let mut after_first = waits.get(1..).unwrap_or_default().to_vec();
        after_first.sort_by(f64::total_cmp);
        let (n_rows_after_first, elapsed_after_first) = match batches {
            [first, _, ..] => {
                (Some(n_rows - first.n_rows), Some(elapsed - first.wait_secs - first.consume_secs))
            }
            _ => (None, None),
        };
        Self {
            status: Status::Ok,
            n_rows: Some(n_rows),
            n_batches: Some(batches.len() as u64),
            nnz: Some(nnz),
            elapsed: Some(elapsed),
            samples_per_sec: rate(Some(n_rows), Some(elapsed)),
            nnz_per_sec: rate(Some(nnz), Some(elapsed)),
            n_rows_after_first,
            elapsed_after_first,
            samples_per_sec_after_first: rate(n_rows_after_first, elapsed_after_first),
            time_to_first_batch_secs: waits.first().copied(),
            wait_p50_secs: at(50.0),
            wait_p95_secs: at(95.0),
            wait_p99_secs: at(99.0),
            wait_p50_after_first_secs: percentile(&after_first, 50.0),
            wait_p99_after_first_secs: percentile(&after_first, 99.0),
            wait_max_secs: sorted.last().copied(),
            wait_mean_secs: (!waits.is_empty())
                .then(|| waits.iter().sum::<f64>() / waits.len() as f64),
            stall_share: (elapsed > 0.0).then(|| wait_secs / elapsed),
            busy_share: (elapsed > 0.0).then(|| consume_secs / elapsed),
            wait_secs: Some(wait_secs),
            consume_secs: Some(consume_secs),
            batch_wait_secs: waits,
            batch_consume_secs: batches.iter().map(|batch| batch.consume_secs).collect(),
            ..Self::default()
        }
    }

    /// The outcome of a failed epoch.
    pub fn failed(status: Status, message: impl Into<String>) -> Self {
        Self { status, message: Some(message.into()), ..Self::default() }
    }

    /// Peak resident memory in bytes since the epoch began, also of rows without `epoch_max_mem`;
    /// the process's if nothing better is known.
    pub fn epoch_peak_bytes(&self) -> Option<u64> {
        self.epoch_max_mem.or(self.max_mem)
    }

    /// Computes the figures that depend on counts set by the caller: amplification, and mean ready
    /// batches and blocks.
    pub fn fill_rates(&mut self) {
        self.amplification = ratio(self.cells_decoded, self.nnz);
        self.bytes_amplification = ratio(self.bytes_decoded, self.bytes_needed);
        self.ready_batches_mean = mean(&self.batch_ready_batches);
        self.ready_blocks_mean = mean(&self.batch_ready_blocks);
    }
}

/// The accelerator utilisation (AU) of MLPerf Storage, 0 to 1: the time that an accelerator
/// computed over the time of the benchmark, both in seconds and both without the first batch.
/// `None` if no time passed.
pub fn accelerator_utilization(compute_secs: f64, secs: f64) -> Option<f64> {
    (0.0 < secs).then(|| (compute_secs / secs).clamp(0.0, 1.0))
}

fn ratio(of: Option<u64>, to: Option<u64>) -> Option<f64> {
    let to = to.filter(|&to| to > 0)?;
    Some(of? as f64 / to as f64)
}

fn mean(numbers: &[f64]) -> Option<f64> {
    (!numbers.is_empty()).then(|| numbers.iter().sum::<f64>() / numbers.len() as f64)
}

fn rate(count: Option<u64>, secs: Option<f64>) -> Option<f64> {
    let secs = secs.filter(|&secs| secs > 0.0)?;
    Some(count? as f64 / secs)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn batch(wait_secs: f64, consume_secs: f64, n_rows: u64) -> BatchSample {
        BatchSample { wait_secs, consume_secs, n_rows, nnz: n_rows * 10 }
    }

    #[test]
    fn both_conventions_follow_from_the_batches() {
        let batches = [batch(4.0, 1.0, 100), batch(0.5, 1.0, 100), batch(0.25, 1.0, 50)];
        let found = Measured::from_batches(&batches, 0.25);
        assert_eq!(found.status, Status::Ok);
        assert_eq!((found.n_rows, found.n_batches, found.nnz), (Some(250), Some(3), Some(2500)));
        assert_eq!(
            (found.elapsed, found.samples_per_sec, found.nnz_per_sec),
            (Some(8.0), Some(31.25), Some(312.5))
        );
        assert_eq!((found.n_rows_after_first, found.elapsed_after_first), (Some(150), Some(3.0)));
        assert_eq!(found.samples_per_sec_after_first, Some(50.0));
        assert_eq!(found.time_to_first_batch_secs, Some(4.0));
        assert_eq!((found.wait_p50_secs, found.wait_max_secs), (Some(0.5), Some(4.0)));
        assert_eq!(found.wait_p50_after_first_secs, Some(0.375));
        assert_eq!(found.wait_p99_after_first_secs, Some(0.4975));
        assert_eq!(
            (found.wait_secs, found.consume_secs, found.stall_share),
            (Some(5.0), Some(3.0), Some(0.625))
        );
        assert_eq!(found.busy_share, Some(0.375));
        assert_eq!(found.batch_wait_secs, [4.0, 0.5, 0.25]);
        assert_eq!(found.batch_consume_secs, [1.0; 3]);
    }

    #[test]
    fn one_batch_has_no_speed_without_the_first() {
        let found = Measured::from_batches(&[batch(4.0, 1.0, 100)], 0.0);
        assert_eq!(found.samples_per_sec, Some(20.0));
        assert_eq!((found.n_rows_after_first, found.samples_per_sec_after_first), (None, None));
        assert_eq!(
            (found.wait_p50_after_first_secs, found.wait_p99_after_first_secs),
            (None, None)
        );
    }

    #[test]
    fn no_batch_has_no_speed_at_all() {
        let found = Measured::from_batches(&[], 0.0);
        assert_eq!((found.n_rows, found.elapsed), (Some(0), Some(0.0)));
        assert_eq!(
            (found.samples_per_sec, found.stall_share, found.wait_p99_secs),
            (None, None, None)
        );
        assert_eq!((found.time_to_first_batch_secs, found.wait_mean_secs), (None, None));
    }

    #[test]
    fn amplification_needs_both_counts() {
        let mut found = Measured { nnz: Some(4), cells_decoded: Some(10), ..Measured::default() };
        found.fill_rates();
        assert_eq!(found.amplification, Some(2.5));
        found.nnz = Some(0);
        found.fill_rates();
        assert_eq!(found.amplification, None);
        (found.bytes_decoded, found.bytes_needed) = (Some(9), Some(6));
        found.batch_ready_batches = vec![0.0, 1.0, 2.0];
        found.fill_rates();
        assert_eq!((found.bytes_amplification, found.ready_batches_mean), (Some(1.5), Some(1.0)));
        assert_eq!(found.ready_blocks_mean, None);
    }

    proptest! {
        #[test]
        fn times_add_up(
            parts in prop::collection::vec((1e-6_f64..10.0, 0.0_f64..10.0, 1_u64..5000), 2..50),
            end in 0.0_f64..1.0,
        ) {
            let batches: Vec<BatchSample> = parts.iter().map(|&(wait, consume, rows)| batch(wait, consume, rows)).collect();
            let found = Measured::from_batches(&batches, end);
            let close = |a: f64, b: f64| (a - b).abs() <= 1e-9 * a.abs().max(b.abs());
            let elapsed: f64 = parts.iter().map(|(wait, consume, _)| wait + consume).sum::<f64>() + end;
            let after: f64 = parts[1..].iter().map(|(wait, consume, _)| wait + consume).sum::<f64>() + end;
            let rows_after: u64 = parts[1..].iter().map(|part| part.2).sum();
            prop_assert!(close(found.elapsed.unwrap(), elapsed));
            prop_assert!(close(found.wait_secs.unwrap() + found.consume_secs.unwrap(), elapsed));
            prop_assert!((found.elapsed_after_first.unwrap() - after).abs() <= 1e-9 * elapsed);
            prop_assert_eq!(found.n_rows_after_first, Some(rows_after));
            prop_assert!((0.0..=1.0 + 1e-12).contains(&found.stall_share.unwrap()));
            let waits = [found.wait_p50_secs, found.wait_p95_secs, found.wait_p99_secs, found.wait_max_secs];
            prop_assert!(waits.is_sorted());
        }
    }
}
