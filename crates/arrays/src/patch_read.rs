//! Reads patches: each chunk once, for all samples whose patches lie in it.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};

use crate::chunk_task::Task;
use crate::geometry::{Segment, SelectedChunk};
use crate::open_array::OpenArray;
use crate::part::Part;
use crate::patch_row::PatchRow;
use crate::patches::OpenPatches;
use crate::variable::OpenVariable;

/// A patch of a step of an array, and its memory.
pub(crate) struct WantedPatch<'a> {
    /// The row of the array.
    pub(crate) row: u64,
    /// The lead time within the row, if a step is one.
    pub(crate) lead: u64,
    /// The places in which it begins, among those of the read.
    pub(crate) starts: usize,
    pub(crate) into: &'a mut [u8],
}

/// The indices of a chunk, and the part of it that a patch wants.
type ChunkPart = (Vec<u64>, Arc<Part>);

/// A row of a chunk, the part of it that a patch wants, and the number of the patch.
type WantedPart = (usize, Arc<Part>, usize);

/// The chunks of an array that patches want.
#[derive(Debug)]
pub(crate) struct PatchReads<'a> {
    pub(crate) array: &'a OpenArray,
    /// Each chunk, with its index in the dimension of the rows.
    chunks: Vec<(u64, Segment, Vec<WantedPart>)>,
    memory: Vec<Mutex<&'a mut [u8]>>,
}

impl<'a> PatchReads<'a> {
    /// The reads of patches, of which these are the places in which they begin.
    pub(crate) fn new(
        array: &'a OpenArray,
        (patches, starts): (Option<&OpenPatches>, &[Vec<i64>]),
        wanted: Vec<WantedPatch<'a>>,
    ) -> Self {
        let chunk_rows = array.chunks.geometry.chunk_rows;
        let mut in_row: HashMap<(&[i64], u64), Vec<ChunkPart>> = HashMap::new();
        let mut by_chunk: BTreeMap<(u64, Vec<u64>), Vec<WantedPart>> = BTreeMap::new();
        let mut memory = Vec::with_capacity(wanted.len());
        for (number, wanted) in wanted.into_iter().enumerate() {
            let WantedPatch { row, lead, starts: at, into } = wanted;
            let starts = starts.get(at).map_or(&[][..], Vec::as_slice);
            let chunks = in_row.entry((starts, lead)).or_insert_with(|| {
                let chunks = array.chunks_of(patches, (starts, lead)).into_iter();
                chunks.map(|SelectedChunk { indices, part }| (indices, Arc::new(part))).collect()
            });
            let (chunk_row, row) = (row / chunk_rows, (row % chunk_rows) as usize);
            for (indices, part) in chunks {
                let parts = by_chunk.entry((chunk_row, indices.clone())).or_default();
                parts.push((row, Arc::clone(part), number));
            }
            memory.push(Mutex::new(into));
        }
        let chunks = by_chunk.into_iter().map(|((chunk_row, indices), parts)| {
            // What is wanted of the chunk is said by each patch.
            let chunk = SelectedChunk { indices, part: Part::new(&[], &[], (0, 0)) };
            (chunk_row, Segment { elements: 0..0, chunks: vec![chunk] }, parts)
        });
        Self { array, chunks: chunks.collect(), memory }
    }

    /// A task for each chunk.
    pub(crate) fn tasks(&self) -> impl Iterator<Item = Task<'_>> {
        let OpenArray { chunks, convert, .. } = self.array;
        self.chunks.iter().map(move |(chunk_row, segment, parts)| {
            let patches = parts.iter().filter_map(|(row, part, number)| {
                let (part, into) = (Arc::clone(part), self.memory.get(*number)?);
                Some(PatchRow { row: *row, part, into })
            });
            let segments = std::slice::from_ref(segment);
            let patches = patches.collect();
            Task { patches, ..Task::new((chunks, convert), (*chunk_row, segments), Vec::new()) }
        })
    }
}

/// Puts the patches of samples that begin at these places into a variable's memory, if it has no
/// steps.
pub(crate) fn put_static(
    variable: &OpenVariable,
    (patches, starts): (&OpenPatches, &[Vec<i64>]),
    into: &mut [u8],
) {
    let (Some(values), n_bytes) = (&variable.values, variable.element.n_bytes()) else { return };
    let sample_bytes = variable.sample_bytes() as usize;
    if sample_bytes == 0 {
        return;
    }
    for (starts, into) in starts.iter().zip(into.chunks_exact_mut(sample_bytes)) {
        let Some(part) = variable.part_of(patches, starts) else { return };
        part.for_each_run(|run| {
            let from = &values.bytes()[run.src * n_bytes..][..run.len * n_bytes];
            into[run.dst * n_bytes..][..run.len * n_bytes].copy_from_slice(from);
        });
    }
}
