//! Consumes the batches of an epoch like training would, times the waits, and makes the record.

use std::time::{Duration, Instant};

use bench_report::{
    BatchSample, EpochRecord, GridPoint, Measured, ProcessMeter, StageTimes, Versions,
    accelerator_utilization, thread_cpu_secs,
};
use jiff::Timestamp;
use pipeline::EpochStats;

/// Timing of an epoch, as its consumer measured it.
#[derive(Debug)]
pub struct ConsumedEpoch {
    /// Times and rows of each batch.
    pub batches: Vec<BatchSample>,
    /// Seconds from the last request for a batch until the epoch ended; 0 if it was cut off.
    pub end_wait_secs: f64,
    /// CPU seconds that the consumer's thread spent on batches.
    pub busy_cpu_secs: f64,
    /// Seconds of the batches after the first in which the consumer computed; `None` if it does not
    /// say.
    pub compute_after_first_secs: Option<f64>,
}

impl ConsumedEpoch {
    /// The outcome of the epoch, with the accelerator utilisation if the consumer computed.
    pub fn measured(&self) -> Measured {
        let mut measured = Measured::from_batches(&self.batches, self.end_wait_secs);
        measured.accelerator_utilization = self
            .compute_after_first_secs
            .zip(measured.elapsed_after_first)
            .and_then(|(compute, secs)| accelerator_utilization(compute, secs));
        measured
    }
}

/// Measures the process while an epoch is consumed.
#[derive(Debug)]
pub struct EpochMeter {
    process: ProcessMeter,
    start_dt: Timestamp,
    /// When the epoch began.
    pub start: Instant,
}

impl EpochMeter {
    /// Begins an epoch.
    ///
    /// # Errors
    /// The kernel does not report the memory of this process.
    pub fn start() -> anyhow::Result<Self> {
        let process = ProcessMeter::start()?;
        Ok(Self { process, start_dt: Timestamp::now(), start: Instant::now() })
    }

    /// The record of epoch `number`, which has ended: times, CPU time and memory. The samples have
    /// no counted values.
    ///
    /// # Errors
    /// The kernel does not report the memory of this process.
    pub fn record(
        self,
        number: u64,
        point: GridPoint,
        consumed: &ConsumedEpoch,
    ) -> anyhow::Result<EpochRecord> {
        let mut measured = Measured {
            epoch: Some(number),
            nnz: None,
            nnz_per_sec: None,
            start_dt: Some(self.start_dt),
            end_dt: Some(Timestamp::now()),
            ..consumed.measured()
        };
        self.process.finish(&mut measured)?;
        let stages = StageTimes {
            consume_wall_secs: measured.consume_secs,
            consume_cpu_secs: Some(consumed.busy_cpu_secs),
            ..StageTimes::default()
        };
        let somafeed = Some(env!("CARGO_PKG_VERSION").to_owned());
        let versions = Versions { somafeed, ..Versions::default() };
        Ok(EpochRecord { versions, point, measured, stages, ..EpochRecord::default() })
    }
}

/// Enters what the engine counted in the epochs of a record: bytes and, if the record is of one
/// epoch, the blocks that were ready and the times of stages.
pub fn enter_engine(record: &mut EpochRecord, epochs: &[EpochStats]) {
    let measured = &mut record.measured;
    let sum = |of: &dyn Fn(&EpochStats) -> Option<u64>| epochs.iter().map(of).sum();
    measured.bytes_read = sum(&|stats| stats.read.bytes_read);
    measured.bytes_decoded = sum(&|stats| stats.read.bytes_decoded);
    measured.bytes_needed = sum(&|stats| stats.read.bytes_needed);
    if let [stats] = epochs {
        measured.read_secs = Some(stats.read_secs);
        measured.batch_ready_blocks = stats.ready_blocks.iter().copied().map(f64::from).collect();
        enter_stages(&mut record.stages, &stats.stages);
    }
    measured.fill_rates();
}

/// Enters the times of reading, decoding and waiting.
fn enter_stages(record: &mut StageTimes, engine: &pipeline::StageTimes) {
    record.read_wall_secs = Some(engine.read.wall_secs);
    record.read_cpu_secs = engine.read.cpu_secs;
    record.decode_wall_secs = engine.decode.map(|decode| decode.wall_secs);
    record.decode_cpu_secs = engine.decode.and_then(|decode| decode.cpu_secs);
    record.wait_wall_secs = Some(engine.wait.wall_secs);
    record.wait_cpu_secs = engine.wait.cpu_secs;
}

/// What a consumer did with a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConsumedBatch {
    /// Rows of the batch.
    pub n_rows: u64,
    /// Time that an accelerator computed on it; `None` without one. Time beyond what the consumer
    /// took for the batch does not count.
    pub compute: Option<Duration>,
}

/// A batch that nothing computed on.
impl From<u64> for ConsumedBatch {
    fn from(n_rows: u64) -> Self {
        Self { n_rows, compute: None }
    }
}

