//! Loads the genes of a model's own list, in its order. Genes that the experiment lacks are columns
//! of zeros.
//!
//! `cargo run --release -p somafeed-loader --example gene_list -- <experiment> <feature_id>
//! [feature_id]...`

use std::error::Error;

use loader::{BatchForm, Dataset, DatasetSpec, Genes, Loader, LoaderSpec, Matrix};
use soma_io::{Experiment, OpenOptions};

#[expect(clippy::print_stdout, reason = "an example prints its result")]
fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let uri = arguments.next().ok_or("usage: gene_list <experiment> <feature_id>...")?;
    let names: Vec<String> = arguments.collect();
    let experiment = Experiment::open(&uri, &OpenOptions::default())?;
    let genes = Genes::Named { column: "feature_id".into(), names: names.clone() };
    let dataset =
        Dataset::from_experiment(&experiment, &DatasetSpec { genes, ..DatasetSpec::default() })?;

    let mut n_cells = vec![0_u64; dataset.n_columns()];
    let spec = LoaderSpec { batch_form: BatchForm::Csr, ..LoaderSpec::default() };
    for batch in Loader::new(dataset, spec)?.epoch(0)? {
        if let Matrix::Csr(x) = batch?.x {
            x.columns()?.iter().for_each(|column| n_cells[*column as usize] += 1);
        }
    }
    for (name, n_cells) in names.iter().zip(n_cells) {
        println!("{name}: a value in {n_cells} cells");
    }
    Ok(())
}
