//! Samples of arrays as a source of the engine.

use std::collections::HashMap;
use std::sync::Arc;

use pipeline::{BlockBytes, BlockPlace, BlockRows, Need, ReadStats, Source, Stop, Upcoming};
use slots::{PooledSlot, SlotMemory as _};
use storage::Storage;

use crate::assemble::ArrayAssembler;
use crate::axes::{Axes, check_channels, order_in_stack};
use crate::batch::ArrayBatch;
use crate::block::ArrayBlock;
use crate::chunk_task::{Task, WantedRow, Worker, tasks};
use crate::coordinate_arrays::CoordinateArrays;
use crate::coordinates::{Coordinates, SkippedCoordinates};
use crate::cut_variable::cut_variables;
use crate::element::ElementType;
use crate::error::Error;
use crate::kept::KeptChunks;
use crate::metadata::Unopened;
use crate::missing::{Missing, kept_samples};
use crate::open_array::OpenArray;
use crate::patch_read::{PatchReads, WantedPatch, put_static};
use crate::patches::CutDimension;
use crate::read;
use crate::spec::{ReadStrategy, SampleSpec, Variable};
use crate::times::Times;
use crate::variable::{OpenVariable, Opening};
use crate::window::{LeftOut, Window};

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

    /// The step that a sample is about, in the first variable that has steps: the index in the
    /// arrays' first dimension, counted over all stores.
    pub fn step(&self, sample: u64) -> u64 {
        self.window.step(sample)
    }

    /// The store of the step that a sample is about, by its number among those that were opened.
    pub fn store(&self, sample: u64) -> usize {
        let step = self.step(sample);
        let first = self.variables.iter().find(|variable| !variable.is_static());
        first.map_or(0, |variable| variable.store_of(step))
    }

    /// The month in which each sample is, from 1 to 12, by the times of the first array that has
    /// steps.
    ///
    /// # Errors
    /// Its first dimension has no coordinates, or they are not times.
    pub fn months(&self) -> Result<Vec<i64>, Error> {
        let first = self.variables.iter().find(|variable| !variable.is_static());
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
            let expected = variable.batch_bytes(samples.len() as u64);
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
                path: variable.path().to_owned(),
                source: "its memory belongs to a batch".into(),
            })
        });
        bytes.collect()
    }

    /// Reads samples into one slice for each variable, which have the right length in this epoch.
    /// `upcoming` says when samples are read again.
    fn read_samples(
        &self,
        (samples, epoch, upcoming): (&[u64], Option<u64>, Option<&Upcoming>),
        into: &mut [&mut [u8]],
        scratch: &mut ReadScratch,
        stop: &Stop,
    ) -> Result<ReadStats, read::Failure> {
        let begun = self.kept.begin(samples.len() as u64, None);
        let upcoming = upcoming.filter(|_| self.kept.is_used());
        let one_read = match self.read {
            ReadStrategy::Stacked => samples.len().max(1),
            ReadStrategy::PerSample => 1,
        };
        // Those of other reads at the same time count, too.
        let requests_sent = || -> Option<u64> {
            let each = self.stores.iter().map(|store| Some(store.request_counts()?.sent));
            each.sum()
        };
        let requests_before = requests_sent();
        let mut stats = ReadStats::nothing();
        for (idx, these) in samples.chunks(one_read).enumerate() {
            // A chunk that several variables want alike is decoded once.
            let mut wanted: Vec<(&OpenArray, Vec<WantedRow<'_>>)> = Vec::new();
            let mut in_patches: Vec<(&OpenArray, Vec<WantedPatch<'_>>)> = Vec::new();
            let patches = self.window.patches.as_deref();
            let starts: Vec<Vec<i64>> = patches.map_or_else(Vec::new, |patches| {
                let epoch = epoch.unwrap_or(0);
                these.iter().map(|sample| patches.starts(*sample, epoch)).collect()
            });
            for (variable, into) in self.variables.iter().zip(&mut *into) {
                let sample_bytes = variable.sample_bytes_in(epoch) as usize;
                let n_steps = variable.n_steps_in(epoch);
                let start = idx * one_read * sample_bytes;
                let places = &mut into[start..start + these.len() * sample_bytes];
                if variable.is_static() {
                    if let Some(patches) = patches {
                        put_static(variable, (patches, &starts), places);
                    }
                    continue;
                }
                let steps = these.iter().enumerate().flat_map(|(at, sample)| {
                    let steps = self.window.steps_of(variable, *sample).take(n_steps);
                    steps.map(move |step| (at, step))
                });
                for ((at, step), row) in steps.zip(places.chunks_exact_mut(variable.row_bytes())) {
                    let mut rest = row;
                    for member in &variable.members {
                        let (array, step) = member.array_of(step);
                        let (place, after) = rest.split_at_mut(member.row_bytes());
                        rest = after;
                        if variable.patch.is_some() {
                            let wanted = WantedPatch { step, starts: at, into: place };
                            push(&mut in_patches, array, wanted);
                        } else {
                            push(&mut wanted, array, (step, place));
                        }
                    }
                }
            }
            let reads: Vec<PatchReads<'_>> = in_patches
                .into_iter()
                .filter_map(|(of, all)| Some(PatchReads::new(of, (patches?, &starts), all)))
                .collect();
            for (store, storage) in self.stores.iter().enumerate() {
                let of_store = wanted.iter_mut().filter(|(array, _)| array.store == store);
                let mut all: Vec<_> = of_store
                    .flat_map(|(of, rows)| tasks((&of.chunks, &of.convert), std::mem::take(rows)))
                    .collect();
                let reads = reads.iter().filter(|read| read.array.store == store);
                all.extend(reads.flat_map(PatchReads::tasks));
                if let Some(upcoming) = upcoming {
                    self.set_next_uses(&mut all, begun.start(), upcoming);
                }
                if !all.is_empty() {
                    let with = (&mut scratch.0, self.threads);
                    stats += read::run((&**storage, &self.kept), all, with, stop)?;
                }
            }
        }
        let requests = requests_sent().zip(requests_before);
        let values: usize = self.variables.iter().map(|of| of.sample_elements_in(epoch)).sum();
        let sample_bytes: u64 = self.variables.iter().map(|of| of.sample_bytes_in(epoch)).sum();
        Ok(ReadStats {
            values: (values * samples.len()) as u64,
            values_decoded: None,
            bytes_needed: Some(sample_bytes * samples.len() as u64),
            requests: requests.map(|(now, before)| now - before),
            ..stats
        })
    }
}

impl ArraySamples {
    /// Sets when the chunks of tasks are needed again, by any variable, after a read that began at
    /// `start`.
    fn set_next_uses(&self, tasks: &mut [Task<'_>], start: u64, upcoming: &Upcoming) {
        let mut known: HashMap<(*const u8, u64), u64> = HashMap::new();
        for task in tasks {
            let (chunks, rows, window) = (task.chunks, task.array_rows(), &*self.window);
            let array = chunks.kept_as.as_ptr();
            let next_use = *known.entry((array, task.chunk_row)).or_insert_with(|| {
                let uses = self.variables.iter().flat_map(|variable| {
                    let steps = variable.steps_in(&chunks.kept_as, rows.clone());
                    steps.flat_map(move |steps| window.samples_of(variable, steps))
                });
                let until = uses.map(|samples| upcoming.rows_until(samples)).min();
                until.map_or(u64::MAX, |until| start.saturating_add(until))
            });
            task.next_use = Some(next_use);
        }
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
        let variables = self.variables.iter().map(OpenVariable::fingerprint);
        std::iter::once(self.window.fingerprint()).chain(variables).collect::<Vec<_>>().join("; ")
    }

    fn need(&self, block_rows: u64, batch_rows: u64) -> Result<Need, Error> {
        let block = self.bytes_of(block_rows);
        let with_steps = self.variables.iter().filter(|variable| !variable.is_static());
        let arrays = || with_steps.clone().flat_map(OpenVariable::arrays);
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

    fn unit_end(&self, row: u64) -> u64 {
        let with_steps = self.variables.iter().filter(|variable| !variable.is_static());
        let ends = with_steps.map(|variable| self.window.unit_end(variable, row));
        ends.min().unwrap_or(row)
    }

    fn row_name(&self, row: u64) -> String {
        let step = format!("step {}", self.step(row));
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

/// Adds what is wanted of an array to what is wanted of its rows already.
fn push<'a, T>(all: &mut Vec<(&'a OpenArray, Vec<T>)>, array: &'a OpenArray, wanted: T) {
    // The last one first: neighbours are mostly of one array.
    match all.iter_mut().rev().find(|(other, _)| other.has_rows_of(array)) {
        Some((_, of_array)) => of_array.push(wanted),
        None => all.push((array, vec![wanted])),
    }
}

/// Joins a variable of a store to what earlier stores have of it.
fn join(
    found: &mut Option<OpenVariable>,
    opened: OpenVariable,
    storage: &dyn Storage,
) -> Result<(), Error> {
    let Some(found) = found else {
        *found = Some(opened);
        return Ok(());
    };
    let path = opened.path().to_owned();
    found.append(opened).map_err(|reason| {
        let place = storage.place();
        Error::Spec {
            reason: format!("{path} in {place} does not follow the store before: {reason}"),
        }
    })
}

/// Opens the variables of a specification, with what was skipped of their coordinates.
fn open_variables(
    stores: &[Arc<dyn Storage>],
    spec: &SampleSpec,
    threads: usize,
) -> Result<(Vec<OpenVariable>, Vec<SkippedCoordinates>), Error> {
    // Those that are stacked, each by itself first.
    let axes = Axes::of(spec);
    axes.check()?;
    check_channels(spec)?;
    let arrays: Vec<Variable> = spec.variables.iter().flat_map(arrays_of).collect();
    let (mut found, mut skipped) = (Vec::new(), Vec::new());
    found.resize_with(arrays.len(), || None);
    for (store, storage) in stores.iter().enumerate() {
        let mut coordinates = CoordinateArrays::new(storage, threads);
        let mut valid = HashMap::new();
        let mut has_any = false;
        for (variable, found) in arrays.iter().zip(&mut found) {
            let opening = Opening {
                storage,
                store,
                along: spec.along.as_ref(),
                axes,
                arrays: &mut coordinates,
                valid: &mut valid,
                with_coordinates: spec.coordinates || spec.is_timed(),
                is_timed: spec.is_timed(),
                threads,
            };
            let Some(opened) = OpenVariable::open(variable, opening)? else { continue };
            has_any = true;
            join(found, opened, &**storage)?;
        }
        if !has_any && let Some(variable) = arrays.first() {
            return Err(Unopened::Missing.error(variable.path.trim_matches('/'), &**storage));
        }
        skipped.extend(coordinates.into_skipped());
    }
    let missing = |variable: &Variable| match stores.first() {
        Some(storage) => Unopened::Missing.error(variable.path.trim_matches('/'), &**storage),
        None => Error::Spec { reason: "there is no store".to_owned() },
    };
    let opened = found.into_iter().zip(&arrays);
    let opened = opened.map(|(found, variable)| found.ok_or_else(|| missing(variable)));
    let opened = opened.collect::<Result<Vec<OpenVariable>, Error>>()?;
    axes.check_known(&opened)?;
    let mut opened = opened.into_iter();
    let variables = spec.variables.iter().map(|variable| {
        let n = variable.stack.len().max(1);
        let mut members: Vec<OpenVariable> = opened.by_ref().take(n).collect();
        if variable.stack.is_empty()
            && let Some(only) = members.pop()
        {
            return Ok(only);
        }
        OpenVariable::stacked(&variable.name, members, &variable.normalize).map_err(|reason| {
            Error::Spec { reason: format!("{} cannot be stacked: {reason}", variable.name) }
        })
    });
    Ok((variables.collect::<Result<_, _>>()?, skipped))
}

/// The variables that have arrays: those that are stacked, at the steps of the stack, or itself.
fn arrays_of(variable: &Variable) -> Vec<Variable> {
    if variable.stack.is_empty() {
        return vec![variable.clone()];
    }
    let member = |member: &Variable| Variable {
        steps: variable.steps.clone(),
        spans: variable.spans.clone(),
        rollout: variable.rollout.clone(),
        order: order_in_stack(variable, member),
        as_f32: variable.as_f32 || member.as_f32,
        ..member.clone()
    };
    variable.stack.iter().map(member).collect()
}
