//! Makes and writes samples: each thread takes the next row of files and writes it whole.

use std::ops::Range;

use bench_run::{Threads, check_interrupted, reserved};

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
    let n_samples = spec.fields.n_samples;
    let file_samples = spec.layout.file_samples();
    // A row of files has the chunks or shards of the same samples.
    let write = |writer: &mut Writer<'_, T>, row: u64| {
        let samples = row * file_samples..n_samples.min((row + 1) * file_samples);
        writer.write(&samples).map(|()| samples.end - samples.start)
    };
    let mut n_done = 0;
    let done = &mut |_, written: Result<u64, Error>| {
        n_done += written?;
        progress(n_done);
        Ok(())
    };
    let threads =
        Threads { name: "fields", n_threads: spec.n_threads, interrupted: spec.interrupted };
    let writer = || Writer::<T>::new(spec, weather, arrays);
    threads.each(n_samples.div_ceil(file_samples), writer, write, done)
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
        let row = reserved(&mut self.row, row_len, "a row of values")?;
        let file = reserved(&mut self.file, file_len, "a chunk or shard of values")?;
        if channels.len() < array.file_channels {
            row.fill(0.0);
        }
        let mut rest = &mut *file;
        for sample in samples.clone() {
            check_interrupted(self.spec.interrupted)?;
            let moment = self.weather.at(sample + array.later);
            let (values, others) = rest.split_at_mut(sample_len);
            for (lat, into) in values.chunks_exact_mut(row_len).enumerate() {
                moment.row(lat, channels, array.file_channels, row);
                T::store(row, array.packing, into);
            }
            rest = others;
        }
        rest.fill(T::default());
        check_interrupted(self.spec.interrupted)?;
        Ok(file)
    }
}
