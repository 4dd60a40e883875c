//! Consumes the batches of an epoch like training would, and times the waits.

use std::time::Instant;

use bench_report::{BatchSample, thread_cpu_secs};

/// Timing of an epoch, as its consumer measured it.
#[derive(Debug)]
pub struct ConsumedEpoch {
    /// Times and rows of each batch.
    pub batches: Vec<BatchSample>,
    /// Seconds from the last request for a batch until the epoch ended; 0 if it was cut off.
    pub end_wait_secs: f64,
    /// CPU seconds that the consumer's thread spent on batches.
    pub busy_cpu_secs: f64,
}

/// Consumes batches until the epoch ends or `max_batches` have come. The epoch begins at `start`:
/// time before the first batch is a wait. `consume` drops the batch and returns its number of rows.
/// Fails at the first error of a batch or of `consume`.
pub fn consume_epoch<Batch>(
    start: Instant,
    mut batches: impl Iterator<Item = anyhow::Result<Batch>>,
    max_batches: Option<u64>,
    mut consume: impl FnMut(Batch) -> anyhow::Result<u64>,
) -> anyhow::Result<ConsumedEpoch> {
    let n_batches = max_batches.unwrap_or(u64::MAX).min(batches.size_hint().0 as u64);
    let mut samples: Vec<BatchSample> = Vec::with_capacity(n_batches as usize);
    let (mut asked, mut end_wait_secs, mut busy_cpu_secs) = (start, 0.0, 0.0);
    // Waits for the end, too: the loader decides when an epoch is over, unless it is cut off.
    while max_batches.is_none_or(|most| (samples.len() as u64) < most) {
        let Some(batch) = batches.next() else {
            end_wait_secs = asked.elapsed().as_secs_f64();
            break;
        };
        let (got, got_cpu) = (Instant::now(), thread_cpu_secs());
        let n_rows = consume(batch?)?;
        samples.push(BatchSample {
            wait_secs: (got - asked).as_secs_f64(),
            consume_secs: got.elapsed().as_secs_f64(),
            n_rows,
            nnz: 0,
        });
        busy_cpu_secs += thread_cpu_secs() - got_cpu;
        asked = Instant::now();
    }
    Ok(ConsumedEpoch { batches: samples, end_wait_secs, busy_cpu_secs })
}

#[cfg(test)]
mod tests {
    use std::thread::sleep;
    use std::time::Duration;

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
}
