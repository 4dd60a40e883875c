//! Decoded chunks that are kept in memory for later reads.
//!
//! A chunk is decoded whole if any of its rows is wanted. A loader that reads short runs of rows in
//! random order would decode each chunk several times an epoch, and again in the next. A kept chunk
//! is decoded once, and takes a sixth of its unfiltered bytes: about 2 bytes per cell. In random
//! order no chunk is more likely to be wanted soon than another, so none is evicted: chunks that
//! come when there is no room are not kept.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use crate::decoded_chunk::{CHUNK_OVERHEAD_BYTES, DecodedChunk};
use crate::fragment::Field;
use crate::packed_integers::PackedIntegers;
use crate::values::{Columns, Values};

/// Fragment, tile and field.
type Key = (usize, usize, Field);

/// About the bytes that the allocator and the table take for each tile.
const TILE_OVERHEAD_BYTES: u64 = 160;

/// The kept chunks of one field of a tile. Their memory counts as long as anybody uses the tile.
#[derive(Debug)]
pub(crate) struct DecodedTile {
    chunks: Box<[OnceLock<DecodedChunk>]>,
    bytes: AtomicU64,
    cache_bytes: Arc<AtomicU64>,
}

/// The kept chunks of an array, shared by the threads of all its reads.
#[derive(Debug, Default)]
pub(crate) struct DecodedCache {
    limit_bytes: AtomicU64,
    bytes: Arc<AtomicU64>,
    tiles: RwLock<HashMap<Key, Arc<DecodedTile>>>,
}

impl DecodedChunk {
    /// Packs the columns of a whole chunk of `n` cells; `None` if some lie outside their bounds.
    pub(crate) fn of_columns(
        columns: &Columns<'_>,
        n: usize,
        scratch: &mut Vec<u8>,
    ) -> Option<Self> {
        columns.check(&(0..n)).ok()?;
        let (first, _) = columns.bounds();
        let packed = PackedIntegers::pack(n, scratch, |range, out| {
            columns.copy(range, first, out);
            true
        });
        packed.map(Self::Columns)
    }

    /// Packs the values of a whole chunk of `n` cells.
    pub(crate) fn of_values(values: &Values<'_>, n: usize, scratch: &mut Vec<u8>) -> Self {
        let mut counts = Vec::new();
        let packed = PackedIntegers::pack(n, scratch, |range, out| {
            counts.resize(out.len(), 0);
            let are_counts = values.copy_counts(range, &mut counts);
            out.iter_mut().zip(&counts).for_each(|(to, count)| *to = u32::from(*count));
            are_counts
        });
        packed.map_or_else(
            || {
                let mut floats = vec![0.0; n];
                values.copy(0..n, &mut floats);
                Self::Floats(floats.into())
            },
            Self::Counts,
        )
    }
}

impl DecodedTile {
    /// The chunk, if it is kept.
    pub(crate) fn get(&self, chunk: usize) -> Option<&DecodedChunk> {
        self.chunks.get(chunk)?.get()
    }
}

impl Drop for DecodedTile {
    fn drop(&mut self) {
        self.cache_bytes.fetch_sub(*self.bytes.get_mut(), Ordering::Relaxed);
    }
}

impl DecodedCache {
    /// Whether chunks are or may be kept.
    pub(crate) fn is_used(&self) -> bool {
        self.limit_bytes.load(Ordering::Relaxed) > 0
    }

    /// Keeps at most this many bytes from now on. If there are more, some tiles are dropped; it
    /// does not matter which.
    pub(crate) fn set_limit_bytes(&self, limit_bytes: u64) {
        self.limit_bytes.store(limit_bytes, Ordering::Relaxed);
        let mut over = self.bytes().saturating_sub(limit_bytes);
        if 0 < over {
            let mut tiles = self.tiles.write().unwrap_or_else(PoisonError::into_inner);
            tiles.retain(|_, tile| {
                let stays = over == 0;
                if !stays {
                    over = over.saturating_sub(tile.bytes.load(Ordering::Relaxed));
                }
                stays
            });
        }
    }

    /// Bytes that are kept.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// The kept chunks of a field of a tile that has `n_chunks`, with room for the others.
    pub(crate) fn tile(
        &self,
        (fragment, tile): (usize, usize),
        field: Field,
        n_chunks: usize,
    ) -> Option<Arc<DecodedTile>> {
        if !self.is_used() || !matches!(field, Field::Columns | Field::Values) {
            return None;
        }
        let key = (fragment, tile, field);
        if let Some(tile) = self.tiles.read().unwrap_or_else(PoisonError::into_inner).get(&key) {
            return Some(Arc::clone(tile));
        }
        // Without room there is no need to wait for the table.
        let slots = n_chunks as u64 * size_of::<OnceLock<DecodedChunk>>() as u64;
        let bytes = slots + TILE_OVERHEAD_BYTES;
        if !self.reserve(bytes) {
            return None;
        }
        let made = Arc::new(DecodedTile {
            chunks: std::iter::repeat_with(OnceLock::new).take(n_chunks).collect(),
            bytes: AtomicU64::new(bytes),
            cache_bytes: Arc::clone(&self.bytes),
        });
        let mut tiles = self.tiles.write().unwrap_or_else(PoisonError::into_inner);
        // If another thread was first, dropping this tile returns its bytes.
        Some(Arc::clone(tiles.entry(key).or_insert(made)))
    }

    /// Reserves bytes within the limit.
    fn reserve(&self, bytes: u64) -> bool {
        let limit = self.limit_bytes.load(Ordering::Relaxed);
        let reserved = self.bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |held| {
            held.checked_add(bytes).filter(|held| *held <= limit)
        });
        reserved.is_ok()
    }

    /// Whether there is room for a chunk of `n` cells of 4 bytes each. Packed it might fit all the
    /// same, but it is not packed to find out.
    pub(crate) fn has_room(&self, n: usize) -> bool {
        let most = n as u64 * size_of::<f32>() as u64 + CHUNK_OVERHEAD_BYTES;
        self.bytes() + most <= self.limit_bytes.load(Ordering::Relaxed)
    }

    /// Keeps a chunk, if there is room.
    pub(crate) fn keep<'a>(
        &self,
        tile: &'a DecodedTile,
        chunk: usize,
        decoded: DecodedChunk,
    ) -> Option<&'a DecodedChunk> {
        let place = tile.chunks.get(chunk)?;
        let bytes = decoded.bytes();
        if !self.reserve(bytes) {
            return None;
        }
        tile.bytes.fetch_add(bytes, Ordering::Relaxed);
        if place.set(decoded).is_err() {
            // Another thread was first.
            tile.bytes.fetch_sub(bytes, Ordering::Relaxed);
            self.bytes.fetch_sub(bytes, Ordering::Relaxed);
        }
        place.get()
    }
}
