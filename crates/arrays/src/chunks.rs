//! Reads regions of an array, and decodes whole chunks.
//!
//! zarrs can decode parts of chunks, but then does not verify checksums, so every chunk that a
//! region touches is decoded completely. In a sharded array that is an inner chunk, fetched by its
//! byte range in the shard.

use std::borrow::Cow;
use std::num::NonZeroU64;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use zarrs::array::codec::{CodecChain, ShardingCodecConfiguration};
use zarrs::array::{
    Array, ArrayBytes, ArrayBytesDecodeIntoTarget, ArrayShardedExt as _,
    ArrayShardedReadableExt as _, ArrayShardedReadableExtCache, ArraySubset,
    ArrayToBytesCodecTraits as _, ChunkGrid, CodecMetadataOptions, CodecOptions,
    copy_fill_value_into,
};
use zarrs::metadata::ConfigurationSerialize as _;

use crate::element::Element;
use crate::error::Cause;
use crate::parts::for_each_part;
use crate::store::Store;

/// An array opened for one reading thread.
pub(crate) struct ChunkReader {
    array: Array<Store>,
    grid: ChunkGrid,
    codecs: Arc<CodecChain>,
    /// Indices of the shards read so far; `None` if the array is not sharded.
    shards: Option<ArrayShardedReadableExtCache>,
}

impl std::fmt::Debug for ChunkReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChunkReader").field("array", &self.array.path()).finish_non_exhaustive()
    }
}

impl ChunkReader {
    pub(crate) fn new(array: Array<Store>) -> Result<Self, Cause> {
        if !array.is_exclusively_sharded() {
            let (grid, codecs) = (array.chunk_grid().clone(), array.codecs());
            return Ok(Self { array, grid, codecs, shards: None });
        }
        let codecs = Arc::new(inner_codecs(&array)?);
        let shards = Some(ArrayShardedReadableExtCache::new(&array));
        Ok(Self { grid: array.subchunk_grid(), array, codecs, shards })
    }

    /// The store that chunks are read from.
    pub(crate) fn store(&self) -> Arc<Store> {
        self.array.storage()
    }

    /// Reads `region` into `into`, in C order. After an error, part of `into` is overwritten.
    pub(crate) fn read<T: Element>(
        &self,
        region: &ArraySubset,
        into: &mut [T],
    ) -> Result<(), Cause> {
        let Some(chunks) = self.grid.chunks_in_array_subset(region)? else {
            return Err(format!("{region} is not within the array").into());
        };
        let chunks = chunks.indices();
        let parts = chunks.iter().map(|chunk| {
            let whole = self.grid.subset(&chunk)?.ok_or("the chunk is not within the grid")?;
            let wanted = whole.overlap(region)?;
            Ok((wanted.relative_to(region.start())?, (chunk, whole, wanted)))
        });
        for_each_part(into, region.shape(), parts, |(chunk, whole, wanted), target| {
            let decoded = catch_unwind(AssertUnwindSafe(|| {
                self.decode_chunk(&chunk, &whole, &wanted, target)
            }));
            decoded
                .unwrap_or_else(|panic| Err(panic_message(panic.as_ref()).into()))
                .map_err(|error| format!("chunk {:?}: {error}", chunk.as_slice()).into())
        })
    }

    /// Decodes the part `wanted` of the chunk that covers `whole` into `target`.
    fn decode_chunk(
        &self,
        chunk: &[u64],
        whole: &ArraySubset,
        wanted: &ArraySubset,
        target: ArrayBytesDecodeIntoTarget<'_>,
    ) -> Result<(), Cause> {
        let (element, fill) = (self.array.data_type(), self.array.fill_value());
        let Some(encoded) = self.fetch(chunk)? else {
            return Ok(copy_fill_value_into(element, fill, target)?);
        };
        let shape: Vec<NonZeroU64> =
            whole.shape().iter().filter_map(|len| NonZeroU64::new(*len)).collect();
        // Decodes on this thread alone, because the engine already reads blocks in parallel.
        let options = CodecOptions::default().with_concurrent_target(1);
        let encoded = Cow::Owned(encoded);
        if whole == wanted {
            return Ok(self
                .codecs
                .decode_into(encoded, &shape, element, fill, target, &options)?);
        }
        let decoded = self.codecs.decode(encoded, &shape, element, fill, &options)?;
        decoded.validate(whole.num_elements(), element)?;
        let part: ArrayBytes<'_> = decoded.extract_array_subset(
            &wanted.relative_to(whole.start())?,
            whole.shape(),
            element,
        )?;
        let ArrayBytesDecodeIntoTarget::Fixed(view) = target else {
            return Err("elements that may be missing are not supported".into());
        };
        Ok(view.copy_from_slice(&part.into_fixed()?)?)
    }

    /// The stored bytes of a chunk; `None` if it is not stored.
    fn fetch(&self, chunk: &[u64]) -> Result<Option<Vec<u8>>, Cause> {
        Ok(match &self.shards {
            Some(shards) => self.array.retrieve_encoded_subchunk(shards, chunk)?,
            None => self.array.retrieve_encoded_chunk(chunk)?,
        })
    }
}

/// The codecs of the chunks within a shard.
fn inner_codecs(array: &Array<Store>) -> Result<CodecChain, Cause> {
    let codecs = array.codecs();
    let options = CodecMetadataOptions::default();
    let configuration = codecs
        .array_to_bytes_codec()
        .configuration_v3(&options)
        .ok_or("the sharding codec has no configuration")?;
    match ShardingCodecConfiguration::try_from_configuration(configuration)? {
        ShardingCodecConfiguration::V1(sharding) => {
            Ok(CodecChain::from_metadata(&sharding.codecs)?)
        }
        _ => Err("this version of the sharding codec is not known".into()),
    }
}

/// Returns the message of a panic: zarrs panics on some damaged chunks, and readers return an
/// error.
fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    let message = panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_default();
    format!("the decoder panicked, as it may on damaged bytes: {message}")
}
