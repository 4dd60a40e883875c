//! Finds the bytes of a chunk: a file of its own, or a range of a shard.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io;
use std::num::NonZeroU64;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use storage::{FileVersion, Piece, Storage};
use zarrs::array::codec::{
    CodecChain, ShardingCodecConfiguration, ShardingCodecConfigurationV1, ShardingIndexLocation,
};
use zarrs::array::{
    Array, ArrayShardedExt as _, ArrayToBytesCodecTraits as _, BytesRepresentation,
    CodecMetadataOptions, CodecOptions, FillValue, data_type,
};
use zarrs::metadata::ConfigurationSerialize as _;

use crate::decoder::panic_message;
use crate::error::Cause;
use crate::memory::zeroed;
use crate::store::Store;

/// The most chunks of a shard.
const MAX_CHUNKS: u64 = 1 << 40;

/// The file of a chunk, and the place of its bytes if it is in a shard.
#[derive(Debug)]
pub(crate) struct ChunkFile {
    pub(crate) file: String,
    /// `None` if the file is the chunk.
    pub(crate) in_shard: Option<PlaceInShard>,
}

/// The place of a chunk in a shard.
#[derive(Debug)]
pub(crate) struct PlaceInShard {
    pub(crate) range: Range<u64>,
    /// The version of the shard whose index gave the place. In another version, other bytes may lie
    /// there.
    pub(crate) version: Arc<FileVersion>,
}

/// Whether all chunks have the shape of the first one.
fn is_regular(array: &Array<Store>) -> bool {
    let grid = array.chunk_grid_shape();
    let (first, last): (Vec<u64>, Vec<u64>) = grid.iter().map(|n| (0, n.saturating_sub(1))).unzip();
    let Ok(shape) = array.chunk_shape(&first) else { return false };
    let n_chunks = array.shape().iter().zip(&shape).map(|(len, chunk)| len.div_ceil(chunk.get()));
    n_chunks.eq(grid.iter().copied())
        && array.chunk_shape(&last).is_ok_and(|of_last| of_last == shape)
}

/// Fails if a file is no longer in the version `first`.
pub(crate) fn check_version(
    storage: &dyn Storage,
    file: &str,
    first: &FileVersion,
) -> Result<(), Cause> {
    match storage.versions(&[file]).pop() {
        Some(Ok(now)) if now == *first => Ok(()),
        Some(Err(error)) if error.kind() != io::ErrorKind::NotFound => Err(error.into()),
        _ => Err(format!(
            "{file} changed while the array was open: its index, or a part of it, was read before; open its storage and the array again"
        )
        .into()),
    }
}

/// The chunks of an array that are decoded as a whole: within a shard, those inside.
pub(crate) struct ChunkFiles {
    /// The path of the array within its storage.
    path: String,
    array: Array<Store>,
    sharded: Option<Shards>,
}

impl std::fmt::Debug for ChunkFiles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChunkFiles").field("array", &self.path).finish_non_exhaustive()
    }
}

/// The shape of the chunks that are decoded as a whole, and their codecs.
pub(crate) type ChunkForm = (Vec<NonZeroU64>, Arc<CodecChain>);

impl ChunkFiles {
    /// The chunks of the array at `path`, with their form.
    pub(crate) fn new(array: Array<Store>, path: &str) -> Result<(Self, ChunkForm), Cause> {
        if !is_regular(&array) {
            return Err("its chunks do not have the same shape everywhere".into());
        }
        let path = path.to_owned();
        let first = vec![0; array.dimensionality()];
        let outer: Vec<NonZeroU64> = array.chunk_shape(&first)?;
        if !array.is_exclusively_sharded() {
            let codecs = array.codecs();
            return Ok((Self { path, array, sharded: None }, (outer, codecs)));
        }
        let sharding = sharding(&array)?;
        let inner: Vec<NonZeroU64> = sharding.chunk_shape.clone();
        let codecs = Arc::new(CodecChain::from_metadata(&sharding.codecs)?);
        let sharded = Some(Shards::new(&sharding, &outer, &inner)?);
        Ok((Self { path, array, sharded }, (inner, codecs)))
    }

    /// The array.
    pub(crate) fn array(&self) -> &Array<Store> {
        &self.array
    }

    /// The file of a chunk that is stored by itself, or of a shard.
    fn file(&self, chunk: &[u64]) -> String {
        let key = self.array.chunk_key(chunk);
        if self.path.is_empty() { key.to_string() } else { format!("{}/{key}", self.path) }
    }

