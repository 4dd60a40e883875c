//! Images as a source of the engine: values against a naive reader, damaged files, rings.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use arrays::ElementType;
use half::f16;
use images::augment::{Augmentation, warp_image, warp_mask};
use images::files::{StoredArray, blosc};
use images::{
    BatchMemory, DataSet, Error, Form, ImageBatch, ImageMemory, ImageSamples, ImageSpec, Key,
    LIST_FILE, Role, SeededAugmentation,
};
use pipeline::{Pipeline, PipelineSpec, WhenDamaged};
use proptest::prelude::*;
use shuffle::Order;
use storage::LocalStorage;

use crate::image_data::{
    N_VALUES, SHAPE, cube, engine, halves, labels, memories, open, ring, valid, write, write_images,
};

/// The bytes of each key of each sample.
type Delivered = BTreeMap<u64, Vec<Vec<u8>>>;

fn enter(batch: &ImageBatch, into: &mut Delivered) {
    let n_samples = batch.n_samples();
    for (at, sample) in batch.samples().iter().enumerate() {
        let of_sample = batch.keys().map(|key| {
            let n_bytes = key.bytes().len() / n_samples;
            key.bytes()[at * n_bytes..][..n_bytes].to_vec()
        });
        assert!(into.insert(*sample, of_sample.collect()).is_none(), "sample {sample} came twice");
    }
}

fn read(samples: ImageSamples, spec: PipelineSpec, epoch: u64) -> Result<Delivered, Error> {
    let pipeline = Pipeline::new(Arc::new(samples), spec, ImageBatch::n_planned)?;
    let mut delivered = Delivered::new();
    for batch in pipeline.epoch(epoch)? {
        enter(&batch?, &mut delivered);
    }
    Ok(delivered)
}

