//! Objects in fractal heaps, where large groups keep their links, and objects with many attributes
//! those.

use hdf5_reader::btree_v2::{BTreeV2Header, BTreeV2Record, collect_btree_v2_records_storage};
use hdf5_reader::error::Error;
use hdf5_reader::fractal_heap::{FractalHeap, FractalHeapDirectBlockCache};
use hdf5_reader::io::Cursor;

use crate::file::{Allowance, File, Widths};
use crate::header::invalid;

/// Most indirect blocks within each other. Each has fewer rows than the one around it.
const MAX_LEVELS: usize = 64;

/// A heap.
pub(crate) struct Heap<'a> {
    file: &'a File,
    root: FractalHeap,
    blocks: FractalHeapDirectBlockCache,
}

/// Reads the objects of the heap at one address that the index at another lists, in its order.
pub(crate) fn indexed_objects(file: &File, heap: u64, index: u64) -> Result<Vec<Vec<u8>>, Error> {
    let Widths { offsets, lengths } = file.widths();
    let storage = file.storage();
    let mut heap = Heap::open(file, heap)?;
    let header = BTreeV2Header::parse_at_storage(storage, index, offsets, lengths)?;
    let records =
        collect_btree_v2_records_storage(storage, &header, offsets, lengths, None, &[], None)?;
    let mut allowance = Allowance::for_file(file);
    let ids = records.iter().filter_map(heap_id);
    let object = |id| {
        let object = heap.object(id)?;
        allowance.take(object.len())?;
        Ok(object)
    };
    ids.map(object).collect()
}

fn heap_id(record: &BTreeV2Record) -> Option<&[u8]> {
    match record {
        BTreeV2Record::LinkNameHash { heap_id, .. }
        | BTreeV2Record::CreationOrder { heap_id, .. }
        | BTreeV2Record::AttributeNameHash { heap_id, .. }
        | BTreeV2Record::AttributeCreationOrder { heap_id, .. } => Some(heap_id),
        _ => None,
    }
}

/// An indirect block within another.
struct IndirectBlock {
    /// Its number among those.
    index: u64,
    /// Where it begins in the heap.
    start: u64,
    n_bytes: u64,
}

impl<'a> Heap<'a> {
    pub(crate) fn open(file: &'a File, address: u64) -> Result<Self, Error> {
        let Widths { offsets, lengths } = file.widths();
        let heap = FractalHeap::parse_at_storage(file.storage(), address, offsets, lengths)?;
        if heap.table_width == 0 || heap.starting_block_size == 0 {
            return Err(invalid("a heap has blocks of no size"));
        }
        Ok(Self { file, root: heap, blocks: FractalHeapDirectBlockCache::default() })
    }

    /// Reads the object of an identifier.
    pub(crate) fn object(&mut self, id: &[u8]) -> Result<Vec<u8>, Error> {
        let Widths { offsets, lengths } = self.file.widths();
        let (part, id) = self.part_with(id)?;
        let (storage, blocks) = (self.file.storage(), &mut self.blocks);
        part.as_ref()
            .unwrap_or(&self.root)
            .get_object_storage_cached(&id, storage, offsets, lengths, blocks)
    }

