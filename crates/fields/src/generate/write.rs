//! Makes and writes samples: each thread takes the next row of files and writes it whole.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;

use super::GenerateSpec;
use super::element::Stored;
use super::store::FieldArray;
use super::weather::Weather;
use crate::Error;

/// Writes all samples of all arrays as elements of type `T`. Calls `progress` with the number of
/// samples written so far.
pub(crate) fn write_samples<T: Stored>(
    spec: &GenerateSpec,
    arrays: &[FieldArray],
    progress: &mut dyn FnMut(u64),
) -> Result<(), Error> {
    let weather = &Weather::new(&spec.fields)?;
    let work = &Work {
        n_samples: spec.fields.n_samples,
        file_samples: spec.layout.file_samples(),
        next: AtomicU64::new(0),
        stop: AtomicBool::new(false),
    };
    let n_threads = n_threads(spec).min(work.n_rows() as usize);
    let mut outcome = Ok(());
    thread::scope(|scope| {
        // Without a buffer, no thread is more than a row ahead of what is reported.
        let (sender, receiver) = sync_channel(0);
        for idx in 0..n_threads {
            let sender: SyncSender<Result<u64, Error>> = sender.clone();
            let run = move || {
                let mut writer = Writer::<T>::new(spec, weather, arrays);
                while let Some(samples) = work.take() {
                    let written = writer.write(&samples).map(|()| samples.end - samples.start);
                    let failed = written.is_err();
                    if sender.send(written).is_err() || failed {
                        return;
                    }
                }
            };
            let started = thread::Builder::new().name(format!("fields-{idx}"));
            if let Err(source) = started.spawn_scoped(scope, run) {
                outcome = Err(Error::Thread { source });
                work.stop.store(true, Ordering::Relaxed);
                break;
            }
        }
        drop(sender);
        let mut n_done = 0;
        for written in receiver {
            match written {
                Ok(n_samples) => {
                    n_done += n_samples;
                    progress(n_done);
                }
                // The first failure ends the other threads after their current row.
                Err(error) if outcome.is_ok() => {
                    outcome = Err(error);
                    work.stop.store(true, Ordering::Relaxed);
                }
                Err(_) => {}
            }
        }
    });
    outcome
}

fn n_threads(spec: &GenerateSpec) -> usize {
    match spec.n_threads {
        0 => thread::available_parallelism().map_or(1, usize::from),
        n_threads => n_threads,
    }
}

/// The rows of files that are not written yet. A row has the chunks or shards of the same samples.
#[derive(Debug)]
struct Work {
    n_samples: u64,
    file_samples: u64,
    next: AtomicU64,
    stop: AtomicBool,
}

impl Work {
    fn n_rows(&self) -> u64 {
        self.n_samples.div_ceil(self.file_samples)
    }

    /// The samples of the next row; `None` if there are no more, or a thread has failed.
    fn take(&self) -> Option<Range<u64>> {
        if self.stop.load(Ordering::Relaxed) {
            return None;
        }
        let row = self.next.fetch_add(1, Ordering::Relaxed);
        (row < self.n_rows()).then(|| {
            let first = row * self.file_samples;
            first..self.n_samples.min(first + self.file_samples)
        })
    }
}

/// A thread's own buffers, as large as the largest file.
#[derive(Debug)]
struct Writer<'a, T> {
    spec: &'a GenerateSpec,
    weather: &'a Weather,
    arrays: &'a [FieldArray],
    /// A row of latitude.
    row: Vec<f32>,
    /// The values of a file.
    file: Vec<T>,
}

impl<'a, T: Stored> Writer<'a, T> {
    fn new(spec: &'a GenerateSpec, weather: &'a Weather, arrays: &'a [FieldArray]) -> Self {
        Self { spec, weather, arrays, row: Vec::new(), file: Vec::new() }
    }

    /// Writes the files of these samples.
    fn write(&mut self, samples: &Range<u64>) -> Result<(), Error> {
        for array in self.arrays {
            let n_columns = array.n_channels.div_ceil(array.file_channels);
            for column in 0..n_columns {
                let first = column * array.file_channels;
                let channels = first..array.n_channels.min(first + array.file_channels);
                let row = samples.start / self.spec.layout.file_samples();
                let values = self.fill(array, samples, &channels)?;
                array.write(row, column as u64, values)?;
            }
        }
        Ok(())
    }

    /// Makes the values of a file. Samples and channels beyond the last are constant.
    fn fill(
        &mut self,
        array: &FieldArray,
        samples: &Range<u64>,
        channels: &Range<usize>,
    ) -> Result<&[T], Error> {
        let fields = &self.spec.fields;
        let row_len = fields.n_lon as usize * array.file_channels;
        let sample_len = fields.n_lat as usize * row_len;
        let file_len = self.spec.layout.file_samples() as usize * sample_len;
        let row = first(&mut self.row, row_len, "a row of values")?;
        let file = first(&mut self.file, file_len, "a chunk or shard of values")?;
        if channels.len() < array.file_channels {
            row.fill(0.0);
        }
        let mut rest = &mut *file;
        for sample in samples.clone() {
            check_interrupted(self.spec)?;
            let moment = self.weather.at(sample + array.later);
            let (values, others) = rest.split_at_mut(sample_len);
            for (lat, into) in values.chunks_exact_mut(row_len).enumerate() {
                moment.row(lat, channels, array.file_channels, row);
                T::store(row, array.packing, into);
            }
            rest = others;
        }
        rest.fill(T::default());
        check_interrupted(self.spec)?;
        Ok(file)
    }
}

/// Fails if the caller interrupted the run.
pub(crate) fn check_interrupted(spec: &GenerateSpec) -> Result<(), Error> {
    if spec.interrupted.is_some_and(|interrupted| interrupted.load(Ordering::Relaxed)) {
        return Err(Error::Interrupted);
    }
    Ok(())
}

/// The first `len` elements of a buffer, which grows if needed. Fails if memory is short.
fn first<'a, T: Copy + Default>(
    buffer: &'a mut Vec<T>,
    len: usize,
    what: &'static str,
) -> Result<&'a mut [T], Error> {
    if let Some(more) = len.checked_sub(buffer.len()) {
        buffer
            .try_reserve_exact(more)
            .map_err(|_| Error::Memory { what, n_bytes: len.saturating_mul(size_of::<T>()) })?;
        buffer.resize(len, T::default());
    }
    Ok(&mut buffer[..len])
}
