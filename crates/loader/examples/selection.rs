//! Cells and genes by filter, values scaled by what obs says, and several experiments with their genes aligned.
//!
//! `cargo run --release -p loader --example selection -- "nnz > 100" <experiment> [experiment]...`

use std::error::Error;

use loader::{AxisQuery, Dataset, DatasetSpec, GeneJoin, Loader, LoaderSpec, Totals, Transform};
use soma_io::{Experiment, OpenOptions};

#[expect(clippy::print_stdout, reason = "an example says what it found")]
fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let usage = "usage: selection <filter on obs> <experiment> [experiment]...";
    let cells = AxisQuery::filter(&arguments.next().ok_or(usage)?)?;
    let experiments = arguments
        .map(|uri| Experiment::open(&uri, &OpenOptions::default()))
        .collect::<Result<Vec<_>, _>>()?;

    // Every gene that all have, called by feature_id; totals of all genes, as the Census's obs has them.
    let wanted = DatasetSpec {
        cells,
        var_columns: vec!["feature_id".into()],
        totals: Some("raw_sum".into()),
        ..DatasetSpec::default()
    };
    let parts: Vec<_> = experiments.iter().map(|one| (one, wanted.clone())).collect();
    let dataset = Dataset::from_experiments(&parts, "feature_id", GeneJoin::Intersection)?;
    println!("{} cells x {} genes", dataset.n_rows(), dataset.n_columns());

    let spec = LoaderSpec {
        batch_rows: 256,
        transform: Transform { target_sum: Some(1e4), log1p: true, clip: None },
        totals: Totals::Obs,
        ..LoaderSpec::default()
    };
    let mut n_cells = vec![0; dataset.n_experiments()];
    for batch in Loader::new(dataset, spec)?.epoch(0)? {
        for experiment in batch?.experiments {
            n_cells[experiment as usize] += 1;
        }
    }
    println!("cells of each experiment: {n_cells:?}");
    Ok(())
}
