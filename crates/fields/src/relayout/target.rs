//! The files of a new array: chunks, or shards that grow chunk by chunk.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::num::NonZeroU64;
use std::ops::Range;
use std::path::{Path, PathBuf};

use bench_run::Cause;
use serde_json::{Value, json};
use zarrs::array::{
    ArrayBytes, ArrayToBytesCodecTraits as _, CodecChain, CodecOptions, DataType, FillValue,
    data_type,
};
use zarrs::metadata::v3::MetadataV3;

use super::copy::is_filled;
use crate::Error;
use crate::generate::index_codecs;

/// What a shard's index has for a chunk that is not stored.
const NOT_STORED: [u64; 2] = [u64::MAX; 2];

/// A new array in a folder.
pub(crate) struct Target {
    folder: PathBuf,
    codecs: CodecChain,
    data_type: DataType,
    fill: FillValue,
    chunk: Vec<NonZeroU64>,
    /// Chunks of a shard; `None` if each chunk is a file.
    in_shard: Option<Vec<u64>>,
}

/// An encoded chunk: the indices of its file, its number within that, and where its bytes are
/// among those of all.
#[derive(Debug)]
pub(crate) struct Encoded {
    pub(crate) file: Vec<u64>,
    pub(crate) at: usize,
    pub(crate) bytes: Range<usize>,
}

impl Target {
    /// The array in `folder` with this type and fill value, in Zarr's form, and these codecs.
    /// `in_shard` are the chunks of a shard, if there are shards.
    pub(crate) fn new(
        folder: PathBuf,
        (data_type, fill): (&Value, Vec<u8>),
        codecs: &[Value],
        (chunk, in_shard): (&[u64], Option<Vec<u64>>),
    ) -> Result<Self, Cause> {
        let data_type: MetadataV3 = serde_json::from_value(data_type.clone())?;
        let chunk = chunk.iter().map(|len| NonZeroU64::new(*len).ok_or("a chunk has no length"));
        Ok(Self {
            folder,
            codecs: chain(codecs)?,
            data_type: DataType::from_metadata(&data_type)?,
            fill: FillValue::new(fill),
            chunk: chunk.collect::<Result<_, _>>()?,
            in_shard,
        })
    }

    /// The element of chunks that are not stored.
    pub(crate) fn fill(&self) -> &[u8] {
        self.fill.as_ne_bytes()
    }

    /// Encodes a chunk; `None` if it has nothing but fill values, so that it is not stored.
    pub(crate) fn encode(&self, values: &[u8]) -> Result<Option<Vec<u8>>, Cause> {
        if is_filled(values, self.fill.as_ne_bytes()) {
            return Ok(None);
        }
        self.encode_bytes(ArrayBytes::new_flen(values)).map(Some)
    }

    /// Encodes a chunk of strings.
    pub(crate) fn encode_strings(&self, strings: &[String]) -> Result<Vec<u8>, Cause> {
        self.encode_bytes(zarrs::array::Element::to_array_bytes(&self.data_type, strings)?)
    }

    fn encode_bytes(&self, bytes: ArrayBytes<'_>) -> Result<Vec<u8>, Cause> {
        // There is a thread for each processor already.
        let alone = CodecOptions::default().with_concurrent_target(1);
        let encoded =
            self.codecs.encode(bytes, &self.chunk, &self.data_type, &self.fill, &alone)?;
        Ok(encoded.into_owned())
    }

    /// The file and the place in it of the chunk with these indices.
    pub(crate) fn place(&self, chunk: &[u64]) -> (Vec<u64>, usize) {
        let Some(in_shard) = &self.in_shard else { return (chunk.to_vec(), 0) };
        let file = chunk.iter().zip(in_shard).map(|(at, n)| at / n).collect();
        let at = chunk.iter().zip(in_shard).fold(0, |all, (at, n)| all * n + at % n);
        (file, at as usize)
    }

    fn path(&self, file: &[u64]) -> PathBuf {
        file.iter().fold(self.folder.join("c"), |path, at| path.join(at.to_string()))
    }

