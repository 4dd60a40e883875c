//! A point of the grid: settings, the order of the cubes, the device, the limit.

use std::fmt;
use std::sync::Arc;

use arrays::ElementType;
use bench_report::{GridPoint, IO_LIMIT, IO_LIMIT_BY, OWN_LOADER, Versions};
use bench_run::{Cold, IoLimit, engine_point};
use images::augment::Augmentation;
use images::{BatchMemory, Form, ImageSpec, SeededAugmentation};
use pipeline::PipelineSpec;
use serde::{Deserialize, Serialize};
use shuffle::{Order, Remainder};
use slots::Allocate;

use super::label::CubeLabel;
use super::settings::{Augment, BatchElement, Memory, Settings, Strategy, value_name};
use crate::device::{DeviceSpec, STAND_IN, TorchProcessor, TorchSpec, TorchWork, torch};

/// Batches that the consumer keeps: the one that it works on, and one that is copied.
const KEPT: usize = 2;

/// What takes the batches.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) enum Consumer {
    /// Nothing: batches are dropped at once.
    None,
    /// A stand-in for a device.
    StandIn(DeviceSpec),
    /// Training with torch.
    Torch(TorchSpec),
}

impl Consumer {
    /// Seconds of compute for each cube, if they are given; those of a training are measured.
    pub(crate) fn secs_per_cube(&self) -> Option<f64> {
        match self {
            Self::None | Self::Torch(_) => None,
            Self::StandIn(device) => {
                Some(device.step_millis / 1e3 / device.full_batch.max(1) as f64)
            }
        }
    }

    /// The device's name in titles; `None` without a device.
    pub(crate) fn device_name(&self) -> Option<String> {
        match self {
            Self::None => None,
            Self::StandIn(_) => Some(format!("the {STAND_IN}")),
            Self::Torch(TorchSpec { processor: TorchProcessor::Cpu, .. }) => {
                Some("the processor in training".to_owned())
            }
            Self::Torch(torch) => Some(torch.processor.to_string()),
        }
    }

    /// Versions of what ran, for a record.
    pub(crate) fn versions(&self) -> Versions {
        let [libtorch, tch] = match self {
            Self::None | Self::StandIn(_) => [None, None],
            Self::Torch(_) => torch::versions().map(|version| version.map(str::to_owned)),
        };
        let somafeed = Some(env!("CARGO_PKG_VERSION").to_owned());
        Versions { somafeed, libtorch, tch, ..Versions::default() }
    }

    /// What took the batches, for a record; `None` without a device.
    pub(crate) fn recorded(&self) -> Option<String> {
        match self {
            Self::None => None,
            Self::StandIn(device) => Some(device.to_string()),
            Self::Torch(torch) => Some(torch.to_string()),
        }
    }
}

/// A point of the grid.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Point {
    pub(crate) strategy: Strategy,
    /// Name in tables and pictures: the strategy, and settings that differ among its points.
    pub(crate) label: String,
    pub(crate) settings: Settings,
    /// Cubes of a batch.
    pub(crate) batch: u64,
    /// Neighbouring cubes that are read together.
    pub(crate) chunk: u64,
    /// Chunks that are in memory, and shuffled, together; `None` if a block is a batch.
    pub(crate) chunks_per_block: Option<u64>,
    pub(crate) shuffled: bool,
    /// Seed of the order and of augmentation.
    pub(crate) seed: u64,
    pub(crate) epochs: u64,
    pub(crate) max_batches: Option<u64>,
    /// How the page cache is made cold before each epoch, if it is.
    pub(crate) cold: Option<Cold>,
    pub(crate) io_limit: Option<IoLimit>,
    pub(crate) consumer: Consumer,
    /// The label whose entropy in batches is measured.
    pub(crate) entropy_of: Option<CubeLabel>,
}

impl Point {
    /// An epoch of single cubes in order, from a cache that stays as it is, without a device.
    pub(crate) fn new(strategy: Strategy, label: String, settings: Settings) -> Self {
        Self {
            strategy,
            label,
            settings,
            batch: 1,
            chunk: 1,
            chunks_per_block: None,
            shuffled: false,
            seed: 0,
            epochs: 1,
            max_batches: None,
            cold: None,
            io_limit: None,
            consumer: Consumer::None,
            entropy_of: None,
        }
    }

