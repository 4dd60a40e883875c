//! The images: some subjects for training, the others to test on.

use std::sync::Arc;

use images::augment::Augmentation;
use images::{BatchMemory, DataSet, ImageSamples, ImageSpec, SeededAugmentation, n_slots};
use pipeline::PipelineSpec;
use shuffle::Order;
use storage::{Config, OpenOptions};
use torch_feed::tch::Device;
use torch_feed::{ArrayTensorLoader, PinnedSlots};

use crate::Failure;
use crate::arguments::Arguments;

/// Batches whose copies to a GPU may be under way while the next one is awaited.
const COPIES_AHEAD: usize = 2;

/// Loaders of the two parts.
#[derive(Debug)]
pub(crate) struct Data {
    set: DataSet,
    place: String,
    pub(crate) training: ArrayTensorLoader<ImageSamples>,
    pub(crate) held_out: ArrayTensorLoader<ImageSamples>,
}

impl Data {
    /// Opens the data set and splits its images by subject.
    pub(crate) fn open(arguments: &Arguments, device: Device) -> Result<Self, Failure> {
        let Arguments { data: place, batch, seed, .. } = arguments;
        let storage = storage::open(place, &OpenOptions::new(&Config::new()))?.storage;
        let set = DataSet::open(storage).map_err(|error| {
            format!("{error}; `cargo xtask cubes generate {place}` makes one to try this on")
        })?;
        let n_training = split(&set, arguments.held_out)?;
        let spec = PipelineSpec {
            chunk_rows: 1,
            chunks_per_block: *batch,
            batch_rows: *batch,
            seed: *seed,
            ..PipelineSpec::default()
        };
        // The batch being trained on, besides those that are copied.
        let n_slots = n_slots(&spec, 1 + COPIES_AHEAD);
        let augmentation = (!arguments.no_augmentation).then(|| SeededAugmentation {
            augmentation: Augmentation::default(),
            seed: *seed,
            valid_pixels: Some("valid_pixels".to_owned()),
        });
        let load = |images: Vec<usize>, order, augmentation| -> Result<_, Failure> {
            let memory = BatchMemory::Ring {
                n_slots,
                n_samples: *batch as usize,
                allocate: Arc::new(PinnedSlots::new(device)?),
            };
            let image_spec = ImageSpec { memory, augmentation, ..ImageSpec::new(arguments.form) };
            let samples = ImageSamples::open(&set.select(&images)?, &image_spec)?;
            let spec = PipelineSpec { order, ..spec.clone() };
            let loader = ArrayTensorLoader::new(samples, spec)?.to_device(device)?;
            Ok(loader.copies_ahead(COPIES_AHEAD))
        };
        let training = load((0..n_training).collect(), Order::Shuffled, augmentation)?;
        let held_out = load((n_training..set.n_images()).collect(), Order::InOrder, None)?;
        Ok(Self { set, place: place.clone(), training, held_out })
    }

    /// Number of classes.
    pub(crate) fn n_classes(&self) -> usize {
        self.set.n_classes()
    }

    /// A summary for the user.
    pub(crate) fn describe(&self) -> String {
        let n = |loader: &ArrayTensorLoader<ImageSamples>| loader.pipeline().source().n_samples();
        let [height, width, channels] = self.set.shape();
        format!(
            "{}: {} images of {height} x {width} x {channels} for training, the last {} to test \
             on; {} classes",
            self.place,
            n(&self.training),
            n(&self.held_out),
            self.n_classes()
        )
    }
}

/// The number of images for training: the first ones, up to the end of a subject.
fn split(set: &DataSet, held_out: f64) -> Result<usize, Failure> {
    let (images, n) = (set.images(), set.n_images());
    let wanted = n.saturating_sub((n as f64 * held_out).ceil() as usize);
    let is_border = |at: &usize| images[*at].subject != images[*at - 1].subject;
    let borders = (1..n).filter(is_border);
    let n_training = borders.min_by_key(|at| at.abs_diff(wanted));
    if set.n_classes() < 2 {
        return Err("the data set has fewer than two classes".into());
    }
    Ok(n_training.ok_or("all images are of one subject: none could be held out")?)
}
