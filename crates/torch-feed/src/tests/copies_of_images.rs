//! Copies of image batches that go on while the host takes the next ones.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cubes::generate::{CubeSpec, GenerateSpec, generate};
use cubes::{Form, FormSpec};
use images::{BatchMemory, DataSet, ImageBatch, ImageSamples, ImageSpec, n_slots};
use pipeline::{Pipeline, PipelineSpec};
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

#[test]
fn a_slot_is_kept_until_its_copy_is_done() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let cubes = CubeSpec { n_images: 12, shape: [6, 8, 5], n_classes: 3, ..CubeSpec::default() };
    let forms = FormSpec { forms: vec![Form::Raw16], level: 1, ..FormSpec::default() };
    generate(&data, &GenerateSpec { cubes, forms, ..GenerateSpec::default() }, &mut |_| ())
        .unwrap();
    let sizes = PipelineSpec { chunk_rows: 1, chunks_per_block: 2, ..PipelineSpec::default() };
    let engine = PipelineSpec { batch_rows: 2, ..sizes };
    let most = 2;
    let memory = BatchMemory::Ring {
        n_slots: n_slots(&engine, most + 1),
        n_samples: 2,
        allocate: Arc::new(PinnedSlots::new(Device::Cpu).unwrap()),
    };
    let set = DataSet::open(Arc::new(LocalStorage::new(&data))).unwrap();
    let spec = ImageSpec { memory, ..ImageSpec::new(Form::Raw16) };
    let samples = ImageSamples::open(&set, &spec).unwrap();
    let ring = Arc::clone(samples.ring().unwrap());
    let pipeline = Pipeline::new(Arc::new(samples), engine, ImageBatch::n_planned).unwrap();
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
