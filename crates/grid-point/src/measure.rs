//! Measures one point in its own process: opens the data, runs the epochs, and reports each.

use std::sync::Arc;
use std::time::Instant;

use anyhow::Context as _;
use bench_report::{EpochRecord, Measured};
use bench_run::{
    ConsumedBatch, ConsumedEpoch, EpochMeter, LimitMeter, LinkMeter, Order, Reporter,
    consume_epoch, enter_engine,
};
use loader::{CellMemory, Dataset, EpochStats, World};
use soma_io::{CacheUse, ReadLimit, RowCacheUse};

use crate::cell_digest::CellDigest;
use crate::consumer::Taker;
use crate::data::{Data, Opened};
use crate::feed::{self, PointBatch, PointEpoch, PointLoader};
use crate::label_entropy::{Labels, Meters};
use crate::open::{OpenData, point_loader};
use crate::point::Point;
use crate::record::{ROW_CACHE, as_it_ran, versions};
use crate::task::{PointAnswer, PointTask, PointWork};

/// Reads an order from stdin, performs it and reports on stdout. Fails with the order's error.
pub fn serve() -> anyhow::Result<()> {
    bench_run::serve(|task: &PointTask| task.data.secrets(), perform)
}

fn perform(order: &Order<PointTask>, reporter: &mut Reporter<PointAnswer>) -> anyhow::Result<()> {
    // A rank of a launcher does not choose them before, since the others could not hear of a
    // failure.
    let data = &order.task.data.clone().with_names()?;
    match &order.task.work {
        PointWork::Check(points) => check(data, points, reporter),
        PointWork::Measure(point) => measure(data, point, &order.cache, reporter),
    }
}

fn check(
    data: &Data,
    points: &[Point],
    reporter: &mut Reporter<PointAnswer>,
) -> anyhow::Result<()> {
    // All points of a grid have the same consumer.
    let label = points.first().and_then(|point| point.consumer.label());
    let open = OpenData::open(data, label)?;
    reporter.answer(PointAnswer::Opened(open.opened))?;
    for point in points {
        point_loader(open.dataset.clone(), point, reporter.grown_bytes()?)
            .with_context(|| point.to_string())?;
    }
    Ok(())
}

fn measure(
    data: &Data,
    point: &Point,
    cache: &str,
    reporter: &mut Reporter<PointAnswer>,
) -> anyhow::Result<()> {
    let cache = match point.cold {
        // Opening the data is measured, too.
        Some(how) => reporter.cool(data.folders().as_deref(), how)?,
        None => cache.to_owned(),
    };
    let link = data.link.as_ref().map(LinkMeter::start).transpose()?;
    let opening = Instant::now();
    let OpenData { dataset, labels, opened, n_classes, bucket } =
        OpenData::open(data, point.consumer.label())?;
    reporter.answer(PointAnswer::Opened(opened.clone()))?;
    let loader = point_loader(dataset, point, reporter.grown_bytes()?)?;
    let open_secs = opening.elapsed().as_secs_f64();
    let taker = point.consumer.ready(&loader, n_classes)?;
    let row_caches = RowCacheMeter::default();
    if let Some(World { rank, .. }) = point.rank() {
        if rank == 0 {
            expect_cells(&loader, point, reporter)?;
        }
        reporter.wait_for_start()?;
    }
    let mut measuring =
        Measuring { loader: &loader, point, data, opened, taker, cache, bucket, link, row_caches };
    measuring.run(&labels, open_secs, reporter)
}

/// Reports the cells that all ranks together have to deliver in each epoch.
fn expect_cells(
    loader: &PointLoader,
    point: &Point,
    reporter: &mut Reporter<PointAnswer>,
) -> anyhow::Result<()> {
    let (dataset, spec) = (feed::inner(loader).dataset(), feed::inner(loader).spec());
    let digests = CellDigest::of_epochs(dataset, spec, (point.n_epochs, point.max_batches))?;
    for (epoch, cells) in (0..).zip(digests) {
        reporter.answer(PointAnswer::Expected { epoch, cells: cells? })?;
    }
    Ok(())
}

/// Measures the epochs of one point.
struct Measuring<'a> {
    loader: &'a PointLoader,
    point: &'a Point,
    data: &'a Data,
    opened: Opened,
    taker: Taker,
    /// State of the page cache when the next epoch begins.
    cache: String,
    /// Token bucket that limits the reader, if it enforces the limit.
    bucket: Option<Arc<ReadLimit>>,
    /// Counts of the link's server, if there is a link.
    link: Option<LinkMeter>,
    /// Counts of the caches of rows so far.
    row_caches: RowCacheMeter,
}

