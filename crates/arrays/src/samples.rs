//! Samples of arrays as a source of the engine.

use std::sync::Arc;

use pipeline::{BlockBytes, BlockPlace, BlockRows, Need, ReadStats, Source, Stop};
use slots::PooledSlot;
use storage::Storage;

use crate::assemble::ArrayAssembler;
use crate::batch::ArrayBatch;
use crate::block::ArrayBlock;
use crate::chunk_task::{WantedRow, Worker, tasks};
use crate::chunks::Chunks;
use crate::coordinate_arrays::CoordinateArrays;
use crate::coordinates::{Coordinates, SkippedCoordinates};
use crate::element::ElementType;
use crate::error::Error;
use crate::kept::KeptChunks;
use crate::read;
use crate::spec::{ReadStrategy, SampleSpec};
use crate::variable::OpenVariable;
use crate::window::Window;

/// A source of samples made of one or several Zarr arrays.
#[derive(Clone)]
pub struct ArraySamples {
    storage: Arc<dyn Storage>,
    variables: Arc<[OpenVariable]>,
    skipped: Arc<[SkippedCoordinates]>,
    window: Window,
    read: ReadStrategy,
    threads: usize,
    kept: Arc<KeptChunks>,
}

impl std::fmt::Debug for ArraySamples {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<&str> = self.variables.iter().map(|variable| &*variable.name).collect();
        f.debug_struct("ArraySamples")
            .field("place", &self.storage.place())
            .field("variables", &names)
            .field("samples", &self.window.n_samples)
            .finish_non_exhaustive()
    }
}

impl ArraySamples {
    /// Opens the arrays of `spec` in `storage`. Reads their metadata, and the coordinates of their
    /// dimensions.
    ///
    /// A dimension's coordinates are the one-dimensional array of its name in the array's group.
    /// There need not be one. [`skipped_coordinates`](Self::skipped_coordinates) lists those that
    /// are not read.
    ///
    /// # Errors
    /// An array does not exist, or its metadata, its chunks or its elements are not supported; it
    /// has no dimension; a selected dimension, index or label does not exist; the arrays differ in
    /// the number of steps; there is no sample; coordinates are damaged or have another length than
    /// their dimension.
    pub fn open(storage: Arc<dyn Storage>, spec: &SampleSpec) -> Result<Self, Error> {
        for (idx, variable) in spec.variables.iter().enumerate() {
            if spec.variables[..idx].iter().any(|other| other.name == variable.name) {
                let reason = format!("two variables have the name {}", variable.name);
                return Err(Error::Spec { reason });
            }
        }
        let (read, threads) = (spec.read, spec.threads.max(1));
        let mut arrays = CoordinateArrays::new(&storage, threads);
        let mut variables = Vec::with_capacity(spec.variables.len());
        for variable in &spec.variables {
            let coordinates = (&mut arrays, spec.coordinates);
            let along = spec.along.as_ref();
            variables.push(OpenVariable::open(&storage, (variable, along), coordinates)?);
        }
        let skipped = arrays.into_skipped().into();
        let variables: Arc<[OpenVariable]> = variables.into();
        let window = Window::new(&variables, spec)?;
        let kept = Arc::default();
        Ok(Self { storage, variables, skipped, window, read, threads, kept })
    }

    /// The number of samples.
    pub fn n_samples(&self) -> u64 {
        self.window.n_samples
    }

    /// The step that a sample is about: the index in the arrays' first dimension.
    pub fn step(&self, sample: u64) -> u64 {
        self.window.step(sample)
    }

    /// The name of each variable, with the type of its elements in batches.
    pub fn elements(&self) -> impl Iterator<Item = (&str, ElementType)> {
        self.variables.iter().map(|variable| (variable.name.as_str(), variable.element))
    }

    /// The shape of a variable in a batch of one sample, without the samples; `None` if there is no
    /// variable of that name.
    pub fn sample_shape(&self, variable: &str) -> Option<Vec<usize>> {
        self.variables.iter().find(|of| of.name == variable).map(OpenVariable::sample_shape)
    }

    /// The names of the dimensions of [`sample_shape`](Self::sample_shape): `step` if there are
    /// several, then those of the array; empty where the array has no names.
    pub fn sample_dimensions(&self, variable: &str) -> Option<Vec<&str>> {
        self.variables.iter().find(|of| of.name == variable).map(OpenVariable::sample_dimensions)
    }

    /// The coordinates of the selected indices of a variable's dimension, which is not the first.
    /// `None` if there is no such variable or dimension, or it has no coordinates.
    pub fn coordinates(&self, variable: &str, dimension: &str) -> Option<&Coordinates> {
        self.variables.iter().find(|of| of.name == variable)?.coordinates_of(dimension)
    }

    /// The arrays that have a dimension's name and were not read as its coordinates: they are not
    /// one-dimensional, have another dimension, or elements or codecs that are not supported, more
    /// than 2^20 values, or more than 64 MiB.
    pub fn skipped_coordinates(&self) -> &[SkippedCoordinates] {
        &self.skipped
    }

