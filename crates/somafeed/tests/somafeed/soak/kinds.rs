//! The kinds of samples, each under the settings of the engine and some of its own.

use std::collections::hash_map::DefaultHasher;
use std::error::Error as StdError;
use std::hash::{Hash as _, Hasher as _};
use std::path::Path;
use std::sync::Arc;

use arrays::{ArrayBatch, ArraySamples, ReadStrategy, SampleSpec, Variable};
use images::{BatchMemory, DataSet, Form, ImageBatch, ImageSamples, ImageSpec, n_slots};
use loader::{
    Batch, BatchForm, BlockForm, Dataset, DatasetSpec, Loader, LoaderSpec, LoaderState, Matrix,
};
use pipeline::{Pipeline, PipelineSpec, Source};
use sequences::{
    KmerSpec, SequenceBatch, SequenceFiles, SequenceSamples, SequenceSpec, SequenceStore as _,
    Tokenizer, Vocabulary, WhenUnknown,
};
use slots::Mapped;
use soma_io::{Experiment, OpenOptions};
use storage::{LocalStorage, Storage};

use super::rounds::Place;
use super::stored;

/// A sample as it came.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sample {
    pub(crate) row: u64,
    /// A hash of its values.
    pub(crate) digest: u64,
    pub(crate) is_padding: bool,
}

/// Where an epoch begins.
pub(crate) enum Beginning<'a> {
    Of(u64),
    At(&'a LoaderState),
}

/// A kind of samples, stored in a folder of the data.
pub(crate) trait Kind: Sync {
    fn name(&self) -> &'static str;

    /// Opens the data and begins an epoch. `variety` draws the settings of the kind.
    fn begin(
        &self,
        place: &Place<'_>,
        spec: &PipelineSpec,
        variety: u64,
        beginning: Beginning<'_>,
    ) -> Result<Box<dyn Running>, String>;
}

/// An epoch under way.
pub(crate) trait Running {
    fn next_batch(&mut self) -> Option<Result<Vec<Sample>, String>>;
    fn place(&self) -> LoaderState;
    fn n_all(&self) -> u64;
}

/// All kinds, after writing their data.
pub(crate) fn all(folder: &Path) -> Vec<Box<dyn Kind>> {
    stored::write_experiment(&folder.join("soma"));
    stored::write_anndata(&folder.join("anndata"));
    stored::write_fields(&folder.join("fields"));
    stored::write_cubes(&folder.join("cubes"));
    stored::write_sequences(&folder.join("sequences"));
    let words = words(&folder.join("sequences"));
    vec![
        Box::new(Cells { name: "SOMA", folder: "soma" }),
        Box::new(Cells { name: "AnnData", folder: "anndata" }),
        Box::new(Fields),
        Box::new(Cubes),
        Box::new(Sequences { words }),
    ]
}

/// An error's message with all its causes.
fn text(error: &dyn StdError) -> String {
    let (mut text, mut source) = (error.to_string(), error.source());
    while let Some(error) = source {
        text = format!("{text}: {error}");
        source = error.source();
    }
    text
}

fn digest(parts: &[&[u8]]) -> u64 {
    let mut hash = DefaultHasher::new();
    parts.hash(&mut hash);
    hash.finish()
}

fn pick<T: Copy>(variety: u64, at: u32, choices: &[T]) -> T {
    choices[(variety >> (8 * at)) as usize % choices.len()]
}

fn open(place: &Place<'_>, name: &str) -> Result<Arc<dyn Storage>, String> {
    let (address, config) = place.address(name);
    if let Place::Folder(_) = place {
        return Ok(Arc::new(LocalStorage::new(address)));
    }
    let opened = storage::open(&address, &storage::OpenOptions::new(&config));
    opened.map(|opened| opened.storage).map_err(|error| text(&error))
}

/// The rows and digests of a batch, and how many at its end are padding.
type RowsAndPadding = (Vec<(u64, u64)>, usize);

/// An epoch of the engine.
struct OfEngine<S: Source> {
    epoch: pipeline::Epoch<S>,
    samples: fn(&S::Batch) -> RowsAndPadding,
}

impl<S: Source> Running for OfEngine<S> {
    fn next_batch(&mut self) -> Option<Result<Vec<Sample>, String>> {
        let batch = self.epoch.next()?;
        Some(batch.map(|batch| samples((self.samples)(&batch))).map_err(|error| text(&error)))
    }

    fn place(&self) -> LoaderState {
        self.epoch.state()
    }

    fn n_all(&self) -> u64 {
        self.epoch.n_batches()
    }
}

fn samples((rows, n_padding): (Vec<(u64, u64)>, usize)) -> Vec<Sample> {
    let n_own = rows.len() - n_padding;
    let samples = rows.into_iter().enumerate();
    samples.map(|(at, (row, digest))| Sample { row, digest, is_padding: n_own <= at }).collect()
}