impl Measuring<'_> {
    /// Measures and reports all epochs. The first one's row also records `open_secs`.
    fn run(
        &mut self,
        labels: &Labels,
        open_secs: f64,
        reporter: &mut Reporter<PointAnswer>,
    ) -> anyhow::Result<()> {
        let (dataset, spec) = (feed::inner(self.loader).dataset(), feed::inner(self.loader).spec());
        let expected = labels.expected(dataset, &spec.pipeline, self.point.max_batches)?;
        let (data, bucket, loader) = (self.data, self.bucket.clone(), self.loader);
        // Epochs follow one another like in training, unless the cache must be emptied between two
        // of them or bytes must be counted per epoch.
        let is_apart = self.point.cold.is_some() || data.io_limit.is_some();
        let mut following = (!is_apart).then(|| loader.epochs(0..self.point.n_epochs));
        for epoch in 0..self.point.n_epochs {
            if let Some(how) = self.point.cold {
                self.cache = reporter.cool(data.folders().as_deref(), how)?;
            }
            let mut meters = labels.meters(&spec.pipeline)?;
            let limit = data.io_limit.as_ref();
            let io = limit.map(|limit| LimitMeter::start(limit, bucket.as_deref())).transpose()?;
            let start = || match &mut following {
                Some(epochs) => {
                    epochs.next().context("there are no more epochs")?.map_err(Into::into)
                }
                None => Ok(loader.epoch(epoch)?),
            };
            let mut record = self.measure((epoch, start), &mut meters, reporter)?;
            let elapsed = record.measured.elapsed.unwrap_or(0.0);
            io.map_or(Ok(()), |io| io.finish(&mut record.measured, elapsed))?;
            record.measured.open_secs = (epoch == 0).then_some(open_secs);
            record.measured.order_entropy = meters.measured(&expected);
            reporter.answer(PointAnswer::Epoch(Box::new(record)))?;
        }
        for cache in caches(feed::inner(self.loader).dataset()) {
            if let Some(problem) = cache.problem {
                let n_blocks = cache.stats.not_kept;
                let message = format!("{n_blocks} blocks could not be cached: {problem}");
                reporter.warn(&message)?;
            }
        }
        for cache in row_caches(feed::inner(self.loader).dataset()) {
            if let Some(problem) = cache.problem {
                let n_pages = cache.stats.not_written;
                let message = format!("{n_pages} pages of rows could not be cached: {problem}");
                reporter.warn(&message)?;
            }
        }
        Ok(())
    }

    /// Measures an epoch, given its number and a function that starts it.
    fn measure(
        &mut self,
        (epoch, start): (u64, impl FnOnce() -> anyhow::Result<PointEpoch>),
        meters: &mut Meters<'_>,
        reporter: &mut Reporter<PointAnswer>,
    ) -> anyhow::Result<EpochRecord> {
        self.link.as_mut().map_or(Ok(()), LinkMeter::begin_epoch)?;
        let meter = EpochMeter::start()?;
        let mut delivered = self.point.rank().map(|_| CellDigest::default());
        let (consumed, stats) = self.consume(start, (meters, &mut delivered), reporter)?;
        let used = self.link.as_mut().map(LinkMeter::end_epoch).transpose()?;
        let point = as_it_ran(&stats, self.point, self.data, &self.cache);
        let mut record = meter.record(epoch, point, &consumed)?;
        if let Some(cells) = delivered {
            reporter.answer(PointAnswer::Delivered { epoch, cells })?;
        }
        enter_engine(&mut record, std::slice::from_ref(&stats.engine));
        let (measured, stages) = (&mut record.measured, &mut record.stages);
        measured.rank = self.point.rank().map(|world| world.rank);
        let dataset = feed::inner(self.loader).dataset();
        enter_stats(measured, &stats.engine, dataset.n_rows());
        if let (Some(link), Some(used)) = (&mut self.link, &used) {
            let share = self.data.share_needed(measured, &self.opened);
            link.enter(used, share, measured);
        }
        measured.kept_decoded_bytes = Some(dataset.decoded_bytes());
        enter_memory(measured, &feed::inner(self.loader).cell_memory());
        for cache in caches(dataset) {
            *measured.cache_hits.get_or_insert(0) += cache.stats.hits;
            *measured.cache_misses.get_or_insert(0) += cache.stats.misses;
        }
        let has_row_cache = self.row_caches.enter(dataset, measured);
        stages.shuffle_wall_secs = Some(stats.engine.stages.shuffle.wall_secs);
        stages.shuffle_cpu_secs = stats.engine.stages.shuffle.cpu_secs;
        stages.densify_wall_secs = Some(stats.engine.stages.assemble.wall_secs);
        stages.densify_cpu_secs = stats.engine.stages.assemble.cpu_secs;
        if !has_row_cache {
            record.point.settings.remove(&[ROW_CACHE]);
        }
        record.versions = versions();
        Ok(record)
    }

    /// Consumes the batches like training would. Counting labels and, for a rank, cells is part of
    /// the consumer's time. Rows are counted without padding.
    fn consume(
        &mut self,
        start: impl FnOnce() -> anyhow::Result<PointEpoch>,
        (meters, delivered): (&mut Meters<'_>, &mut Option<CellDigest>),
        reporter: &mut Reporter<PointAnswer>,
    ) -> anyhow::Result<(ConsumedEpoch, EpochStats)> {
        let max_batches = self.point.max_batches;
        // The epoch begins with the request for it: planning time is part of the first wait.
        let asked = Instant::now();
        let mut batches = start()?;
        let (dataset, spec) = (feed::inner(self.loader).dataset(), feed::inner(self.loader).spec());
        let n_batches = max_batches.unwrap_or(u64::MAX).min(batches.n_batches());
        let of_rank = dataset.n_rows().div_ceil(spec.pipeline.world.size);
        let of_rows = of_rank.min(n_batches.saturating_mul(spec.pipeline.batch_rows));
        let (mut n_rows, taker) = (0, &mut self.taker);
        let taken = batches.by_ref().map(|batch| Ok(batch?));
        let consumed = consume_epoch(asked, taken, max_batches, |batch| {
            let rows = (batch.n_rows() - feed::n_padding(&batch)) as u64;
            meters.add(&batch)?;
            if let Some(delivered) = delivered {
                add_cells(&batch, delivered)?;
            }
            let compute = taker.take(&batch)?;
            drop(batch);
            n_rows += rows;
            reporter.progress(n_rows, of_rows)?;
            Ok(ConsumedBatch { n_rows: rows, compute })
        })?;
        Ok((consumed, batches.stats()))
    }
}

