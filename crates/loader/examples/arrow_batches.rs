//! Converts batches to Arrow record batches, with X and the obs columns of each cell.
//!
//! `cargo run --release -p somafeed-loader --example arrow_batches -- <experiment> [obs column]...`

use std::error::Error;

use arrow_array::Array as _;
use loader::{BatchForm, Dataset, DatasetSpec, Loader, LoaderSpec, PipelineSpec};
use soma_io::{Experiment, OpenOptions};

#[expect(clippy::print_stdout, reason = "an example prints its result")]
fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let uri = arguments.next().ok_or("usage: arrow_batches <experiment> [obs column]...")?;
    let experiment = Experiment::open(&uri, &OpenOptions::default())?;
    let selection = DatasetSpec { obs_columns: arguments.collect(), ..DatasetSpec::default() };
    let dataset = Dataset::from_experiment(&experiment, &selection)?;

    let spec = LoaderSpec {
        pipeline: PipelineSpec { batch_rows: 256, ..PipelineSpec::default() },
        batch_form: BatchForm::Csr,
        ..LoaderSpec::default()
    };
    for batch in Loader::new(dataset, spec)?.epoch(0)?.take(1) {
        let batch = batch?.to_arrow()?;
        println!("{} rows of", batch.num_rows());
        for field in batch.schema().fields() {
            let column = batch.column_by_name(field.name()).ok_or("a field has its column")?;
            println!("  {}: {}, {} nulls", field.name(), field.data_type(), column.null_count());
        }
    }
    Ok(())
}