fn begin<S: Source>(
    source: S,
    spec: &PipelineSpec,
    beginning: &Beginning<'_>,
    n_rows: fn(&S::Batch) -> usize,
    samples: fn(&S::Batch) -> RowsAndPadding,
) -> Result<Box<dyn Running>, String> {
    let begun = || {
        let pipeline = Pipeline::new(Arc::new(source), spec.clone(), n_rows)?;
        match beginning {
            Beginning::Of(epoch) => pipeline.epoch(*epoch),
            Beginning::At(state) => pipeline.resume(state),
        }
    };
    let epoch = begun().map_err(|error: S::Error| text(&error))?;
    Ok(Box::new(OfEngine { epoch, samples }))
}

/// Cells of an experiment or of an AnnData.
struct Cells {
    name: &'static str,
    folder: &'static str,
}

impl Kind for Cells {
    fn name(&self) -> &'static str {
        self.name
    }

    fn begin(
        &self,
        place: &Place<'_>,
        spec: &PipelineSpec,
        variety: u64,
        beginning: Beginning<'_>,
    ) -> Result<Box<dyn Running>, String> {
        let (address, config) = place.address(self.folder);
        let options = OpenOptions { config, ..OpenOptions::default() };
        let experiment = Experiment::open(&address, &options).map_err(|error| text(&error))?;
        let dataset = Dataset::from_experiment(&experiment, &DatasetSpec::default())
            .map_err(|error| text(&error))?;
        let begun = || {
            let loader = Loader::new(dataset, cell_spec(spec, variety))?;
            match beginning {
                Beginning::Of(epoch) => loader.epoch(epoch),
                Beginning::At(state) => loader.resume(state),
            }
        };
        Ok(Box::new(begun().map_err(|error| text(&error))?))
    }
}

fn cell_spec(spec: &PipelineSpec, variety: u64) -> LoaderSpec {
    let (block_form, batch_form) = pick(
        variety,
        0,
        &[
            (BlockForm::Dense, BatchForm::Dense),
            (BlockForm::Csr, BatchForm::Dense),
            (BlockForm::Csr, BatchForm::Csr),
            (BlockForm::ConvertedCsr, BatchForm::Coo),
        ],
    );
    LoaderSpec {
        pipeline: spec.clone(),
        block_form,
        batch_form,
        batch_threads: Some(pick(variety, 1, &[1, 2])),
        ..LoaderSpec::default()
    }
}

impl Running for loader::Epoch {
    fn next_batch(&mut self) -> Option<Result<Vec<Sample>, String>> {
        let batch = self.next()?;
        Some(batch.map(|batch| samples(cells(&batch))).map_err(|error| text(&error)))
    }

    fn place(&self) -> LoaderState {
        self.state()
    }

    fn n_all(&self) -> u64 {
        self.n_batches()
    }
}

/// The joinid of each cell, and a hash of its columns with their values.
fn cells(batch: &Batch) -> (Vec<(u64, u64)>, usize) {
    let n_rows = batch.joinids.len();
    let mut values: Vec<Vec<[u32; 2]>> = vec![Vec::new(); n_rows];
    match &batch.x {
        Matrix::Csr(x) => {
            let (columns, found) = (x.columns().unwrap(), x.values().unwrap());
            for (row, ends) in x.row_offsets.windows(2).enumerate() {
                let of_row = ends[0]..ends[1];
                let of_row = columns[of_row.clone()].iter().zip(&found[of_row]);
                values[row].extend(of_row.map(|(column, value)| [*column, value.to_bits()]));
            }
        }
        Matrix::Coo(x) => {
            let places = x.rows().unwrap().iter().zip(x.columns().unwrap());
            for ((row, column), value) in places.zip(x.values().unwrap()) {
                values[*row as usize].push([*column, value.to_bits()]);
            }
        }
        x => {
            let dense = x.dense().unwrap();
            for (row, of_row) in dense.chunks(dense.len() / n_rows).enumerate() {
                let of_row = (0..).zip(of_row).filter(|(_, value)| **value != 0.0);
                values[row].extend(of_row.map(|(column, value)| [column, value.to_bits()]));
            }
        }
    }
    let digests = values.iter_mut().map(|of_row| {
        of_row.sort_unstable();
        digest(&[bytemuck::cast_slice(of_row)])
    });
    let rows = batch.joinids.iter().map(|joinid| *joinid as u64);
    (rows.zip(digests).collect(), batch.n_padding)
}

/// Windows of fields on a grid.
struct Fields;