    /// Whether files must leave the page cache as soon as they are read.
    pub(crate) fn evicts(&self) -> bool {
        self.cold.is_some() && self.settings.gapless
    }

    /// The engine's settings.
    pub(crate) fn pipeline_spec(&self) -> PipelineSpec {
        let settings = &self.settings;
        PipelineSpec {
            chunk_rows: self.chunk,
            chunks_per_block: self
                .chunks_per_block
                .unwrap_or_else(|| self.batch.div_ceil(self.chunk)),
            order: if self.shuffled { Order::Shuffled } else { Order::InOrder },
            seed: self.seed,
            batch_rows: self.batch,
            remainder: Remainder::Short,
            // A block is in use, or is free for the next batch, while the consumer works on a batch
            // that was made of it.
            prefetch_blocks: settings.batches_ahead().saturating_sub(1),
            read_threads: settings.batches_at_once(),
            // A slot is a batch already; copying cubes together takes a thread of its own.
            prefetch_batches: match settings.memory {
                Memory::Ring | Memory::Pooled => 0,
                Memory::Collated => 1,
            },
            ..PipelineSpec::default()
        }
    }

    /// Number of slots of the ring.
    pub(crate) fn n_slots(&self) -> usize {
        match self.settings.slots {
            0 => images::n_slots(&self.pipeline_spec(), KEPT),
            slots => slots,
        }
    }

    /// How cubes are read, into a ring of `memory` if there is one.
    pub(crate) fn image_spec(&self, memory: Arc<dyn Allocate>) -> ImageSpec {
        let settings = &self.settings;
        let augmentation = (settings.augment == Augment::Cpu).then(|| SeededAugmentation {
            augmentation: Augmentation::default(),
            seed: self.seed,
            valid_pixels: Some("valid_pixels".to_owned()),
        });
        ImageSpec {
            element: match settings.element {
                BatchElement::Stored => None,
                BatchElement::F16 => Some(ElementType::F16),
                BatchElement::F32 => Some(ElementType::F32),
            },
            augmentation,
            threads: settings.threads_of_batch(),
            memory: match settings.memory {
                Memory::Collated => BatchMemory::Collated,
                Memory::Pooled => BatchMemory::Pooled,
                Memory::Ring => BatchMemory::Ring {
                    n_slots: self.n_slots(),
                    n_samples: self.batch as usize,
                    allocate: memory,
                },
            },
            ..ImageSpec::new(settings.form)
        }
    }

    /// The settings for a record.
    pub(crate) fn recorded(&self, cache: &str) -> GridPoint {
        let settings = &self.settings;
        let limit = self.io_limit.as_ref();
        let row = of_form(engine_point(&self.pipeline_spec()), settings.form, cache);
        let of_row = row
            .settings
            .with("strategy", self.strategy.name())
            .with("augmentation", self.augmentation())
            .with("batch_memory", value_name(&settings.memory))
            .with("slot_release", value_name(&settings.release))
            .with_some("gapless", settings.gapless.then_some(true))
            .with("sharing", value_name(&settings.mode))
            .with_some("slots", (settings.memory == Memory::Ring).then(|| self.n_slots()))
            .with("n_threads", settings.threads_of_batch())
            .with_rate(IO_LIMIT, limit.map(|limit| limit.bytes_per_second.get()))
            .with_some(IO_LIMIT_BY, limit.map(|limit| limit.by.name()));
        GridPoint {
            chunk_method: self.strategy.name().to_owned(),
            form: form_of_batches(settings.form, settings.element).to_owned(),
            max_batches: self.max_batches,
            consumer: self.consumer.recorded(),
            settings: of_row,
            ..row
        }
    }

    /// What a training on these batches depends on.
    pub(crate) fn torch_work(&self, n_classes: usize) -> TorchWork {
        let Settings { augment, release, .. } = self.settings;
        TorchWork { n_classes, seed: self.seed, augments: augment == Augment::Device, release }
    }