    /// Reads the indices of the shards of `chunks` that are not known yet, all of them together.
    pub(crate) fn learn_shards<'a>(
        &self,
        storage: &dyn Storage,
        chunks: impl Iterator<Item = &'a [u64]>,
    ) -> Result<(), Cause> {
        let Some(shards) = &self.sharded else { return Ok(()) };
        shards.learn(storage, chunks.map(|chunk| self.shard_file(shards, chunk)).collect())
    }

    /// The file of the shard that has a chunk.
    fn shard_file(&self, shards: &Shards, chunk: &[u64]) -> String {
        let shard: Vec<u64> =
            chunk.iter().zip(&shards.chunks_per_shard).map(|(at, n)| at / n).collect();
        self.file(&shard)
    }

    /// Whether a chunk that [`find`](Self::find) did not find is in a shard that exists, whose
    /// index leaves it out.
    pub(crate) fn is_left_out(&self, chunk: &[u64]) -> bool {
        let Some(shards) = &self.sharded else { return false };
        let file = self.shard_file(shards, chunk);
        let known = shards.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(&file).is_some_and(Option::is_some)
    }

    /// Where a chunk is stored; `None` if a shard's index says that it is not, or if there is no
    /// shard. Reads the index of its shard from `storage` if it is the first of that shard.
    pub(crate) fn find(
        &self,
        storage: &dyn Storage,
        chunk: &[u64],
    ) -> Result<Option<ChunkFile>, Cause> {
        let Some(shards) = &self.sharded else {
            let file = self.file(chunk);
            return Ok(Some(ChunkFile { file, in_shard: None }));
        };
        let per_shard = &shards.chunks_per_shard;
        let file = self.shard_file(shards, chunk);
        let Some(KnownShard { index, version }) = shards.known(storage, &file)? else {
            return Ok(None);
        };
        let at = chunk.iter().zip(per_shard).fold(0, |at, (idx, n)| at * n + idx % n) as usize;
        let Some([start, len]) = index.get(at) else {
            return Err("the shard's index is too short".into());
        };
        // Both numbers are 2^64 - 1 for a chunk that is not stored.
        if (*start, *len) == (u64::MAX, u64::MAX) {
            return Ok(None);
        }
        let end = start.checked_add(*len).ok_or("the shard's index is damaged")?;
        let range = *start..end;
        Ok(Some(ChunkFile { file, in_shard: Some(PlaceInShard { range, version }) }))
    }
}

/// The index of a shard: for each of its chunks in C order, the first byte and the number of bytes.
type ShardIndex = Arc<[[u64; 2]]>;

/// A shard whose index was read.
#[derive(Clone)]
struct KnownShard {
    index: ShardIndex,
    /// The version of the file before its index was read.
    version: Arc<FileVersion>,
}

/// The shards of an array.
///
/// Source of the format: Zarr's specification of the codec `sharding_indexed`, version 1.0. zarrs
/// reads indices too, but overflows on chunks that are not stored (0.23.14).
struct Shards {
    chunks_per_shard: Vec<u64>,
    /// The shape of an index: the chunks of a shard, and 2.
    index_shape: Vec<NonZeroU64>,
    index_codecs: CodecChain,
    index_bytes: u64,
    is_at_end: bool,
    /// The shards whose index was read, by their file; `None` for one that does not exist.
    known: Mutex<HashMap<String, Option<KnownShard>>>,
}

impl Shards {
    fn new(
        sharding: &ShardingCodecConfigurationV1,
        outer: &[NonZeroU64],
        inner: &[NonZeroU64],
    ) -> Result<Self, Cause> {
        let per_shard = outer.iter().zip(inner).map(|(o, i)| {
            let n = o.get() / i.get();
            NonZeroU64::new(n).filter(|_| o.get() % i.get() == 0)
        });
        let per_shard: Option<Vec<NonZeroU64>> = per_shard.collect();
        let per_shard = per_shard.ok_or("the shards are not whole chunks")?;
        let n_chunks = per_shard.iter().try_fold(1_u64, |n, of_dim| n.checked_mul(of_dim.get()));
        let is_index = n_chunks.is_some_and(|n_chunks| n_chunks <= MAX_CHUNKS);
        is_index.then_some(()).ok_or("its shards have more chunks than an index can list")?;
        let two = NonZeroU64::new(2).ok_or("2 is not 0")?;
        let index_shape: Vec<NonZeroU64> = per_shard.iter().copied().chain([two]).collect();
        let index_codecs = CodecChain::from_metadata(&sharding.index_codecs)?;
        let (element, fill) = (data_type::uint64(), FillValue::from(u64::MAX));
        let encoded = index_codecs.encoded_representation(&index_shape, &element, &fill)?;
        let BytesRepresentation::FixedSize(index_bytes) = encoded else {
            return Err("the length of a shard's index varies".into());
        };
        Ok(Self {
            chunks_per_shard: per_shard.into_iter().map(NonZeroU64::get).collect(),
            index_shape,
            index_codecs,
            index_bytes,
            is_at_end: sharding.index_location == ShardingIndexLocation::End,
            known: Mutex::default(),
        })
    }

