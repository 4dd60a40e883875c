//! Bounds that no loader can beat on this machine: reading the files of a form, decoding them, and
//! training on them.

use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use bench_report::{BatchSample, EpochRecord, GridPoint, Measured, ProcessMeter};
use bench_run::{Cold, DataFile, PageCache, Reporter, cool, data_files, warm};
use images::Form;
use images::files::{CubeFile, DecodeScratch};
use serde::{Deserialize, Serialize};

use super::open::{pipeline, plain_memory};
use super::point::{Consumer, Point, form_of_batches, of_form};
use super::settings::{Augment, BatchElement, Settings, Strategy};
use super::task::{CubeAnswer, CubeData};
use crate::device::{Clock, TorchSpec, torch};

/// Names of the floors in rows.
pub(crate) const PLAIN_READ: &str = "plain-read";
pub(crate) const DECODE: &str = "decode";
pub(crate) const STEPS: &str = "steps";

/// Time of decoding or of training steps, and most cubes or steps.
const TIME: Duration = Duration::from_secs(2);
const MOST: usize = 64;

/// A bound to measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Floor {
    /// All files of a form and the masks, read by several threads into buffers that are used again.
    PlainRead { form: Form, threads: usize, cold: Option<Cold> },
    /// A cube's file in memory, decoded by one thread again and again.
    Decode { form: Form },
    /// Training steps on a batch that is on the device already.
    Steps {
        torch: TorchSpec,
        form: Form,
        element: BatchElement,
        /// Whether each step augments the batch.
        augments: bool,
        batch: u64,
    },
}

impl Floor {
    /// The training steps of a point, if it trains.
    pub(crate) fn steps_of(point: &Point) -> Option<Self> {
        let Consumer::Torch(torch) = point.consumer else { return None };
        let Settings { form, element, augment, .. } = point.settings;
        let (augments, batch) = (augment == Augment::Device, point.batch);
        Some(Self::Steps { torch, form, element, augments, batch })
    }

    /// Whether `record` is that of these steps, or of others that take the same time: those on the
    /// same values from files of another form.
    pub(crate) fn is_measured_by(&self, record: &GridPoint) -> bool {
        let expected = self.recorded(&record.cache);
        let key = |of: &GridPoint| {
            (
                of.chunk_method.clone(),
                of.consumer.clone(),
                of.form.clone(),
                of.settings.get("augmentation").map(str::to_owned),
                of.batch_size,
            )
        };
        key(&expected) == key(record)
    }

    /// The settings for a record.
    pub(crate) fn recorded(&self, cache: &str) -> GridPoint {
        let (name, form, threads) = match self {
            Self::PlainRead { form, threads, .. } => (PLAIN_READ, *form, *threads),
            Self::Decode { form } => (DECODE, *form, 1),
            Self::Steps { torch, form, element, augments, batch } => {
                let row = GridPoint { batch_size: *batch, ..GridPoint::default() };
                let row = of_form(row, *form, cache);
                let augmentation = augments.then_some("device");
                return GridPoint {
                    chunk_method: STEPS.to_owned(),
                    consumer: Some(torch.to_string()),
                    form: form_of_batches(*form, *element).to_owned(),
                    settings: row.settings.with_some("augmentation", augmentation),
                    ..row
                };
            }
        };
        let row = of_form(GridPoint { batch_size: 1, ..GridPoint::default() }, form, cache);
        GridPoint {
            chunk_method: name.to_owned(),
            settings: row.settings.with("n_threads", threads),
            ..row
        }
    }
}

impl fmt::Display for Floor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PlainRead { form, threads, .. } => {
                write!(f, "{PLAIN_READ} of {form}, {threads} threads")
            }
            Self::Decode { form } => write!(f, "{DECODE} of {form}"),
            Self::Steps { torch, form, element, augments, .. } => {
                let values = form_of_batches(*form, *element);
                let augments = if *augments { ", augmented" } else { "" };
                write!(f, "{STEPS} of {} on {values} batches{augments}", torch.processor)
            }
        }
    }
}

/// Measures a floor and reports its row.
pub(crate) fn measure(
    floor: &Floor,
    data: &CubeData,
    clock: &dyn Clock,
    reporter: &mut Reporter<CubeAnswer>,
) -> anyhow::Result<()> {
    let record = match floor {
        Floor::PlainRead { form, threads, cold } => {
            plain_read(floor, &data.folders(*form), (*threads, *cold), clock)?
        }
        Floor::Decode { form } => decode(floor, data, *form)?,
        Floor::Steps { .. } => steps(floor, data, clock)?,
    };
    reporter.answer(Box::new(record))
}

