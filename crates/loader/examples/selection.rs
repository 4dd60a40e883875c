//! Selects cells by a filter, aligns the genes of several experiments, and scales values by totals
//! in obs.
//!
//! `cargo run --release -p somafeed-loader --example selection -- "nnz > 100" <experiment>
//! [experiment]...`

use std::error::Error;

use loader::{
    AxisQuery, Dataset, DatasetSpec, GeneJoin, Loader, LoaderSpec, PipelineSpec, Totals, Transform,
};
use soma_io::{Experiment, OpenOptions};

#[expect(clippy::print_stdout, reason = "an example prints its result")]
fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let usage = "usage: selection <filter on obs> <experiment> [experiment]...";
    let cells = AxisQuery::filter(&arguments.next().ok_or(usage)?)?;
    let experiments = arguments
        .map(|uri| Experiment::open(&uri, &OpenOptions::default()))
        .collect::<Result<Vec<_>, _>>()?;

    // Genes that all experiments have, by feature_id; totals of all genes, as in the Census.
    let selection = DatasetSpec {
        cells,
        var_columns: vec!["feature_id".into()],
        totals: Some("raw_sum".into()),
        ..DatasetSpec::default()
    };
    let parts: Vec<_> = experiments.iter().map(|one| (one, selection.clone())).collect();
    let dataset = Dataset::from_experiments(&parts, "feature_id", GeneJoin::Intersection)?;
    println!("{} cells x {} genes", dataset.n_rows(), dataset.n_columns());

    let spec = LoaderSpec {
        pipeline: PipelineSpec { batch_rows: 256, ..PipelineSpec::default() },
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
