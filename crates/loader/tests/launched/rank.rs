//! One rank: loads its batches and writes the contents of each to a file.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

use loader::sample::{Replacement, Sampling};
use loader::{
    BatchForm, Dataset, DatasetSpec, Loader, LoaderSpec, LoaderState, Matrix, PipelineSpec,
    Remainder, World,
};
use serde::{Deserialize, Serialize};
use soma_io::{Experiment, OpenOptions};

/// The argument that makes this process a rank.
pub(crate) const ARGUMENT: &str = "--as-a-rank";

/// The settings of a run, the same for all ranks.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Job {
    pub(crate) experiment: PathBuf,
    /// The folder in which each rank writes a file.
    pub(crate) folder: PathBuf,
    pub(crate) epoch: u64,
    pub(crate) global_rows: u64,
    pub(crate) lanes: Option<u64>,
    pub(crate) remainder: String,
    /// Number of cells to sample from every third cell.
    pub(crate) n_samples: Option<u64>,
    /// The state to resume, as JSON.
    pub(crate) state: Option<String>,
    /// Number of batches to take.
    pub(crate) n_batches: Option<usize>,
}

/// The contents of a batch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct RankBatch {
    pub(crate) joinids: Vec<i64>,
    pub(crate) columns: Vec<u32>,
    pub(crate) values: Vec<f32>,
    pub(crate) n_padding: usize,
    /// The rank's state after the batch, as JSON.
    pub(crate) state: String,
}

impl RankBatch {
    /// Appends the next rank's part.
    pub(crate) fn join(mut self, next: &Self) -> Self {
        self.joinids.extend(&next.joinids);
        self.columns.extend(&next.columns);
        self.values.extend(&next.values);
        self.n_padding += next.n_padding;
        // By default there are as many lanes as ranks, so states differ between runs.
        self.state.clear();
        self
    }
}

pub(crate) fn batches_file(folder: &Path, rank: u64, size: u64) -> PathBuf {
    folder.join(format!("rank {rank} of {size}"))
}

pub(crate) fn run(job: &Job) {
    let world = World::from_environment().unwrap();
    let uri = job.experiment.to_str().unwrap();
    let experiment = Experiment::open(uri, &OpenOptions::default()).unwrap();
    let dataset = Dataset::from_experiment(&experiment, &DatasetSpec::default()).unwrap();
    let sampling = job.n_samples.map(|n_samples| {
        let weights: Vec<f64> =
            (0..dataset.n_rows()).map(|row| if row % 3 == 0 { 1.0 } else { 0.0 }).collect();
        Sampling::weighted(&weights, n_samples, Replacement::With).unwrap()
    });
    let spec = LoaderSpec {
        pipeline: PipelineSpec {
            chunk_rows: 4,
            chunks_per_block: 6,
            seed: 11,
            batch_rows: job.global_rows / world.size,
            world,
            lanes: job.lanes,
            remainder: match job.remainder.as_str() {
                "drop" => Remainder::Drop,
                "pad" => Remainder::Pad,
                other => panic!("remainder {other:?}"),
            },
            sampling,
            ..PipelineSpec::default()
        },
        batch_form: BatchForm::Csr,
        ..LoaderSpec::default()
    };
    let loader = Loader::new(dataset, spec).unwrap();
    let mut epoch = match &job.state {
        Some(state) => loader.resume(&LoaderState::from_json(state).unwrap()).unwrap(),
        None => loader.epoch(job.epoch).unwrap(),
    };
    let file = File::create_new(batches_file(&job.folder, world.rank, world.size)).unwrap();
    let mut file = BufWriter::new(file);
    for _ in 0..job.n_batches.unwrap_or(usize::MAX) {
        let Some(batch) = epoch.next() else { break };
        let batch = batch.unwrap();
        let Matrix::Csr(x) = batch.x else { panic!("CSR was asked for") };
        let record = RankBatch {
            joinids: batch.joinids,
            columns: x.columns().unwrap().to_vec(),
            values: x.values().unwrap().to_vec(),
            n_padding: batch.n_padding,
            state: epoch.state().to_json().unwrap(),
        };
        serde_json::to_writer(&mut file, &record).unwrap();
        writeln!(file).unwrap();
    }
    file.flush().unwrap();
}
