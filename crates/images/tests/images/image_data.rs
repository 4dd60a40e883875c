//! A small data set whose values are known.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use arrays::ElementType;
use half::f16;
use images::files::{StoredArray, blosc, tivita};
use images::{BatchMemory, DataSet, Form, Image, ImageList, LIST_FILE, n_slots};
use pipeline::PipelineSpec;
use shuffle::Order;
use slots::Mapped;
use storage::LocalStorage;

pub(crate) const SHAPE: [usize; 3] = [6, 5, 3];
pub(crate) const N_VALUES: usize = 6 * 5 * 3;

pub(crate) fn cube(image: usize) -> Vec<f32> {
    (0..N_VALUES).map(|at| ((image * 131 + at * 7) % 97) as f32 / 16.0 + 1.0).collect()
}

pub(crate) fn halves(image: usize) -> Vec<f16> {
    cube(image).into_iter().map(f16::from_f32).collect()
}

pub(crate) fn labels(image: usize) -> Vec<u8> {
    (0..30).map(|at| ((image + at) % 4) as u8).collect()
}

pub(crate) fn valid(image: usize) -> Vec<u8> {
    (0..30).map(|at| u8::from(!(image * 3 + at).is_multiple_of(5))).collect()
}

pub(crate) fn name(image: usize) -> String {
    format!("image_{image:03}")
}

/// Writes a data set of `n` images in the forms dat, raw32 and raw16.
pub(crate) fn write(folder: &Path, n: usize) {
    write_images(folder, 0..n);
}

/// Writes a data set of these images in the forms dat, raw32 and raw16.
pub(crate) fn write_images(folder: &Path, images: Range<usize>) {
    let listed = images
        .clone()
        .map(|image| Image {
            name: name(image),
            domain: format!("camera_{}", image % 2),
            subject: format!("subject_{}", image / 2),
        })
        .collect();
    let list = ImageList {
        version: 1,
        shape: SHAPE,
        n_classes: 4,
        classes: Vec::new(),
        images: listed,
        generator: None,
    };
    std::fs::write(folder.join(LIST_FILE), serde_json::to_vec(&list).unwrap()).unwrap();
    for part in ["dat", "raw32", "raw16", "segmentations"] {
        std::fs::create_dir(folder.join(part)).unwrap();
    }
    for image in images {
        write_image(folder, image);
    }
}

pub(crate) fn write_image(folder: &Path, image: usize) {
    let path = |form: Form| folder.join(form.folder()).join(form.file_name(&name(image)).unwrap());
    std::fs::write(path(Form::Dat), tivita::write(&cube(image), SHAPE).unwrap()).unwrap();
    let stored =
        |name: &str, shape: &[usize], element| StoredArray::new(name, shape, element).unwrap();
    let (wide, half) = (cube(image), halves(image));
    let wide = (stored("", &SHAPE, ElementType::F32), bytemuck::cast_slice(&wide));
    let half = (stored("", &SHAPE, ElementType::F16), bytemuck::cast_slice(&half));
    for (form, (array, bytes)) in [(Form::Raw32, wide), (Form::Raw16, half)] {
        std::fs::write(path(form), blosc::write_array(&array, bytes, 5).unwrap()).unwrap();
    }
    let masks = [
        (stored("labels", &SHAPE[..2], ElementType::U8), labels(image)),
        (stored("valid_pixels", &SHAPE[..2], ElementType::Bool), valid(image)),
    ];
    let masks: Vec<(&StoredArray, &[u8])> =
        masks.iter().map(|(array, bytes)| (array, &bytes[..])).collect();
    let masks = blosc::write_dictionary(&masks, 5).unwrap();
    std::fs::write(folder.join(format!("segmentations/{}.blosc", name(image))), masks).unwrap();
}

pub(crate) fn open(folder: &Path) -> DataSet {
    DataSet::open(Arc::new(LocalStorage::new(folder))).unwrap()
}

/// The settings of the engine for batches of `batch` images that are blocks.
pub(crate) fn engine(batch: u64, workers: usize, order: Order) -> PipelineSpec {
    PipelineSpec {
        chunk_rows: 1,
        chunks_per_block: batch,
        batch_rows: batch,
        order,
        read_threads: workers,
        prefetch_blocks: workers,
        prefetch_batches: 1,
        ..PipelineSpec::default()
    }
}

/// Each kind of memory of batches.
pub(crate) fn memories(spec: &PipelineSpec) -> [BatchMemory; 3] {
    [BatchMemory::Collated, BatchMemory::Pooled, ring(spec, 1)]
}

pub(crate) fn ring(spec: &PipelineSpec, n_kept: usize) -> BatchMemory {
    BatchMemory::Ring {
        n_slots: n_slots(spec, n_kept),
        n_samples: spec.batch_rows as usize,
        allocate: Arc::new(Mapped),
    }
}
