//! Reads one shuffled epoch of an experiment as tensors, and prints counts and sums.
//!
//! ```text
//! cargo run --release -p somafeed-torch-feed --example sum_of_batches -- \
//!     <experiment> [measurement] [layer]
//! ```

use std::error::Error;

use loader::{Dataset, DatasetSpec, LoaderSpec, PipelineSpec};
use soma_io::{Experiment, OpenOptions};
use tch::Kind;
use torch_feed::TensorLoader;

#[expect(clippy::print_stdout, reason = "an example prints its results")]
fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let uri = arguments.next().ok_or("usage: sum_of_batches <experiment> [measurement] [layer]")?;
    let (measurement, layer) = (arguments.next(), arguments.next());

    let experiment = Experiment::open(&uri, &OpenOptions::default())?;
    let wanted = DatasetSpec { measurement, layer, ..DatasetSpec::default() };
    let dataset = Dataset::from_experiment(&experiment, &wanted)?;
    println!("{} cells x {} genes", dataset.n_rows(), dataset.n_columns());

    let spec = LoaderSpec {
        pipeline: PipelineSpec {
            chunk_rows: 64,
            chunks_per_block: 32,
            batch_rows: 128,
            ..PipelineSpec::default()
        },
        ..LoaderSpec::default()
    };
    let loader = TensorLoader::new(dataset, spec)?;
    let mut epoch = loader.epoch(0)?;
    let (mut sum, mut n_stored) = (0.0, 0);
    for batch in epoch.by_ref() {
        let batch = batch?;
        sum += batch.x().f_sum(Kind::Double)?.f_double_value(&[])?;
        n_stored += batch.x().f_count_nonzero(None)?.f_int64_value(&[])?;
    }
    let stats = epoch.stats();
    println!("{n_stored} values that are not zero, summing to {sum}");
    println!(
        "{} batches in {:.2} s: {:.0} cells/s, the first after {:.2} s",
        stats.engine.n_batches,
        stats.engine.elapsed_secs,
        stats.engine.n_rows as f64 / stats.engine.elapsed_secs,
        stats.engine.first_batch_secs.unwrap_or(0.0)
    );
    Ok(())
}