/// What a plain loop over the images gives.
fn expected(n: usize, spec: &ImageSpec, epoch: u64) -> Delivered {
    let bytes = |image: usize| {
        let parameters = spec.augmentation.as_ref().map_or_else(Default::default, |of| {
            let drawn = of.augmentation.draw(of.seed, epoch, image as u64, [6, 5]);
            let valid = valid(image);
            let masks = of.valid_pixels.as_ref().map(|_| &valid[..]);
            drawn.keeping_valid_pixels([6, 5], masks, |pixel| pixel != 0).unwrap()
        });
        let is_half = matches!(spec.form, Form::Raw16);
        let stored: Vec<f32> = if is_half {
            halves(image).into_iter().map(f16::to_f32).collect()
        } else {
            cube(image)
        };
        let wide = match spec.element {
            Some(element) => element == ElementType::F32,
            None => !is_half,
        };
        let features = if wide {
            let mut warped = vec![0.0_f32; N_VALUES];
            warp_image(&parameters, SHAPE, &stored, 0..6, &mut warped).unwrap();
            bytemuck::cast_slice(&warped).to_vec()
        } else {
            let mut warped = vec![f16::ZERO; N_VALUES];
            warp_image(&parameters, SHAPE, &stored, 0..6, &mut warped).unwrap();
            bytemuck::cast_slice(&warped).to_vec()
        };
        let mut masks = [labels(image), valid(image)].map(|mask| {
            let mut warped = vec![0; 30];
            warp_mask(&parameters, [6, 5], &mask, 0..6, &mut warped).unwrap();
            warped
        });
        vec![features, std::mem::take(&mut masks[0]), std::mem::take(&mut masks[1])]
    };
    (0..n).map(|image| (image as u64, bytes(image))).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// Every form, element, memory, mode and map gives what a plain loop gives.
    #[test]
    fn batches_are_the_images(
        n in 1_usize..14,
        batch in 1_u64..5,
        workers in 0_usize..4,
        threads in 1_usize..4,
        form in prop::sample::select(vec![Form::Dat, Form::Raw32, Form::Raw16]),
        element in prop::sample::select(vec![None, Some(ElementType::F16), Some(ElementType::F32)]),
        memory in 0_usize..3,
        block in 1_usize..8,
        augmented in any::<bool>(),
        keeps_valid in any::<bool>(),
        shuffled in any::<bool>(),
        epoch in 0_u64..3,
    ) {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), n);
        let order = if shuffled { Order::Shuffled } else { Order::InOrder };
        let mut engine = engine(batch, workers, order);
        let memory = memories(&engine)[memory].clone();
        if !matches!(memory, BatchMemory::Ring { .. }) {
            engine.chunks_per_block = block as u64;
        }
        let augmentation = augmented.then(|| SeededAugmentation {
            augmentation: Augmentation::default(),
            seed: 3,
            valid_pixels: keeps_valid.then(|| "valid_pixels".to_owned()),
        });
        let spec = ImageSpec { element, threads, augmentation, memory, ..ImageSpec::new(form) };
        let samples = ImageSamples::open(&open(folder.path()), &spec).unwrap();
        let delivered = read(samples, engine, epoch).unwrap();
        prop_assert_eq!(delivered, expected(n, &spec, epoch));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// Joined data sets are the images of all, one after another, and so are selected ones.
    #[test]
    fn joined_data_sets_are_one(
        parts in prop::collection::vec((0_usize..4, 1_usize..6), 1..4),
        batch in 1_u64..5,
        workers in 0_usize..3,
        form in prop::sample::select(vec![Form::Dat, Form::Raw32, Form::Raw16]),
        memory in 0_usize..3,
        shuffled in any::<bool>(),
        chosen in prop::collection::vec(any::<prop::sample::Index>(), 1..8),
        selects in any::<bool>(),
    ) {
        let mut data_sets = Vec::new();
        let mut images = Vec::new();
        let mut folders = Vec::new();
        for (number, (first, n)) in parts.iter().enumerate() {
            let folder = tempfile::tempdir().unwrap();
            write_images(folder.path(), *first..first + n);
            data_sets.push(open(folder.path()));
            images.extend((*first..first + n).map(|image| (number, image)));
            folders.push(folder);
        }
        let mut data = DataSet::joined(&data_sets).unwrap();
        if selects {
            let mut places: Vec<usize> = chosen.iter().map(|of| of.index(images.len())).collect();
            places.sort_unstable();
            places.dedup();
            places.reverse();
            data = data.select(&places).unwrap();
            images = places.iter().map(|place| images[*place]).collect();
        }
        let order = if shuffled { Order::Shuffled } else { Order::InOrder };
        let engine = engine(batch, workers, order);
        let memory = memories(&engine)[memory].clone();
        let spec = ImageSpec { memory, ..ImageSpec::new(form) };
        let delivered = read(ImageSamples::open(&data, &spec).unwrap(), engine, 0).unwrap();
        let of_image = expected(10, &spec, 0);
        let wanted: Delivered = (0_u64..)
            .zip(&images)
            .map(|(sample, (_, image))| (sample, of_image[&(*image as u64)].clone()))
            .collect();
        prop_assert_eq!(delivered, wanted);
        let sizes: Vec<usize> = (0..parts.len())
            .map(|number| images.iter().filter(|(of, _)| *of == number).count())
            .collect();
        prop_assert_eq!(data.sizes(), sizes);
        for (sample, (number, _)) in images.iter().enumerate() {
            prop_assert_eq!(data.storage_number(sample), Some(*number));
        }
    }
}

#[test]
fn data_sets_that_differ_are_not_joined() {
    let [first, second] = [0, 1].map(|_| tempfile::tempdir().unwrap());
    write(first.path(), 2);
    write(second.path(), 2);
    let place = |of: &tempfile::TempDir| of.path().display().to_string();
    let list = std::fs::read_to_string(second.path().join(LIST_FILE)).unwrap();
    let refused = |from: &str, to: &str| {
        assert!(list.contains(from), "{list}");
        std::fs::write(second.path().join(LIST_FILE), list.replace(from, to)).unwrap();
        let joined = DataSet::joined(&[open(first.path()), open(second.path())]);
        let error = joined.unwrap_err().to_string();
        assert!(error.contains(&place(&first)) && error.contains(&place(&second)), "{error}");
        error
    };
    let error = refused("[6,5,3]", "[6,5,4]");
    assert!(error.contains("[6, 5, 3]") && error.contains("[6, 5, 4]"), "{error}");
    let error = refused("\"n_classes\":4", "\"n_classes\":5");
    assert!(error.contains("4 classes") && error.contains("5 classes"), "{error}");
    // Masks of another type are seen when images are opened.
    std::fs::write(second.path().join(LIST_FILE), &list).unwrap();
    for image in 0..2 {
        let array = StoredArray::new("labels", &SHAPE[..2], ElementType::U16).unwrap();
        let zeros = [0_u8; 60];
        let mask = blosc::write_dictionary(&[(&array, &zeros[..])], 5).unwrap();
        let file = format!("segmentations/{}.blosc", crate::image_data::name(image));
        std::fs::write(second.path().join(file), mask).unwrap();
    }
    let data = DataSet::joined(&[open(first.path()), open(second.path())]).unwrap();
    let keys = vec![Key::cube("features"), Key::mask("labels")];
    let spec = ImageSpec { keys, ..ImageSpec::new(Form::Raw16) };
    let error = ImageSamples::open(&data, &spec).unwrap_err().to_string();
    for word in ["labels", "uint8", "uint16", &place(&first), &place(&second)] {
        assert!(error.contains(word), "{word}: {error}");
    }
    let error = DataSet::joined(&[]).unwrap_err().to_string();
    assert!(error.contains("no data set"), "{error}");
}

