//! Generated data sets, loaded: all forms give the same batches.

use std::path::Path;
use std::sync::Arc;

use arrays::ElementType;
use cubes::Form;
use images::augment::Augmentation;
use images::{
    BatchMemory, DataSet, ImageBatch, ImageSamples, ImageSpec, SeededAugmentation, n_slots,
};
use pipeline::{Pipeline, PipelineSpec};
use slots::Mapped;
use storage::LocalStorage;

use crate::{SMALL, forms, write};

/// Samples and bytes of each batch of an epoch, key by key.
fn batches(data: &Path, form: Form, (in_ring, augmented): (bool, bool)) -> Vec<Vec<Vec<u8>>> {
    let sizes = PipelineSpec { chunk_rows: 1, chunks_per_block: 2, ..PipelineSpec::default() };
    let engine = PipelineSpec { batch_rows: 2, read_threads: 2, ..sizes };
    let ring = BatchMemory::Ring {
        n_slots: n_slots(&engine, 1),
        n_samples: 2,
        allocate: Arc::new(Mapped),
    };
    let augmentation = augmented.then(|| SeededAugmentation {
        augmentation: Augmentation::default(),
        seed: 5,
        valid_pixels: Some("valid_pixels".to_owned()),
    });
    let spec = ImageSpec {
        // The same elements from all forms.
        element: Some(ElementType::F16),
        memory: if in_ring { ring } else { BatchMemory::Collated },
        augmentation,
        threads: 2,
        ..ImageSpec::new(form)
    };
    let set = DataSet::open(Arc::new(LocalStorage::new(data))).unwrap();
    let samples = ImageSamples::open(&set, &spec).unwrap();
    let pipeline = Pipeline::new(Arc::new(samples), engine, ImageBatch::n_planned).unwrap();
    let batch = |batch: ImageBatch| {
        let samples = batch.samples().iter().flat_map(|sample| sample.to_le_bytes()).collect();
        std::iter::once(samples).chain(batch.keys().map(|key| key.bytes().to_vec())).collect()
    };
    pipeline.epoch(0).unwrap().map(|of| batch(of.unwrap())).collect()
}

#[test]
fn all_forms_load_the_same_values() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    write(&data, forms(&Form::ALL)).unwrap();
    let expected = batches(&data, Form::Raw16, (false, false));
    let n_samples: usize = expected.iter().map(|batch| batch[0].len() / 8).sum();
    assert_eq!(n_samples as u64, SMALL.n_images);
    for form in Form::ALL {
        for in_ring in [false, true] {
            assert!(batches(&data, form, (in_ring, false)) == expected, "{form}, {in_ring}");
        }
    }
    // f32 is interpolated before it is rounded, so only forms of 16 bits agree to the bit.
    let mapped = batches(&data, Form::Raw16, (true, true));
    assert!(mapped != expected);
    assert!(batches(&data, Form::Zarr, (true, true)) == mapped);
}
