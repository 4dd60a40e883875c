//! Measures one point in its own process.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use arrays::{ArrayBatch, ArraySamples};
use bench_report::{EpochRecord, GridPoint, Measured};
use bench_run::{
    ConsumedBatch, ConsumedEpoch, EpochMeter, LinkMeter, Order, OrderMeter, Reporter,
    consume_epoch, enter_engine,
};
use memmap2::MmapMut;
use pipeline::Pipeline;
use shuffle::PlanSpec;
use storage::OpenedStorage;

use super::chained::Chained;
use super::plain_read::ChunkList;
use super::point::{PART, Point, Strategy, VALIDATION};
use super::task::{FieldAnswer, FieldData, FieldTask};

/// Reads an order from stdin, performs it and reports on stdout.
pub(crate) fn serve() -> anyhow::Result<()> {
    bench_run::serve(|task: &FieldTask| task.data.secrets(), perform)
}

fn perform(order: &Order<FieldTask>, reporter: &mut Reporter<FieldAnswer>) -> anyhow::Result<()> {
    let FieldTask { data, point } = &order.task;
    match point.strategy {
        Strategy::PlainRead => plain_read(data, point, &order.cache, reporter),
        Strategy::Stacked | Strategy::PerSample => load(data, point, &order.cache, reporter),
    }
}

/// Measures the epochs of the loader and, after each, those of the validation loader.
fn load(
    data: &FieldData,
    point: &Point,
    cache: &str,
    reporter: &mut Reporter<FieldAnswer>,
) -> anyhow::Result<()> {
    let link = data.far.meter()?;
    let opening = Instant::now();
    let opened = data.open()?;
    let (training, validation) = data.parts(&opened.storage, point)?;
    let labels = point.label.map(|label| label.codes(&training)).transpose()?;
    let training = pipeline(training, point)?;
    let validation = validation.map(|samples| pipeline(samples, point)).transpose()?;
    let mut open_secs = Some(opening.elapsed().as_secs_f64());
    let mut reading = Reading { opened: &opened, link };
    let recorded = || data.recorded(point, cache);
    let mut epochs = training.epochs(0..point.epochs);
    for span in point.spans() {
        let mut batches = Chained::begin(&mut epochs, span.end - span.start)?;
        if span.start == 0 {
            std::thread::sleep(Duration::from_secs_f64(point.fill_secs));
        }
        // The validation loader starts, and its queue fills, while training goes on.
        let n_batches = point.max_batches.unwrap_or(u64::MAX).min(training.n_batches());
        let (starts_at, mut waiting) = (n_batches - n_batches.div_ceil(4), None);
        let meter = labels.as_ref().map(|labels| labels.meter(&point.spec(), point.max_batches));
        let mut meter = meter.transpose()?;
        let of_training = batches.by_ref().zip(0..).map(|(batch, idx)| {
            if let Some(validation) = validation.as_ref().filter(|_| idx == starts_at) {
                waiting = Some(validation.epoch(span.start)?);
            }
            let batch = batch?;
            meter.as_mut().map_or(Ok(()), |meter| meter.add(batch.samples()))?;
            Ok(batch)
        });
        let mut record = measure(
            of_training,
            (&training, &mut reading),
            point,
            (recorded(), span.start),
            reporter,
        )?;
        let stats = batches.end();
        record.measured.open_secs = open_secs.take();
        record.measured.order_entropy = meter.map(OrderMeter::measured).into_iter().collect();
        enter_engine(&mut record, &stats);
        reporter.answer(Box::new(record))?;
        if let (Some(validation), Some(mut batches)) = (&validation, waiting) {
            let of_validation = batches.by_ref().map(|batch| batch.map_err(anyhow::Error::from));
            let validating = (validation, &mut reading);
            let mut record =
                measure(of_validation, validating, point, (recorded(), span.start), reporter)?;
            record.point.settings.set(PART, VALIDATION);
            enter_engine(&mut record, &[batches.stats()]);
            reporter.answer(Box::new(record))?;
        }
    }
    Ok(())
}

/// The engine over these samples.
fn pipeline(samples: ArraySamples, point: &Point) -> anyhow::Result<Pipeline<ArraySamples>> {
    let pipeline = Pipeline::new(Arc::new(samples), point.spec(), ArrayBatch::n_samples)?;
    ensure!(
        pipeline.n_batches() > 0,
        "{} samples do not fill a batch of {}",
        pipeline.source().n_samples(),
        point.batch
    );
    Ok(pipeline)
}