    /// Bytes of a sample in a batch, all variables together.
    pub fn sample_bytes(&self) -> u64 {
        self.variables.iter().fold(0, |sum: u64, of| sum.saturating_add(of.sample_bytes()))
    }

    fn bytes_of(&self, n_samples: u64) -> u64 {
        n_samples.saturating_mul(self.sample_bytes())
    }

    /// Decodes samples, in this order, straight into the caller's memory: one slice for each
    /// variable, in the order of the settings. Overwrites all of it with arrays of shape
    /// `[samples, ...]` in C order.
    ///
    /// Works on [`SampleSpec::threads`] threads, including the calling one. Returns early once
    /// `stop` is set; the memory then has arbitrary bytes.
    ///
    /// # Errors
    /// A chunk cannot be read or decoded. A sample does not exist. `into` has another number of
    /// slices than there are variables, or a slice has another length than the samples have bytes,
    /// or begins at an address that is no multiple of its elements' size.
    pub fn read_into(
        &self,
        samples: &[u64],
        into: &mut [&mut [u8]],
        scratch: &mut ReadScratch,
        stop: &Stop,
    ) -> Result<ReadStats, Error> {
        self.check_destination(samples, into).map_err(|reason| Error::Destination { reason })?;
        let read = self.read_samples(samples, into, scratch, stop);
        read.map_err(|read::Failure { path: array, source }| Error::ReadInto { array, source })
    }

    /// Says why samples cannot be read into memory, if so.
    fn check_destination(&self, samples: &[u64], into: &[&mut [u8]]) -> Result<(), String> {
        if let Some(sample) = samples.iter().find(|sample| self.window.n_samples <= **sample) {
            return Err(format!("sample {sample} of {} does not exist", self.window.n_samples));
        }
        let (n_variables, n_slices) = (self.variables.len(), into.len());
        if n_variables != n_slices {
            return Err(format!("{n_slices} slices were given for {n_variables} variables"));
        }
        for (variable, into) in self.variables.iter().zip(into) {
            let name = &variable.name;
            let expected = variable.sample_bytes().saturating_mul(samples.len() as u64);
            if into.len() as u64 != expected {
                let n_bytes = into.len();
                return Err(format!("{name} has {expected} bytes, its slice has {n_bytes}"));
            }
            let (address, alignment) = (into.as_ptr().addr(), variable.element.n_bytes());
            if !address.is_multiple_of(alignment) {
                return Err(format!(
                    "{name} must begin at a multiple of {alignment} bytes, its slice begins at \
                     {address:#x}"
                ));
            }
        }
        Ok(())
    }

    /// The bytes of slots that nothing shares, one for each variable.
    fn bytes_mut<'a>(
        &self,
        slots: &'a mut [Arc<PooledSlot>],
    ) -> Result<Vec<&'a mut [u8]>, read::Failure> {
        let bytes = self.variables.iter().zip(slots).map(|(variable, slot)| {
            let bytes = Arc::get_mut(slot).map(PooledSlot::bytes_mut);
            // Cannot happen: the slots were made for one block alone.
            bytes.ok_or_else(|| read::Failure {
                path: variable.chunks.path.clone(),
                source: "its memory belongs to a batch".into(),
            })
        });
        bytes.collect()
    }

    /// Reads samples into one slice for each variable, which have the right length.
    fn read_samples(
        &self,
        samples: &[u64],
        into: &mut [&mut [u8]],
        scratch: &mut ReadScratch,
        stop: &Stop,
    ) -> Result<ReadStats, read::Failure> {
        let one_read = match self.read {
            ReadStrategy::Stacked => samples.len().max(1),
            ReadStrategy::PerSample => 1,
        };
        // Those of other reads at the same time count, too.
        let requests_sent = || self.storage.request_counts().map(|counts| counts.sent);
        let requests_before = requests_sent();
        let mut stats = ReadStats::nothing();
        for (idx, these) in samples.chunks(one_read).enumerate() {
            // A chunk that several variables want alike is decoded once.
            let mut wanted: Vec<(&OpenVariable, Vec<WantedRow<'_>>)> = Vec::new();
            for (variable, into) in self.variables.iter().zip(&mut *into) {
                let sample_bytes = variable.sample_bytes() as usize;
                let start = idx * one_read * sample_bytes;
                let places = &mut into[start..start + these.len() * sample_bytes];
                let steps = these.iter().flat_map(|sample| self.window.steps_of(variable, *sample));
                let rows = steps.zip(places.chunks_exact_mut(variable.row_bytes()));
                match wanted.iter_mut().find(|(other, _)| other.has_rows_of(variable)) {
                    Some((_, all)) => all.extend(rows),
                    None => wanted.push((variable, rows.collect())),
                }
            }
            let all = wanted
                .into_iter()
                .flat_map(|(of, rows)| tasks((&of.chunks, &of.convert), rows))
                .collect();
            stats +=
                read::run((&*self.storage, &self.kept), all, (&mut scratch.0, self.threads), stop)?;
        }
        let requests = requests_sent().zip(requests_before);
        let values = self.variables.iter().map(|of| of.chunks.geometry.row_len * of.steps.len());
        Ok(ReadStats {
            values: (values.sum::<usize>() * samples.len()) as u64,
            values_decoded: None,
            bytes_needed: Some(self.bytes_of(samples.len() as u64)),
            requests: requests.map(|(now, before)| now - before),
            ..stats
        })
    }
}

