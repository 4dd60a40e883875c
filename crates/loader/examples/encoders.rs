//! Encodes labels and batch keys: fit, save, restore, encode another release of the data, decode.
//!
//! `cargo run -p somafeed-loader --example encoders`

use std::error::Error;
use std::sync::Arc;

use arrow_array::types::Int8Type;
use arrow_array::{ArrayRef, DictionaryArray, Int64Array, RecordBatch};
use loader::encode::{BatchKeyEncoder, Encoder as _, Encoders, LabelEncoder, Rules, Unseen};

/// obs like in a SOMA experiment: enumerated texts.
fn obs<const N: usize>(rows: [[&str; 3]; N]) -> Result<RecordBatch, arrow_schema::ArrowError> {
    let column = |idx: usize| -> ArrayRef {
        Arc::new(rows.iter().map(|row| row[idx]).collect::<DictionaryArray<Int8Type>>())
    };
    RecordBatch::try_from_iter([
        ("cell_type", column(0)),
        ("dataset_id", column(1)),
        ("donor_id", column(2)),
    ])
}

#[expect(clippy::print_stdout, reason = "an example prints its result")]
fn main() -> Result<(), Box<dyn Error>> {
    let training = obs([["T cell", "A", "d1"], ["B cell", "A", "d2"], ["T cell", "B", "d1"]])?;
    let label = LabelEncoder::fit("cell_type", training.column(0), Rules::default())?;
    let batch =
        BatchKeyEncoder::fit("batch", &["dataset_id", "donor_id"], &training, Rules::default())?;
    println!("{:?} classes, batches {:?}", label.n_classes(), batch.joined_keys());

    let folder = tempfile::tempdir()?;
    let (label_path, batch_path) =
        (folder.path().join("label.json"), folder.path().join("batch.json"));
    label.save(&label_path)?;
    batch.save(&batch_path)?;

    // Another release: its enumerations have another order, and it has a new cell type and donor.
    let release = obs([["NK cell", "B", "d1"], ["T cell", "C", "d9"], ["B cell", "A", "d2"]])?;
    let label = LabelEncoder::restore(&label_path)?.with_unseen(Unseen::Code);
    // A new donor gets a new code; the donors of training keep theirs.
    let batch = BatchKeyEncoder::restore(&batch_path)?.extend(&release)?;
    let encoders = Encoders::new(vec![Arc::new(label), Arc::new(batch)])?;
    let codes = encoders.encode(&release)?;
    println!("cell_type {:?}\nbatch {:?}", codes.column(0), codes.column(1));

    let predicted = Int64Array::from(vec![1, 0]);
    println!("predicted {:?}", encoders.inverse("cell_type", &predicted)?);
    Ok(())
}
