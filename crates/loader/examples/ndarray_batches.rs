//! Computes the mean of every gene over a shuffled epoch, with dense batches as ndarray matrices.
//!
//! `cargo run --release -p somafeed-loader --example ndarray_batches -- <experiment>`

use std::error::Error;

use loader::{Dataset, DatasetSpec, Loader, LoaderSpec, PipelineSpec};
use ndarray::{Array1, Axis};
use soma_io::{Experiment, OpenOptions};

#[expect(clippy::print_stdout, reason = "an example prints its result")]
fn main() -> Result<(), Box<dyn Error>> {
    let uri = std::env::args().nth(1).ok_or("usage: ndarray_batches <experiment>")?;
    let experiment = Experiment::open(&uri, &OpenOptions::default())?;
    let dataset = Dataset::from_experiment(&experiment, &DatasetSpec::default())?;
    let mut sums = Array1::<f64>::zeros(dataset.n_columns());
    let n_cells = dataset.n_rows() as f64;

    let loader = Loader::new(
        dataset,
        LoaderSpec {
            pipeline: PipelineSpec { batch_rows: 256, ..PipelineSpec::default() },
            ..LoaderSpec::default()
        },
    )?;
    for batch in loader.epoch(0)? {
        let batch = batch?;
        let x = batch.x.as_ndarray().ok_or("the batches are dense")?;
        sums += &x.sum_axis(Axis(0)).mapv(f64::from);
    }
    let means = sums / n_cells;
    let highest = means.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1));
    if let Some((gene, mean)) = highest {
        println!("{} genes; gene {gene} has the highest mean: {mean:.3}", means.len());
    }
    Ok(())
}
