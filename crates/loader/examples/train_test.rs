//! Splits an experiment into a train and a test part without common groups, with labels as codes.
//!
//! `cargo run --release -p somafeed-loader --example train_test -- <experiment> <groups> <labels>`,
//! where groups and labels are obs columns.

use std::error::Error;
use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::types::Int64Type;
use loader::encode::{Encoders, LabelEncoder, Rules};
use loader::{Dataset, DatasetSpec, Loader, LoaderSpec, PipelineSpec, split};
use soma_io::{Experiment, OpenOptions};

#[expect(clippy::print_stdout, reason = "an example prints its result")]
fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [uri, groups, labels] = &arguments[..] else {
        return Err("usage: train_test <experiment> <column of groups> <column of labels>".into());
    };
    let experiment = Experiment::open(uri, &OpenOptions::default())?;
    let obs_columns = vec![groups.clone(), labels.clone()];
    let selection = DatasetSpec { obs_columns, ..DatasetSpec::default() };
    let dataset = Dataset::from_experiment(&experiment, &selection)?;

    // Fitted on all cells, so that both parts have the same codes.
    let column = dataset.obs().column_by_name(labels).ok_or("the column was requested")?;
    let encoder = LabelEncoder::fit(labels, column, Rules::default())?;
    let dataset = dataset.with_encoders(&Encoders::new(vec![Arc::new(encoder)])?)?;

    let parts = split::by_group(&dataset.groups(&[groups])?, &[0.8, 0.2], 42)?;
    for (name, rows) in ["train", "test"].iter().zip(&parts) {
        let part = dataset.part(rows)?;
        let n_cells = part.n_rows();
        let (mut n_batches, mut highest) = (0, 0);
        for batch in Loader::new(
            part,
            LoaderSpec {
                pipeline: PipelineSpec { batch_rows: 256, ..PipelineSpec::default() },
                ..LoaderSpec::default()
            },
        )?
        .epoch(0)?
        {
            let codes = batch?.codes;
            let codes = codes.column(0).as_primitive::<Int64Type>().values();
            highest = codes.iter().copied().fold(highest, i64::max);
            n_batches += 1;
        }
        println!("{name}: {n_cells} cells in {n_batches} batches, codes up to {highest}");
    }
    Ok(())
}
