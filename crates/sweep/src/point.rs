//! The process that measures one point: opens the data, runs its epochs, and tells what happened line by line.

use std::io::{self, Read as _, Write as _};
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow, bail};
use bench_report::{
    BatchSample, EpochRecord, Measured, ProcessMeter, resident_bytes, thread_cpu_secs,
};
use bytesize::ByteSize;
use jiff::Timestamp;
use loader::encode::{Encoder, LabelEncoder, Nulls, Rules};
use loader::{
    AxisQuery, Dataset, DatasetSpec, EpochStats, Genes, Joinids, StageTimes, ValueFilter,
};
use rustix::process::{Signal, set_parent_process_death_signal};
use soma_io::{CacheUse, Experiment, OpenOptions, ReadLimit};
use torch_feed::{TensorEpoch, TensorLoader};

use crate::consumer::{self, Taker};
use crate::io_limit::{IoLimit, IoMeter};
use crate::job::{Data, Event, Job, Opened, Point, Task};
use crate::label_entropy::{self, Labels, Meters};
use crate::page_cache::{self, Cold, PageCache};
use crate::peers::{Delivered, Tally};
use crate::point_settings::{as_it_ran, versions};
use crate::secrets::Secrets;
use crate::{read_chunks, readers_command, tune};

/// How often an epoch says how far it is.
const PROGRESS: Duration = Duration::from_millis(200);

/// Reads the job from stdin and does it. What goes wrong is told as an event; the error that is returned is for the exit code.
pub(crate) fn run() -> anyhow::Result<()> {
    // What nobody listens to is not worth measuring. Elsewhere than on Linux it ends when it next says something.
    let _unsupported = set_parent_process_death_signal(Some(Signal::KILL));
    // Before anything is opened: all that comes counts for the memory that may be taken.
    let start_bytes = resident_bytes()?;
    let mut text = String::new();
    io::stdin().read_to_string(&mut text).context("cannot read the job from stdin")?;
    let job: Job =
        serde_json::from_str(&text).context("stdin holds no job; `point` is started by `sweep`")?;
    match perform(&job, start_bytes, &mut tell) {
        Ok(()) => tell(&Event::Done),
        Err(error) => {
            let message = Secrets::of(&job.data).hide(&one_line(&format!("{error:#}")));
            tell(&Event::Failed { message: message.clone() })?;
            Err(anyhow!(message))
        }
    }
}

/// Fails once nobody listens any more, which ends the process.
fn tell(event: &Event) -> anyhow::Result<()> {
    let mut line = serde_json::to_string(event).context("cannot write down an event")?;
    line.push('\n');
    let mut out = io::stdout().lock();
    out.write_all(line.as_bytes()).and_then(|()| out.flush()).context("the sweep has ended")
}

/// libtorch's messages carry a stack trace below the first line.
fn one_line(message: &str) -> String {
    message.lines().next().unwrap_or_default().trim().to_owned()
}

fn perform(
    job: &Job,
    start_bytes: u64,
    tell: &mut dyn FnMut(&Event) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let taken = || anyhow::Ok(resident_bytes()?.saturating_sub(start_bytes));
    let limit = &job.data.io_limit;
    limit.as_ref().map_or(Ok(()), IoLimit::enter)?;
    let bucket = limit.as_ref().and_then(IoLimit::bucket);
    match &job.task {
        Task::Check(points) => {
            // All points of a grid have one consumer.
            let label = points.first().and_then(|point| point.consumer.label());
            let opened = open(&job.data, bucket.as_ref(), label, tell)?;
            for point in points {
                loader(opened.dataset.clone(), point, &job.data, taken()?)
                    .with_context(|| point.to_string())?;
            }
            Ok(())
        }
        Task::Measure(point) => {
            let cache = match point.cold {
                // Opening is measured, too.
                Some(_) => cooled(&job.data, point, tell)?,
                None => job.cache.clone(),
            };
            let opening = Instant::now();
            let opened = open(&job.data, bucket.as_ref(), point.consumer.label(), tell)?;
            let loader = loader(opened.dataset, point, &job.data, taken()?)?;
            let open_secs = opening.elapsed().as_secs_f64();
            let taker = point.consumer.ready(&loader, opened.n_classes);
            let mut measuring = Measuring { loader: &loader, point, job, taker, cache, bucket };
            measuring.run(&opened.labels, open_secs, tell)
        }
        Task::Tally(point) => {
            let opened = open(&job.data, bucket.as_ref(), None, tell)?;
            let loader = loader(opened.dataset, point, &job.data, taken()?)?;
            let delivered = tally(&loader, tell)?;
            tell(&Event::Delivered(delivered))
        }
        Task::Read { kind, seed } => {
            let peak_bytes = readers_command::read(&job.data, *kind, *seed)?;
            tell(&Event::Read { peak_bytes })
        }
        Task::ReadChunks(chunks) => {
            let read = read_chunks::read(&job.data, chunks, tell)?;
            tell(&Event::ChunksRead(Box::new(read)))
        }
        Task::Relayout { target } => {
            let took = crate::peers::relayout(&job.data, target, tell)?;
            tell(&Event::PeerConversion(took))
        }
        Task::Survey(survey) => {
            let OpenData { dataset, labels, .. } = open(&job.data, bucket.as_ref(), None, tell)?;
            let surveyed = tune::survey(&dataset, &labels, survey)?;
            tell(&Event::Surveyed(Box::new(surveyed)))
        }
    }
}

