//! Measures the epochs of one point in its own process.

use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context as _, ensure};
use bench_report::EpochRecord;
use bench_run::{EpochMeter, Order, OrderMeter, Reporter, consume_epoch, enter_engine};
use pipeline::Pipeline;
use sequences::{SequenceBatch, SequenceSamples};

use super::open;
use super::point::{Consumer, Point};
use super::task::{SequenceAnswer, SequenceTask};

/// Reads an order from stdin, performs it and reports on stdout.
pub(crate) fn serve() -> anyhow::Result<()> {
    bench_run::serve(|task: &SequenceTask| task.secrets(), perform)
}

/// Opens the store, counts words if batches need them, and measures the epochs of a point.
fn perform(
    order: &Order<SequenceTask>,
    reporter: &mut Reporter<SequenceAnswer>,
) -> anyhow::Result<()> {
    let SequenceTask { folder, point } = &order.task;
    let opening = Instant::now();
    let store = open(folder).with_context(|| format!("cannot open {}", folder.display()))?;
    let labels = point.label.as_ref().map(|label| label.codes(&*store)).transpose()?;
    let samples = Arc::new(point.samples(store)?);
    let pipeline = Pipeline::new(samples, point.pipeline_spec(), SequenceBatch::n_sequences)?;
    ensure!(0 < pipeline.n_batches(), "{} has no sequences", folder.display());
    let mut open_secs = Some(opening.elapsed().as_secs_f64());
    for number in 0..point.epochs {
        let meter = labels.as_ref().map(|of| of.meter(&point.pipeline_spec(), point.max_batches));
        let mut meter = meter.transpose()?;
        let mut record = epoch((&pipeline, &mut meter), (point, number), &order.cache, reporter)?;
        record.measured.order_entropy = meter.map(OrderMeter::measured).into_iter().collect();
        record.measured.open_secs = open_secs.take();
        reporter.answer(Box::new(record))?;
    }
    Ok(())
}

/// Takes the batches of an epoch, and measures the process meanwhile.
fn epoch(
    (pipeline, order): (&Pipeline<SequenceSamples>, &mut Option<OrderMeter<'_>>),
    (point, number): (&Point, u64),
    cache: &str,
    reporter: &mut Reporter<SequenceAnswer>,
) -> anyhow::Result<EpochRecord> {
    let n_batches = pipeline.n_batches().min(point.max_batches.unwrap_or(u64::MAX));
    let of_rows = n_batches * point.batch;
    let meter = EpochMeter::start()?;
    let mut batches = pipeline.epoch(number)?;
    let (mut n_rows, mut n_words) = (0, 0);
    let consumed = {
        let taken = batches.by_ref().map(|batch| Ok(batch?));
        consume_epoch(meter.start, taken, point.max_batches, |batch: SequenceBatch| {
            let n_sequences = batch.n_sequences() as u64;
            n_rows += n_sequences;
            n_words += words_of(&batch);
            order.as_mut().map_or(Ok(()), |order| order.add(batch.rows()))?;
            match point.consumer {
                Consumer::None => drop(batch),
            }
            reporter.progress(n_rows, of_rows)?;
            Ok(n_sequences)
        })?
    };
    let mut record = meter.record(number, point.recorded(cache), &consumed)?;
    enter_engine(&mut record, &[batches.stats()]);
    // Words are the values of sequences.
    let measured = &mut record.measured;
    measured.nnz = (0 < n_words).then_some(n_words);
    let secs = measured.elapsed.filter(|secs| 0.0 < *secs);
    measured.nnz_per_sec = measured.nnz.zip(secs).map(|(n, secs)| n as f64 / secs);
    Ok(record)
}

/// Words that a batch delivers: targets if it has windows.
fn words_of(batch: &SequenceBatch) -> u64 {
    let n_words = match (batch.windows(), batch.tokens()) {
        (Some(windows), _) => windows.n_targets(),
        (None, Some(tokens)) => tokens.n_tokens(),
        (None, None) => 0,
    };
    n_words as u64
}
