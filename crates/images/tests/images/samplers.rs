//! Samplers over images: the same samples in both modes of sharing batches.

use std::sync::Arc;

use half::f16;
use images::{Form, Image, ImageBatch, ImageSamples, ImageSpec};
use pipeline::{Pipeline, PipelineSpec};
use shuffle::Order;
use shuffle::sample::{ClassSets, Hierarchical, Replacement, Sampling};

use crate::image_data::{engine, halves, open, ring, write};

/// The samples of each batch, in order, with the bytes of their cubes.
fn in_order(samples: ImageSamples, spec: PipelineSpec) -> Vec<(u64, Vec<u8>)> {
    let pipeline = Pipeline::new(Arc::new(samples), spec, ImageBatch::n_planned).unwrap();
    let mut all = Vec::new();
    for batch in pipeline.epoch(1).unwrap() {
        let batch = batch.unwrap();
        let cubes = batch.key("features").unwrap().bytes();
        let n_bytes = cubes.len() / batch.n_samples();
        let samples = batch.samples().iter().zip(cubes.chunks(n_bytes));
        all.extend(samples.map(|(sample, bytes)| (*sample, bytes.to_vec())));
    }
    all
}

#[test]
fn samplers_deliver_the_same_whether_threads_share_batches_or_not() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), 11);
    let data = open(folder.path());
    let codes = |of: &dyn Fn(&Image) -> String| -> Vec<u32> {
        let mut names: Vec<String> = data.images().iter().map(of).collect();
        let all = names.clone();
        names.sort();
        names.dedup();
        let code = |name| names.binary_search(name).unwrap() as u32;
        all.iter().map(code).collect()
    };
    let (domains, subjects) =
        (codes(&|image| image.domain.clone()), codes(&|image| image.subject.clone()));
    let classes = ClassSets::new((0..11_u32).map(|image| [image % 3, 3])).unwrap();
    let with = Replacement::With;
    let hierarchical = Hierarchical {
        domains: &domains,
        subjects: &subjects,
        classes: None,
        batch_rows: 4,
        n_batches: 5,
    };
    let samplers = [
        (Order::InOrder, None),
        (Order::Shuffled, None),
        (Order::Shuffled, Some(Sampling::with_replacement(11, 20))),
        (Order::Shuffled, Some(Sampling::by_group(&domains, &[0.9, 0.1], 20, with))),
        (Order::Shuffled, Some(Sampling::class_sets_balanced(&classes, 20, with))),
        (Order::Listed, Some(Sampling::hierarchical(&hierarchical))),
    ];
    for (order, sampling) in samplers {
        let sampling = sampling.transpose().unwrap();
        let drawn = |workers: usize, threads: usize| {
            let engine = PipelineSpec { sampling: sampling.clone(), ..engine(4, workers, order) };
            let memory = ring(&engine, 1);
            let spec = ImageSpec { memory, threads, ..ImageSpec::new(Form::Raw16) };
            in_order(ImageSamples::open(&data, &spec).unwrap(), engine)
        };
        let alone = drawn(0, 1);
        assert_eq!(alone.len(), if sampling.is_some() { 20 } else { 11 }, "{order:?}");
        for (sample, bytes) in &alone {
            assert!(bytemuck::cast_slice::<f16, u8>(&halves(*sample as usize)) == &bytes[..]);
        }
        // A worker a batch, and all workers in one batch.
        assert!(drawn(3, 1) == alone && drawn(1, 3) == alone, "{order:?}");
    }
}
