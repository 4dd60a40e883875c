//! What one rank does: takes its batches, and writes down what was in each.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

use loader::sample::{Replacement, Sampling};
use loader::{
    BatchForm, Dataset, DatasetSpec, Loader, LoaderSpec, LoaderState, Matrix, Remainder, World,
};
use serde::{Deserialize, Serialize};
use soma_io::{Experiment, OpenOptions};

/// Says that this process is a rank.
pub(crate) const ARGUMENT: &str = "--as-a-rank";

/// What all ranks of a run are told alike.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Job {
    pub(crate) experiment: PathBuf,
    /// Where each writes a file.
    pub(crate) told: PathBuf,
    pub(crate) epoch: u64,
    pub(crate) global_rows: u64,
    pub(crate) lanes: Option<u64>,
    pub(crate) remainder: String,
    /// Draw so many cells, every third one.
    pub(crate) n_samples: Option<u64>,
    /// Go on from here, as JSON.
    pub(crate) state: Option<String>,
    /// Stop after so many.
    pub(crate) n_batches: Option<usize>,
}

/// What was in a batch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct BatchTold {
    pub(crate) joinids: Vec<i64>,
    pub(crate) columns: Vec<u32>,
    pub(crate) values: Vec<f32>,
    pub(crate) n_padding: usize,
    /// Where the rank stood behind it, as JSON.
    pub(crate) state: String,
}

impl BatchTold {
    /// With the next rank's part behind it.
    pub(crate) fn join(mut self, next: &Self) -> Self {
        self.joinids.extend(&next.joinids);
        self.columns.extend(&next.columns);
        self.values.extend(&next.values);
        self.n_padding += next.n_padding;
        // Lanes are as many as ranks where nobody says, and stand in it.
        self.state.clear();
        self
    }
}

pub(crate) fn told_by(folder: &Path, rank: u64, size: u64) -> PathBuf {
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
        chunk_rows: 4,
        chunks_per_block: 6,
        seed: 11,
        batch_rows: job.global_rows / world.size,
        batch_form: BatchForm::Csr,
        world,
        lanes: job.lanes,
        remainder: match job.remainder.as_str() {
            "drop" => Remainder::Drop,
            "pad" => Remainder::Pad,
            other => panic!("remainder {other:?}"),
        },
        sampling,
        ..LoaderSpec::default()
    };
    let loader = Loader::new(dataset, spec).unwrap();
    let mut epoch = match &job.state {
        Some(state) => loader.resume(&LoaderState::from_json(state).unwrap()).unwrap(),
        None => loader.epoch(job.epoch).unwrap(),
    };
    let file = File::create_new(told_by(&job.told, world.rank, world.size)).unwrap();
    let mut file = BufWriter::new(file);
    for _ in 0..job.n_batches.unwrap_or(usize::MAX) {
        let Some(batch) = epoch.next() else { break };
        let batch = batch.unwrap();
        let Matrix::Csr(x) = batch.x else { panic!("CSR was asked for") };
        let told = BatchTold {
            joinids: batch.joinids,
            columns: x.columns().unwrap().to_vec(),
            values: x.values().unwrap().to_vec(),
            n_padding: batch.n_padding,
            state: epoch.state().to_json().unwrap(),
        };
        serde_json::to_writer(&mut file, &told).unwrap();
        writeln!(file).unwrap();
    }
    file.flush().unwrap();
}