/// The loader of a point, in a process that has taken so many bytes since its start.
fn loader(
    dataset: Dataset,
    point: &Point,
    data: &Data,
    taken: u64,
) -> anyhow::Result<TensorLoader> {
    match TensorLoader::new(dataset, point.loader_spec(data, taken)?) {
        Err(torch_feed::Error::Loader(loader::Error::Pipeline(pipeline::Error::Memory {
            least,
            ..
        }))) => bail!(
            "--memory {} is too little for blocks of {} chunks of {} rows: give {} or more, or make blocks or batches smaller",
            ByteSize(point.memory_limit.unwrap_or(0)),
            point.chunks_per_block,
            point.chunk_rows,
            ByteSize(least.saturating_add(taken)),
        ),
        loader => Ok(loader?),
    }
}

/// The data as a point needs it.
struct OpenData {
    dataset: Dataset,
    /// By which it is seen how random an order is.
    labels: Labels,
    /// Of what the consumer learns.
    n_classes: usize,
}

/// The data set, which is told about, with the classes of the obs column that the consumer learns.
fn open(
    data: &Data,
    limit: Option<&Arc<ReadLimit>>,
    learned: Option<&str>,
    tell: &mut dyn FnMut(&Event) -> anyhow::Result<()>,
) -> anyhow::Result<OpenData> {
    let options = OpenOptions { config: data.config.clone(), ..OpenOptions::default() };
    let mut experiment = Experiment::open(data.uri.full(), &options)?;
    if let Some(limit) = limit {
        experiment = experiment.with_read_limit(Arc::clone(limit));
    }
    let x = experiment.measurement(&data.measurement)?.x(&data.layer)?;
    let obs = experiment.obs()?;
    let labels = label_entropy::columns(data.entropy_of.as_deref(), obs.schema());
    let mut obs_columns = data.obs_columns.clone();
    for column in labels.iter().map(String::as_str).chain(learned) {
        if !obs_columns.iter().any(|known| known == column) {
            obs_columns.push(column.to_owned());
        }
    }
    let spec = DatasetSpec {
        measurement: data.measurement.clone(),
        layer: data.layer.clone(),
        obs_columns,
        cells: query(
            data.cells.clone().map(|cells| within(cells, x.shape().0)).transpose()?,
            data.obs_filter.as_deref(),
        )?,
        genes: Genes::Query(query(data.n_genes.map(|n| 0..n), data.var_filter.as_deref())?),
        totals: data.totals.clone(),
        var_columns: Vec::new(),
        reader: data.reader.parse()?,
    };
    let dataset =
        Dataset::from_experiment(&experiment, &spec).with_context(|| data.uri.to_string())?;
    if dataset.n_rows() == 0 {
        bail!("{} has no cells in the selection", data.uri);
    }
    tell(&Event::Opened(Opened {
        n_cells: dataset.n_rows(),
        n_genes: dataset.n_columns() as u64,
        total_nnz: x.nnz()?,
        reader: dataset.reader_name(),
        why_not_native: dataset.why_not_native().map(str::to_owned),
    }))?;
    let classes = learned.map(|column| classes(&dataset, column)).transpose()?;
    let n_classes = classes.as_ref().and_then(|classes| classes.n_classes()).unwrap_or(0);
    let (labels, dataset) = Labels::of(dataset, &labels, classes.into_iter().collect())?;
    Ok(OpenData { dataset, labels, n_classes })
}

