//! Samples of arrays as a source of the engine.

mod opening;
mod reading;

use std::sync::Arc;

use pipeline::{BlockBytes, BlockPlace, BlockRows, Need, ReadStats, Source, Stop};
use storage::Storage;

use crate::assemble::ArrayAssembler;
use crate::batch::ArrayBatch;
use crate::block::ArrayBlock;
use crate::chunk_task::Worker;
use crate::coordinates::{Coordinates, SkippedCoordinates};
use crate::cut_variable::cut_variables;
use crate::element::ElementType;
use crate::error::Error;
use crate::kept::KeptChunks;
use crate::leads::{self, first_with_steps};
use crate::missing::{Missing, kept_samples};
use crate::open_array::OpenArray;
use crate::patches::CutDimension;
use crate::read;
use crate::spec::{ReadStrategy, SampleSpec};
use crate::times::{TimeSpan, Times};
use crate::variable::OpenVariable;
use crate::window::{LeftOut, Window};

use opening::open_variables;

/// A source of samples made of one or several Zarr arrays.
#[derive(Clone)]
pub struct ArraySamples {
    stores: Arc<[Arc<dyn Storage>]>,
    variables: Arc<[OpenVariable]>,
    skipped: Arc<[SkippedCoordinates]>,
    window: Arc<Window>,
    read: ReadStrategy,
    threads: usize,
    shares_blocks: bool,
    kept: Arc<KeptChunks>,
    counted: Option<Arc<Missing>>,
}

impl std::fmt::Debug for ArraySamples {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<&str> = self.variables.iter().map(|variable| &*variable.name).collect();
        f.debug_struct("ArraySamples")
            .field("places", &self.stores.iter().map(|store| store.place()).collect::<Vec<_>>())
            .field("variables", &names)
            .field("samples", &self.window.n_samples)
            .finish_non_exhaustive()
    }
}

impl ArraySamples {
    /// Opens the arrays of `spec` in `storage`: [`open_all`](Self::open_all) of one store.
    ///
    /// # Errors
    /// Those of `open_all`.
    pub fn open(storage: Arc<dyn Storage>, spec: &SampleSpec) -> Result<Self, Error> {
        Self::open_all(&[storage], spec)
    }

    /// Opens the arrays of `spec` in several stores, for example one for each year: the steps of a
    /// variable are those of the first store that has it, then those of the second, and so on.
    /// Samples may have steps of two stores. A store need not have all variables. Reads metadata,
    /// the coordinates of dimensions, and arrays that have no steps.
    ///
    /// A dimension's coordinates are the one-dimensional array of its name in the array's group.
    /// There need not be one. [`skipped_coordinates`](Self::skipped_coordinates) lists those that
    /// are not read. Those of the steps are in the units of the first store.
    ///
    /// # Errors
    /// An array does not exist, or its metadata, its chunks or its elements are not supported; it
    /// has no dimension; a selected dimension, index or label does not exist; the arrays differ in
    /// the number of steps; there is no sample; coordinates are damaged or have another length than
    /// their dimension; a variable differs between stores in the shape of its steps, in its
    /// elements or in its coordinates; times are not understood, or do not ascend; numbers are
    /// missing that must not ([`SampleSpec::missing`]), or cannot be counted; patches are larger
    /// than their dimension, or have no place in it.
    pub fn open_all(stores: &[Arc<dyn Storage>], spec: &SampleSpec) -> Result<Self, Error> {
        for (idx, variable) in spec.variables.iter().enumerate() {
            if spec.variables[..idx].iter().any(|other| other.name == variable.name) {
                let reason = format!("two variables have the name {}", variable.name);
                return Err(Error::Spec { reason });
            }
        }
        if let Some(reason) = leads::problem(spec) {
            return Err(Error::Spec { reason });
        }
        let threads = spec.threads.max(1);
        let (mut variables, skipped) = open_variables(stores, spec, threads)?;
        let window = Window::new(&mut variables, spec)?;
        let (mut window, counted) =
            kept_samples((stores, &mut variables[..]), window, (spec, threads))?;
        if let Some(patches) = &spec.patches {
            window = window.cut(cut_variables(&mut variables, patches)?)?;
        }
        Ok(Self {
            stores: stores.into(),
            variables: variables.into(),
            skipped: skipped.into(),
            window: Arc::new(window),
            counted: counted.map(Arc::new),
            read: spec.read,
            threads,
            shares_blocks: spec.shares_blocks,
            kept: Arc::default(),
        })
    }

    /// The number of samples.
    pub fn n_samples(&self) -> u64 {
        self.window.n_samples
    }

    /// The dimensions that are cut into patches, with the number of these; none if samples are
    /// whole steps. Sample numbers count the patches of a step, the last dimension fastest, and
    /// then the steps.
    pub fn patches(&self) -> &[CutDimension] {
        self.window.patches.as_ref().map_or(&[], |patches| patches.dimensions())
    }

