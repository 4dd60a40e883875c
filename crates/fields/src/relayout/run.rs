//! Copies an array, region by region.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use arrays::{ChunkRuns, Run};
use bench_run::{Cause, Threads, check_interrupted};

use super::copy::{Form, each_run, fill};
use super::plan::{RETAINED, Region};
use super::progress::Progress;
use super::spec::RelayoutSpec;
use super::target::{Encoded, Files, Target, write_error};
use super::variable::{Variable, overflow_error};
use crate::Error;

/// Counts of a run.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// Source chunks that were decoded.
    pub(crate) n_decoded: AtomicU64,
    /// Numbers other than 0 that became 0.
    pub(crate) n_zeros: AtomicU64,
}

/// An array that is being copied.
pub(crate) struct Copying<'a> {
    pub(crate) variable: &'a Variable,
    pub(crate) spec: &'a RelayoutSpec,
    /// The folder of the new array.
    pub(crate) folder: &'a Path,
    pub(crate) n_threads: usize,
    pub(crate) counts: &'a Counts,
}

/// What happens in the order of the regions, whichever thread is done with one first.
struct InOrder<'a> {
    /// The number of the region whose turn it is.
    next: u64,
    /// Whether a thread has failed, so that the turn of others never comes.
    failed: bool,
    files: Files<'a>,
    progress: &'a mut Progress,
}

/// Memory of a thread, which is used again.
#[derive(Debug, Default)]
struct Scratch {
    /// The values of a region.
    values: Vec<u8>,
    /// A source chunk.
    decoded: Vec<u8>,
    /// The encoded chunks of a region.
    encoded: Vec<u8>,
}

impl Scratch {
    /// Returns memory to the system that can be had again quickly.
    fn release(&mut self) {
        for buffer in [&mut self.values, &mut self.decoded, &mut self.encoded] {
            if RETAINED < buffer.capacity() {
                *buffer = Vec::new();
            }
        }
    }
}

/// Regions that are left, and the number of the next one.
struct Left<I> {
    regions: I,
    number: u64,
}

