//! Samples of arrays as a source of the engine.

use std::sync::Arc;

use pipeline::{BlockBytes, BlockPlace, BlockRows, Need, ReadStats, Source, Stop};
use storage::Storage;

use crate::assemble::ArrayAssembler;
use crate::batch::ArrayBatch;
use crate::block::ArrayBlock;
use crate::chunk_task::{Worker, tasks};
use crate::coordinate_arrays::CoordinateArrays;
use crate::coordinates::SkippedCoordinates;
use crate::element::ElementType;
use crate::error::Error;
use crate::read::{self, Counts};
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
            variables.push(OpenVariable::open(&storage, variable, coordinates)?);
        }
        let skipped = arrays.into_skipped().into();
        let variables: Arc<[OpenVariable]> = variables.into();
        let window = Window::new(&variables, spec)?;
        Ok(Self { storage, variables, skipped, window, read, threads })
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

    /// Reads `samples`, which are `into`'s from `first` on.
    fn read_samples(
        &self,
        samples: &[u64],
        first: usize,
        into: &mut ArrayBlock,
        (workers, stop): (&mut Vec<Worker>, &Stop),
    ) -> Result<Counts, read::Failure> {
        let mut all = Vec::new();
        for (variable, slot) in self.variables.iter().zip(&mut into.slots) {
            let sample_bytes = variable.sample_bytes() as usize;
            let places = first * sample_bytes..(first + samples.len()) * sample_bytes;
            let Some(slot) = Arc::get_mut(slot) else {
                // Cannot happen: the slot was made for this block alone.
                let source = "its memory belongs to a batch".into();
                return Err(read::Failure { path: variable.path.clone(), source });
            };
            let steps: Vec<u64> =
                samples.iter().flat_map(|sample| self.window.steps_of(variable, *sample)).collect();
            all.extend(tasks(variable, &steps, &mut slot.bytes_mut()[places]));
        }
        read::run(&*self.storage, all, (workers, self.threads), stop)
    }
}

/// What a reading thread uses again from block to block.
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
            let OpenVariable { path, steps, stored, element, selected, n_steps, .. } = of;
            format!("{path} {n_steps} {steps:?} {stored} {element} {selected:?}")
        });
        let window = format!("{:?}", self.window);
        std::iter::once(window).chain(variables).collect::<Vec<_>>().join("; ")
    }

    fn need(&self, block_rows: u64, batch_rows: u64) -> Result<Need, Error> {
        let block = self.bytes_of(block_rows);
        let chunk = self.variables.iter().map(OpenVariable::chunk_bytes).max().unwrap_or(0) as u64;
        // Each thread has a chunk as stored, and decoded. From far away it also has what it fetched
        // together, which the last task may bring over the limit.
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
        let one_read = match self.read {
            ReadStrategy::Stacked => samples.len().max(1),
            ReadStrategy::PerSample => 1,
        };
        // Those of other reads at the same time count, too.
        let requests_before = self.storage.requests();
        let mut counts = Counts::default();
        for (idx, these) in samples.chunks(one_read).enumerate() {
            let with = (&mut scratch.0, stop);
            let read = self.read_samples(these, idx * one_read, into, with);
            counts.add(read.map_err(|failure| {
                let BlockPlace { epoch, block_idx } = rows.place;
                let read::Failure { path: array, source } = failure;
                Error::Read { array, epoch, block_idx, source }
            })?);
        }
        let values = self.variables.iter().map(|of| of.geometry.row_len * of.steps.len());
        let n_values = values.sum::<usize>() * samples.len();
        let needed = self.bytes_of(samples.len() as u64);
        into.samples = samples;
        Ok(ReadStats {
            values: n_values as u64,
            bytes_read: Some(counts.bytes_read),
            bytes_decoded: Some(counts.bytes_decoded),
            bytes_needed: Some(needed),
            requests: self
                .storage
                .requests()
                .zip(requests_before)
                .map(|(now, before)| now - before),
            times: Some(counts.times),
            ..ReadStats::default()
        })
    }

    fn assembler(&self, _batch_rows: u64) -> Result<ArrayAssembler, Error> {
        Ok(ArrayAssembler::new(Arc::clone(&self.variables), self.window))
    }
}