/// Consumes batches until the epoch ends or `max_batches` have come. The epoch begins at `start`:
/// time before the first batch is a wait. `consume` drops the batch and returns its number of rows,
/// or a [`ConsumedBatch`]. Fails at the first error of a batch or of `consume`.
pub fn consume_epoch<Batch, Consumed: Into<ConsumedBatch>>(
    start: Instant,
    mut batches: impl Iterator<Item = anyhow::Result<Batch>>,
    max_batches: Option<u64>,
    mut consume: impl FnMut(Batch) -> anyhow::Result<Consumed>,
) -> anyhow::Result<ConsumedEpoch> {
    let n_batches = max_batches.unwrap_or(u64::MAX).min(batches.size_hint().0 as u64);
    let mut samples: Vec<BatchSample> = Vec::with_capacity(n_batches as usize);
    let (mut asked, mut end_wait_secs, mut busy_cpu_secs) = (start, 0.0, 0.0);
    let mut compute_after_first_secs = None;
    // Waits for the end, too: the loader decides when an epoch is over, unless it is cut off.
    while max_batches.is_none_or(|most| (samples.len() as u64) < most) {
        let Some(batch) = batches.next() else {
            end_wait_secs = asked.elapsed().as_secs_f64();
            break;
        };
        let (got, got_cpu) = (Instant::now(), thread_cpu_secs());
        let ConsumedBatch { n_rows, compute } = consume(batch?)?.into();
        let consume_secs = got.elapsed().as_secs_f64();
        if let Some(compute) = compute.filter(|_| !samples.is_empty()) {
            *compute_after_first_secs.get_or_insert(0.0) += compute.as_secs_f64().min(consume_secs);
        }
        let wait_secs = (got - asked).as_secs_f64();
        samples.push(BatchSample { wait_secs, consume_secs, n_rows, nnz: 0 });
        busy_cpu_secs += thread_cpu_secs() - got_cpu;
        asked = Instant::now();
    }
    Ok(ConsumedEpoch { batches: samples, end_wait_secs, busy_cpu_secs, compute_after_first_secs })
}

#[cfg(test)]
mod tests {
    use std::thread::sleep;

    use proptest::prelude::*;

    use super::*;

    const PAUSE: Duration = Duration::from_millis(5);

    fn take(max_batches: Option<u64>) -> ConsumedEpoch {
        let batches = [3, 2].into_iter().map(Ok).inspect(|_| sleep(PAUSE));
        let start = Instant::now();
        sleep(PAUSE);
        consume_epoch(start, batches, max_batches, |rows| {
            sleep(PAUSE);
            Ok(rows)
        })
        .unwrap()
    }

    #[test]
    fn waits_and_work_are_timed_from_the_start_to_the_end() {
        let whole = take(None);
        let rows: Vec<u64> = whole.batches.iter().map(|batch| batch.n_rows).collect();
        assert_eq!(rows, [3, 2]);
        // Time before the first batch counts as a wait for it.
        assert!(whole.batches[0].wait_secs >= 2.0 * PAUSE.as_secs_f64(), "{whole:?}");
        let secs = |batch: &BatchSample| [batch.wait_secs, batch.consume_secs];
        assert!(whole.batches.iter().flat_map(secs).all(|secs| PAUSE.as_secs_f64() <= secs));
        assert!(0.0 < whole.end_wait_secs, "{whole:?}");
    }

    #[test]
    fn an_epoch_may_be_cut_off() {
        let cut = take(Some(1));
        assert_eq!((cut.batches.len(), cut.end_wait_secs), (1, 0.0));
    }

    #[test]
    fn an_error_ends_it() {
        let batches = [Ok(()), Err(anyhow::anyhow!("no block"))].into_iter();
        let error = consume_epoch(Instant::now(), batches, None, |()| Ok(1)).unwrap_err();
        assert_eq!(error.to_string(), "no block");
    }

    #[test]
    fn without_a_consumer_that_computes_there_is_no_utilization() {
        assert_eq!(take(None).measured().accelerator_utilization, None);
        // The only batch is the first, which is left out.
        let batches = std::iter::once(Ok(()));
        let compute = Some(Duration::from_millis(1));
        let one = consume_epoch(Instant::now(), batches, None, |()| {
            Ok(ConsumedBatch { n_rows: 1, compute })
        });
        assert_eq!(one.unwrap().measured().accelerator_utilization, None);
    }

    proptest! {
        #[test]
        fn the_utilization_is_the_naive_share(
            computes in prop::collection::vec(0_u64..400, 2..20),
            pauses in prop::collection::vec(0_u64..400, 2..20),
        ) {
            let n = computes.len().min(pauses.len());
            let batches = pauses[..n].iter().map(|pause| {
                sleep(Duration::from_micros(*pause));
                Ok(())
            });
            let mut times = computes.iter().map(|micros| Duration::from_micros(*micros));
            let consumed = consume_epoch(Instant::now(), batches, None, |()| {
                let compute = times.next();
                if let Some(compute) = compute {
                    sleep(compute);
                }
                Ok(ConsumedBatch { n_rows: 1, compute })
            })
            .unwrap();
            // A sleep is no shorter than asked for, so the whole time of each counts.
            let computed = computes[1..n].iter().map(|micros| *micros as f64 * 1e-6).sum::<f64>();
            let after_first: f64 = consumed.end_wait_secs
                + consumed.batches[1..].iter().map(|of| of.wait_secs + of.consume_secs).sum::<f64>();
            let found = consumed.measured().accelerator_utilization.unwrap();
            prop_assert!((found - computed / after_first).abs() <= 1e-9);
            prop_assert!((0.0..=1.0).contains(&found));
        }
    }
}