#[test]
fn a_batch_that_is_kept_is_not_overwritten_and_too_many_are_an_error() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), 24);
    let engine = engine(2, 2, Order::InOrder);
    let n_kept = 2;
    let spec = ImageSpec { memory: ring(&engine, n_kept), ..ImageSpec::new(Form::Raw16) };
    let samples = ImageSamples::open(&open(folder.path()), &spec).unwrap();
    let ring = Arc::clone(samples.ring().unwrap());
    let pipeline = Pipeline::new(Arc::new(samples), engine, ImageBatch::n_planned).unwrap();
    let mut batches = pipeline.epoch(0).unwrap();
    let all = expected(24, &spec, 0);
    let mut kept = Vec::new();
    let error = loop {
        match batches.next() {
            Some(Ok(batch)) => kept.push(batch),
            Some(Err(error)) => break Some(error),
            None => break None,
        }
    };
    let mut delivered = Delivered::new();
    for batch in &kept {
        enter(batch, &mut delivered);
    }
    assert!(n_kept <= kept.len() && kept.len() < 12, "{} batches", kept.len());
    let known: Delivered = all.into_iter().take(delivered.len()).collect();
    assert_eq!(delivered, known);
    let error = error.unwrap();
    assert!(matches!(error, Error::Slots(slots::Error::AllKept { .. })), "{error}");
    drop((batches, kept));
    assert_eq!(ring.usage().free, ring.n_slots());
}

#[test]
fn a_batch_is_the_memory_of_its_block_and_may_be_kept() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), 24);
    for block in [2, 3] {
        let engine = PipelineSpec { chunks_per_block: block, ..engine(2, 2, Order::InOrder) };
        let memory = BatchMemory::Pooled;
        let spec = ImageSpec { memory, ..ImageSpec::new(Form::Raw16) };
        let samples = ImageSamples::open(&open(folder.path()), &spec).unwrap();
        let pipeline = Pipeline::new(Arc::new(samples), engine, ImageBatch::n_planned).unwrap();
        let kept: Vec<ImageBatch> = pipeline.epoch(0).unwrap().map(Result::unwrap).collect();
        let mut delivered = Delivered::new();
        for batch in kept {
            enter(&batch, &mut delivered);
            let address = batch.key("features").unwrap().bytes().as_ptr();
            let ImageMemory::Owned(memory) = batch.into_memory().unwrap() else { unreachable!() };
            assert_eq!(memory[0].bytes().as_ptr(), address);
        }
        assert_eq!(delivered, expected(24, &spec, 0));
    }
}

#[test]
fn a_slot_is_free_when_its_copy_has_ended() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), 6);
    let engine = engine(2, 1, Order::InOrder);
    let spec = ImageSpec { memory: ring(&engine, 1), ..ImageSpec::new(Form::Raw16) };
    let samples = ImageSamples::open(&open(folder.path()), &spec).unwrap();
    let ring = Arc::clone(samples.ring().unwrap());
    let pipeline = Pipeline::new(Arc::new(samples), engine, ImageBatch::n_planned).unwrap();
    let mut n_batches = 0;
    for batch in pipeline.epoch(0).unwrap() {
        let copy = batch.unwrap().into_copy().unwrap();
        assert_eq!(ring.usage().copying, 1);
        drop(copy);
        n_batches += 1;
    }
    assert_eq!((n_batches, ring.usage().free), (3, ring.n_slots()));
}

