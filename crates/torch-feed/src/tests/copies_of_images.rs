//! Copies of image batches that go on while the host takes the next ones.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrays::ElementType;
use images::files::{StoredArray, blosc};
use images::{BatchMemory, DataSet, Form, ImageBatch, ImageSamples, ImageSpec, LIST_FILE, n_slots};
use pipeline::{Pipeline, PipelineSpec};
use slots::Ring;
use storage::LocalStorage;
use tch::{Device, Tensor};

use crate::copies_ahead::CopiesAhead;
use crate::device::{CopyDevice, Ticket};
use crate::{ArrayTensors, Error, PinnedSlots};

/// A device that never looks at the host's memory, so that only the code under test keeps it.
#[derive(Debug, Default)]
struct Counter {
    begun: AtomicU64,
    done: AtomicU64,
    waits: AtomicU64,
}

impl CopyDevice for Counter {
    fn pinned_for(&self) -> Option<Device> {
        None
    }

    fn begin_copy(&self, host: &Tensor) -> Result<(Tensor, Ticket), Error> {
        let ticket = self.begun.fetch_add(1, Ordering::SeqCst) + 1;
        Ok((host.copy(), Ticket(ticket)))
    }

    fn done(&self) -> Ticket {
        Ticket(self.done.load(Ordering::SeqCst))
    }

    fn wait(&self, ticket: Ticket) -> Ticket {
        self.waits.fetch_add(1, Ordering::SeqCst);
        self.done.fetch_max(ticket.0, Ordering::SeqCst);
        self.done()
    }
}

/// Writes images of 6 x 8 pixels and 5 channels in f16, with masks.
pub(super) fn write(folder: &Path, n_images: usize) {
    let names: Vec<String> = (0..n_images).map(|image| format!("image_{image}")).collect();
    let listed = |name| format!(r#"{{"name":"{name}","domain":"d","subject":"s"}}"#);
    let images: Vec<String> = names.iter().map(listed).collect();
    let images = images.join(",");
    let list = format!(
        r#"{{"version":1,"shape":[6,8,5],"n_classes":3,"classes":[],"images":[{images}]}}"#
    );
    std::fs::write(folder.join(LIST_FILE), list).unwrap();
    for part in ["raw16", "segmentations"] {
        std::fs::create_dir(folder.join(part)).unwrap();
    }
    let stored =
        |name: &str, shape: &[usize], element| StoredArray::new(name, shape, element).unwrap();
    for (image, name) in names.iter().enumerate() {
        let values = (0..240).map(|at| half::f16::from_f32((image * 240 + at) as f32 / 8.0));
        let bytes: Vec<u8> = values.flat_map(|value| value.to_bits().to_ne_bytes()).collect();
        let cube = blosc::write_array(&stored("", &[6, 8, 5], ElementType::F16), &bytes, 1);
        let labels: Vec<u8> = (0..48).map(|at| ((image + at) % 3) as u8).collect();
        let masks = [
            (&stored("labels", &[6, 8], ElementType::U8), &labels[..]),
            (&stored("valid_pixels", &[6, 8], ElementType::Bool), &[1; 48]),
        ];
        let masks = blosc::write_dictionary(&masks, 1).unwrap();
        std::fs::write(folder.join(format!("raw16/{name}.blosc")), cube.unwrap()).unwrap();
        std::fs::write(folder.join(format!("segmentations/{name}.blosc")), masks).unwrap();
    }
}

/// 12 images in batches of 2, in a ring for a consumer that keeps `n_kept`.
pub(super) fn samples(
    folder: &Path,
    n_kept: usize,
    slots: PinnedSlots,
) -> (ImageSamples, PipelineSpec) {
    let sizes = PipelineSpec { chunk_rows: 1, chunks_per_block: 2, ..PipelineSpec::default() };
    let engine = PipelineSpec { batch_rows: 2, ..sizes };
    let n_slots = n_slots(&engine, n_kept);
    let memory = BatchMemory::Ring { n_slots, n_samples: 2, allocate: Arc::new(slots) };
    let set = DataSet::open(Arc::new(LocalStorage::new(folder))).unwrap();
    let spec = ImageSpec { memory, ..ImageSpec::new(Form::Raw16) };
    (ImageSamples::open(&set, &spec).unwrap(), engine)
}

/// The engine over these images.
fn open(folder: &Path, n_kept: usize) -> (Pipeline<ImageSamples>, Arc<Ring>) {
    write(folder, 12);
    let (samples, engine) = samples(folder, n_kept, PinnedSlots::new(Device::Cpu).unwrap());
    let ring = Arc::clone(samples.ring().unwrap());
    (Pipeline::new(Arc::new(samples), engine, ImageBatch::n_planned).unwrap(), ring)
}

#[test]
fn a_copy_has_the_values_and_not_the_slot() {
    let folder = tempfile::tempdir().unwrap();
    let (pipeline, ring) = open(folder.path(), 2);
    let mut batches = pipeline.epoch(0).unwrap();
    let host = ArrayTensors::from_images(batches.next().unwrap().unwrap()).unwrap();
    let copy = host.copy_to(Device::Cpu).unwrap();
    for (name, tensor) in host.tensors() {
        let copied = copy.tensor(name).unwrap();
        assert!(copied.equal(tensor) && copied.data_ptr() != tensor.data_ptr(), "{name}");
    }
    assert_eq!((copy.samples(), copy.place()), (host.samples(), host.place()));
    drop((host, batches));
    assert_eq!(ring.usage().free, ring.n_slots());
    let beyond = Device::Cuda(99);
    assert!(matches!(copy.copy_to(beyond), Err(Error::NoGpu { idx: 99, .. })));
}

#[test]
fn a_slot_is_kept_until_its_copy_is_done() {
    let folder = tempfile::tempdir().unwrap();
    let most = 2;
    let (pipeline, ring) = open(folder.path(), most + 1);
    let device = Arc::new(Counter::default());
    let mut copies = CopiesAhead::new(Arc::clone(&device) as _, most);
    let n_keys = 3;
    let mut n_batches = 0;
    let mut batches = pipeline.epoch(0).unwrap();
    loop {
        copies.settle();
        let n_under_way = (n_batches * n_keys - device.done().0).div_ceil(n_keys);
        assert!(n_under_way <= most as u64, "{n_under_way} after {n_batches}");
        assert!(n_under_way <= ring.usage().kept as u64, "a slot was freed under its copy");
        let Some(batch) = batches.next() else { break };
        let batch = ArrayTensors::from_images(batch.unwrap()).unwrap();
        assert_eq!(batch.tensor("features").unwrap().size(), [2, 6, 8, 5]);
        assert_eq!(batch.dimensions("labels").unwrap(), ["sample", "height", "width"]);
        let copied = copies.copy(batch).unwrap();
        assert_eq!(copied.tensor("valid_pixels").unwrap().kind(), tch::Kind::Bool);
        n_batches += 1;
    }
    // The first two need no wait, each later one waits for the oldest.
    assert_eq!((n_batches, device.waits.load(Ordering::SeqCst)), (6, 4));
    drop((copies, batches));
    assert_eq!(device.done().0, 6 * n_keys, "the last copies were waited for");
    assert_eq!(ring.usage().free, ring.n_slots());
}