/// Takes the batches of an epoch, and measures the process meanwhile.
fn measure(
    batches: impl Iterator<Item = anyhow::Result<ArrayBatch>>,
    (pipeline, reading): (&Pipeline<ArraySamples>, &mut Reading<'_>),
    point: &Point,
    (recorded, epoch): (GridPoint, u64),
    reporter: &mut Reporter<FieldAnswer>,
) -> anyhow::Result<EpochRecord> {
    let of_rows = pipeline.n_batches() * point.batch;
    let before = reading.begin_epoch()?;
    let meter = EpochMeter::start()?;
    let consumed = consume(meter.start, batches, point, of_rows, reporter)?;
    let mut record = meter.record(epoch, recorded, &consumed)?;
    reading.end_epoch(&before, &mut record.measured)?;
    Ok(record)
}

/// Takes the batches without touching them, and sleeps for the point's time per batch.
fn consume(
    start: Instant,
    batches: impl Iterator<Item = anyhow::Result<ArrayBatch>>,
    point: &Point,
    of_rows: u64,
    reporter: &mut Reporter<FieldAnswer>,
) -> anyhow::Result<ConsumedEpoch> {
    let sleep = Duration::from_secs_f64(point.consumer_millis / 1e3);
    let mut n_rows = 0;
    consume_epoch(start, batches, point.max_batches, |batch| {
        let rows = batch.n_samples() as u64;
        if !sleep.is_zero() {
            std::thread::sleep(sleep);
        }
        drop(batch);
        n_rows += rows;
        reporter.progress(n_rows, of_rows)?;
        // The sleep takes longer than asked for; an accelerator would not.
        Ok(ConsumedBatch { n_rows: rows, compute: (!sleep.is_zero()).then_some(sleep) })
    })
}

/// Measures reading the files of random samples.
fn plain_read(
    data: &FieldData,
    point: &Point,
    cache: &str,
    reporter: &mut Reporter<FieldAnswer>,
) -> anyhow::Result<()> {
    let link = data.far.meter()?;
    let opened = data.open()?;
    let mut reading = Reading { opened: &opened, link };
    let storage = &opened.storage;
    let samples = data.samples_in(storage, point)?;
    let list = ChunkList::new(&*data.listed_storage()?, &data.arrays)
        .with_context(|| format!("cannot list the chunks of {}", data.uri))?;
    let files_per_batch = (list.len() as u64 * point.batch / samples.n_samples().max(1)).max(1);
    let n_bytes = list.n_bytes();
    // Large enough for any batch, in large pages and not touched yet: like the loader's.
    let mut buffer = MmapMut::map_anon((list.most_bytes(files_per_batch) as usize).max(1))?;
    #[cfg(target_os = "linux")]
    {
        drop(buffer.advise(memmap2::Advice::HugePage));
    }
    let order = PlanSpec {
        n_rows: list.len() as u64,
        chunk_rows: 1,
        chunks_per_block: files_per_batch,
        seed: point.seed,
        ..PlanSpec::default()
    };
    for span in point.spans() {
        let mut plan: Vec<Vec<usize>> = Vec::new();
        for epoch in span.clone() {
            plan.extend(order.epoch(epoch)?.map(|block| {
                block.chunks.into_iter().flatten().map(|file| file as usize).collect()
            }));
        }
        let before = reading.begin_epoch()?;
        let meter = EpochMeter::start()?;
        let (mut n_read, threads) = (0, point.threads);
        let batches = plan.iter().filter(|files| files.len() as u64 == files_per_batch);
        let read = batches.map(|files| {
            n_read += list.read(&**storage, files, &mut buffer, threads)?;
            Ok(())
        });
        let consumed = consume_epoch(meter.start, read, point.max_batches, |()| Ok(point.batch))?;
        let mut record = meter.record(span.start, data.recorded(point, cache), &consumed)?;
        reading.end_epoch(&before, &mut record.measured)?;
        record.measured.bytes_read = Some(n_read);
        // Undecoded: the same number of samples would have these bytes.
        let share = consumed.batches.len() as u64 * files_per_batch;
        record.measured.bytes_needed = Some(n_bytes * share / (list.len() as u64).max(1));
        reporter.answer(Box::new(record))?;
    }
    Ok(())
}

/// The storage that is read, and the counts of its link.
struct Reading<'a> {
    opened: &'a OpenedStorage,
    link: Option<LinkMeter>,
}

impl Reading<'_> {
    fn begin_epoch(&mut self) -> anyhow::Result<StorageCounts> {
        self.link.as_mut().map_or(Ok(()), LinkMeter::begin_epoch)?;
        Ok(StorageCounts::read(self.opened))
    }

    /// Enters what has come since the epoch began.
    fn end_epoch(&mut self, before: &StorageCounts, measured: &mut Measured) -> anyhow::Result<()> {
        before.enter_since(self.opened, measured);
        if let Some(link) = &mut self.link {
            let used = link.end_epoch()?;
            link.enter(&used, None, measured);
        }
        Ok(())
    }
}

/// The requests of a storage so far, and the hits and misses of its cache on disk.
struct StorageCounts {
    requests: Option<u64>,
    cache: Option<(u64, u64)>,
}

impl StorageCounts {
    fn read(opened: &OpenedStorage) -> Self {
        let stats = opened.cache.as_ref().map(|cache| cache.stats());
        let cache = stats.map(|stats| (stats.hits, stats.misses));
        let requests = opened.storage.request_counts().map(|counts| counts.sent);
        Self { requests, cache }
    }

    /// Enters what has come since.
    fn enter_since(&self, opened: &OpenedStorage, measured: &mut Measured) {
        let now = Self::read(opened);
        measured.requests = now.requests.zip(self.requests).map(|(now, before)| now - before);
        if let Some(((hits, misses), (hits_before, misses_before))) = now.cache.zip(self.cache) {
            measured.cache_hits = Some(hits - hits_before);
            measured.cache_misses = Some(misses - misses_before);
        }
    }
}