    /// The part of the heap that has an object in one of its direct blocks, as a heap of its own,
    /// and the object's identifier there; `None` for the heap itself.
    ///
    /// `hdf5-reader` (0.12.1) takes an offset within an indirect block below the root for one
    /// within the heap, so it finds no object beyond the first rows of direct blocks: 512 KiB as
    /// libhdf5 writes them.
    fn part_with(&self, id: &[u8]) -> Result<(Option<FractalHeap>, Vec<u8>), Error> {
        let width = usize::from(self.root.max_heap_size).div_ceil(8);
        let is_managed = id.first().is_some_and(|first| first & 0x30 == 0);
        let place = id.get(1..=width).filter(|_| is_managed && (1..=8).contains(&width));
        let (Some(place), true) = (place, 0 < self.root.current_rows_in_root_indirect) else {
            return Ok((None, id.to_vec()));
        };
        let mut offset = Cursor::new(place).read_uvar(width)?;
        let mut part: Option<FractalHeap> = None;
        for _ in 0..MAX_LEVELS {
            let heap = part.as_ref().unwrap_or(&self.root);
            let Some(IndirectBlock { index, start, n_bytes }) = self.indirect_entry(offset)? else {
                let mut id = id.to_vec();
                id[1..=width].copy_from_slice(&offset.to_le_bytes()[..width]);
                return Ok((part, id));
            };
            let root_block_address = self.child(heap.root_block_address, index)?;
            offset -= start;
            let current_rows_in_root_indirect = self.rows_of(n_bytes);
            let heap = FractalHeap {
                root_block_address,
                current_rows_in_root_indirect,
                ..self.root.clone()
            };
            part = Some(heap);
        }
        Err(invalid("a heap has too many levels"))
    }

    /// The indirect block within a block that has an offset; `None` if a direct block has it.
    fn indirect_entry(&self, offset: u64) -> Result<Option<IndirectBlock>, Error> {
        let too_far = || invalid("an object lies beyond its heap");
        let width = u64::from(self.root.table_width);
        let (mut start, mut n_indirect) = (0_u64, 0);
        let mut n_bytes = self.root.starting_block_size;
        for row in 0..u64::from(u16::MAX) {
            if 1 < row {
                n_bytes = n_bytes.checked_mul(2).ok_or_else(too_far)?;
            }
            let is_direct = n_bytes <= self.root.max_direct_block_size;
            let end = n_bytes.checked_mul(width).and_then(|of_row| of_row.checked_add(start));
            let end = end.ok_or_else(too_far)?;
            if offset < end {
                let column = (offset - start) / n_bytes;
                let (index, start) = (n_indirect + column, start + column * n_bytes);
                return Ok((!is_direct).then_some(IndirectBlock { index, start, n_bytes }));
            }
            start = end;
            n_indirect += if is_direct { 0 } else { width };
        }
        Err(too_far())
    }

    /// Rows of direct blocks in an indirect block.
    fn direct_rows(&self) -> u64 {
        let mut n_bytes = self.root.starting_block_size;
        let mut rows = 1;
        while n_bytes <= self.root.max_direct_block_size && rows < 64 {
            n_bytes = n_bytes.saturating_mul(2);
            rows += 1;
        }
        rows
    }

    /// Rows of an indirect block of this size.
    fn rows_of(&self, n_bytes: u64) -> u16 {
        let first = self.root.starting_block_size.saturating_mul(self.root.table_width.into());
        let ratio = n_bytes / first.max(1);
        ratio.checked_ilog2().map_or(0, |log| log as u16 + 1)
    }

    /// The address of an indirect block within the one at `address`.
    fn child(&self, address: u64, index: u64) -> Result<u64, Error> {
        let Widths { offsets, lengths } = self.file.widths();
        let (offsets, lengths) = (u64::from(offsets), u64::from(lengths));
        let head = 5 + offsets + u64::from(self.root.max_heap_size).div_ceil(8);
        let filtered = if self.root.io_filters_len == 0 { 0 } else { lengths + 4 };
        let n_direct = self.direct_rows().saturating_mul(self.root.table_width.into());
        let before = n_direct.saturating_mul(offsets + filtered);
        let place = before.checked_add(index.saturating_mul(offsets) + head);
        let place = place.and_then(|place| place.checked_add(address));
        let entry = self.file.read(place.ok_or(Error::OffsetOutOfBounds(address))?, offsets)?;
        let child = Cursor::new(&entry).read_offset(offsets as u8)?;
        self.file.is_address(child).then_some(child).ok_or(Error::UndefinedAddress)
    }
}
