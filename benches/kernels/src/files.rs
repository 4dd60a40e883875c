//! Kernels over files: an experiment and a folder of image cubes.

use std::fs;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use arrow_array::RecordBatchIterator;
use arrow_array::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use example_data::{GenerateSpec, generate};
use images::files::{StoredArray, blosc};
use images::{BatchMemory, DataSet, Form, ImageBatch, ImageSamples, ImageSpec, Key, n_slots};
use loader::{Dataset, DatasetSpec, Loader, LoaderSpec};
use pipeline::{Pipeline, PipelineSpec};
use soma_io::{CsrBuffers, Experiment, GeneSelection, OpenOptions, ReaderChoice, RowRanges};
use storage::LocalStorage;

use crate::Kernel;

const SHAPE: [usize; 3] = [48, 64, 20];
const N_IMAGES: usize = 4;

/// Writes the data of all kernels.
pub(crate) fn prepare(folder: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(folder.join("cubes/raw32"))?;
    let spec = GenerateSpec { n_cells: 2_000, n_genes: 2_000, ..GenerateSpec::default() };
    generate(&experiment(folder)?, &spec, &mut |_| ())?;
    let names: Vec<String> = (0..N_IMAGES).map(|at| format!("image-{at}")).collect();
    let images: Vec<_> = names.iter().map(|name| serde_json::json!({ "name": name })).collect();
    let list = serde_json::json!({ "version": 1, "shape": SHAPE, "images": images });
    fs::write(folder.join("cubes/images.json"), list.to_string())?;
    let n_values = SHAPE.iter().product::<usize>() as u32;
    let values: Vec<u8> =
        (0..n_values).flat_map(|at| ((at / 7 % 300) as f32).to_le_bytes()).collect();
    let array =
        StoredArray::new("", &SHAPE, arrays::ElementType::F32).context("the shape of the cubes")?;
    for name in names {
        let file = blosc::write_array(&array, &values, 5)?;
        fs::write(folder.join(format!("cubes/raw32/{name}.blosc")), file)?;
    }
    Ok(())
}

fn experiment(folder: &Path) -> anyhow::Result<String> {
    let path: PathBuf = folder.join("cells");
    Ok(path.to_str().context("the folder is not UTF-8")?.to_owned())
}

fn open(folder: &Path) -> anyhow::Result<Experiment> {
    Ok(Experiment::open(&experiment(folder)?, &OpenOptions::default())?)
}

/// Rows of X as CSR.
pub(crate) fn tile_decode(folder: &Path) -> anyhow::Result<Kernel> {
    let reader = open(folder)?.measurement("RNA")?.x("raw")?.reader(ReaderChoice::Native)?;
    let rows = RowRanges::new(vec![0..1_000])?;
    let mut csr = CsrBuffers::default();
    Ok(Box::new(move || {
        reader.read_csr(&rows, &GeneSelection::All, &mut csr)?;
        Ok(())
    }))
}

/// All of obs.
pub(crate) fn obs_decode(folder: &Path) -> anyhow::Result<Kernel> {
    let obs = open(folder)?.obs()?;
    Ok(Box::new(move || {
        black_box(obs.read(None, None)?);
        Ok(())
    }))
}

/// A table through Arrow's C interface and back.
pub(crate) fn arrow_hand_over(folder: &Path) -> anyhow::Result<Kernel> {
    let rows = open(folder)?.obs()?.read(None, None)?;
    Ok(Box::new(move || {
        let batches = RecordBatchIterator::new([Ok(rows.clone())], rows.schema());
        let stream = FFI_ArrowArrayStream::new(Box::new(batches));
        for batch in RecordBatchStreamReader::try_new(stream)? {
            black_box(batch?);
        }
        Ok(())
    }))
}

/// From a data set to the first batch of an epoch.
pub(crate) fn first_batch(folder: &Path) -> anyhow::Result<Kernel> {
    let spec = DatasetSpec { obs_columns: vec!["cell_type".to_owned()], ..DatasetSpec::default() };
    let dataset = Dataset::from_experiment(&open(folder)?, &spec)?;
    let pipeline = PipelineSpec {
        chunk_rows: 16,
        chunks_per_block: 16,
        batch_rows: 64,
        ..PipelineSpec::default()
    };
    let loader = Loader::new(dataset, LoaderSpec { pipeline, ..LoaderSpec::default() })?;
    Ok(Box::new(move || {
        let first = loader.epoch(0)?.next().context("an epoch without batches")?;
        black_box(first?);
        Ok(())
    }))
}

/// Compressed cubes into the slots of a ring.
pub(crate) fn blosc_into_slots(folder: &Path) -> anyhow::Result<Kernel> {
    let data = DataSet::open(Arc::new(LocalStorage::new(folder.join("cubes"))))?;
    let engine = PipelineSpec {
        chunk_rows: 1,
        chunks_per_block: N_IMAGES as u64,
        batch_rows: N_IMAGES as u64,
        ..PipelineSpec::default()
    };
    let memory = BatchMemory::Ring {
        n_slots: n_slots(&engine, 1),
        n_samples: N_IMAGES,
        allocate: Arc::new(slots::Mapped),
    };
    let spec =
        ImageSpec { keys: vec![Key::cube("features")], memory, ..ImageSpec::new(Form::Raw32) };
    let samples = ImageSamples::open(&data, &spec)?;
    let pipeline = Pipeline::new(Arc::new(samples), engine, ImageBatch::n_planned)?;
    Ok(Box::new(move || {
        for batch in pipeline.epoch(0)? {
            black_box(batch?);
        }
        Ok(())
    }))
}