/// Damages a file of one image among many: returns the words that its error must have.
fn damage(folder: &Path, how: &str) -> Vec<&'static str> {
    let cube = folder.join("raw16/image_003.blosc");
    let masks = folder.join("segmentations/image_003.blosc");
    let cut = |path: &Path| {
        let bytes = std::fs::read(path).unwrap();
        std::fs::write(path, &bytes[..bytes.len() / 2]).unwrap();
    };
    match how {
        "truncated cube" => cut(&cube),
        "truncated masks" => cut(&masks),
        "empty" => std::fs::write(&cube, []).unwrap(),
        "another type" => {
            let _n_bytes = std::fs::copy(folder.join("raw32/image_003.blosc"), &cube).unwrap();
        }
        "another shape" => {
            let array = StoredArray::new("", &[6, 5, 2], ElementType::F16).unwrap();
            std::fs::write(&cube, blosc::write_array(&array, &[0; 120], 1).unwrap()).unwrap();
        }
        "a mask of another shape" => {
            let labels = StoredArray::new("labels", &[5, 6], ElementType::U8).unwrap();
            let valid = StoredArray::new("valid_pixels", &[6, 5], ElementType::Bool).unwrap();
            let arrays = [(&labels, &[0; 30][..]), (&valid, &[1; 30][..])];
            std::fs::write(&masks, blosc::write_dictionary(&arrays, 1).unwrap()).unwrap();
        }
        _ => {
            let valid = StoredArray::new("valid_pixels", &[6, 5], ElementType::Bool).unwrap();
            let arrays = [(&valid, &[1; 30][..])];
            std::fs::write(&masks, blosc::write_dictionary(&arrays, 1).unwrap()).unwrap();
        }
    }
    match how {
        "truncated masks" | "a mask of another shape" | "a mask that is missing" => {
            vec!["segmentations/image_003.blosc", "image_003"]
        }
        _ => vec!["raw16/image_003.blosc", "image_003"],
    }
}

#[test]
fn a_damaged_file_ends_the_epoch_or_is_skipped_and_counted() {
    for how in [
        "truncated cube",
        "truncated masks",
        "empty",
        "another type",
        "another shape",
        "a mask of another shape",
        "a mask that is missing",
    ] {
        let engine = engine(3, 2, Order::InOrder);
        for memory in memories(&engine) {
            let engine = engine.clone();
            let folder = tempfile::tempdir().unwrap();
            write(folder.path(), 8);
            let words = damage(folder.path(), how);
            let spec = ImageSpec { memory, ..ImageSpec::new(Form::Raw16) };
            let samples = ImageSamples::open(&open(folder.path()), &spec).unwrap();
            let error = read(samples, engine.clone(), 0).unwrap_err();
            let text = error.to_string();
            assert!(words.iter().all(|word| text.contains(word)), "{how}: {text}");
            assert!(std::error::Error::source(&error).is_some(), "{how}");

            let engine = PipelineSpec { when_damaged: WhenDamaged::Skip, ..engine };
            let samples = ImageSamples::open(&open(folder.path()), &spec).unwrap();
            let pipeline = Pipeline::new(Arc::new(samples), engine, ImageBatch::n_planned).unwrap();
            let (mut delivered, mut skipped) = (Delivered::new(), Vec::new());
            for batch in pipeline.epoch(0).unwrap() {
                let batch = batch.unwrap();
                enter(&batch, &mut delivered);
                assert_eq!(batch.n_planned(), batch.n_samples() + batch.skipped().len());
                skipped.extend(batch.skipped().iter().map(|of| (of.row, of.name.clone())));
            }
            assert_eq!(skipped, [(3, "image_003".to_owned())], "{how}");
            let mut all = expected(8, &spec, 0);
            all.remove(&3);
            assert_eq!(delivered, all, "{how}");
        }
    }
}