    /// The first index of a sample's patch in each of [`patches`](Self::patches), counted from the
    /// first selected one; negative if it begins in the padding. Only random boxes depend on the
    /// epoch.
    pub fn patch_starts(&self, sample: u64, epoch: u64) -> Vec<i64> {
        let patches = self.window.patches.as_ref();
        patches.map_or_else(Vec::new, |patches| patches.starts(sample, epoch))
    }

    /// The variable whose steps samples are about.
    fn first(&self) -> Option<&OpenVariable> {
        self.variables.get(first_with_steps(&self.variables)?)
    }

    /// The step that a sample is about, in the first variable that has steps: the index in the
    /// arrays' first dimension, counted over all stores. Forecasts have that of the initial time.
    pub fn step(&self, sample: u64) -> u64 {
        let step = self.window.step(sample);
        self.first().map_or(step, |first| first.row_of(step))
    }

    /// The lead time of a sample, if samples are of forecasts ([`SampleSpec::lead`]).
    pub fn lead_time(&self, sample: u64) -> Option<TimeSpan> {
        self.first()?.lead_time(self.window.step(sample))
    }

    /// The store of the step that a sample is about, by its number among those that were opened.
    pub fn store(&self, sample: u64) -> usize {
        self.first().map_or(0, |variable| variable.store_of(self.window.step(sample)))
    }

    /// The month in which each sample is, from 1 to 12, by the times of the first array that has
    /// steps; of forecasts by the initial time.
    ///
    /// # Errors
    /// Its first dimension has no coordinates, or they are not times.
    pub fn months(&self) -> Result<Vec<i64>, Error> {
        let first = self.first();
        let unread = |reason: &str| {
            let path = first.map_or_else(String::new, |variable| variable.path().to_owned());
            Error::Spec { reason: format!("the months of {path} are not known: {reason}") }
        };
        let coordinates = first.and_then(|variable| variable.step_coordinates.as_deref());
        let coordinates =
            coordinates.ok_or_else(|| unread("its first dimension has no coordinates"))?;
        let times = Times::of(coordinates).map_err(|reason| unread(&reason))?;
        let month = |sample| times.month(self.step(sample));
        let months: Option<Vec<i64>> = (0..self.n_samples()).map(month).collect();
        months.ok_or_else(|| unread("a time is beyond the calendar"))
    }

    /// How many samples were left out, of those that were asked for, since their steps are not all
    /// there or lack numbers. None unless steps are found by their times
    /// ([`SampleSpec::is_timed`]) or [`SampleSpec::missing`] leaves some out.
    pub fn left_out(&self) -> LeftOut {
        self.window.left_out
    }

    /// What was counted to find the samples that [`SampleSpec::missing`] keeps; `None` if it keeps
    /// all. Handed in again ([`SampleSpec::counted`]), it saves another process from counting.
    pub fn counted(&self) -> Option<&Missing> {
        self.counted.as_deref()
    }

    pub(crate) fn opened(&self) -> (&[Arc<dyn Storage>], &[OpenVariable], &Window) {
        (&self.stores, &self.variables, &self.window)
    }

    pub(crate) fn threads(&self) -> usize {
        self.threads
    }

    /// The name of each variable, with the type of its elements in batches.
    pub fn elements(&self) -> impl Iterator<Item = (&str, ElementType)> {
        self.variables.iter().map(|variable| (variable.name.as_str(), variable.element))
    }

    /// Whether a batch has a variable once, since it has no steps, and is not cut into patches;
    /// `None` if there is no variable of that name.
    pub fn is_static(&self, variable: &str) -> Option<bool> {
        let found = self.variables.iter().find(|of| of.name == variable);
        found.map(|variable| variable.shared_values().is_some())
    }

    /// The shape of a variable in a batch of one sample, without the samples and with the most
    /// steps that its rollout has; `None` if there is no
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

    /// The first variable that has latitudes and longitudes, with the names of these two
    /// dimensions; `None` if there is none. What is computed has this grid, except in a stack.
    pub fn grid(&self) -> Option<(&str, [&str; 2])> {
        self.variables.iter().find_map(|variable| {
            Some((variable.name.as_str(), variable.grid()?.map(|of| of.dimension())))
        })
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

    /// The variables that have arrays with steps.
    fn stored_variables(&self) -> impl Iterator<Item = &OpenVariable> + Clone {
        self.variables.iter().filter(|variable| !variable.is_static() && !variable.is_computed())
    }

    /// Bytes of samples in a block, which has only what has steps.
    fn bytes_of(&self, n_samples: u64) -> u64 {
        n_samples.saturating_mul(self.sample_bytes())
    }

    /// Bytes of variables without steps, which each batch has.
    fn static_bytes(&self) -> u64 {
        self.variables.iter().map(|of| of.batch_bytes(0)).sum()
    }

    /// Decodes samples, in this order, straight into the caller's memory: one slice for each
    /// variable, in the order of the settings. Overwrites all of it with arrays of shape
    /// `[samples, ...]` in C order, and with one array of each variable that is static. Random
    /// boxes are those of epoch 0.
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
        for (variable, into) in self.variables.iter().zip(&mut *into) {
            if let Some(values) = variable.shared_values() {
                into.copy_from_slice(values.bytes());
            }
        }
        let read = self.read_samples((samples, None, None), into, scratch, stop);
        read.map_err(|read::Failure { path: array, source }| Error::ReadInto { array, source })
    }
}