/// The classes of an obs column, null among them.
fn classes(dataset: &Dataset, column: &str) -> anyhow::Result<Arc<dyn Encoder>> {
    let rules = Rules { nulls: Nulls::Class, ..Rules::default() };
    let labels = dataset.obs().column_by_name(column).context("an obs column was asked for")?;
    let encoder = LabelEncoder::fit(column, labels, rules)
        .with_context(|| format!("--consumer linear:{column} has no classes to learn"))?;
    Ok(Arc::new(encoder.with_name(consumer::CLASSES)))
}

fn query(joinids: Option<Range<u64>>, filter: Option<&str>) -> anyhow::Result<AxisQuery> {
    Ok(AxisQuery {
        joinids: joinids.map_or(Joinids::All, Joinids::Range),
        value_filter: filter.map(ValueFilter::parse).transpose()?,
    })
}

/// A range without an end goes to the last row; one that goes further was meant for other data.
fn within(cells: Range<u64>, x_rows: u64) -> anyhow::Result<Range<u64>> {
    let end = if cells.end == u64::MAX { x_rows } else { cells.end };
    if x_rows < end || end <= cells.start {
        bail!("cells {}..{end} are asked for, X has rows 0..{x_rows}", cells.start);
    }
    Ok(cells.start..end)
}

/// What measures the epochs of one point.
struct Measuring<'a> {
    loader: &'a TensorLoader,
    point: &'a Point,
    job: &'a Job,
    taker: Taker,
    /// State of the page cache when the next epoch begins.
    cache: String,
    /// That the reader's bytes go through.
    bucket: Option<Arc<ReadLimit>>,
}

/// What the consumer saw of an epoch.
struct Consumed {
    batches: Vec<BatchSample>,
    end_wait_secs: f64,
    stats: EpochStats,
    /// On the consumer's thread, with batches.
    busy_cpu_secs: f64,
}

