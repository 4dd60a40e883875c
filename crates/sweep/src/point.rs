//! The process that measures one point: opens the data, runs its epochs, and tells what happened line by line.

use std::io::{self, Read as _, Write as _};
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use bench_report::{
    BatchSample, EpochRecord, GridPoint, Measured, OWN_LOADER, ProcessMeter, Versions,
    resident_bytes,
};
use bytesize::ByteSize;
use jiff::Timestamp;
use loader::{AxisQuery, Dataset, DatasetSpec, EpochStats, Genes, Joinids, Transform, ValueFilter};
use soma_io::{CacheUse, Experiment, OpenOptions, ReadLimit, SparseNdArray};
use torch_feed::TensorLoader;

use crate::io_limit::{IoLimit, IoMeter};
use crate::job::{Data, Event, Job, Opened, Point, Task};
use crate::label_entropy::{self, Labels, Meters};
use crate::peers::{Delivered, Tally};
use crate::{read_chunks, readers_command};

/// How often an epoch says how far it is.
const PROGRESS: Duration = Duration::from_millis(200);

/// Reads the job from stdin and does it. What goes wrong is told as an event; the error that is returned is for the exit code.
pub(crate) fn run() -> anyhow::Result<()> {
    // Before anything is opened: all that comes counts for the memory that may be taken.
    let start_bytes = resident_bytes()?;
    let mut text = String::new();
    io::stdin().read_to_string(&mut text).context("cannot read the job from stdin")?;
    let job: Job =
        serde_json::from_str(&text).context("stdin holds no job; `point` is started by `sweep`")?;
    let outcome = perform(&job, start_bytes, &mut tell);
    match &outcome {
        Ok(()) => tell(&Event::Done)?,
        Err(error) => tell(&Event::Failed { message: one_line(&format!("{error:#}")) })?,
    }
    outcome
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
            let (dataset, _) = open(&job.data, bucket.as_ref(), tell)?;
            for point in points {
                loader(dataset.clone(), point, &job.data, taken()?)
                    .with_context(|| point.to_string())?;
            }
            Ok(())
        }
        Task::Measure(point) => {
            let opening = Instant::now();
            let (dataset, labels) = open(&job.data, bucket.as_ref(), tell)?;
            let loader = loader(dataset, point, &job.data, taken()?)?;
            let open_secs = opening.elapsed().as_secs_f64();
            let (dataset, spec) = (loader.loader().dataset(), loader.loader().spec());
            let expected = labels.expected(dataset, spec, point.max_batches)?;
            for epoch in 0..point.n_epochs {
                let mut meters = labels.meters(spec.batch_rows)?;
                let io = limit.as_ref().map(|limit| IoMeter::start(limit, bucket.as_deref()));
                let io = io.transpose()?;
                let mut record = measure(&loader, epoch, point, job, &mut meters, tell)?;
                io.map_or(Ok(()), |io| io.finish(&mut record.measured))?;
                record.measured.open_secs = (epoch == 0).then_some(open_secs);
                record.measured.order_entropy = meters.measured(&expected);
                tell(&Event::Epoch(Box::new(record)))?;
            }
            for cache in caches(loader.loader().dataset()) {
                if let Some(problem) = cache.problem {
                    let n_blocks = cache.stats.not_kept;
                    let message = format!("{n_blocks} blocks could not be cached: {problem}");
                    tell(&Event::Warning { message: one_line(&message) })?;
                }
            }
            Ok(())
        }
        Task::Tally(point) => {
            let loader =
                loader(open(&job.data, bucket.as_ref(), tell)?.0, point, &job.data, taken()?)?;
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
        Err(torch_feed::Error::Loader(loader::Error::Memory { least, .. })) => bail!(
            "--memory {} is too little for blocks of {} chunks of {} rows: give {} or more, or make blocks or batches smaller",
            ByteSize(point.memory_limit.unwrap_or(0)),
            point.chunks_per_block,
            point.chunk_rows,
            ByteSize(least.saturating_add(taken)),
        ),
        loader => Ok(loader?),
    }
}

