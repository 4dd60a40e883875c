//! Samples every class of an obs column equally often, in an epoch of as many cells as selected.
//!
//! `cargo run --release -p somafeed-loader --example class_balanced -- <experiment> <obs column>`

use std::collections::BTreeMap;
use std::error::Error;

use loader::sample::{Replacement, Sampling};
use loader::{BatchForm, Dataset, DatasetSpec, Loader, LoaderSpec, PipelineSpec};
use soma_io::{Experiment, OpenOptions};

#[expect(clippy::print_stdout, reason = "an example prints its result")]
fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let usage = "usage: class_balanced <experiment> <obs column>";
    let (uri, column) = (arguments.next().ok_or(usage)?, arguments.next().ok_or(usage)?);
    let experiment = Experiment::open(&uri, &OpenOptions::default())?;
    let selection = DatasetSpec { obs_columns: vec![column.clone()], ..DatasetSpec::default() };
    let dataset = Dataset::from_experiment(&experiment, &selection)?;
    let classes = dataset.groups(&[&column])?;
    let joinids = (0..dataset.n_rows()).map(|row| dataset.origin(row).1 as i64);
    let class_of: BTreeMap<i64, u32> = joinids.zip(classes.iter().copied()).collect();

    let sampling = Sampling::class_balanced(&classes, dataset.n_rows(), Replacement::With)?;
    let spec = LoaderSpec {
        pipeline: PipelineSpec { sampling: Some(sampling), ..PipelineSpec::default() },
        batch_form: BatchForm::Csr,
        ..LoaderSpec::default()
    };
    let mut n_cells = BTreeMap::<u32, u64>::new();
    for batch in Loader::new(dataset, spec)?.epoch(0)? {
        for joinid in batch?.joinids {
            *n_cells.entry(class_of[&joinid]).or_default() += 1;
        }
    }
    for (class, n_cells) in n_cells {
        println!("class {class} of {column}: {n_cells} cells");
    }
    Ok(())
}
