//! Runs one of several ranks: takes its part of a few global batches and saves its place, or
//! resumes from a saved place, with any number of ranks. The launcher sets the rank in the
//! environment; without a launcher it is rank 0 of 1.
//!
//! ```text
//! cargo build --release -p somafeed-loader --example ranks_and_resume
//! mpirun -n 4 target/release/examples/ranks_and_resume <experiment> first.json
//! mpirun -n 6 target/release/examples/ranks_and_resume <experiment> second.json first.json
//! ```

use std::error::Error;
use std::fs;

use loader::{
    Dataset, DatasetSpec, Loader, LoaderSpec, LoaderState, PipelineSpec, Remainder, World,
};
use soma_io::{Experiment, OpenOptions};

/// Rows of a global batch. The number of ranks may change if this does not.
const GLOBAL_ROWS: u64 = 240;

/// Number of batches to take, as if the job's time then ended.
const N_BATCHES: usize = 5;

#[expect(clippy::print_stdout, reason = "an example prints its result")]
fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (uri, written, saved) = match &arguments[..] {
        [uri, written] => (uri, written, None),
        [uri, written, saved] if saved != written => (uri, written, Some(saved)),
        _ => {
            return Err(
                "usage: ranks_and_resume <experiment> <state to write> [state to resume]".into()
            );
        }
    };
    let world = World::from_environment()?;
    let experiment = Experiment::open(uri, &OpenOptions::default())?;
    let dataset = Dataset::from_experiment(&experiment, &DatasetSpec::default())?;
    let spec = LoaderSpec {
        pipeline: PipelineSpec {
            batch_rows: GLOBAL_ROWS / world.size,
            world, // For validation, take `Remainder::Pad` and leave out the last `Batch::n_padding` rows.
            remainder: Remainder::Drop,
            ..PipelineSpec::default()
        },
        ..LoaderSpec::default()
    };
    let loader = Loader::new(dataset, spec)?;

    let mut epoch = match saved {
        Some(saved) => loader.resume(&LoaderState::from_json(&fs::read_to_string(saved)?)?)?,
        None => loader.epoch(0)?,
    };
    let first = epoch.state();
    for batch in epoch.by_ref().take(N_BATCHES) {
        let batch = batch?;
        println!(
            "rank {} of {}, epoch {}, batch {}: {} cells, the first {:?}",
            world.rank,
            world.size,
            first.epoch(),
            batch.batch_idx,
            batch.n_rows(),
            batch.joinids.first()
        );
    }
    // All ranks have the same state. It counts delivered batches, not those made ahead.
    let state = epoch.state();
    // After the last batch, continue with `loader.epoch(state.epoch() + 1)` instead.
    if world.rank == 0 {
        fs::write(written, state.to_json()?)?;
    }
    Ok(())
}
