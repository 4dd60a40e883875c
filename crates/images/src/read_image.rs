//! Reads one image: its files, then each key into its memory.

use pipeline::{ReadStats, Stop};

use crate::augment::{AugmentError, Parameters};
use crate::data_set::{DataSet, Form};
use crate::error::Error;
use crate::files::{CubeFile, DecodeScratch};
use crate::image_files::ImageFile;
use crate::open_key::OpenKey;
use crate::place::place;
use crate::spec::{ImageSpec, Origin, Role, SeededAugmentation};
use crate::zarr_arrays::ZarrArrays;

/// Why a file cannot be decoded.
type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Reads images as the settings say. Shared by all reading threads.
#[derive(Debug)]
pub(crate) struct ImageReader {
    data: DataSet,
    spec: ImageSpec,
    keys: Vec<OpenKey>,
    /// The keys of each file.
    groups: Vec<(Origin, Vec<usize>)>,
    zarr: Option<ZarrArrays>,
    /// The key whose pixels must not all be mapped out of the image.
    valid: Option<usize>,
}

impl ImageReader {
    pub(crate) fn new(
        data: DataSet,
        spec: &ImageSpec,
        keys: &[OpenKey],
        zarr: Option<ZarrArrays>,
    ) -> Result<Self, Error> {
        let name = spec.augmentation.as_ref().and_then(|of| of.valid_pixels.as_deref());
        let at = |name: &str| {
            let found = keys.iter().position(|key| key.name == name && key.role == Role::Mask);
            found.ok_or_else(|| Error::Spec {
                reason: format!("augmentation must keep pixels of {name}, which is not a mask"),
            })
        };
        let valid = name.map(at).transpose()?;
        let mut groups: Vec<(Origin, Vec<usize>)> = Vec::new();
        for (idx, key) in keys.iter().enumerate() {
            let file = file_of(&key.origin);
            match groups.iter_mut().find(|(origin, _)| file_of(origin) == file) {
                Some((_, of_file)) => of_file.push(idx),
                None => groups.push((key.origin.clone(), vec![idx])),
            }
        }
        Ok(Self { data, spec: spec.clone(), keys: keys.to_vec(), groups, zarr, valid })
    }

    pub(crate) fn data(&self) -> &DataSet {
        &self.data
    }

    /// Identifies the samples and what is delivered of them.
    pub(crate) fn fingerprint(&self) -> String {
        let ImageSpec { form, norm, augmentation, .. } = &self.spec;
        let keys: Vec<String> = self
            .keys
            .iter()
            .map(|key| {
                let OpenKey { name, origin, role, shape, element, .. } = key;
                format!("{name} {origin:?} {role:?} {shape:?} {element}")
            })
            .collect();
        let names: Vec<&str> = self.data.images().iter().map(|of| of.name.as_str()).collect();
        let (keys, names) = (keys.join("; "), names.join(" "));
        let text = format!("{form} {norm:?} {augmentation:?}; {keys}; {names}");
        match self.data.sizes().as_slice() {
            [_] => text,
            sizes => format!("{text}; {sizes:?} of each storage"),
        }
    }

    /// Whether a key is decoded straight into its place.
    fn is_direct(&self, key: &OpenKey, parameters: &Parameters) -> bool {
        let is_mapped = key.role != Role::Plain && !parameters.is_identity();
        let is_normalised = key.role == Role::Image && self.spec.norm.is_some();
        !is_mapped && !is_normalised && key.element == key.stored
    }

    /// The error that what a sample has in `file`, or of a key of that name, cannot be used.
    fn failed(&self, sample: u64, file: &str, source: impl Into<Cause>) -> Error {
        let images = self.data.images();
        Error::File {
            file: file.to_owned(),
            image: images.get(sample as usize).map_or_else(String::new, |of| of.name.clone()),
            place: self.data.storage_of(sample as usize).place(),
            source: source.into(),
        }
    }

    /// The map of a sample in an epoch.
    fn parameters(&self, sample: u64, epoch: u64) -> Parameters {
        let [height, width, _] = self.data.shape();
        match &self.spec.augmentation {
            Some(SeededAugmentation { augmentation, seed, .. }) => {
                augmentation.draw(*seed, epoch, sample, [height, width])
            }
            None => Parameters::IDENTITY,
        }
    }
}

/// The folder of a key's files; empty for cubes.
fn file_of(origin: &Origin) -> &str {
    match origin {
        Origin::Cube => "",
        Origin::Array { folder, .. } => folder,
    }
}

/// What a thread uses again from image to image.
#[derive(Debug, Default)]
pub(crate) struct Worker {
    /// A file as stored.
    file: Vec<u8>,
    /// Each key's array, if it is not decoded straight into its place.
    decoded: Vec<Decoded>,
    decode: DecodeScratch,
    zarr: arrays::ReadScratch,
    /// Counts of the present block.
    pub(crate) stats: ReadStats,
}

/// Memory of a decoded array, aligned for any element.
#[derive(Debug, Default)]
struct Decoded(Vec<u64>);

impl Decoded {
    /// `n_bytes` of arbitrary content.
    fn bytes(&mut self, n_bytes: usize) -> &mut [u8] {
        let n_words = n_bytes.div_ceil(size_of::<u64>());
        if self.0.len() < n_words {
            self.0.resize(n_words, 0);
        }
        &mut bytemuck::cast_slice_mut(&mut self.0)[..n_bytes]
    }
}