impl Measuring<'_> {
    /// Measures all epochs, the first of which began with opening the data.
    fn run(
        &mut self,
        labels: &Labels,
        open_secs: f64,
        tell: &mut dyn FnMut(&Event) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let (dataset, spec) = (self.loader.loader().dataset(), self.loader.loader().spec());
        let expected = labels.expected(dataset, spec, self.point.max_batches)?;
        let (job, bucket, loader) = (self.job, self.bucket.clone(), self.loader);
        // As training runs them, unless something must happen between two epochs, or each one's bytes
        // must be its own.
        let is_apart = self.point.cold.is_some() || job.data.io_limit.is_some();
        let mut following = (!is_apart).then(|| loader.epochs(0..self.point.n_epochs));
        for epoch in 0..self.point.n_epochs {
            if self.point.cold.is_some() {
                self.cache = cooled(&self.job.data, self.point, tell)?;
            }
            let mut meters = labels.meters(self.loader.loader().spec().batch_rows)?;
            let limit = job.data.io_limit.as_ref();
            let io = limit.map(|limit| IoMeter::start(limit, bucket.as_deref())).transpose()?;
            let start = || match &mut following {
                Some(epochs) => {
                    epochs.next().context("there are no more epochs")?.map_err(Into::into)
                }
                None => Ok(loader.epoch(epoch)?),
            };
            let mut record = self.measure((epoch, start), &mut meters, tell)?;
            io.map_or(Ok(()), |io| io.finish(&mut record.measured))?;
            record.measured.open_secs = (epoch == 0).then_some(open_secs);
            record.measured.order_entropy = meters.measured(&expected);
            tell(&Event::Epoch(Box::new(record)))?;
        }
        for cache in caches(self.loader.loader().dataset()) {
            if let Some(problem) = cache.problem {
                let n_blocks = cache.stats.not_kept;
                let message = format!("{n_blocks} blocks could not be cached: {problem}");
                tell(&Event::Warning { message: one_line(&message) })?;
            }
        }
        Ok(())
    }

    /// Measures an epoch, given its number and what starts it.
    fn measure(
        &mut self,
        (epoch, start): (u64, impl FnOnce() -> anyhow::Result<TensorEpoch>),
        meters: &mut Meters<'_>,
        tell: &mut dyn FnMut(&Event) -> anyhow::Result<()>,
    ) -> anyhow::Result<EpochRecord> {
        let meter = ProcessMeter::start()?;
        let start_dt = Timestamp::now();
        let consumed = self.consume(start, meters, tell)?;
        let Consumed { batches, end_wait_secs, stats, busy_cpu_secs } = consumed;
        let mut measured = Measured::from_batches(&batches, end_wait_secs);
        meter.finish(&mut measured)?;
        measured.start_dt = Some(start_dt);
        measured.end_dt = Some(Timestamp::now());
        measured.epoch = Some(epoch);
        let dataset = self.loader.loader().dataset();
        enter_stats(&mut measured, &stats, dataset.n_rows());
        measured.kept_decoded_bytes = Some(dataset.decoded_bytes());
        for cache in caches(dataset) {
            *measured.cache_hits.get_or_insert(0) += cache.stats.hits;
            *measured.cache_misses.get_or_insert(0) += cache.stats.misses;
        }
        let mut stages = stage_columns(&stats.stages);
        stages.consume_wall_secs = measured.consume_secs;
        stages.consume_cpu_secs = Some(busy_cpu_secs);
        Ok(EpochRecord {
            versions: versions(),
            point: as_it_ran(&stats, self.point, &self.job.data, &self.cache),
            measured,
            stages,
            ..EpochRecord::default()
        })
    }

    /// Takes the batches as training would, and times the waits for them. Counting labels is part of the time.
    fn consume(
        &mut self,
        start: impl FnOnce() -> anyhow::Result<TensorEpoch>,
        meters: &mut Meters<'_>,
        tell: &mut dyn FnMut(&Event) -> anyhow::Result<()>,
    ) -> anyhow::Result<Consumed> {
        let max_batches = self.point.max_batches;
        // The epoch begins when it is asked for: what its plan takes is part of the first wait.
        let mut asked = Instant::now();
        let mut batches = start()?;
        let (dataset, spec) = (self.loader.loader().dataset(), self.loader.loader().spec());
        let n_batches = max_batches.unwrap_or(u64::MAX).min(batches.n_batches());
        let of_rows = dataset.n_rows().min(n_batches.saturating_mul(spec.batch_rows));
        let mut samples: Vec<BatchSample> = Vec::with_capacity(n_batches as usize);
        let (mut n_rows, mut told, mut busy_cpu_secs) = (0, Instant::now(), 0.0);
        let mut end_wait_secs = 0.0;
        // The end is asked for too: an epoch is over when the loader says so, unless it is cut off.
        while max_batches.is_none_or(|most| (samples.len() as u64) < most) {
            let Some(batch) = batches.next() else {
                end_wait_secs = asked.elapsed().as_secs_f64();
                break;
            };
            let (got, got_cpu) = (Instant::now(), thread_cpu_secs());
            let batch = batch?;
            let rows = batch.n_rows() as u64;
            meters.add(&batch)?;
            self.taker.take(&batch)?;
            drop(batch);
            n_rows += rows;
            if PROGRESS <= told.elapsed() {
                tell(&Event::Progress { n_rows, of_rows })?;
                told = Instant::now();
            }
            samples.push(BatchSample {
                wait_secs: (got - asked).as_secs_f64(),
                consume_secs: got.elapsed().as_secs_f64(),
                n_rows: rows,
                nnz: 0,
            });
            busy_cpu_secs += thread_cpu_secs() - got_cpu;
            asked = Instant::now();
        }
        Ok(Consumed { batches: samples, end_wait_secs, stats: batches.stats(), busy_cpu_secs })
    }
}

