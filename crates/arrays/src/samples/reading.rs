//! Reads samples into memory.

use std::collections::HashMap;
use std::sync::Arc;

use pipeline::{ReadStats, Stop, Upcoming};
use slots::{PooledSlot, SlotMemory as _};

use super::{ArraySamples, ReadScratch};
use crate::chunk_task::{Task, WantedRow, tasks};
use crate::error::Cause;
use crate::memory::words;
use crate::open_array::OpenArray;
use crate::patch_read::{PatchReads, WantedPatch, put_static};
use crate::read;
use crate::spec::ReadStrategy;

/// What a read wants of each array. A chunk that several variables want alike is decoded once.
#[derive(Default)]
struct Wanted<'a> {
    rows: Vec<(&'a OpenArray, Vec<WantedRow<'a>>)>,
    patches: Vec<(&'a OpenArray, Vec<WantedPatch<'a>>)>,
}

impl ArraySamples {
    /// Says why samples cannot be read into memory, if so.
    pub(super) fn check_destination(
        &self,
        samples: &[u64],
        into: &[&mut [u8]],
    ) -> Result<(), String> {
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
    pub(super) fn bytes_mut<'a>(
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
    pub(super) fn read_samples(
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
            let patches = self.window.patches.as_deref();
            let starts: Vec<Vec<i64>> = patches.map_or_else(Vec::new, |patches| {
                let epoch = epoch.unwrap_or(0);
                these.iter().map(|sample| patches.starts(*sample, epoch)).collect()
            });
            let ReadScratch { workers, rows: scratch } = &mut *scratch;
            let subtracted = self.subtracted_rows(these.len(), epoch, scratch)?;
            let Wanted { mut rows, patches: in_patches } =
                self.wanted((these, idx * one_read), (epoch, &starts), (&mut *into, subtracted));
            let reads: Vec<PatchReads<'_>> = in_patches
                .into_iter()
                .map(|(of, all)| PatchReads::new(of, (patches, &starts), all))
                .collect();
            for (store, storage) in self.stores.iter().enumerate() {
                let of_store = rows.iter_mut().filter(|(array, _)| array.store == store);
                let mut all: Vec<_> = of_store
                    .flat_map(|(of, rows)| tasks((&of.chunks, &of.convert), std::mem::take(rows)))
                    .collect();
                let reads = reads.iter().filter(|read| read.array.store == store);
                all.extend(reads.flat_map(PatchReads::tasks));
                if let Some(upcoming) = upcoming {
                    self.set_next_uses(&mut all, begun.start(), upcoming);
                }
                if !all.is_empty() {
                    let with = (&mut *workers, self.threads);
                    stats += read::run((&**storage, &self.kept), all, with, stop)?;
                }
            }
            for ((variable, into), rows) in self.variables.iter().zip(&mut *into).zip(scratch) {
                let sample_bytes = variable.sample_bytes_in(epoch) as usize;
                let n_bytes = variable.rows_bytes_in(epoch) as usize * these.len();
                let rows = &bytemuck::cast_slice(rows)[..n_bytes];
                let places = &mut into[idx * one_read * sample_bytes..];
                let places = &mut places[..these.len() * sample_bytes];
                variable.subtract(rows, epoch, (places, self.threads));
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

    /// Memory for the rows of samples, if some of them are subtracted: for each variable.
    fn subtracted_rows<'s>(
        &self,
        n_samples: usize,
        epoch: Option<u64>,
        scratch: &'s mut Vec<Vec<u64>>,
    ) -> Result<Vec<&'s mut [u8]>, read::Failure> {
        scratch.resize_with(self.variables.len(), Vec::new);
        let each = self.variables.iter().zip(scratch).map(|(variable, scratch)| {
            let n_bytes = variable.rows_bytes_in(epoch).saturating_mul(n_samples as u64);
            let rows = usize::try_from(n_bytes).map_err(Cause::from);
            let rows = rows.and_then(|n_bytes| words(scratch, n_bytes));
            rows.map_err(|source| read::Failure { path: variable.path().to_owned(), source })
        });
        each.collect()
    }

    /// What these samples, of which the first has the place `at` in the memory, want of the arrays.
    /// Puts the patches of arrays without steps there, and what is computed. `starts` are where the
    /// patches begin. Rows that are subtracted have memory of their own.
    fn wanted<'a>(
        &'a self,
        (samples, at): (&[u64], usize),
        (epoch, starts): (Option<u64>, &[Vec<i64>]),
        (into, subtracted): (&'a mut [&mut [u8]], Vec<&'a mut [u8]>),
    ) -> Wanted<'a> {
        let mut wanted = Wanted::default();
        for ((variable, into), rows) in self.variables.iter().zip(into).zip(subtracted) {
            let sample_bytes = variable.sample_bytes_in(epoch) as usize;
            let places = &mut into[at * sample_bytes..][..samples.len() * sample_bytes];
            let places = if variable.difference.is_some() { rows } else { places };
            if variable.is_static() {
                if let Some(patches) = &self.window.patches {
                    put_static(variable, (patches, starts), places);
                }
                continue;
            }
            let steps = samples.iter().enumerate().flat_map(|(number, sample)| {
                let steps = variable.steps_read_in(epoch);
                let steps = self.window.steps_at(variable, *sample, steps);
                steps.map(move |step| (number, step))
            });
            let row_bytes = variable.read_row_bytes();
            for ((number, step), row) in steps.zip(places.chunks_exact_mut(row_bytes)) {
                let mut rest = row;
                let lead = variable.lead_of(step);
                let mut forcings = variable.forcings.iter().peekable();
                for n_before in 0..=variable.members.len() {
                    while let Some(forcing) = forcings.next_if(|of| of.n_before == n_before) {
                        let (into, after) = rest.split_at_mut(forcing.row_bytes(variable));
                        rest = after;
                        let patches = self.window.patches.as_deref();
                        let patch = patches.zip(starts.get(number).map(Vec::as_slice));
                        forcing.put((variable, patch), step, into);
                    }
                    let Some(member) = variable.members.get(n_before) else { break };
                    let (array, row) = member.array_of(variable.row_of(step));
                    let (into, after) = rest.split_at_mut(member.row_bytes());
                    rest = after;
                    if array.patch.is_some() {
                        let patch = WantedPatch { row, lead, starts: number, into };
                        push(&mut wanted.patches, array, patch);
                    } else {
                        push(&mut wanted.rows, array, (row, into));
                    }
                }
            }
        }
        wanted
    }

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

/// Adds what is wanted of an array to what is wanted of its rows already.
fn push<'a, T>(all: &mut Vec<(&'a OpenArray, Vec<T>)>, array: &'a OpenArray, wanted: T) {
    // The last one first: neighbours are mostly of one array.
    match all.iter_mut().rev().find(|(other, _)| other.has_rows_of(array)) {
        Some((_, of_array)) => of_array.push(wanted),
        None => all.push((array, vec![wanted])),
    }
}