impl Worker {
    /// Reads a sample, each key into its slice of `into`.
    pub(crate) fn read(
        &mut self,
        reader: &ImageReader,
        (sample, epoch): (u64, u64),
        into: &mut [&mut [u8]],
        stop: &Stop,
    ) -> Result<(), Error> {
        let parameters = reader.parameters(sample, epoch);
        self.decoded.resize_with(reader.keys.len(), Decoded::default);
        // Where each key is decoded: in its place, if nothing more is to be done with it.
        let is_direct: Vec<bool> =
            reader.keys.iter().map(|key| reader.is_direct(key, &parameters)).collect();
        let memory = into.iter_mut().zip(&mut self.decoded).zip(reader.keys.iter().zip(&is_direct));
        let mut memory: Vec<&mut [u8]> = memory
            .map(
                |((place, decoded), (key, is_direct))| {
                    if *is_direct { &mut **place } else { decoded.bytes(key.stored_bytes()) }
                },
            )
            .collect();
        let mut files = FileDecoder {
            reader,
            file: &mut self.file,
            scratch: &mut self.decode,
            stats: &mut self.stats,
        };
        match &reader.zarr {
            Some(zarr) => {
                let read = zarr.read(sample as usize, &mut memory, &mut self.zarr, stop);
                let folder = Form::Zarr.folder();
                self.stats += read.map_err(|source| reader.failed(sample, folder, source))?;
            }
            None => files.decode_all(sample, &mut memory)?,
        }
        drop(memory);
        if is_direct.iter().all(|is_direct| *is_direct) {
            return Ok(());
        }
        let start = worktime::now();
        let parameters = self
            .kept_parameters(reader, parameters)
            .map_err(|source| reader.failed(sample, &reader.keys[0].name, source))?;
        for (idx, key) in reader.keys.iter().enumerate().filter(|(idx, _)| !is_direct[*idx]) {
            let decoded = self.decoded[idx].bytes(key.stored_bytes());
            let placed = place(key, (decoded, reader.spec.norm), into[idx], &parameters);
            placed.map_err(|source| reader.failed(sample, &key.name, source))?;
        }
        self.stats.add_decoded(0, 0, worktime::now() - start);
        Ok(())
    }

    /// The map, or none if it would leave no valid pixel in the image.
    fn kept_parameters(
        &mut self,
        reader: &ImageReader,
        parameters: Parameters,
    ) -> Result<Parameters, AugmentError> {
        let Some(valid) = reader.valid.filter(|_| !parameters.is_identity()) else {
            return Ok(parameters);
        };
        let key = &reader.keys[valid];
        let mask = self.decoded[valid].bytes(key.stored_bytes());
        let mask: Vec<bool> = mask.chunks_exact(key.stored.n_bytes()).map(is_set).collect();
        let shape = [key.shape[0], key.shape[1]];
        parameters.keeping_valid_pixels(shape, [&mask[..]], |is_valid| is_valid)
    }
}

/// Whether an element is not zero.
fn is_set(element: &[u8]) -> bool {
    element.iter().any(|byte| *byte != 0)
}

/// Decodes the files of an image.
struct FileDecoder<'a> {
    reader: &'a ImageReader,
    file: &'a mut Vec<u8>,
    scratch: &'a mut DecodeScratch,
    stats: &'a mut ReadStats,
}

impl FileDecoder<'_> {
    /// Decodes all keys of a sample, each into its slice of `into`.
    fn decode_all(&mut self, sample: u64, into: &mut [&mut [u8]]) -> Result<(), Error> {
        let Self { reader, .. } = *self;
        for (origin, keys) in &reader.groups {
            let form = reader.spec.form;
            let file = ImageFile::of_key(&reader.data, form, origin, sample as usize)?;
            let start = worktime::now();
            file.read(&reader.data, self.file)?;
            self.stats.add_fetched(self.file.len() as u64, worktime::now() - start);
            let start = worktime::now();
            let decoded = self.decode(&file, keys, into);
            decoded.map_err(|cause| file.failed(&reader.data, cause))?;
            let n_bytes = keys.iter().map(|key| reader.keys[*key].stored_bytes() as u64);
            self.stats.add_decoded(0, n_bytes.sum(), worktime::now() - start);
        }
        Ok(())
    }

    /// Decodes some keys from the file that was read.
    fn decode(
        &mut self,
        file: &ImageFile,
        keys: &[usize],
        into: &mut [&mut [u8]],
    ) -> Result<(), Cause> {
        let parsed = CubeFile::parse(file.format, self.file)?;
        for idx in keys {
            let key = &self.reader.keys[*idx];
            let at = array_of(key, &parsed)?;
            let stored = &parsed.arrays()[at];
            if let Some(mismatch) = key.mismatch(&stored.shape, stored.element) {
                return Err(mismatch.into());
            }
            parsed.decode(at, into[*idx], self.scratch)?;
        }
        Ok(())
    }
}

/// The index of a key's array in its file.
fn array_of(key: &OpenKey, file: &CubeFile<'_>) -> Result<usize, Cause> {
    let n_arrays = file.arrays().len();
    match &key.origin {
        Origin::Cube if n_arrays == 1 => Ok(0),
        Origin::Cube => Err(format!("it has {n_arrays} arrays, a cube's file has one").into()),
        Origin::Array { array, .. } => Ok(file
            .index(array)
            .ok_or_else(|| format!("it has no array {array:?} for the key {}", key.name))?),
    }
}
