//! Counts the genes with values of each cell, with sparse batches as sprs matrices.
//!
//! `cargo run --release -p somafeed-loader --example sprs_batches -- <experiment>`

use std::error::Error;

use loader::{BatchForm, Dataset, DatasetSpec, Loader, LoaderSpec, PipelineSpec};
use soma_io::{Experiment, OpenOptions};

#[expect(clippy::print_stdout, reason = "an example prints its result")]
fn main() -> Result<(), Box<dyn Error>> {
    let uri = std::env::args().nth(1).ok_or("usage: sprs_batches <experiment>")?;
    let experiment = Experiment::open(&uri, &OpenOptions::default())?;
    let dataset = Dataset::from_experiment(&experiment, &DatasetSpec::default())?;
    let ones = ndarray::Array1::<f32>::ones(dataset.n_columns());

    let spec = LoaderSpec {
        pipeline: PipelineSpec { batch_rows: 256, ..PipelineSpec::default() },
        batch_form: BatchForm::Csr,
        ..LoaderSpec::default()
    };
    let (mut n_cells, mut n_values) = (0, 0.0);
    for batch in Loader::new(dataset, spec)?.epoch(0)? {
        let x = batch?.x.into_sprs_csr()?;
        n_cells += x.rows();
        let stored = x.map(|value| if *value == 0.0 { 0.0 } else { 1.0 });
        let of_cells = &stored * &ones;
        n_values += of_cells.iter().copied().map(f64::from).sum::<f64>();
    }
    println!("{n_cells} cells, with values of {:.1} genes each", n_values / n_cells as f64);
    Ok(())
}