/// What a reading thread uses again from read to read.
#[derive(Debug, Default)]
pub struct ReadScratch(Vec<Worker>);

impl Source for ArraySamples {
    type Block = ArrayBlock;
    type Batch = ArrayBatch;
    type Error = Error;
    type Scratch = ReadScratch;
    type Assembler = ArrayAssembler;

    fn n_rows(&self) -> u64 {
        self.window.n_samples
    }

    fn fingerprint(&self) -> String {
        let variables = self.variables.iter().map(|of| {
            let OpenVariable { chunks, steps, element, selected, n_steps, .. } = of;
            let Chunks { path, stored, geometry, .. } = chunks;
            let along = if geometry.axis == 0 {
                String::new()
            } else {
                format!(" along {}", geometry.axis)
            };
            format!("{path} {n_steps} {steps:?} {stored} {element} {selected:?}{along}")
        });
        let window = format!("{:?}", self.window);
        std::iter::once(window).chain(variables).collect::<Vec<_>>().join("; ")
    }

    fn need(&self, block_rows: u64, batch_rows: u64) -> Result<Need, Error> {
        let block = self.bytes_of(block_rows);
        let chunks = self.variables.iter().map(|of| of.chunks.chunk_bytes());
        let chunk = chunks.max().unwrap_or(0) as u64;
        // Each thread has a chunk as stored, and decoded. From a remote store it also has what it
        // fetched together, which the last task may bring over the limit.
        let reading = match read::fetched_bytes(&*self.storage) {
            0 => chunk.saturating_mul(2),
            fetched => {
                let task = self.variables.iter().map(OpenVariable::task_bytes).max().unwrap_or(0);
                chunk.saturating_mul(2).saturating_add(fetched).saturating_add(task)
            }
        };
        // A batch within a block shares its memory, so the consumer's keeps a whole block. A batch
        // that is its block keeps it to itself.
        let is_shared =
            batch_rows != 0 && block_rows != batch_rows && block_rows.is_multiple_of(batch_rows);
        Ok(Need {
            block,
            largest: block,
            batch: if is_shared { 0 } else { self.bytes_of(batch_rows) },
            reading: reading.saturating_mul(self.threads as u64),
            other: if is_shared { block } else { 0 },
        })
    }

    fn block_bytes(&self, block: &ArrayBlock) -> BlockBytes {
        let now = block.memory_bytes();
        BlockBytes { now, most: now }
    }

    fn read(
        &self,
        rows: &BlockRows<'_>,
        into: &mut ArrayBlock,
        scratch: &mut ReadScratch,
        stop: &Stop,
    ) -> Result<ReadStats, Error> {
        let samples = rows.delivered();
        for (at, variable) in self.variables.iter().enumerate() {
            let n_bytes = variable.sample_bytes().saturating_mul(samples.len() as u64);
            let made = usize::try_from(n_bytes).ok();
            made.and_then(|n_bytes| into.slot(at, n_bytes, &variable.pool))
                .ok_or(Error::Memory { bytes: n_bytes, n_samples: samples.len() })?;
        }
        let read = self
            .bytes_mut(&mut into.slots)
            .and_then(|mut into| self.read_samples(&samples, &mut into, scratch, stop));
        let stats = read.map_err(|failure| {
            let BlockPlace { epoch, block_idx } = rows.place;
            let read::Failure { path: array, source } = failure;
            Error::Read { array, epoch, block_idx, source }
        })?;
        into.samples = samples;
        Ok(stats)
    }

    /// Decoded chunks are kept, except those that are not compressed in a folder, which the
    /// system keeps.
    fn keep(&self, holder: u64, bytes: u64) {
        self.kept.allow(holder, bytes);
    }

    fn unit_end(&self, row: u64) -> u64 {
        let ends = self.variables.iter().map(|variable| self.window.unit_end(variable, row));
        ends.min().unwrap_or(row)
    }

    fn row_name(&self, row: u64) -> String {
        format!("step {}", self.step(row))
    }

    fn is_damage(&self, error: &Error) -> bool {
        let is_own = matches!(error, Error::Memory { .. } | Error::Pipeline(_));
        !is_own && pipeline::system_failure(error).is_none()
    }

    fn assembler(&self, _batch_rows: u64) -> Result<ArrayAssembler, Error> {
        Ok(ArrayAssembler::new(Arc::clone(&self.variables), self.window))
    }
}