/// Reads all files.
fn plain_read(
    floor: &Floor,
    folders: &[std::path::PathBuf],
    (threads, cold): (usize, Option<Cold>),
    clock: &dyn Clock,
) -> anyhow::Result<EpochRecord> {
    let files = data_files(folders).context("cannot list the files")?;
    let state = match cold {
        Some(how) => cool(Some(folders), how),
        None => warm(Some(folders)),
    };
    let message = match &state {
        PageCache::Unknown(why) => Some(why.clone()),
        _ => None,
    };
    let meter = ProcessMeter::start()?;
    let start = clock.now();
    let n_bytes = read_all(&files, threads)?;
    let secs = clock.now().saturating_sub(start).as_secs_f64();
    let sample =
        BatchSample { wait_secs: secs, consume_secs: 0.0, n_rows: files.len() as u64, nnz: 0 };
    let mut measured = Measured::from_batches(&[sample], 0.0);
    meter.finish(&mut measured)?;
    measured.bytes_read = Some(n_bytes);
    measured.message = message;
    Ok(record(floor, state.name(), measured))
}

/// Reads the files on several threads; returns the number of bytes.
fn read_all(files: &[DataFile], threads: usize) -> anyhow::Result<u64> {
    let next = AtomicUsize::new(0);
    let most = files.iter().map(|file| file.bytes).max().unwrap_or(0);
    let read = || -> io::Result<u64> {
        let mut buffer = vec![0; most as usize];
        let mut n_bytes = 0;
        while let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
            let into = &mut buffer[..file.bytes as usize];
            File::open(&file.path)?.read_exact_at(into, 0)?;
            n_bytes += file.bytes;
        }
        Ok(n_bytes)
    };
    std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(read)).collect();
        let mine = read();
        others.into_iter().try_fold(mine?, |sum, thread| {
            let panicked = |_| Err(io::Error::other("a reading thread panicked"));
            Ok(sum + thread.join().unwrap_or_else(panicked)?)
        })
    })
}

/// Decodes the first cube of the data set again and again.
fn decode(floor: &Floor, data: &CubeData, form: Form) -> anyhow::Result<EpochRecord> {
    let set = data.open(None, false)?;
    let image = set.images().first().context("the data set has no images")?;
    let Some((format, file_name)) = form.file_format().zip(form.file_name(&image.name)) else {
        bail!("the decoder of {form} is not measured alone");
    };
    let path = data.path().join(form.folder()).join(file_name);
    let named = || format!("cannot decode {}", path.display());
    let bytes = std::fs::read(&path).with_context(named)?;
    let file = CubeFile::parse(format, &bytes).with_context(named)?;
    let n_bytes = file.arrays().first().and_then(images::files::StoredArray::n_bytes);
    let mut cube = vec![0; n_bytes.with_context(named)?];
    let mut scratch = DecodeScratch::default();
    // The first one touches the memory.
    file.decode(0, &mut cube, &mut scratch).with_context(named)?;
    let meter = ProcessMeter::start()?;
    let start = Instant::now();
    let mut samples = Vec::new();
    while samples.len() < MOST && (samples.is_empty() || start.elapsed() < TIME) {
        let begin = Instant::now();
        file.decode(0, &mut cube, &mut scratch).with_context(named)?;
        let wait_secs = begin.elapsed().as_secs_f64();
        samples.push(BatchSample { wait_secs, consume_secs: 0.0, n_rows: 1, nnz: 0 });
    }
    let mut measured = Measured::from_batches(&samples, 0.0);
    meter.finish(&mut measured)?;
    measured.bytes_read = Some(bytes.len() as u64);
    measured.bytes_decoded = Some(cube.len() as u64);
    Ok(record(floor, "warm", measured))
}

/// Trains on the first batch of the data set again and again.
fn steps(floor: &Floor, data: &CubeData, clock: &dyn Clock) -> anyhow::Result<EpochRecord> {
    let Floor::Steps { torch, form, element, augments, batch } = *floor else {
        bail!("{floor} are not training steps");
    };
    let augment = if augments { Augment::Device } else { Augment::None };
    let settings = Settings { form, element, augment, workers: 0, ..Strategy::Original.settings() };
    let point = Point {
        batch,
        max_batches: Some(1),
        consumer: Consumer::Torch(torch),
        ..Point::new(Strategy::Original, floor.to_string(), settings)
    };
    let pipeline = pipeline(data, &point, (None, plain_memory()))?;
    let n_classes = pipeline.source().data().n_classes();
    let first = pipeline.epoch(0)?.next().context("the data set has no images")??;
    let n_rows = first.n_samples() as u64;
    let meter = ProcessMeter::start()?;
    let times = torch::time_steps(&torch, point.torch_work(n_classes), first, (TIME, MOST), clock)?;
    let of_step = |time: &Duration| BatchSample {
        wait_secs: 0.0,
        consume_secs: time.as_secs_f64(),
        n_rows,
        nnz: 0,
    };
    let mut measured = Measured::from_batches(&times.iter().map(of_step).collect::<Vec<_>>(), 0.0);
    meter.finish(&mut measured)?;
    Ok(record(floor, "warm", measured))
}

fn record(floor: &Floor, cache: &str, measured: Measured) -> EpochRecord {
    let consumer = match floor {
        Floor::Steps { torch, .. } => Consumer::Torch(*torch),
        Floor::PlainRead { .. } | Floor::Decode { .. } => Consumer::None,
    };
    EpochRecord {
        versions: consumer.versions(),
        point: floor.recorded(cache),
        measured: Measured { epoch: Some(0), nnz: None, nnz_per_sec: None, ..measured },
        ..EpochRecord::default()
    }
}
