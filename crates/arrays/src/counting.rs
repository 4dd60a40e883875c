//! Counts what is missing in the chunks of tasks, which put nothing into a batch then.

use std::sync::atomic::{AtomicU64, Ordering};

use storage::Storage;

use crate::chunk_task::{Rows, Task, TaskChunk, place};
use crate::convert::{Convert, floats};
use crate::element::ElementType;
use crate::missing::MissingCounts;
use crate::open_array::OpenArray;
use crate::read::Failure;
use crate::read_files::ReadFiles;

/// Numbers that are converted at once.
const AT_ONCE: usize = 256;

/// What the tasks of an array count, and where.
#[derive(Debug)]
pub(crate) struct Counting<'a> {
    /// Stored numbers that mean "missing".
    missing: &'a [f64],
    /// The variable's step at which the array begins.
    first: u64,
    /// Steps of the variable, ascending, and the counts of each.
    steps: &'a [u64],
    counts: &'a [StepCounts],
}

/// The counts of a step, to which several threads add.
#[derive(Debug, Default)]
pub(crate) struct StepCounts([AtomicU64; 3]);

impl StepCounts {
    pub(crate) fn now(&self) -> MissingCounts {
        let [in_chunks, fills, nans] = self.0.each_ref().map(|n| n.load(Ordering::Relaxed));
        MissingCounts { in_chunks, fills, nans }
    }
}

impl<'a> Counting<'a> {
    pub(crate) fn new(
        array: &'a OpenArray,
        first: u64,
        (steps, counts): (&'a [u64], &'a [StepCounts]),
    ) -> Self {
        Self { missing: missing_of(&array.convert), first, steps, counts }
    }

    /// Adds to the counts of a step of the array: elements in chunks that are not stored, fill
    /// values and NaN.
    fn add(&self, step: u64, counts: [u64; 3]) {
        let step = self.first.saturating_add(step);
        let found = self.steps.binary_search(&step).ok().and_then(|at| self.counts.get(at));
        for (sum, n) in found.iter().flat_map(|found| found.0.iter().zip(counts)) {
            sum.fetch_add(n, Ordering::Relaxed);
        }
    }
}

/// Stored numbers that mean "missing".
fn missing_of(convert: &Convert) -> &[f64] {
    match convert {
        Convert::Floats { packing: Some(packing), .. } => &packing.missing,
        Convert::Planes { packings, .. } => {
            packings.first().map_or(&[], |packing| &packing.missing[..])
        }
        Convert::Copy | Convert::Floats { .. } | Convert::Numbers { .. } => &[],
    }
}

impl OpenArray {
    /// Whether stored chunks may have elements that are missing.
    pub(crate) fn may_lack_values(&self) -> bool {
        self.chunks.stored.is_float() || !missing_of(&self.convert).is_empty()
    }
}

impl<'a> Task<'a> {
    /// The same, which counts and delivers nothing.
    pub(crate) fn counting(self, counting: &'a Counting<'a>) -> Self {
        Self { counting: Some(counting), ..self }
    }

    /// Counts missing elements of a chunk. `decoded` has the elements that are wanted; its first
    /// byte has the place `start` in the chunk.
    pub(crate) fn count(
        &self,
        counting: &Counting<'_>,
        chunk: TaskChunk<'_>,
        (decoded, start): (&[u8], usize),
    ) {
        let stored = self.chunks.stored;
        let row_bytes = self.chunks.geometry.row_stride * stored.n_bytes();
        for (row, step) in self.steps() {
            let mut sums = [0, 0];
            chunk.selected.part.for_each_stored(|run| {
                let from = row * row_bytes + run.start * stored.n_bytes() - start;
                let bytes = &decoded[from..][..run.len() * stored.n_bytes()];
                let found = counted(stored, counting.missing, bytes);
                sums = [sums[0] + found[0], sums[1] + found[1]];
            });
            counting.add(step, [0, sums[0], sums[1]]);
        }
    }

    /// Counts the elements of a chunk that is not stored.
    pub(crate) fn count_absent(&self, counting: &Counting<'_>, chunk: TaskChunk<'_>) {
        let mut n = 0;
        chunk.selected.part.for_each_stored(|run| n += run.len() as u64);
        for (_, step) in self.steps() {
            counting.add(step, [n, 0, 0]);
        }
    }

    /// The rows of its chunks that are wanted, and the step of the array that each is.
    fn steps(&self) -> impl Iterator<Item = (usize, u64)> {
        let first_step = self.array_rows().start;
        let rows = self.rows.iter().flat_map(|Rows { first, len, .. }| *first..first + len);
        rows.map(move |row| (row, first_step.saturating_add(row as u64)))
    }
}

/// The numbers of fill values and of NaN.
fn counted(element: ElementType, missing: &[f64], bytes: &[u8]) -> [u64; 2] {
    let n_bytes = element.n_bytes();
    let mut numbers = [0.0_f64; AT_ONCE];
    let (mut fills, mut nans) = (0, 0);
    for bytes in bytes.chunks(AT_ONCE * n_bytes) {
        let numbers = &mut numbers[..bytes.len() / n_bytes];
        floats(element, None, bytes, numbers);
        nans += numbers.iter().filter(|number| number.is_nan()).count();
        if !missing.is_empty() {
            fills += numbers.iter().filter(|number| missing.contains(number)).count();
        }
    }
    [fills as u64, nans as u64]
}

/// Counts the elements of chunks that are not stored, without reading those that are.
pub(crate) fn count_absent(storage: &dyn Storage, tasks: &[Task<'_>]) -> Result<(), Failure> {
    let mut files = ReadFiles::default();
    for (task, placed) in tasks.iter().zip(place(storage, tasks, &mut files)?) {
        let Some(counting) = task.counting else { continue };
        for (chunk, _) in placed.into_iter().filter(|(_, place)| place.is_none()) {
            task.count_absent(counting, chunk);
        }
    }
    Ok(())
}