#[test]
fn missing_files_are_found_before_the_first_read() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), 4);
    std::fs::remove_file(folder.path().join("raw16/image_002.blosc")).unwrap();
    let data = open(folder.path());
    let error = ImageSamples::open(&data, &ImageSpec::new(Form::Raw16)).unwrap_err();
    assert!(error.to_string().contains("raw16/image_002.blosc"), "{error}");
    assert!(matches!(error, Error::Missing { n_missing: 1, n_images: 4, .. }));
    for entry in std::fs::read_dir(folder.path().join("dat")).unwrap() {
        std::fs::remove_file(entry.unwrap().path()).unwrap();
    }
    let error = ImageSamples::open(&data, &ImageSpec::new(Form::Dat)).unwrap_err();
    assert!(matches!(error, Error::Missing { n_missing: 4, .. }), "{error}");
    // Skipped when they are read.
    let spec = ImageSpec { checks_files: false, ..ImageSpec::new(Form::Raw16) };
    let samples = ImageSamples::open(&data, &spec).unwrap();
    let skipping = PipelineSpec { when_damaged: WhenDamaged::Skip, ..engine(2, 1, Order::InOrder) };
    let delivered = read(samples, skipping, 0).unwrap();
    assert_eq!(delivered.keys().copied().collect::<Vec<u64>>(), [0, 1, 3]);
}

#[test]
fn the_form_of_earlier_versions_is_named_with_the_version_that_reads_it() {
    let error = "packed16".parse::<Form>().unwrap_err();
    assert!(error.contains("somafeed 0.1.0 up to commit 8a93f6aa"), "{error}");
    assert_eq!("raw".parse::<Form>().unwrap_err(), "expected one of dat, raw32, raw16, zarr");
}

#[test]
fn settings_that_do_not_fit_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), 4);
    let data = open(folder.path());
    let refused = |spec: ImageSpec, words: &str| {
        let error = ImageSamples::open(&data, &spec).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    };
    let spec = ImageSpec::new(Form::Raw16);
    let keys = vec![Key::cube("a"), Key::mask("labels")];
    refused(ImageSpec { keys: [keys.clone(), keys].concat(), ..spec.clone() }, "two keys");
    refused(ImageSpec { element: Some(ElementType::U8), ..spec.clone() }, "float16 or float32");
    let outside = Key::array("labels", "../segmentations", "labels", Role::Mask);
    refused(ImageSpec { keys: vec![outside], ..spec.clone() }, "not a folder");
    let unknown = Key::mask("unknown");
    refused(ImageSpec { keys: vec![unknown], ..spec.clone() }, "segmentations/image_000.blosc");

    // Batches that are not blocks.
    let engine = PipelineSpec { chunks_per_block: 4, ..engine(2, 1, Order::Shuffled) };
    let spec = ImageSpec { memory: ring(&engine, 1), ..spec };
    let samples = ImageSamples::open(&data, &spec).unwrap();
    let error = read(samples, engine, 0).unwrap_err();
    assert!(error.to_string().contains("blocks must be as large as batches"), "{error}");
}

#[test]
fn a_list_that_cannot_be_used_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |text: &str, words: &str| {
        std::fs::write(folder.path().join(LIST_FILE), text).unwrap();
        let error = DataSet::open(Arc::new(LocalStorage::new(folder.path()))).unwrap_err();
        let cause = std::error::Error::source(&error).unwrap().to_string();
        assert!(cause.contains(words), "{cause}");
    };
    refused("{", "EOF");
    refused(r#"{"version":2,"shape":[1,1,1],"images":[{"name":"a"}]}"#, "version");
    refused(r#"{"version":1,"shape":[1,0,1],"images":[{"name":"a"}]}"#, "length 0");
    refused(r#"{"version":1,"shape":[1,1,1],"images":[]}"#, "no images");
    refused(r#"{"version":1,"shape":[1,1,1],"images":[{"name":"../a"}]}"#, "name of a file");
    refused(r#"{"version":1,"shape":[1,1,1],"images":[{"name":"a"},{"name":"a"}]}"#, "twice");
}

#[test]
fn a_part_of_a_data_set_is_a_data_set() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), 5);
    let part = open(folder.path()).select(&[4, 1]).unwrap();
    let spec = ImageSpec::new(Form::Raw16);
    let samples = ImageSamples::open(&part, &spec).unwrap();
    let delivered = read(samples, engine(2, 1, Order::InOrder), 0).unwrap();
    let all = expected(5, &spec, 0);
    let values: Vec<_> = delivered.values().collect();
    assert_eq!(values, [&all[&4], &all[&1]]);
    assert!(part.select(&[2]).is_err() && part.select(&[0, 0]).is_err());
}