    /// The place of augmentation. On a device that is not there, it is not executed.
    fn augmentation(&self) -> String {
        let place = value_name(&self.settings.augment);
        match (self.settings.augment, self.consumer) {
            (Augment::Device, Consumer::StandIn(_)) => {
                format!("{place}, in the stand-in's step time, not executed")
            }
            (Augment::Device, Consumer::None) => format!("{place}, not executed"),
            _ => place,
        }
    }
}

/// The form of the files.
pub(crate) const STORED_FORM: &str = "stored_form";

/// The form of cubes' elements in batches, as rows name it.
pub(crate) fn form_of_batches(form: Form, element: BatchElement) -> &'static str {
    let is_f16 = match element {
        BatchElement::Stored => match form {
            Form::Dat | Form::Raw32 => false,
            Form::Raw16 | Form::Zarr => true,
        },
        element => element == BatchElement::F16,
    };
    if is_f16 { "f16" } else { "dense" }
}

/// The settings of `row`, and those that all rows of cubes have.
pub(crate) fn of_form(row: GridPoint, form: Form, cache: &str) -> GridPoint {
    GridPoint {
        loader: Some(OWN_LOADER.to_owned()),
        workload: Some("cubes".to_owned()),
        reader: "images".to_owned(),
        cache: cache.to_owned(),
        settings: row.settings.with(STORED_FORM, form.name()),
        ..row
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.label)?;
        match &self.io_limit {
            Some(limit) => write!(f, ", {limit}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
pub(crate) fn point_for_tests(strategy: Strategy) -> Point {
    Point {
        batch: 6,
        seed: 1,
        epochs: 5,
        cold: Some(Cold::Advise),
        ..Point::new(strategy, strategy.label(), strategy.settings())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// htc's ring has (prefetch factor + 1) x workers = 6 slots. Ours has the 4 batches that its
    /// two workers load ahead, the one in use, the one that is copied, and one that is handed over.
    #[test]
    fn what_is_loaded_ahead_follows_from_the_strategy() {
        let ring = point_for_tests(Strategy::RingBuffer);
        assert_eq!(ring.pipeline_spec().prefetch_blocks, 3);
        assert_eq!(ring.n_slots(), 7);
        let original = point_for_tests(Strategy::Original).pipeline_spec();
        assert_eq!((original.prefetch_blocks, original.read_threads), (11, 6));
        assert_eq!((original.order, original.remainder), (Order::InOrder, Remainder::Short));
    }

    #[test]
    fn a_row_names_every_setting() {
        let mut ids: Vec<String> = Strategy::ALL
            .into_iter()
            .map(|strategy| point_for_tests(strategy).recorded("cold-advised").id())
            .collect();
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), Strategy::ALL.len());
        let device =
            DeviceSpec { step_millis: 183.0, full_batch: 6, copy_rate: 1, copies_beside: true };
        let point =
            Point { consumer: Consumer::StandIn(device), ..point_for_tests(Strategy::EventRing) };
        let row = point.recorded("cold-advised");
        let torch = TorchSpec { processor: TorchProcessor::Cuda(0), width: 16 };
        let trained = Point { consumer: Consumer::Torch(torch), ..point.clone() };
        let trained = trained.recorded("cold-advised");
        assert!(trained.consumer.as_ref().unwrap().contains("copies in order"), "{trained:?}");
        assert_eq!(trained.settings.get("augmentation"), Some("device"));
        assert_eq!(row.workload.as_deref(), Some("cubes"));
        assert!(row.consumer.as_ref().unwrap().starts_with("stand-in:183ms"), "{row:?}");
        assert!(row.settings.get("augmentation").unwrap().contains("not executed"), "{row:?}");
        let [gapless, slots] = ["gapless", "slots"].map(|name| row.settings.get(name));
        assert_eq!((gapless, slots), (Some("true"), Some("7")));
        assert!(point.evicts() && !point_for_tests(Strategy::RingBuffer).evicts());
    }
}
