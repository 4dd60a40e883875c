//! Runs the epochs of a point, and measures each.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use bench_report::{EpochRecord, GridPoint, accelerator_utilization};
use bench_run::{
    EpochMeter, LabelCodes, LimitMeter, MOST_CACHED_IF_COLD, OrderMeter, PageCache, Reporter,
    cached_share, consume_epoch, enter_engine,
};
use images::{ImageBatch, ImageSamples};
use pipeline::Pipeline;
use storage::ReadLimit;

use super::core_loads::CoreLoads;
use super::point::Point;
use super::settings::Release;
use super::task::{CubeAnswer, CubeData};
use crate::device::{Clock, Device, Mark};
use crate::sampler::INTERVAL;

/// The epochs of a point, and what takes their batches.
pub(crate) struct Epochs<'a> {
    pub(crate) data: &'a CubeData,
    pub(crate) point: &'a Point,
    pub(crate) pipeline: &'a Pipeline<ImageSamples>,
    pub(crate) bucket: Option<Arc<ReadLimit>>,
    pub(crate) device: Option<Box<dyn Device>>,
    pub(crate) cores: CoreLoads,
    pub(crate) clock: Arc<dyn Clock>,
    /// State of the page cache when the next epoch begins.
    pub(crate) cache: String,
    pub(crate) open_secs: f64,
}

/// An epoch whose batches have been taken, and that the device may still compute on.
struct Taken {
    record: EpochRecord,
    /// When it was asked for, and when its last batch was handed over.
    asked: Duration,
    handed_over: Duration,
    /// The end of the device's work on its first batch.
    first: Option<Mark>,
    mark: Option<Mark>,
}

