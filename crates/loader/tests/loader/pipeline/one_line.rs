//! The debug form of each public type is one short line, without the contents of arrays.

use std::fmt::Debug;
use std::sync::Arc;

use loader::encode::{Encoders, LabelEncoder, Rules};
use loader::{
    BatchBuffer as _, BatchBuffers as _, BatchForm, Cells, ElementType, HeapBuffers, Loader,
    LoaderSpec,
};

use crate::pipeline::sample;

#[track_caller]
fn check(value: impl Debug, expected: &str) {
    assert_eq!(format!("{value:?}"), expected);
}

#[test]
fn loaders_and_epochs_print_their_sizes_and_place() {
    let loader = Loader::new(sample::whole(20, 3), sample::spec()).unwrap();
    check(
        &loader,
        "Loader(Dataset(20 cells x 3 genes, read by memory), \
         Pipeline(20 rows in 7 batches an epoch))",
    );
    check(loader.dataset(), "Dataset(20 cells x 3 genes, read by memory)");
    check(loader.epochs(0..3), "Epochs(0..3)");
    let mut epoch = loader.epoch(2).unwrap();
    drop(epoch.next().unwrap().unwrap());
    check(&epoch, "Epoch(2: 1 of 7 batches taken)");
    check(Cells::Range(0..20), "Cells(0..20)");
    check(Cells::List([1, 5].into()), "Cells(2 joinids)");
}

#[test]
fn batches_and_buffers_print_their_shapes() {
    for (batch_form, expected) in [
        (BatchForm::Dense, "Batch(0: Dense(3 x 3), 0 padding)"),
        (BatchForm::Csr, "Batch(0: CsrBatch(3 x 3, 3 values), 0 padding)"),
        (BatchForm::Coo, "Batch(0: CooBatch(3 x 3), 0 padding)"),
    ] {
        let spec = LoaderSpec { batch_form, ..sample::spec() };
        let loader = Loader::new(sample::whole(20, 3), spec).unwrap();
        check(loader.epoch(0).unwrap().next().unwrap().unwrap(), expected);
    }
    let pool = HeapBuffers::new(2);
    let mut buffer = pool.take(9, ElementType::F16).unwrap();
    check(&buffer, "HeapBuffer(9 x f16)");
    check(buffer.elements_mut(), "Elements(9 x f16)");
    drop(buffer);
    check(&pool, "HeapBuffers(1 free, at most 2 of a type)");
}

#[test]
fn encoders_print_the_number_of_their_classes() {
    let dataset = sample::whole(20, 3);
    let labels = dataset.obs().column_by_name("label").unwrap();
    let encoder = LabelEncoder::fit("label", labels, Rules::default()).unwrap();
    let n = encoder.classes().len();
    let line = format!("LabelEncoder {{ mapping: \"label\": {n} classes of label }}");
    check(&encoder, &line);
    let encoders = Encoders::new(vec![Arc::new(encoder)]).unwrap();
    check(encoders, &format!("Encoders {{ encoders: [{line}] }}"));
}
