//! The batches of an epoch taken as training would take them, with the waits timed.

use std::time::Instant;

use bench_report::{BatchSample, thread_cpu_secs};

/// What the consumer of an epoch saw.
#[derive(Debug)]
pub struct ConsumedEpoch {
    /// What each batch took.
    pub batches: Vec<BatchSample>,
    /// Seconds from asking for another batch until there was none; 0 if the epoch was cut off.
    pub end_wait_secs: f64,
    /// CPU seconds of the consumer's thread, with batches.
    pub busy_cpu_secs: f64,
}

/// Takes batches until there are no more, or `max_batches`. The epoch begins at `start`, when it
/// was asked for. `consume` drops the batch and returns its rows.
pub fn consume_epoch<Batch>(
    start: Instant,
    mut batches: impl Iterator<Item = anyhow::Result<Batch>>,
    max_batches: Option<u64>,
    mut consume: impl FnMut(Batch) -> anyhow::Result<u64>,
) -> anyhow::Result<ConsumedEpoch> {
    let n_batches = max_batches.unwrap_or(u64::MAX).min(batches.size_hint().0 as u64);
    let mut samples: Vec<BatchSample> = Vec::with_capacity(n_batches as usize);
    let (mut asked, mut end_wait_secs, mut busy_cpu_secs) = (start, 0.0, 0.0);
    // The end is asked for too: an epoch is over when the loader says so, unless it is cut off.
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
        // What comes before the first batch is a wait for it.
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