impl Epochs<'_> {
    /// Measures and reports all epochs.
    ///
    /// With a gap between epochs, an epoch lasts from the request for its first batch until the
    /// device has done its work. Without one, the next epoch's batches are asked for at once: an
    /// epoch lasts from the end of the device's work on the epoch before to the end of its own. Its
    /// rows are reported at the end of the process, when it is known whether reads were cold.
    pub(crate) fn run(mut self, reporter: &mut Reporter<CubeAnswer>) -> anyhow::Result<()> {
        let is_gapless = self.point.settings.gapless;
        let pipeline = self.pipeline;
        let label = self.point.entropy_of;
        let labels = label.map(|label| label.codes(pipeline.source().data())).transpose()?;
        let mut following = is_gapless.then(|| pipeline.epochs(0..self.point.epochs));
        let mut taken = Vec::new();
        for number in 0..self.point.epochs {
            if number == 0 || !is_gapless {
                self.cool(reporter)?;
            }
            let epoch = || match &mut following {
                Some(epochs) => Ok(epochs.next().context("there are no more epochs")??),
                None => Ok(pipeline.epoch(number)?),
            };
            let epoch = self.take(number, epoch, labels.as_ref(), reporter)?;
            if is_gapless {
                taken.push(epoch);
            } else {
                let end = epoch.handed_over;
                let (record, _) = self.finished(epoch, None, end)?;
                reporter.answer(Box::new(record))?;
            }
        }
        self.finish_gapless(taken, reporter)
    }

    /// Reports epochs without a gap between them.
    fn finish_gapless(
        &mut self,
        taken: Vec<Taken>,
        reporter: &mut Reporter<CubeAnswer>,
    ) -> anyhow::Result<()> {
        if taken.is_empty() {
            return Ok(());
        }
        let mut records = Vec::new();
        let mut before = None;
        for epoch in taken {
            let end = match (&mut self.device, epoch.mark) {
                (Some(device), Some(mark)) => device.reached(mark)?,
                _ => epoch.handed_over,
            };
            let (record, end) = self.finished(epoch, before, end)?;
            before = Some(end);
            records.push(record);
        }
        let cache = self.cache_of_later_epochs(reporter)?;
        for (mut record, number) in records.into_iter().zip(0..) {
            if let Some(cache) = cache.as_ref().filter(|_| 0 < number) {
                record.point.cache.clone_from(cache);
            }
            reporter.answer(Box::new(record))?;
        }
        Ok(())
    }

    /// Takes the batches of an epoch.
    fn take(
        &mut self,
        number: u64,
        epoch: impl FnOnce() -> anyhow::Result<pipeline::Epoch<ImageSamples>>,
        labels: Option<&LabelCodes>,
        reporter: &mut Reporter<CubeAnswer>,
    ) -> anyhow::Result<Taken> {
        let bucket = self.bucket.clone();
        let limit = self.point.io_limit.as_ref();
        let limit = limit.map(|limit| LimitMeter::start(limit, bucket.as_deref())).transpose()?;
        let meter = EpochMeter::start()?;
        let asked = self.clock.now();
        let mut batches = epoch()?;
        let mut facts = BatchFacts::default();
        let (spec, max_batches) = (self.point.pipeline_spec(), self.point.max_batches);
        let mut order = labels.map(|labels| labels.meter(&spec, max_batches)).transpose()?;
        let n_batches = self.pipeline.n_batches().min(self.point.max_batches.unwrap_or(u64::MAX));
        let of_rows = self.pipeline.source().n_samples().min(n_batches * self.point.batch);
        let mut first = None;
        let consumed = {
            let taken = batches.by_ref().map(|batch| Ok(batch?));
            consume_epoch(meter.start, taken, self.point.max_batches, |batch| {
                let n_cubes = facts.add(&batch);
                order.as_mut().map_or(Ok(()), |order| order.add(batch.samples()))?;
                self.hand_over(batch)?;
                first = first.or_else(|| self.device.as_mut().map(|device| device.mark()));
                reporter.progress(facts.n_cubes, of_rows)?;
                Ok(n_cubes)
            })?
        };
        if !self.point.settings.gapless
            && let Some(device) = &mut self.device
        {
            device.synchronize()?;
        }
        let handed_over = self.clock.now();
        let mark = self.device.as_mut().map(|device| device.mark());
        let point = GridPoint { form: facts.form.clone(), ..self.point.recorded(&self.cache) };
        let mut record = meter.record(number, point, &consumed)?;
        enter_engine(&mut record, &[batches.stats()]);
        record.measured.order_entropy = order.map(OrderMeter::measured).into_iter().collect();
        record.versions = self.point.consumer.versions();
        record.measured.open_secs = (number == 0).then_some(self.open_secs);
        record.measured.pinned_bytes = Some(facts.pinned_bytes(self.pipeline.source()));
        let elapsed = handed_over.saturating_sub(asked).as_secs_f64();
        limit.map_or(Ok(()), |limit| limit.finish(&mut record.measured, elapsed))?;
        Ok(Taken { record, asked, handed_over, first, mark })
    }

    /// Gives a batch to the device; drops it if there is none.
    fn hand_over(&mut self, batch: ImageBatch) -> anyhow::Result<()> {
        let Some(device) = &mut self.device else { return Ok(()) };
        device.submit(batch)?;
        match self.point.settings.release {
            Release::Sync => device.synchronize(),
            Release::Event => Ok(()),
        }
    }

    /// Completes the record of an epoch that lasted until `end`, from `before` or, if that is not
    /// given, from the request for it. Returns the end, too.
    fn finished(
        &mut self,
        epoch: Taken,
        before: Option<Duration>,
        end: Duration,
    ) -> anyhow::Result<(EpochRecord, Duration)> {
        let from = before.unwrap_or(epoch.asked);
        let end = end.max(from);
        let elapsed = end.saturating_sub(from).as_secs_f64();
        let mut record = epoch.record;
        let measured = &mut record.measured;
        let before_first = measured.elapsed.zip(measured.elapsed_after_first);
        let before_first = before_first.map(|(all, after)| all - after);
        measured.elapsed = Some(elapsed);
        measured.elapsed_after_first =
            before_first.map(|before_first| (elapsed - before_first).max(0.0));
        let rate = |n_rows: Option<u64>, secs: Option<f64>| {
            Some(n_rows? as f64 / secs.filter(|secs| 0.0 < *secs)?)
        };
        measured.samples_per_sec = rate(measured.n_rows, measured.elapsed);
        measured.samples_per_sec_after_first =
            rate(measured.n_rows_after_first, measured.elapsed_after_first);
        // The shares of the host's waits and work stay those of its own time: without a gap between
        // epochs, it is ahead of the device.
        measured.sample_interval_secs = Some(INTERVAL.as_secs_f64());
        measured.core_loads = self.cores.between(from, end)?;
        if let Some(device) = &mut self.device {
            let busy = device.busy_secs(from, end)?;
            measured.device_busy_share = (0.0 < elapsed).then(|| busy / elapsed);
            measured.device_busy = device.busy_shares(from, end, INTERVAL)?;
            if let Some(first) = epoch.first {
                // Without the first batch, as for a consumer that computes itself.
                let from = device.reached(first)?.clamp(from, end);
                let busy = device.busy_secs(from, end)?;
                let secs = end.saturating_sub(from).as_secs_f64();
                measured.accelerator_utilization = accelerator_utilization(busy, secs);
            }
        }
        Ok((record, end))
    }

    /// Removes the files that are read from the page cache, if reads are to be cold.
    fn cool(&mut self, reporter: &mut Reporter<CubeAnswer>) -> anyhow::Result<()> {
        let Some(how) = self.point.cold else { return Ok(()) };
        self.cache = reporter.cool(Some(&self.data.folders(self.point.settings.form)), how)?;
        Ok(())
    }

    /// State of the page cache in which the epochs after the first were read, if files left the
    /// cache when they were read.
    fn cache_of_later_epochs(
        &self,
        reporter: &mut Reporter<CubeAnswer>,
    ) -> anyhow::Result<Option<String>> {
        if !self.point.evicts() {
            return Ok(None);
        }
        let share = cached_share(&self.data.folders(self.point.settings.form));
        let share = share.context("cannot tell whether reads were cold")?;
        if share <= MOST_CACHED_IF_COLD {
            return Ok(Some(PageCache::Advised.name().to_owned()));
        }
        let why = format!("{:.0} % of the pages that were read are cached still", 100.0 * share);
        reporter.warn(&format!("reads after the first epoch were not cold: {why}"))?;
        Ok(Some(PageCache::Unknown(why).name().to_owned()))
    }
}

/// What the batches of an epoch were.
#[derive(Debug, Default)]
struct BatchFacts {
    n_cubes: u64,
    /// Form of the cubes' elements in rows.
    form: String,
    is_pinned: bool,
    most_bytes: u64,
}

impl BatchFacts {
    /// Counts a batch; returns its number of cubes.
    fn add(&mut self, batch: &ImageBatch) -> u64 {
        let n_cubes = batch.n_samples() as u64;
        self.n_cubes += n_cubes;
        if let Some(cubes) = batch.keys().next() {
            let is_f16 = cubes.element() == arrays::ElementType::F16;
            if is_f16 { "f16" } else { "dense" }.clone_into(&mut self.form);
        }
        self.is_pinned |= batch.is_pinned();
        let n_bytes = batch.keys().map(|key| key.bytes().len() as u64).sum();
        self.most_bytes = self.most_bytes.max(n_bytes);
        n_cubes
    }

    /// Bytes of pinned memory: the ring's, or a batch's.
    fn pinned_bytes(&self, samples: &ImageSamples) -> u64 {
        if !self.is_pinned {
            return 0;
        }
        samples.ring().map_or(self.most_bytes, |ring| (ring.n_slots() * ring.slot_bytes()) as u64)
    }
}