impl Kind for Fields {
    fn name(&self) -> &'static str {
        "fields"
    }

    fn begin(
        &self,
        place: &Place<'_>,
        spec: &PipelineSpec,
        variety: u64,
        beginning: Beginning<'_>,
    ) -> Result<Box<dyn Running>, String> {
        let sample = SampleSpec {
            threads: pick(variety, 0, &[1, 2]),
            read: pick(variety, 1, &[ReadStrategy::Stacked, ReadStrategy::PerSample]),
            coordinates: pick(variety, 2, &[true, false]),
            shares_blocks: pick(variety, 3, &[true, false]),
            ..SampleSpec::new([
                Variable::new("fields").named("inputs").steps([-1, 0]),
                Variable::new("fields").named("targets").steps([1]),
            ])
        };
        let samples = ArraySamples::open(open(place, "fields")?, &sample);
        let samples = samples.map_err(|error| text(&error))?;
        begin(samples, spec, &beginning, ArrayBatch::n_samples, |batch| {
            let variables: Vec<&[u8]> = batch.variables().map(|values| values.bytes()).collect();
            (of_samples(batch.samples(), &variables), batch.place().n_padding)
        })
    }
}

/// The samples with the hash of their part of each array.
fn of_samples(samples: &[u64], arrays: &[&[u8]]) -> Vec<(u64, u64)> {
    let of_sample = |(at, row): (usize, &u64)| {
        let part = |bytes: &&[u8]| {
            bytes.len() / samples.len() * at..bytes.len() / samples.len() * (at + 1)
        };
        let parts: Vec<&[u8]> = arrays.iter().map(|bytes| &bytes[part(bytes)]).collect();
        (*row, digest(&parts))
    };
    samples.iter().enumerate().map(of_sample).collect()
}

/// Image cubes with masks.
struct Cubes;

impl Kind for Cubes {
    fn name(&self) -> &'static str {
        "cubes"
    }

    fn begin(
        &self,
        place: &Place<'_>,
        spec: &PipelineSpec,
        variety: u64,
        beginning: Beginning<'_>,
    ) -> Result<Box<dyn Running>, String> {
        let is_even = spec.chunk_rows * spec.chunks_per_block == spec.batch_rows;
        let memory = if is_even && variety.is_multiple_of(2) {
            BatchMemory::Ring {
                n_slots: n_slots(spec, 1),
                n_samples: spec.batch_rows as usize,
                allocate: Arc::new(Mapped),
            }
        } else {
            BatchMemory::Collated
        };
        let threads = pick(variety, 1, &[1, 2]);
        let of_image = ImageSpec { threads, memory, ..ImageSpec::new(Form::Raw32) };
        let samples = DataSet::open(open(place, "cubes")?)
            .and_then(|data| ImageSamples::open(&data, &of_image))
            .map_err(|error| text(&error))?;
        begin(samples, spec, &beginning, ImageBatch::n_planned, |batch| {
            let keys: Vec<&[u8]> = batch.keys().map(|key| key.bytes()).collect();
            (of_samples(batch.samples(), &keys), batch.place().n_padding)
        })
    }
}

/// Sequences as letters, names and words.
struct Sequences {
    words: Tokenizer,
}

fn words(folder: &Path) -> Tokenizer {
    let store = SequenceFiles::open(Arc::new(LocalStorage::new(folder))).unwrap();
    let spec = KmerSpec::all_frames(3, 1);
    let alphabet = store.summary().alphabet().unwrap();
    let words = Vocabulary::count(&store, &alphabet, &spec, WhenUnknown::Fail, 1).unwrap();
    Tokenizer::new(spec, Arc::new(words), WhenUnknown::Fail).unwrap()
}

impl Kind for Sequences {
    fn name(&self) -> &'static str {
        "sequences"
    }

    fn begin(
        &self,
        place: &Place<'_>,
        spec: &PipelineSpec,
        _variety: u64,
        beginning: Beginning<'_>,
    ) -> Result<Box<dyn Running>, String> {
        let store = SequenceFiles::open(open(place, "sequences")?).map_err(|error| text(&error))?;
        let tokenizer = Some(self.words.clone());
        let of_sequence =
            SequenceSpec { letters: true, names: true, tokenizer, ..SequenceSpec::default() };
        let samples = SequenceSamples::new(Arc::new(store), of_sequence);
        let samples = samples.map_err(|error| text(&error))?;
        begin(samples, spec, &beginning, SequenceBatch::n_sequences, |batch| {
            let of_row = |(at, row): (usize, &u64)| {
                let words: Vec<u32> = batch.frames(at).flatten().copied().collect();
                let (letters, name) = (batch.letters(at).unwrap(), batch.name(at).unwrap());
                (*row, digest(&[letters, name, bytemuck::cast_slice(&words)]))
            };
            let rows = batch.rows().iter().enumerate().map(of_row).collect();
            (rows, batch.place().n_padding)
        })
    }
}