/// Puts the data out of the page cache; the state as it is noted, and a warning where that is not what was wanted.
fn cooled(
    data: &Data,
    point: &Point,
    tell: &mut dyn FnMut(&Event) -> anyhow::Result<()>,
) -> anyhow::Result<String> {
    let how = point.cold.unwrap_or(Cold::Auto);
    let state = page_cache::cool(data, how);
    if let PageCache::Unknown(why) = &state {
        let message = format!("the page cache is not cold: {why}");
        tell(&Event::Warning { message: one_line(&message) })?;
    }
    Ok(state.name().to_owned())
}

/// What an epoch delivers.
fn tally(
    loader: &TensorLoader,
    tell: &mut dyn FnMut(&Event) -> anyhow::Result<()>,
) -> anyhow::Result<Delivered> {
    let dataset = loader.loader().dataset();
    let (of_rows, mut told) = (dataset.n_rows(), Instant::now());
    let mut tally = Tally::new(dataset.n_columns() as u64);
    for batch in loader.epoch(0)? {
        let batch = batch?;
        let joinids = Vec::<i64>::try_from(batch.joinids()).context("cannot read the joinids")?;
        tally.add(&joinids, &batch.row_sums()?);
        if PROGRESS <= told.elapsed() {
            tell(&Event::Progress { n_rows: tally.n_cells(), of_rows })?;
            told = Instant::now();
        }
    }
    Ok(tally.finish())
}

/// What the caches in front of object stores have done.
fn caches(dataset: &Dataset) -> impl Iterator<Item = CacheUse> + '_ {
    dataset.readers().filter_map(|reader| reader.cache())
}

/// What only the loader knows. Values are counted by block, so their number is that of the batches only where every block's rows were
/// delivered; amplification compares what was decoded with what was needed, block by block, in any case.
fn enter_stats(measured: &mut Measured, stats: &EpochStats, n_rows: u64) {
    measured.read_secs = Some(stats.read_secs);
    measured.densify_secs = Some(stats.convert_secs + stats.batch_secs);
    measured.bytes_read = stats.bytes_read;
    measured.bytes_decoded = stats.bytes_decoded;
    measured.bytes_needed = stats.bytes_needed;
    measured.batch_ready_batches = stats.ready_batches.iter().copied().map(f64::from).collect();
    measured.batch_ready_blocks = stats.ready_blocks.iter().copied().map(f64::from).collect();
    measured.requests = stats.requests.filter(|requests| 0 < *requests);
    measured.cells_decoded = stats.cells_decoded;
    measured.nnz = Some(stats.nnz);
    measured.fill_rates();
    let whole = stats.n_rows == n_rows;
    measured.nnz = whole.then_some(stats.nnz);
    measured.nnz_per_sec =
        measured.elapsed.filter(|secs| whole && 0.0 < *secs).map(|secs| stats.nnz as f64 / secs);
}

/// The stages that the loader times.
fn stage_columns(stages: &StageTimes) -> bench_report::StageTimes {
    bench_report::StageTimes {
        read_wall_secs: Some(stages.read.wall_secs),
        read_cpu_secs: stages.read.cpu_secs,
        decode_wall_secs: stages.decode.map(|decode| decode.wall_secs),
        decode_cpu_secs: stages.decode.and_then(|decode| decode.cpu_secs),
        shuffle_wall_secs: Some(stages.shuffle.wall_secs),
        shuffle_cpu_secs: stages.shuffle.cpu_secs,
        densify_wall_secs: Some(stages.assemble.wall_secs),
        densify_cpu_secs: stages.assemble.cpu_secs,
        wait_wall_secs: Some(stages.wait.wall_secs),
        wait_cpu_secs: stages.wait.cpu_secs,
        ..bench_report::StageTimes::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_must_be_rows_of_x() {
        assert_eq!(within(3..u64::MAX, 10).unwrap(), 3..10);
        assert_eq!(within(0..10, 10).unwrap(), 0..10);
        for range in [0..11, 10..u64::MAX, 12..13] {
            let told = within(range, 10).unwrap_err().to_string();
            assert!(told.contains("X has rows 0..10"), "{told}");
        }
    }

    #[test]
    fn only_the_first_line_of_a_message_is_told() {
        assert_eq!(one_line("torch: no memory\nException raised from x.cpp\n"), "torch: no memory");
        assert_eq!(one_line(""), "");
    }
}
