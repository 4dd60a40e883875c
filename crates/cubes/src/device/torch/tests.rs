//! The device on the CPU, which runs the code of a GPU with another processor.

use std::path::Path;
use std::sync::Mutex;
use std::sync::mpsc::Sender;

use images::Form;
use pipeline::{Epoch, Pipeline};
use tempfile::TempDir;
use torch_feed::SegmentationBatch;
use torch_feed::tch::{Kind, Tensor};

use super::*;
use crate::FormSpec;
use crate::bench::{
    Augment, BatchElement, Consumer, CubeData, Memory, Point, Settings, Strategy, pipeline,
    plain_memory, point_for_tests,
};
use crate::device::SystemClock;
use crate::generate::{CubeSpec, GenerateSpec, generate};

const SPEC: TorchSpec = TorchSpec { processor: TorchProcessor::Cpu, width: 2 };
const N_CLASSES: usize = 4;
const MS: Duration = Duration::from_millis(1);

/// A folder with 6 small cubes.
fn data() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let cubes = CubeSpec { n_images: 6, shape: [12, 16, 5], n_classes: 4, ..CubeSpec::default() };
    let forms = FormSpec { forms: vec![Form::Raw16], level: 1, ..FormSpec::default() };
    let spec = GenerateSpec { cubes, forms, ..GenerateSpec::default() };
    generate(&folder.path().join("data"), &spec, &mut |_| {}).unwrap();
    folder
}

/// Batches of two cubes, loaded when they are asked for, into a ring.
fn point(augment: Augment, release: Release) -> Point {
    let settings = Strategy::RingBuffer.settings();
    let element = BatchElement::F32;
    let settings = Settings { augment, release, element, workers: 0, ..settings };
    let consumer = Consumer::Torch(SPEC);
    Point { settings, batch: 2, cold: None, consumer, ..point_for_tests(Strategy::RingBuffer) }
}

fn open(folder: &Path, point: &Point) -> Pipeline<images::ImageSamples> {
    let data = CubeData { folder: folder.join("data") };
    pipeline(&data, point, (None, plain_memory())).unwrap()
}

fn next(epoch: &mut Epoch<images::ImageSamples>) -> ImageBatch {
    epoch.next().unwrap().unwrap()
}

/// A clock that says when it is read, and then waits for the time.
#[derive(Debug)]
struct AskedClock {
    asking: Sender<()>,
    times: Mutex<Receiver<Duration>>,
}

impl Clock for AskedClock {
    fn now(&self) -> Duration {
        self.asking.send(()).unwrap();
        self.times.lock().unwrap().recv().unwrap()
    }

    fn sleep_until(&self, _at: Duration) {
        unreachable!("training does not sleep")
    }
}

/// The thread of a device stops when a step begins and when it ends.
struct Stopped {
    /// Dropped first, which ends a thread that waits for the time.
    times: Sender<Duration>,
    asked: Receiver<()>,
    device: TorchDevice,
}

impl Stopped {
    fn start(point: &Point) -> Self {
        let (asking, asked) = std::sync::mpsc::channel();
        let (times, received) = std::sync::mpsc::channel();
        let clock = Arc::new(AskedClock { asking, times: Mutex::new(received) });
        let device = TorchDevice::start(&SPEC, point.torch_work(N_CLASSES), clock).unwrap();
        Self { times, asked, device }
    }

    /// Waits until the thread asks for the time, which is then `millis`.
    fn go_on(&self, millis: u32) {
        self.times.send(millis * MS).unwrap();
        self.asked.recv().unwrap();
    }
}

#[test]
fn memory_is_free_after_the_copy_and_not_before() {
    let folder = data();
    let point = point(Augment::Device, Release::Event);
    let pipeline = open(folder.path(), &point);
    let ring = Arc::clone(pipeline.source().ring().unwrap());
    let n_kept = || ring.usage().kept;
    let mut epoch = pipeline.epoch(0).unwrap();
    let mut stopped = Stopped::start(&point);
    let before = stopped.device.mark();
    stopped.device.submit(next(&mut epoch)).unwrap();
    stopped.asked.recv().unwrap();
    assert_eq!(n_kept(), 0, "it is copied, and its step begins");
    let first = stopped.device.mark();
    let second = next(&mut epoch);
    assert_eq!(n_kept(), 1);
    stopped.device.submit(second).unwrap();
    assert_eq!(n_kept(), 1, "it waits for its copy");
    // The first step lasts from 10 to 20 ms.
    stopped.go_on(10);
    assert_eq!(n_kept(), 1);
    stopped.go_on(20);
    assert_eq!(n_kept(), 0, "the second step begins");
    stopped.go_on(30);
    stopped.times.send(45 * MS).unwrap();
    let Stopped { mut device, .. } = stopped;
    let second = device.mark();
    let reached = [before, first, second].map(|mark| device.reached(mark).unwrap());
    assert_eq!(reached, [Duration::ZERO, 20 * MS, 45 * MS]);
    assert_eq!(device.busy_secs(Duration::ZERO, 100 * MS).unwrap(), 0.025);
    let shares = device.busy_shares(Duration::ZERO, 60 * MS, 20 * MS).unwrap();
    assert_eq!(shares, [0.5, 0.5, 0.25]);
    assert!(device.reached(Mark(3)).is_err());
}

