//! Trains a classifier of two kinds of cells, which differ in one gene, on tensors.

use std::sync::Arc;

use somafeed::arrow_array::{ArrayRef, RecordBatch, StringArray};
use somafeed::encode::{Encoders, LabelEncoder, Rules};
use somafeed::torch::{LinearClassifier, TensorLoader};
use somafeed::{CsrBuffers, Dataset, LoaderSpec, PipelineSpec};

const N_CELLS: usize = 64;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let x = CsrBuffers {
        row_offsets: (0..=N_CELLS).collect(),
        columns: (0..N_CELLS as u32).map(|cell| cell % 2).collect(),
        values: vec![1.0; N_CELLS],
        n_columns: 2,
    };
    let types: Vec<&str> = (0..N_CELLS).map(|cell| ["B cell", "T cell"][cell % 2]).collect();
    let types: ArrayRef = Arc::new(StringArray::from(types));
    let genes: ArrayRef = Arc::new(StringArray::from(vec!["CD19", "CD3E"]));
    let label = LabelEncoder::fit("cell_type", &types, Rules::default())?;
    let obs = RecordBatch::try_from_iter([("cell_type", types)])?;
    let var = RecordBatch::try_from_iter([("feature_name", genes)])?;
    let encoders = Encoders::new(vec![Arc::new(label)])?;
    let dataset = Dataset::in_memory(x, obs, var)?.with_encoders(&encoders)?;

    let loader = TensorLoader::new(
        dataset,
        LoaderSpec {
            pipeline: PipelineSpec { batch_rows: 8, ..PipelineSpec::default() },
            ..LoaderSpec::default()
        },
    )?;
    let mut classifier = LinearClassifier::for_loader(&loader, 2, 0.1);
    for epoch in loader.epochs(0..4) {
        for batch in epoch? {
            classifier.step_on(&batch?, "cell_type")?;
        }
    }
    let mut n_right = 0;
    for batch in loader.epoch(4)? {
        let batch = batch?;
        let classes = batch.codes("cell_type").ok_or("the batch has no codes")?;
        let predicted = classifier.predict(batch.x())?;
        let classes = Vec::<i64>::try_from(classes)?;
        n_right += predicted.iter().zip(&classes).filter(|(one, other)| one == other).count();
    }
    println!("{n_right} of {N_CELLS} cells right");
    Ok(())
}