/// Adds the cells of a batch without its padding.
fn add_cells(batch: &PointBatch, delivered: &mut CellDigest) -> anyhow::Result<()> {
    let joinids = feed::joinids(batch)?;
    let cells = &joinids[..joinids.len() - feed::n_padding(batch)];
    for joinid in cells {
        delivered.add(joinid.cast_unsigned());
    }
    Ok(())
}

/// Counts of the caches of rows when the epoch before ended.
#[derive(Clone, Copy, Default)]
struct RowCacheMeter {
    hits: u64,
    misses: u64,
}

impl RowCacheMeter {
    /// Records what the caches of rows did since the last time. Returns whether there are any.
    fn enter(&mut self, dataset: &Dataset, measured: &mut Measured) -> bool {
        let caches: Vec<RowCacheUse> = row_caches(dataset).collect();
        if caches.is_empty() {
            return false;
        }
        let hits = caches.iter().map(|cache| cache.stats.hits).sum();
        let misses = caches.iter().map(|cache| cache.stats.misses).sum();
        let before = std::mem::replace(self, Self { hits, misses });
        measured.row_cache_hits = Some(hits - before.hits);
        measured.row_cache_misses = Some(misses - before.misses);
        measured.row_cache_bytes = caches.iter().filter_map(|cache| cache.disk_bytes).max();
        true
    }
}

/// Returns the use of each cache of decoded rows.
fn row_caches(dataset: &Dataset) -> impl Iterator<Item = RowCacheUse> + '_ {
    dataset.readers().filter_map(|reader| reader.row_cache())
}

/// Returns the use of each cache in front of an object store.
fn caches(dataset: &Dataset) -> impl Iterator<Item = CacheUse> + '_ {
    dataset.readers().filter_map(|reader| reader.cache())
}

/// Copies the memory that grows with the cells into `measured`.
fn enter_memory(measured: &mut Measured, memory: &CellMemory) {
    measured.joinid_bytes = Some(memory.joinids);
    measured.obs_bytes = Some(memory.obs);
    measured.code_bytes = Some(memory.codes);
    measured.total_bytes = Some(memory.totals);
    measured.order_bytes = Some(memory.order);
    measured.index_bytes = Some(memory.index);
}

/// Copies what the engine counted of cells into `measured`. It counts values by block, so their
/// number is recorded only if every row was delivered. Amplification compares decoded with needed
/// bytes of the same blocks in any case.
fn enter_stats(measured: &mut Measured, stats: &pipeline::EpochStats, n_rows: u64) {
    measured.densify_secs = Some(stats.convert_secs + stats.batch_secs);
    measured.batch_ready_batches = stats.ready_batches.iter().copied().map(f64::from).collect();
    measured.requests = stats.read.requests.filter(|requests| 0 < *requests);
    measured.cells_decoded = stats.read.values_decoded;
    measured.nnz = Some(stats.read.values);
    measured.fill_rates();
    let whole = stats.n_rows == n_rows;
    measured.nnz = whole.then_some(stats.read.values);
    measured.nnz_per_sec = measured
        .elapsed
        .filter(|secs| whole && 0.0 < *secs)
        .map(|secs| stats.read.values as f64 / secs);
}
