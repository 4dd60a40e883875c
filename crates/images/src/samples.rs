//! Images as a source of the engine.

use std::collections::HashSet;
use std::sync::Arc;

use arrays::ElementType;
use pipeline::{BlockBytes, BlockRows, Need, PipelineSpec, ReadStats, Source, Stop};
use slots::{Allocate as _, Mapped, PooledSlot, Ring, SlotMemory};
use storage::Storage;

use crate::assemble::{ImageAssembler, not_its_block};
use crate::batch::ImageBatch;
use crate::block::{BlockMemory, ImageBlock};
use crate::data_set::{DataSet, Form};
use crate::error::Error;
use crate::image_files::ImageFile;
use crate::open_key::{OpenKey, open_keys};
use crate::read::{Reading, Task, run};
use crate::read_image::{ImageReader, Worker};
use crate::spec::{BatchMemory, ImageSpec, Origin};
use crate::zarr_arrays::ZarrArrays;

/// Number of slots with which the engine never waits for one, if the consumer has at most `n_kept`
/// batches when it asks for the next.
///
/// At most `1 + prefetch_blocks` blocks, `prefetch_batches` waiting batches and one in the making
/// exist besides those of the consumer.
pub fn n_slots(spec: &PipelineSpec, n_kept: usize) -> usize {
    [1, spec.prefetch_blocks, spec.prefetch_batches, 1, n_kept]
        .into_iter()
        .fold(0, usize::saturating_add)
}

/// A source of image cubes.
#[derive(Debug, Clone)]
pub struct ImageSamples {
    reader: Arc<ImageReader>,
    keys: Arc<[OpenKey]>,
    spec: ImageSpec,
    ring: Option<Arc<Ring>>,
}

impl ImageSamples {
    /// Opens the images of `data`, read as `spec` says. Looks whether all files exist, and reads
    /// masks of the first image. Allocates the ring, if there is one.
    ///
    /// # Errors
    /// Files of the form are missing ([`ImageSpec::checks_files`]); an array of the first
    /// image does not exist or cannot be treated as the settings want; memory is lacking.
    pub fn open(data: &DataSet, spec: &ImageSpec) -> Result<Self, Error> {
        let zarr = match spec.form {
            Form::Zarr => Some(ZarrArrays::open(data, &spec.keys)?),
            _ => None,
        };
        if spec.checks_files {
            check_presence(data, spec)?;
        }
        let keys: Arc<[OpenKey]> = open_keys(data, spec, zarr.as_ref())?.into();
        let ring = match &spec.memory {
            BatchMemory::Collated | BatchMemory::Pooled => None,
            BatchMemory::Ring { n_slots, n_samples, allocate } => {
                let bytes_of = |key: &OpenKey| {
                    let lacking = || Error::Memory { bytes: u64::MAX, n_samples: *n_samples };
                    key.n_bytes().checked_mul(*n_samples).ok_or_else(lacking)
                };
                let key_bytes = keys.iter().map(bytes_of).collect::<Result<Vec<usize>, Error>>()?;
                Some(Ring::new(*n_slots, &key_bytes, &**allocate)?)
            }
        };
        let reader = Arc::new(ImageReader::new(data.clone(), spec, &keys, zarr)?);
        Ok(Self { reader, keys, spec: spec.clone(), ring })
    }

    /// The number of samples.
    pub fn n_samples(&self) -> u64 {
        self.reader.data().n_images() as u64
    }

    /// The images.
    pub fn data(&self) -> &DataSet {
        self.reader.data()
    }

    /// Bytes of a sample in a batch, all keys together.
    pub fn sample_bytes(&self) -> u64 {
        self.keys.iter().map(|key| key.n_bytes() as u64).sum()
    }

    /// The name of each key, with the type of its elements in batches.
    pub fn elements(&self) -> impl Iterator<Item = (&str, ElementType)> {
        self.keys.iter().map(|key| (key.name.as_str(), key.element))
    }

    /// The shape of a key's array of one image; `None` if there is no key of that name.
    pub fn sample_shape(&self, name: &str) -> Option<&[usize]> {
        self.keys.iter().find(|key| key.name == name).map(|key| &*key.shape)
    }

    /// The ring of slots, if batches lie in one.
    pub fn ring(&self) -> Option<&Arc<Ring>> {
        self.ring.as_ref()
    }