#[test]
fn memory_is_kept_until_a_wait_if_that_is_asked_for() {
    let folder = data();
    let point = point(Augment::None, Release::Sync);
    let pipeline = open(folder.path(), &point);
    let ring = Arc::clone(pipeline.source().ring().unwrap());
    let mut epoch = pipeline.epoch(0).unwrap();
    let clock = Arc::new(SystemClock::default());
    let mut device = TorchDevice::start(&SPEC, point.torch_work(N_CLASSES), clock).unwrap();
    device.submit(next(&mut epoch)).unwrap();
    let mark = device.mark();
    let end = device.reached(mark).unwrap();
    assert_eq!(ring.usage().kept, 1);
    device.synchronize().unwrap();
    assert_eq!(ring.usage().kept, 0);
    device.submit(next(&mut epoch)).unwrap();
    let mark = device.mark();
    assert!(end < device.reached(mark).unwrap());
    device.synchronize().unwrap();
}

#[test]
fn an_error_of_the_model_comes_out() {
    let folder = data();
    let point = Point { batch: 6, ..point(Augment::None, Release::Event) };
    let pipeline = open(folder.path(), &point);
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
    let start =
        |n_classes| TorchDevice::start(&SPEC, point.torch_work(n_classes), Arc::clone(&clock));
    assert!(start(1).err().unwrap().to_string().contains("two classes or more"));
    let mut device = start(2).unwrap();
    device.submit(next(&mut pipeline.epoch(0).unwrap())).unwrap();
    let error = format!("{:#}", device.synchronize().unwrap_err());
    assert!(error.contains("cannot train on a batch") && error.contains("U-Net"), "{error}");
    // The thread has ended.
    let mut epochs = (1..9).map(|number| device.submit(next(&mut pipeline.epoch(number).unwrap())));
    assert!(epochs.any(|submitted| submitted.is_err()));
    assert!(device.synchronize().is_err());
}

/// A batch as the model gets it: by the CPU's augmentation, or by the device's.
fn augmented(folder: &Path, augment: Augment) -> SegmentationBatch {
    let point = point(augment, Release::Event);
    let point = Point { batch: 6, ..point };
    let training = Training::new(&SPEC, point.torch_work(N_CLASSES)).unwrap();
    let batch = next(&mut open(folder, &point).epoch(2).unwrap());
    let maps = training.maps(&batch).unwrap();
    let tensors = ArrayTensors::from_images(batch).unwrap();
    let maps = maps.map(|maps| training.image_maps(&tensors, &maps).unwrap());
    SegmentationBatch::new(&tensors, maps.as_ref()).unwrap()
}

#[test]
fn the_device_augments_as_the_cpu_does() {
    let folder = data();
    let [none, cpu, device] =
        [Augment::None, Augment::Cpu, Augment::Device].map(|at| augmented(folder.path(), at));
    assert!(cpu.labels.equal(&device.labels) && !cpu.labels.equal(&none.labels));
    let error: Tensor = (&cpu.cubes - &device.cubes).abs().max();
    let error = f64::try_from(error).unwrap();
    assert!(error < 1e-4, "{error}");
    assert_eq!(device.cubes.kind(), Kind::Float);
}

#[test]
fn steps_are_timed_on_a_batch_that_is_there() {
    let folder = data();
    let mut point = point(Augment::Device, Release::Event);
    point.settings.memory = Memory::Collated;
    let batch = next(&mut open(folder.path(), &point).epoch(0).unwrap());
    let clock = SystemClock::default();
    let within = (Duration::from_hours(1), 3);
    let times = time_steps(&SPEC, point.torch_work(N_CLASSES), batch, within, &clock).unwrap();
    assert_eq!(times.len(), 3);
    assert!(times.iter().all(|time| !time.is_zero()));
}

#[test]
fn a_gpu_that_is_not_there_is_refused() {
    check(&SPEC).unwrap();
    let error = check(&TorchSpec { processor: TorchProcessor::Cuda(99), ..SPEC }).unwrap_err();
    let error = format!("{error:#}");
    assert!(error.contains("cuda:99") && error.contains("LIBTORCH"), "{error}");
}