/// What a reading thread uses again from read to read.
#[derive(Debug, Default)]
pub struct ReadScratch {
    workers: Vec<Worker>,
    /// For each variable, rows that are subtracted.
    rows: Vec<Vec<u64>>,
}

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
        let variables = self.variables.iter().map(OpenVariable::fingerprint);
        std::iter::once(self.window.fingerprint()).chain(variables).collect::<Vec<_>>().join("; ")
    }

    fn need(&self, block_rows: u64, batch_rows: u64) -> Result<Need, Error> {
        let block = self.bytes_of(block_rows);
        let arrays = || self.stored_variables().flat_map(OpenVariable::arrays);
        let chunk = arrays().map(|of| of.chunks.chunk_bytes()).max().unwrap_or(0) as u64;
        let fetched = self.stores.iter().map(|store| read::fetched_bytes(&**store)).max();
        // Each thread has a chunk as stored, and decoded. From a remote store it also has what it
        // fetched together, which the last task may bring over the limit.
        let reading = match fetched.unwrap_or(0) {
            0 => chunk.saturating_mul(2),
            fetched => {
                let task = arrays().map(OpenArray::task_bytes).max().unwrap_or(0);
                chunk.saturating_mul(2).saturating_add(fetched).saturating_add(task)
            }
        };
        // Those that are subtracted are read elsewhere first.
        let rows: u64 = self.variables.iter().map(|variable| variable.rows_bytes_in(None)).sum();
        let rows = rows.saturating_mul(match self.read {
            ReadStrategy::Stacked => block_rows,
            ReadStrategy::PerSample => 1,
        });
        // A batch within a block shares its memory, so the consumer's keeps a whole block. A batch
        // that is its block keeps it to itself.
        let is_shared = self.shares_blocks
            && batch_rows != 0
            && block_rows != batch_rows
            && block_rows.is_multiple_of(batch_rows);
        Ok(Need {
            block,
            largest: block,
            batch: self.static_bytes() + if is_shared { 0 } else { self.bytes_of(batch_rows) },
            reading: reading.saturating_mul(self.threads as u64).saturating_add(rows),
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
        let epoch = Some(rows.place.epoch);
        for (at, variable) in self.variables.iter().enumerate() {
            let n_bytes = variable.sample_bytes_in(epoch).saturating_mul(samples.len() as u64);
            let made = usize::try_from(n_bytes).ok();
            made.and_then(|n_bytes| into.slot(at, n_bytes, &variable.pool))
                .ok_or(Error::Memory { bytes: n_bytes, n_samples: samples.len() })?;
        }
        let read = self.bytes_mut(&mut into.slots).and_then(|mut into| {
            let wanted = (&samples[..], epoch, Some(rows.upcoming));
            self.read_samples(wanted, &mut into, scratch, stop)
        });
        let stats = read.map_err(|failure| {
            let BlockPlace { epoch, block_idx } = rows.place;
            let read::Failure { path: array, source } = failure;
            Error::Read { array, epoch, block_idx, source }
        })?;
        into.samples = samples;
        into.epoch = rows.place.epoch;
        Ok(stats)
    }

    /// Decoded chunks are kept, except those that are not compressed in a folder, which the
    /// system keeps.
    fn keep(&self, holder: u64, bytes: u64) {
        self.kept.allow(holder, bytes);
    }

    fn keeps(&self) -> bool {
        true
    }

    fn answers_late(&self) -> bool {
        self.stores.iter().any(|store| store.request_counts().is_some())
    }

    fn unit_end(&self, row: u64) -> u64 {
        let ends = self.stored_variables().map(|variable| self.window.unit_end(variable, row));
        ends.min().unwrap_or(row)
    }

    fn row_name(&self, row: u64) -> String {
        let of_lead = self.lead_time(row).map(|lead| format!(", lead time {lead}"));
        let step = format!("step {}{}", self.step(row), of_lead.unwrap_or_default());
        match self.window.patches.as_deref() {
            Some(patches) => format!("{step}, {}", patches.name(row)),
            None => step,
        }
    }

    fn is_damage(&self, error: &Error) -> bool {
        let is_own = matches!(error, Error::Memory { .. } | Error::Pipeline(_));
        !is_own && pipeline::system_failure(error).is_none()
    }

    fn assembler(&self, _batch_rows: u64) -> Result<ArrayAssembler, Error> {
        let (variables, window) = (Arc::clone(&self.variables), Arc::clone(&self.window));
        Ok(ArrayAssembler::new(variables, window, self.shares_blocks))
    }
}