    /// Reads the samples of a block, each into its slices of `memory`.
    fn fill(
        &self,
        rows: &BlockRows<'_>,
        (samples, memory): (&[u64], Vec<Vec<&mut [u8]>>),
        (workers, stop): (&mut Vec<Worker>, &Stop),
    ) -> Result<ReadStats, Error> {
        let tasks = samples.iter().zip(memory).enumerate();
        let tasks = tasks.map(|(at, (sample, slices))| Task { at, sample: *sample, slices });
        let (epoch, n_threads) = (rows.place.epoch, self.spec.threads);
        let reading = Reading { reader: &self.reader, epoch, n_threads, stop };
        run(&reading, tasks.collect(), workers)
    }

    /// The memory of each of `n_samples`, by key, in memory of each key.
    fn of_samples<'a>(
        &self,
        n_samples: usize,
        keys: impl IntoIterator<Item = &'a mut [u8]>,
    ) -> Vec<Vec<&'a mut [u8]>> {
        let mut memory: Vec<Vec<&mut [u8]>> = (0..n_samples).map(|_| Vec::new()).collect();
        for (key, bytes) in self.keys.iter().zip(keys) {
            // A key without values has no chunks, and each sample its empty part.
            let mut parts = bytes.chunks_exact_mut(key.n_bytes().max(1));
            for sample in &mut memory {
                sample.push(parts.next().unwrap_or_default());
            }
        }
        memory
    }

    /// Reads a block into memory that goes round.
    fn read_pooled(
        &self,
        (rows, into): (&BlockRows<'_>, &mut ImageBlock),
        with: (&mut Vec<Worker>, &Stop),
    ) -> Result<ReadStats, Error> {
        let samples = rows.delivered();
        let slots = self.keys.iter().map(|key| key.pooled(samples.len()));
        let mut slots = slots.collect::<Result<Vec<PooledSlot>, Error>>()?;
        let memory = self.of_samples(samples.len(), slots.iter_mut().map(PooledSlot::bytes_mut));
        let stats = self.fill(rows, (&samples, memory), with)?;
        into.samples = samples;
        into.memory = BlockMemory::Pooled(Arc::new(slots));
        Ok(stats)
    }

    /// Reads a block into a slot of the ring.
    fn read_slot(
        &self,
        ring: &Arc<Ring>,
        (rows, into): (&BlockRows<'_>, &mut ImageBlock),
        with: (&mut Vec<Worker>, &Stop),
    ) -> Result<ReadStats, Error> {
        let samples = rows.delivered();
        let mut slot = ring.take()?;
        let fits =
            |(key, bytes): (&OpenKey, &mut [u8])| samples.len() * key.n_bytes() <= bytes.len();
        if !self.keys.iter().zip(slot.keys_mut()).all(fits) {
            return Err(not_its_block());
        }
        let memory = self.of_samples(samples.len(), slot.keys_mut());
        let stats = self.fill(rows, (&samples, memory), with)?;
        into.samples = samples;
        into.memory = BlockMemory::Slot(Arc::new(slot));
        Ok(stats)
    }

    /// Reads a block, each cube into memory of its own.
    fn read_cubes(
        &self,
        (rows, into): (&BlockRows<'_>, &mut ImageBlock),
        with: (&mut Vec<Worker>, &Stop),
    ) -> Result<ReadStats, Error> {
        let samples = rows.delivered();
        let lacking = || Error::Memory {
            bytes: self.sample_bytes().saturating_mul(samples.len() as u64),
            n_samples: samples.len(),
        };
        let allocate = |key: &OpenKey| Mapped.allocate(key.n_bytes()).ok_or_else(lacking);
        let cube = |_| self.keys.iter().map(allocate).collect();
        let mut cubes: Vec<Vec<Box<dyn SlotMemory>>> =
            samples.iter().map(cube).collect::<Result<_, Error>>()?;
        let memory = cubes
            .iter_mut()
            .map(|cube| cube.iter_mut().map(SlotMemory::bytes_mut).collect())
            .collect();
        let stats = self.fill(rows, (&samples, memory), with)?;
        into.samples = samples;
        into.memory = BlockMemory::Cubes(cubes);
        Ok(stats)
    }
}

/// Checks that each image has a file of each key.
fn check_presence(data: &DataSet, spec: &ImageSpec) -> Result<(), Error> {
    let mut checked: Vec<&Origin> = Vec::new();
    for key in &spec.keys {
        let is_file = spec.form.file_format().is_some();
        if !is_file || checked.contains(&&key.origin) {
            continue;
        }
        checked.push(&key.origin);
        for (storage, of_storage) in data.storages().iter().enumerate() {
            let files: Vec<ImageFile> = data
                .samples_in(storage)
                .map(|sample| ImageFile::of_key(data, spec.form, &key.origin, sample))
                .collect::<Result<_, Error>>()?;
            check_files(&**of_storage, &files)?;
        }
    }
    Ok(())
}

/// Checks that files of a folder are there.
fn check_files(storage: &dyn Storage, files: &[ImageFile]) -> Result<(), Error> {
    let Some((folder, _)) = files.first().and_then(|file| file.path.rsplit_once('/')) else {
        return Ok(());
    };
    let place = storage.place();
    let listed = storage.list(folder);
    let listed =
        listed.map_err(|source| Error::List { place: place.clone(), source: source.into() })?;
    let present: HashSet<&str> = listed.iter().map(|entry| entry.name.as_str()).collect();
    let is_missing = |file: &&ImageFile| {
        !file.path.rsplit_once('/').is_some_and(|(_, name)| present.contains(name))
    };
    let mut missing = files.iter().filter(is_missing);
    let Some(first) = missing.next() else { return Ok(()) };
    Err(Error::Missing {
        folder: folder.to_owned(),
        place,
        first: first.path.clone(),
        n_missing: 1 + missing.count(),
        n_images: files.len(),
    })
}

/// What a reading thread uses again from block to block.
#[derive(Debug, Default)]
pub struct ReadScratch(Vec<Worker>);

impl Source for ImageSamples {
    type Block = ImageBlock;
    type Batch = ImageBatch;
    type Error = Error;
    type Scratch = ReadScratch;
    type Assembler = ImageAssembler;

    fn n_rows(&self) -> u64 {
        self.n_samples()
    }

    fn fingerprint(&self) -> String {
        self.reader.fingerprint()
    }

    fn need(&self, block_rows: u64, batch_rows: u64) -> Result<Need, Error> {
        let bytes_of = |n_rows: u64| n_rows.saturating_mul(self.sample_bytes());
        // A thread has a file as stored, and a cube that is decoded before it is converted or
        // augmented.
        let cube = self.keys.iter().map(|key| key.stored_bytes() as u64).max().unwrap_or(0);
        let reading = cube.saturating_mul(2).saturating_mul(self.spec.threads.max(1) as u64);
        let (block, batch) = (bytes_of(block_rows), bytes_of(batch_rows));
        let Some(ring) = &self.ring else {
            return Ok(Need { block, largest: block, batch, reading, other: 0 });
        };
        let fits = block_rows <= batch_rows || batch_rows == 0;
        if !fits {
            return Err(not_its_block());
        }
        // All slots exist from the start, whatever is read ahead.
        let other = (ring.n_slots() as u64).saturating_mul(ring.slot_bytes() as u64);
        Ok(Need { block: 0, largest: 0, batch: 0, reading, other })
    }

    fn answers_late(&self) -> bool {
        self.data().storages().iter().any(|storage| storage.request_counts().is_some())
    }

    fn block_bytes(&self, block: &ImageBlock) -> BlockBytes {
        let now = if self.ring.is_some() { 0 } else { block.memory_bytes() };
        BlockBytes { now, most: now }
    }

    fn read(
        &self,
        rows: &BlockRows<'_>,
        into: &mut ImageBlock,
        scratch: &mut ReadScratch,
        stop: &Stop,
    ) -> Result<ReadStats, Error> {
        *into = ImageBlock::default();
        let with = (&mut scratch.0, stop);
        let stats = match (&self.ring, &self.spec.memory) {
            (Some(ring), _) => self.read_slot(ring, (rows, into), with)?,
            (None, BatchMemory::Pooled) => self.read_pooled((rows, into), with)?,
            (None, _) => self.read_cubes((rows, into), with)?,
        };
        let n_samples = into.samples.len();
        let n_values: usize = self.keys.iter().map(|key| key.shape.iter().product::<usize>()).sum();
        Ok(ReadStats {
            values: (n_values * n_samples) as u64,
            values_decoded: None,
            requests: None,
            bytes_needed: Some(self.sample_bytes() * n_samples as u64),
            ..stats
        })
    }

    fn row_name(&self, row: u64) -> String {
        let image = usize::try_from(row).ok().and_then(|row| self.data().images().get(row));
        image.map_or_else(|| format!("image {row}"), |image| image.name.clone())
    }

    fn is_damage(&self, error: &Error) -> bool {
        let is_of_image = matches!(error, Error::File { .. } | Error::Missing { .. });
        is_of_image && pipeline::system_failure(error).is_none()
    }

    fn assembler(&self, _batch_rows: u64) -> Result<ImageAssembler, Error> {
        let is_pooled = matches!(self.spec.memory, BatchMemory::Pooled);
        Ok(ImageAssembler::new(self.data().clone(), Arc::clone(&self.keys), is_pooled))
    }
}
