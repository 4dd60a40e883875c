//! Keeps decoded chunks in memory, so that later reads find the cells beside the rows of an earlier
//! read.
//!
//! A chunk is decoded as a whole if any of its rows is wanted. A loader that reads short runs of
//! rows in random order therefore decodes each chunk several times an epoch, and again in the next
//! epoch. Cached chunks are decoded once, and take a sixth of their decoded size: about 2 bytes a
//! cell. In a random order every chunk is equally likely to be needed soon, so nothing is evicted
//! for new chunks: once the cache is full, they are not kept.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use crate::fragment::Field;
use crate::packed_integers::PackedIntegers;
use crate::values::{Columns, Values};

/// Fragment, tile and field.
type Key = (usize, usize, Field);

/// Approximate overhead of the allocator per chunk.
const CHUNK_OVERHEAD_BYTES: u64 = 16;
/// Approximate overhead of the allocator and the table per tile.
const TILE_OVERHEAD_BYTES: u64 = 160;

/// A chunk's cells, as compact as they can be without rounding.
#[derive(Debug)]
pub(crate) enum DecodedChunk {
    /// Columns, each as its distance from the tile's first column.
    Columns(PackedIntegers),
    /// Whole numbers from 0 to 65,535.
    Counts(PackedIntegers),
    /// Other values.
    Floats(Box<[f32]>),
}

/// The cached chunks of one field of a tile. Their bytes count for the cache as long as anyone uses
/// the tile.
#[derive(Debug)]
pub(crate) struct DecodedTile {
    chunks: Box<[OnceLock<DecodedChunk>]>,
    bytes: AtomicU64,
    cache_bytes: Arc<AtomicU64>,
}

/// The cached chunks of an array, shared by the threads of all its reads.
#[derive(Debug, Default)]
pub(crate) struct DecodedCache {
    limit_bytes: AtomicU64,
    bytes: Arc<AtomicU64>,
    tiles: RwLock<HashMap<Key, Arc<DecodedTile>>>,
}

impl DecodedChunk {
    /// Packs the columns of a complete chunk of `n` cells; `None` if columns are out of bounds.
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

    /// Packs the values of a complete chunk of `n` cells.
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

    fn bytes(&self) -> u64 {
        let bytes = match self {
            Self::Columns(packed) | Self::Counts(packed) => packed.n_bytes(),
            Self::Floats(values) => size_of_val(&**values),
        };
        bytes as u64 + CHUNK_OVERHEAD_BYTES
    }
}

impl DecodedTile {
    /// The chunk, if it is cached.
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
    /// Whether anything is or may be cached.
    pub(crate) fn is_used(&self) -> bool {
        self.limit_bytes.load(Ordering::Relaxed) > 0
    }

    /// Sets the most bytes to keep. If more are cached, arbitrary tiles are evicted.
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

    /// Bytes of cached chunks.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// The cached chunks of a field of a tile that has `n_chunks`, with room for more.
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
        // Checked first: without room there is no need to lock the table.
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
        // If another thread was first, the new tile returns its bytes.
        Some(Arc::clone(tiles.entry(key).or_insert(made)))
    }

    /// Reserves bytes below the limit.
    fn reserve(&self, bytes: u64) -> bool {
        let limit = self.limit_bytes.load(Ordering::Relaxed);
        let reserved = self.bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |held| {
            held.checked_add(bytes).filter(|held| *held <= limit)
        });
        reserved.is_ok()
    }

    /// Whether there is room for a chunk of `n` cells at 4 bytes each. A packed chunk might fit
    /// even if not, but packing it to find out is too costly.
    pub(crate) fn has_room(&self, n: usize) -> bool {
        let most = n as u64 * size_of::<f32>() as u64 + CHUNK_OVERHEAD_BYTES;
        self.bytes() + most <= self.limit_bytes.load(Ordering::Relaxed)
    }

    /// Caches a chunk, if there is room.
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