    /// A shard with its index; `None` if there is no such file.
    fn known(&self, storage: &dyn Storage, file: &str) -> Result<Option<KnownShard>, Cause> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).get(file).cloned();
        if let Some(shard) = known {
            return Ok(shard);
        }
        let shard = match self.read_index(storage, file) {
            Ok((bytes, version)) => {
                Some(KnownShard { index: self.decode(&bytes)?, version: Arc::new(version) })
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error.into()),
        };
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        // All threads go by the index that was there first.
        Ok(known.entry(file.to_owned()).or_insert(shard).clone())
    }

    /// Reads the indices of those of `files` that are not known, with one request for their sizes
    /// and one for their bytes.
    fn learn(&self, storage: &dyn Storage, mut files: Vec<String>) -> Result<(), Cause> {
        {
            let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            files.retain(|file| !known.contains_key(file));
        }
        files.sort_unstable();
        files.dedup();
        let names: Vec<&str> = files.iter().map(String::as_str).collect();
        let mut found = Vec::with_capacity(names.len());
        for (file, version) in names.iter().zip(storage.versions(&names)) {
            match version {
                Ok(version) => found.push((*file, version)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error.into()),
            }
        }
        let mut pieces = Vec::with_capacity(found.len());
        for (file, version) in &found {
            pieces.push(Piece { file, range: self.index_range(file, version.size)? });
        }
        let index_bytes = self.index_bytes as usize;
        let mut bytes = zeroed(index_bytes.saturating_mul(pieces.len()))?;
        storage.read(&pieces, &mut bytes)?;
        let mut learnt: HashMap<String, Option<KnownShard>> =
            files.iter().map(|file| (file.clone(), None)).collect();
        for ((file, version), bytes) in found.into_iter().zip(bytes.chunks_exact(index_bytes)) {
            let index = self.decode(bytes).map_err(|cause| format!("{file}: {cause}"))?;
            learnt.insert(file.to_owned(), Some(KnownShard { index, version: Arc::new(version) }));
        }
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        for (file, shard) in learnt {
            // All threads go by the index that was there first.
            known.entry(file).or_insert(shard);
        }
        Ok(())
    }

    /// The bytes of the index in a shard of `size` bytes.
    fn index_range(&self, file: &str, size: u64) -> io::Result<Range<u64>> {
        let too_short = || {
            let text = format!("{file}: has {size} bytes, its index alone {}", self.index_bytes);
            io::Error::new(io::ErrorKind::UnexpectedEof, text)
        };
        let start = size.checked_sub(self.index_bytes).ok_or_else(too_short)?;
        let start = if self.is_at_end { start } else { 0 };
        Ok(start..start + self.index_bytes)
    }

    /// The index of a shard as stored, and the version of the file before it was read.
    fn read_index(&self, storage: &dyn Storage, file: &str) -> io::Result<(Vec<u8>, FileVersion)> {
        let version = storage.versions(&[file]).pop().ok_or(io::ErrorKind::UnexpectedEof)??;
        let range = self.index_range(file, version.size)?;
        let mut bytes = zeroed(self.index_bytes as usize)?;
        storage.read(&[Piece { file, range }], &mut bytes)?;
        Ok((bytes, version))
    }

    fn decode(&self, bytes: &[u8]) -> Result<ShardIndex, Cause> {
        let (element, fill) = (data_type::uint64(), FillValue::from(u64::MAX));
        let decoded = catch_unwind(AssertUnwindSafe(|| {
            let bytes = Cow::Borrowed(bytes);
            let options = CodecOptions::default().with_concurrent_target(1);
            self.index_codecs.decode(bytes, &self.index_shape, &element, &fill, &options)
        }));
        let decoded = decoded.map_err(|panic| panic_message(panic.as_ref()))?;
        let bytes = decoded.map_err(|error| format!("the shard's index: {error}"))?.into_fixed()?;
        let number = |bytes: &[u8]| bytes.try_into().map_or(u64::MAX, u64::from_ne_bytes);
        Ok(bytes.chunks_exact(16).map(|of| [number(&of[..8]), number(&of[8..])]).collect())
    }
}

/// The settings of an array's shards.
fn sharding(array: &Array<Store>) -> Result<ShardingCodecConfigurationV1, Cause> {
    let codecs = array.codecs();
    let options = CodecMetadataOptions::default();
    let configuration = codecs
        .array_to_bytes_codec()
        .configuration_v3(&options)
        .ok_or("the sharding codec has no configuration")?;
    match ShardingCodecConfiguration::try_from_configuration(configuration)? {
        ShardingCodecConfiguration::V1(sharding) => Ok(sharding),
        _ => Err("this version of the sharding codec is not known".into()),
    }
}