impl Copying<'_> {
    /// Copies what `progress` does not have, and notes it there. Calls `done` with the numbers of
    /// chunks.
    pub(crate) fn run(
        &self,
        progress: &mut Progress,
        done: &mut dyn FnMut(u64),
    ) -> Result<(), Error> {
        let Variable { plan, source, .. } = self.variable;
        let target = self.target().map_err(|cause| write_error(self.folder, cause))?;
        if source.array.element_bytes().is_none() {
            return self.copy_strings(&target, done);
        }
        let n_blocks = progress.n_blocks(&source.name, &plan.region);
        let n_chunks = |region: &Region| -> u64 {
            let pairs = region.ranges.iter().zip(&plan.axes);
            pairs.map(|(range, axis)| (range.end - range.start).div_ceil(axis.chunk)).product()
        };
        let mut regions = plan.regions().peekable();
        let (mut n_left, mut n_before) = (plan.n_regions(), 0);
        while let Some(region) = regions.next_if(|region| region.block < n_blocks) {
            n_left -= 1;
            n_before += n_chunks(&region);
        }
        done(n_before);
        // A file that one region has is written by the thread that has the region.
        let are_whole = plan.region.iter().zip(&plan.axes).all(|(len, axis)| axis.file <= *len);
        let left = Mutex::new(Left { regions, number: 0 });
        let in_order =
            Mutex::new(InOrder { next: 0, failed: false, files: Files::new(&target), progress });
        let turn = Condvar::new();
        let work = |scratch: &mut Scratch, _| -> Result<u64, Error> {
            let taken = {
                let mut left = lock(&left);
                let number = left.number;
                left.number += 1;
                left.regions.next().map(|region| (number, region))
            };
            let Some((number, region)) = taken.filter(|_| !lock(&in_order).failed) else {
                return Ok(0);
            };
            let copied = self.copy(&target, &region, are_whole, scratch);
            let mut in_order = lock(&in_order);
            while copied.is_ok() && in_order.next < number && !in_order.failed {
                in_order = turn.wait(in_order).unwrap_or_else(PoisonError::into_inner);
            }
            let outcome = match copied {
                // The thread that failed says why.
                Ok(_) if in_order.failed => return Ok(0),
                Ok(chunks) => {
                    let array = (&source.name[..], &plan.region[..]);
                    in_order.write((&chunks, &scratch.encoded), &region, array)
                }
                Err(error) => Err(error),
            };
            in_order.failed |= outcome.is_err();
            in_order.next += 1;
            turn.notify_all();
            drop(in_order);
            scratch.release();
            outcome.map(|()| n_chunks(&region))
        };
        let threads = Threads {
            name: "relayout",
            n_threads: self.n_threads,
            interrupted: self.spec.interrupted,
        };
        threads.each(n_left, Scratch::default, work, &mut |_, written: Result<u64, Error>| {
            done(written?);
            Ok(())
        })
    }

    fn target(&self) -> Result<Target, Cause> {
        let Variable { plan, has_shards, codecs, fill, .. } = self.variable;
        let in_shard =
            has_shards.then(|| plan.axes.iter().map(super::axis::Axis::chunks_per_file).collect());
        Target::new(
            self.folder.to_owned(),
            (&self.variable.encoded_type(), fill.1.clone()),
            codecs,
            (&self.variable.chunk(), in_shard),
        )
    }

    /// Reads a region and encodes its chunks. Writes them if their files are whole; otherwise
    /// returns them, with their bytes in `scratch`.
    fn copy(
        &self,
        target: &Target,
        region: &Region,
        are_whole: bool,
        scratch: &mut Scratch,
    ) -> Result<Vec<Encoded>, Error> {
        let Scratch { values, decoded, encoded } = scratch;
        let shape: Vec<usize> =
            region.ranges.iter().map(|range| (range.end - range.start) as usize).collect();
        let n_bytes = shape.iter().product::<usize>() * self.variable.element_bytes;
        let values = bench_run::reserved(values, n_bytes, "the values of a region")?;
        fill(values, target.fill());
        self.read(region, &shape, values, decoded)?;
        if RETAINED < decoded.capacity() {
            *decoded = Vec::new();
        }
        // Most codecs make a chunk smaller, none much larger.
        let most_bytes = n_bytes + n_bytes / 64 + 4096;
        let short = |_| Error::Memory { what: "encoded chunks", n_bytes: most_bytes };
        encoded.clear();
        encoded.try_reserve_exact(most_bytes).map_err(short)?;
        let mut chunks = self.encode(target, region, (&shape, values), encoded)?;
        chunks.sort_by(|one, other| (&one.file, one.at).cmp(&(&other.file, other.at)));
        if are_whole {
            let mut files = Files::new(target);
            files.append(&chunks, encoded)?;
            files.finish()?;
            chunks.clear();
        }
        Ok(chunks)
    }

    /// Decodes the source chunks that have a part of the region.
    fn read(
        &self,
        region: &Region,
        shape: &[usize],
        values: &mut [u8],
        decoded: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let Variable { plan, source, cast, element_bytes, .. } = self.variable;
        let array = &source.array;
        let runs: Vec<Vec<ChunkRuns>> =
            plan.axes.iter().zip(&region.ranges).map(|(axis, range)| axis.runs(range)).collect();
        let source_shape: Vec<usize> =
            array.chunk_shape().iter().map(|len| *len as usize).collect();
        let source_bytes = array.element_bytes().unwrap_or(0);
        let chunk_bytes = array
            .chunk_bytes()
            .ok_or(Error::Memory { what: "a chunk of the source", n_bytes: usize::MAX })?;
        let from = Form { shape: &source_shape, element_bytes: source_bytes };
        let into = Form { shape, element_bytes: *element_bytes };
        let failed =
            |error| Error::Source { what: "fields", path: array.path().into(), source: error };
        each_combination(&runs, &mut |of_chunk| {
            check_interrupted(self.spec.interrupted)?;
            let chunk: Vec<u64> = of_chunk.iter().map(|runs| runs.chunk).collect();
            let runs: Vec<&[Run]> = of_chunk.iter().map(|runs| &runs.runs[..]).collect();
            self.counts.n_decoded.fetch_add(1, Ordering::Relaxed);
            let read = |into: &mut [u8]| {
                array.read_chunk(&chunk, into).map_err(|error| failed(error.into()))
            };
            // A chunk that lies in the region as it lies in itself is decoded there.
            if let Some(at) = self.lies_whole(from, into, &runs) {
                read(&mut values[at..at + chunk_bytes])?;
                return Ok(());
            }
            let decoded = bench_run::reserved(decoded, chunk_bytes, "a chunk of the source")?;
            if !read(decoded)? {
                return Ok(());
            }
            each_run(from, into, &runs, &mut |src, dst, n| {
                let from = &decoded[src..src + n * source_bytes];
                let into = &mut values[dst..dst + n * element_bytes];
                match cast {
                    None => into.copy_from_slice(from),
                    Some(cast) => {
                        let n_zeros = cast.run(from, into).map_err(|overflow| {
                            let place = format!("a value in chunk {chunk:?}");
                            overflow_error(&source.name, cast.to, &place, overflow)
                        })?;
                        self.counts.n_zeros.fetch_add(n_zeros, Ordering::Relaxed);
                    }
                }
                Ok(())
            })
        })
    }

    /// The first byte of a source chunk in the region, if the region has all of it in one piece.
    fn lies_whole(&self, from: Form<'_>, into: Form<'_>, runs: &[&[Run]]) -> Option<usize> {
        if self.variable.cast.is_some() {
            return None;
        }
        let n_elements: usize = from.shape.iter().product();
        let mut found = None;
        // Another run would be a part, or the same for the second time.
        let single = each_run(from, into, runs, &mut |_, dst, n| {
            let is_whole = n == n_elements && found.is_none();
            found = Some(dst);
            if is_whole { Ok(()) } else { Err(()) }
        });
        found.filter(|_| single.is_ok())
    }

    /// Encodes the chunks of a region that have other values than the fill value.
    fn encode(
        &self,
        target: &Target,
        region: &Region,
        (shape, values): (&[usize], &[u8]),
        all: &mut Vec<u8>,
    ) -> Result<Vec<Encoded>, Error> {
        let Variable { plan, element_bytes, .. } = self.variable;
        let chunk_shape: Vec<usize> = plan.axes.iter().map(|axis| axis.chunk as usize).collect();
        let n_bytes = chunk_shape.iter().product::<usize>() * element_bytes;
        let from = Form { shape, element_bytes: *element_bytes };
        let into = Form { shape: &chunk_shape, element_bytes: *element_bytes };
        // One run in each dimension for each chunk.
        let runs: Vec<Vec<ChunkRuns>> = region
            .ranges
            .iter()
            .zip(&chunk_shape)
            .map(|(range, len)| {
                let n_chunks = (range.end - range.start) / *len as u64;
                let one = |idx| ChunkRuns {
                    chunk: range.start / *len as u64 + idx,
                    runs: vec![Run { src: idx as usize * len, dst: 0, len: *len }],
                };
                (0..n_chunks).map(one).collect()
            })
            .collect();
        let (mut found, mut gathered) = (Vec::new(), Vec::new());
        each_combination(&runs, &mut |of_chunk| {
            check_interrupted(self.spec.interrupted)?;
            let chunk: Vec<u64> = of_chunk.iter().map(|runs| runs.chunk).collect();
            let runs: Vec<&[Run]> = of_chunk.iter().map(|runs| &runs.runs[..]).collect();
            let mut at = None;
            let single = each_run(from, into, &runs, &mut |src, _, n| {
                at = Some(src).filter(|_| n * element_bytes == n_bytes);
                if at.is_some() { Ok(()) } else { Err(()) }
            });
            let chunk_values = if let Some(at) = at.filter(|_| single.is_ok()) {
                &values[at..at + n_bytes]
            } else {
                let gathered = bench_run::reserved(&mut gathered, n_bytes, "a chunk")?;
                each_run(from, into, &runs, &mut |src, dst, n| {
                    let n = n * element_bytes;
                    gathered[dst..dst + n].copy_from_slice(&values[src..src + n]);
                    Ok::<_, Error>(())
                })?;
                &*gathered
            };
            // Nothing that stays is allocated beside a codec's memory, which would be cut up.
            let (file, at) = target.place(&chunk);
            found.reserve(1);
            let encoded =
                target.encode(chunk_values).map_err(|cause| write_error(self.folder, cause))?;
            if let Some(bytes) = encoded {
                let start = all.len();
                all.extend_from_slice(&bytes);
                drop(bytes);
                found.push(Encoded { file, at, bytes: start..all.len() });
            }
            Ok(())
        })?;
        Ok(found)
    }
}

impl InOrder<'_> {
    /// Appends the chunks of a region to their files. After the last region of a block these are
    /// whole.
    fn write(
        &mut self,
        (chunks, all): (&[Encoded], &[u8]),
        region: &Region,
        (name, shape): (&str, &[u64]),
    ) -> Result<(), Error> {
        self.files.append(chunks, all)?;
        if region.ends_block {
            self.files.finish()?;
            self.progress.note(name, shape, region.block + 1)?;
        }
        Ok(())
    }
}

/// Calls `take` with each combination of an element of each list.
fn each_combination(
    lists: &[Vec<ChunkRuns>],
    take: &mut dyn FnMut(&[&ChunkRuns]) -> Result<(), Error>,
) -> Result<(), Error> {
    if lists.iter().any(Vec::is_empty) {
        return Ok(());
    }
    let mut at = vec![0; lists.len()];
    loop {
        let chosen: Vec<&ChunkRuns> = lists.iter().zip(&at).map(|(list, at)| &list[*at]).collect();
        take(&chosen)?;
        let next = (0..at.len()).rfind(|axis| at[*axis] + 1 < lists[*axis].len());
        let Some(next) = next else { return Ok(()) };
        at[next] += 1;
        at[next + 1..].fill(0);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