    fn index(&self, places: &BTreeMap<usize, [u64; 2]>) -> Result<Vec<u8>, Cause> {
        let in_shard = self.in_shard.as_deref().unwrap_or_default();
        let n_chunks = in_shard.iter().product::<u64>() as usize;
        let numbers = (0..n_chunks).flat_map(|at| places.get(&at).copied().unwrap_or(NOT_STORED));
        let numbers: Vec<u8> = numbers.flat_map(u64::to_ne_bytes).collect();
        let shape =
            in_shard.iter().copied().chain([2]).map(|n| NonZeroU64::new(n).ok_or("no chunk"));
        let shape: Vec<NonZeroU64> = shape.collect::<Result<_, _>>()?;
        let (element, fill) = (data_type::uint64(), FillValue::from(u64::MAX));
        let codecs = chain(&index_codecs())?;
        let bytes = ArrayBytes::new_flen(numbers);
        let alone = CodecOptions::default().with_concurrent_target(1);
        Ok(codecs.encode(bytes, &shape, &element, &fill, &alone)?.into_owned())
    }
}

fn chain(codecs: &[Value]) -> Result<CodecChain, Cause> {
    let codecs: Vec<MetadataV3> = serde_json::from_value(json!(codecs))?;
    Ok(CodecChain::from_metadata(&codecs)?)
}

/// The files of an array that are unfinished. A file has its name once all of its chunks are in it
/// and on disk.
pub(crate) struct Files<'a> {
    target: &'a Target,
    unfinished: BTreeMap<Vec<u64>, Unfinished>,
}

/// A file with a temporary name.
struct Unfinished {
    path: PathBuf,
    n_bytes: u64,
    /// First byte and number of bytes of each chunk in it.
    places: BTreeMap<usize, [u64; 2]>,
}

impl<'a> Files<'a> {
    pub(crate) fn new(target: &'a Target) -> Self {
        Self { target, unfinished: BTreeMap::new() }
    }

    /// Appends chunks, whose bytes are in `all`, to their files.
    pub(crate) fn append(&mut self, chunks: &[Encoded], all: &[u8]) -> Result<(), Error> {
        for chunks in chunks.chunk_by(|one, next| one.file == next.file) {
            let Some(Encoded { file: key, .. }) = chunks.first() else { continue };
            if !self.unfinished.contains_key(key) {
                self.unfinished.insert(key.clone(), Unfinished::create(&self.target.path(key))?);
            }
            let Some(file) = self.unfinished.get_mut(key) else { continue };
            file.append(chunks, all).map_err(|error| write_error(&file.path, error))?;
        }
        Ok(())
    }

    /// Gives all unfinished files their names.
    pub(crate) fn finish(&mut self) -> Result<(), Error> {
        for (key, file) in std::mem::take(&mut self.unfinished) {
            let index = match self.target.in_shard {
                Some(_) => self.target.index(&file.places),
                None => Ok(Vec::new()),
            };
            let index = index.map_err(|cause| write_error(&file.path, cause))?;
            let path = self.target.path(&key);
            file.finish(&index, &path).map_err(|error| write_error(&path, error))?;
        }
        Ok(())
    }
}

impl Unfinished {
    fn create(path: &Path) -> Result<Self, Error> {
        let path = path.with_added_extension("partial");
        let create = || {
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent)?;
            }
            File::create(&path)
        };
        create().map_err(|error| write_error(&path, error))?;
        Ok(Self { path, n_bytes: 0, places: BTreeMap::new() })
    }

    fn append(&mut self, chunks: &[Encoded], all: &[u8]) -> io::Result<()> {
        let mut file = OpenOptions::new().append(true).open(&self.path)?;
        for Encoded { at, bytes, .. } in chunks {
            file.write_all(&all[bytes.clone()])?;
            let n_bytes = bytes.len() as u64;
            self.places.insert(*at, [self.n_bytes, n_bytes]);
            self.n_bytes += n_bytes;
        }
        Ok(())
    }

    fn finish(self, index: &[u8], path: &Path) -> io::Result<()> {
        let mut file = OpenOptions::new().append(true).open(&self.path)?;
        file.write_all(index)?;
        file.sync_data()?;
        fs::rename(&self.path, path)
    }
}

pub(crate) fn write_error(path: &Path, source: impl Into<Cause>) -> Error {
    Error::write(path, source)
}