/// The data set, which is told about, and the labels by which it is seen how random an order is.
fn open(
    data: &Data,
    limit: Option<&Arc<ReadLimit>>,
    tell: &mut dyn FnMut(&Event) -> anyhow::Result<()>,
) -> anyhow::Result<(Dataset, Labels)> {
    let options = OpenOptions { config: data.config.clone(), ..OpenOptions::default() };
    let mut experiment = Experiment::open(&data.uri, &options)?;
    if let Some(limit) = limit {
        experiment = experiment.held_to(Arc::clone(limit));
    }
    let x = experiment.measurement(&data.measurement)?.x(&data.layer)?;
    let obs = experiment.obs()?;
    let labels = label_entropy::columns(data.entropy_of.as_deref(), obs.schema());
    let unasked = labels.iter().filter(|column| !data.obs_columns.contains(column));
    let spec = DatasetSpec {
        measurement: data.measurement.clone(),
        layer: data.layer.clone(),
        obs_columns: data.obs_columns.iter().chain(unasked).cloned().collect(),
        cells: query(
            data.cells.clone().map(|cells| within(cells, x.shape().0)).transpose()?,
            data.obs_filter.as_deref(),
        )?,
        genes: Genes::Query(query(data.n_genes.map(|n| 0..n), data.var_filter.as_deref())?),
        totals: data.totals.clone(),
        var_columns: Vec::new(),
        reader: data.reader.parse()?,
    };
    let dataset = Dataset::from_experiment(&experiment, &spec).with_context(|| data.uri.clone())?;
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
    let (labels, dataset) = Labels::of(dataset, &labels)?;
    Ok((dataset, labels))
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

fn measure(
    loader: &TensorLoader,
    epoch: u64,
    point: &Point,
    job: &Job,
    meters: &mut Meters<'_>,
    tell: &mut dyn FnMut(&Event) -> anyhow::Result<()>,
) -> anyhow::Result<EpochRecord> {
    let meter = ProcessMeter::start()?;
    let start_dt = Timestamp::now();
    let (batches, end_wait_secs, stats) = consume(loader, epoch, point, meters, tell)?;
    let mut measured = Measured::from_batches(&batches, end_wait_secs);
    meter.finish(&mut measured)?;
    measured.start_dt = Some(start_dt);
    measured.end_dt = Some(Timestamp::now());
    measured.epoch = Some(epoch);
    enter_stats(&mut measured, &stats, loader.loader().dataset().n_rows());
    for cache in caches(loader.loader().dataset()) {
        *measured.cache_hits.get_or_insert(0) += cache.stats.hits;
        *measured.cache_misses.get_or_insert(0) += cache.stats.misses;
    }
    Ok(EpochRecord {
        versions: versions(),
        point: as_it_ran(&stats, point, job),
        measured,
        ..EpochRecord::default()
    })
}

/// Takes the batches as training would, and times the waits for them. Counting labels is part of the time.
fn consume(
    loader: &TensorLoader,
    epoch: u64,
    point: &Point,
    meters: &mut Meters<'_>,
    tell: &mut dyn FnMut(&Event) -> anyhow::Result<()>,
) -> anyhow::Result<(Vec<BatchSample>, f64, EpochStats)> {
    let max_batches = point.max_batches;
    // The epoch begins when it is asked for: what its plan takes is part of the first wait.
    let mut asked = Instant::now();
    let mut batches = loader.epoch(epoch)?;
    let n_batches = max_batches.unwrap_or(u64::MAX).min(batches.n_batches());
    let of_rows = loader
        .loader()
        .dataset()
        .n_rows()
        .min(n_batches.saturating_mul(loader.loader().spec().batch_rows));
    let mut samples: Vec<BatchSample> = Vec::with_capacity(n_batches as usize);
    let (mut n_rows, mut told) = (0, Instant::now());
    // The end is asked for too: an epoch is over when the loader says so, unless it is cut off.
    while max_batches.is_none_or(|most| (samples.len() as u64) < most) {
        let Some(batch) = batches.next() else {
            return Ok((samples, asked.elapsed().as_secs_f64(), batches.stats()));
        };
        let got = Instant::now();
        let batch = batch?;
        let rows = batch.n_rows() as u64;
        meters.add(&batch)?;
        point.consumer.take();
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
        asked = Instant::now();
    }
    Ok((samples, 0.0, batches.stats()))
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
    measured.requests = stats.requests.filter(|requests| 0 < *requests);
    measured.cells_decoded = stats.cells_decoded;
    measured.nnz = Some(stats.nnz);
    measured.fill_rates();
    let whole = stats.n_rows == n_rows;
    measured.nnz = whole.then_some(stats.nnz);
    measured.nnz_per_sec =
        measured.elapsed.filter(|secs| whole && 0.0 < *secs).map(|secs| stats.nnz as f64 / secs);
}

/// The settings, read back from the loader.
fn as_it_ran(stats: &EpochStats, point: &Point, job: &Job) -> GridPoint {
    let spec = &stats.spec;
    GridPoint {
        loader: Some(OWN_LOADER.to_owned()),
        chunk_method: spec.method.name().to_owned(),
        batch_size: spec.batch_rows,
        chunk_size: spec.chunk_rows,
        chunks_per_block: spec.chunks_per_block,
        block_size: spec.chunk_rows * spec.chunks_per_block,
        order: if spec.order == loader::Order::Shuffled { "shuffled" } else { "in-order" }
            .to_owned(),
        form: spec.form.name().to_owned(),
        transform: transform(spec.transform, &job.data),
        reader: stats.reader.clone(),
        prefetch_blocks: spec.prefetch_blocks as u64,
        seed: spec.seed,
        max_batches: point.max_batches,
        drop_last: spec.remainder == loader::Remainder::Drop,
        soma_buffer_size: buffer_bytes(&job.data),
        n_threads: None,
        consumer: point.consumer.noted(),
        memory_limit: point.memory_limit,
        io_limit: io_limit(&job.data),
        io_limit_by: io_limit_by(&job.data),
        cache: job.cache.clone(),
    }
}

/// The settings as they were asked for, for a point that did not come to its end.
pub(crate) fn as_asked(point: &Point, data: &Data, cache: &str) -> GridPoint {
    GridPoint {
        loader: Some(OWN_LOADER.to_owned()),
        chunk_method: point.method.clone(),
        batch_size: point.batch_rows,
        chunk_size: point.chunk_rows,
        chunks_per_block: point.chunks_per_block,
        block_size: point.chunk_rows * point.chunks_per_block,
        order: if point.shuffled { "shuffled" } else { "in-order" }.to_owned(),
        form: point.form.clone(),
        transform: transform(point.transform.into(), data),
        reader: data.reader.clone(),
        prefetch_blocks: point.prefetch_blocks as u64,
        seed: point.seed,
        max_batches: point.max_batches,
        drop_last: point.drop_last,
        soma_buffer_size: buffer_bytes(data),
        n_threads: None,
        consumer: point.consumer.noted(),
        memory_limit: point.memory_limit,
        io_limit: io_limit(data),
        io_limit_by: io_limit_by(data),
        cache: cache.to_owned(),
    }
}

/// What is done to the values, and by which totals.
fn transform(transform: Transform, data: &Data) -> Option<String> {
    let told = match (transform.target_sum, &data.totals) {
        (Some(target), Some(column)) => transform.to_string().replacen(
            &format!("per {target}"),
            &format!("per {target} of {column}"),
            1,
        ),
        _ => transform.to_string(),
    };
    (!transform.is_identity()).then_some(told)
}

fn io_limit(data: &Data) -> Option<u64> {
    data.io_limit.as_ref().map(|limit| limit.bytes_per_second.get())
}

fn io_limit_by(data: &Data) -> Option<String> {
    data.io_limit.as_ref().map(|limit| limit.by.name().to_owned())
}

/// Bytes of libtiledb's buffer for each column that is read.
fn buffer_bytes(data: &Data) -> Option<u64> {
    match data.config.get("soma.init_buffer_bytes") {
        Some(bytes) => bytes.parse().ok(),
        None => Some(SparseNdArray::BUFFER_BYTES as u64),
    }
}

/// What took part, as far as this process knows it.
pub(crate) fn versions() -> Versions {
    let noted = |version: Option<&str>| version.map(str::to_owned);
    Versions {
        somafeed: Some(env!("CARGO_PKG_VERSION").to_owned()),
        rustc: noted(option_env!("SWEEP_RUSTC")),
        libtiledb: tiledb::library()
            .ok()
            .map(|((major, minor, patch), _)| format!("{major}.{minor}.{patch}")),
        libtorch: noted(option_env!("SWEEP_LIBTORCH")),
        tch: noted(option_env!("SWEEP_TCH")),
        peer: None,
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
