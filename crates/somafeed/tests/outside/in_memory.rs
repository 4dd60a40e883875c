//! Loads shuffled batches of cells that are in memory.

use std::sync::Arc;

use somafeed::arrow_array::{ArrayRef, RecordBatch, StringArray};
use somafeed::{CsrBuffers, Dataset, Loader, LoaderSpec, PipelineSpec};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Three cells by four genes in memory. `Dataset::from_experiment` opens an experiment
    // on disk or in an object store.
    let x = CsrBuffers {
        row_offsets: vec![0, 2, 2, 3],
        columns: vec![0, 3, 1],
        values: vec![1.0, 2.0, 5.0],
        n_columns: 4,
    };
    let texts = |texts: &[&str]| Arc::new(StringArray::from(texts.to_vec())) as ArrayRef;
    let types = texts(&["B cell", "T cell", "B cell"]);
    let genes = texts(&["CD19", "CD3E", "MS4A1", "NKG7"]);
    let obs = RecordBatch::try_from_iter([("cell_type", types)])?;
    let var = RecordBatch::try_from_iter([("feature_name", genes)])?;
    let dataset = Dataset::in_memory(x, obs, var)?;

    let pipeline = PipelineSpec {
        chunk_rows: 1,       // cells that are read together
        chunks_per_block: 3, // chunks that are shuffled together
        batch_rows: 2,
        seed: 42,
        ..PipelineSpec::default()
    };
    let spec = LoaderSpec { pipeline, ..LoaderSpec::default() };
    for epoch in Loader::new(dataset, spec)?.epochs(0..2) {
        for batch in epoch? {
            let batch = batch?;
            println!("cells {:?}: {:?}", batch.joinids, batch.x.dense());
        }
    }
    Ok(())
}
