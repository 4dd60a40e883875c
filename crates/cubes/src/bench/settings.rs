//! The settings of a measurement, and the strategies, which are named sets of them.

use clap::ValueEnum;
use images::Form;
use serde::{Deserialize, Serialize};

/// A strategy of htc's benchmark, or one of ours behind them. Each takes over the settings of the
/// one before and changes one thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Strategy {
    /// Tivita files, augmentation on the CPU, batches copied together, a wait for the device before
    /// each batch
    Original,
    /// The same from compressed blosc files
    Blosc,
    /// The same with f16 in them
    Fp16,
    /// The same with augmentation on the device
    GpuAug,
    /// The same, decoded straight into slots that go round
    RingBuffer,
    /// The same, but a slot is free after its copy, copies run beside the compute, and the next
    /// epoch is read ahead
    EventRing,
}

impl Strategy {
    #[cfg(test)]
    pub(crate) const ALL: [Self; 6] =
        [Self::Original, Self::Blosc, Self::Fp16, Self::GpuAug, Self::RingBuffer, Self::EventRing];

    /// Name on the command line and in rows.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Original => "original",
            Self::Blosc => "blosc",
            Self::Fp16 => "fp16",
            Self::GpuAug => "gpu-aug",
            Self::RingBuffer => "ring-buffer",
            Self::EventRing => "event-ring",
        }
    }

    /// Name in tables and pictures: with a plus sign, since all but the first add to another.
    pub(crate) fn label(self) -> String {
        if self == Self::Original { self.name().to_owned() } else { format!("+{}", self.name()) }
    }

    /// The settings: those of the strategy before, with one change.
    pub(crate) fn settings(self) -> Settings {
        match self {
            Self::Original => Settings {
                form: Form::Dat,
                augment: Augment::Cpu,
                memory: Memory::Collated,
                release: Release::Sync,
                copies: Copies::InOrder,
                gapless: false,
                mode: Mode::Single,
                workers: 6,
                threads: 0,
                prefetch: 2,
                slots: 0,
                element: BatchElement::Stored,
            },
            Self::Blosc => Settings { form: Form::Raw32, ..Self::Original.settings() },
            Self::Fp16 => Settings { form: Form::Raw16, ..Self::Blosc.settings() },
            Self::GpuAug => Settings { augment: Augment::Device, ..Self::Fp16.settings() },
            Self::RingBuffer => {
                Settings { memory: Memory::Ring, workers: 2, ..Self::GpuAug.settings() }
            }
            Self::EventRing => Settings {
                release: Release::Event,
                copies: Copies::Beside,
                gapless: true,
                ..Self::RingBuffer.settings()
            },
        }
    }
}

/// How batches are loaded and handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Settings {
    pub(crate) form: Form,
    pub(crate) augment: Augment,
    pub(crate) memory: Memory,
    pub(crate) release: Release,
    pub(crate) copies: Copies,
    /// Whether the next epoch is read ahead over the end of this one.
    pub(crate) gapless: bool,
    pub(crate) mode: Mode,
    /// Threads that load, all together.
    pub(crate) workers: usize,
    /// Threads of one batch; 0 as the mode says.
    pub(crate) threads: usize,
    /// Batches that each worker may load ahead, the one that it loads included.
    pub(crate) prefetch: usize,
    /// Slots of the ring; 0 for as many as the settings need.
    pub(crate) slots: usize,
    pub(crate) element: BatchElement,
}

impl Settings {
    /// Batches that are loaded at the same time.
    pub(crate) fn batches_at_once(&self) -> usize {
        match self.mode {
            Mode::Single => self.workers,
            Mode::Collaborative => self.workers.min(1),
        }
    }

    /// Threads that share the cubes of one batch.
    pub(crate) fn threads_of_batch(&self) -> usize {
        match (self.threads, self.mode) {
            (0, Mode::Single) => 1,
            (0, Mode::Collaborative) => self.workers.max(1),
            (threads, _) => threads,
        }
    }

    /// Batches that are loaded ahead of the one that is in use, as `DataLoader` counts them.
    pub(crate) fn batches_ahead(&self) -> usize {
        self.prefetch * self.batches_at_once()
    }
}

/// The name of a value on the command line.
pub(crate) fn value_name(value: &impl ValueEnum) -> String {
    value.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}

/// The place of random augmentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Augment {
    /// Nowhere
    None,
    /// In the threads that load
    Cpu,
    /// On the device. The stand-in does not execute it: its published step time contains it
    Device,
}

/// The memory of batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Memory {
    /// Each cube has memory of its own, and is copied into a new batch
    Collated,
    /// Cubes are decoded into slots that go round
    Ring,
    /// The cubes of a block are decoded side by side; a batch that is a block takes that memory
    Pooled,
}

/// When the memory of a batch is free again, and when the next batch is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Release {
    /// After all work of the device; the next batch is asked for after that
    Sync,
    /// When the batch is copied; the next batch is asked for at once
    Event,
}

/// The order of copies and compute on the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Copies {
    /// As on one CUDA stream: a copy waits for the compute before it
    InOrder,
    /// As on a CUDA stream of their own: a copy runs beside the compute
    Beside,
}

/// How threads share the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Mode {
    /// Each thread loads a batch alone
    Single,
    /// All threads load parts of the same batch
    Collaborative,
}

/// The elements of cubes in a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum BatchElement {
    /// Those of the files
    Stored,
    F16,
    F32,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What each strategy changes, of the reference's section 1.2 and of ours.
    #[test]
    fn each_strategy_changes_one_thing() {
        let changes: Vec<Vec<&str>> = Strategy::ALL
            .windows(2)
            .map(|pair| differences(&pair[0].settings(), &pair[1].settings()))
            .collect();
        assert_eq!(
            changes,
            [
                &["form"][..],
                &["form"],
                &["augment"],
                &["memory", "workers"],
                &["copies", "gapless", "release"],
            ]
        );
        let last = Strategy::EventRing.settings();
        assert_eq!((last.form, last.augment), (Form::Raw16, Augment::Device));
        assert!(!Strategy::ALL[..5].iter().any(|strategy| strategy.settings().gapless));
    }

    fn differences(one: &Settings, other: &Settings) -> Vec<&'static str> {
        let differs = [
            ("augment", one.augment != other.augment),
            ("copies", one.copies != other.copies),
            ("element", one.element != other.element),
            ("form", one.form != other.form),
            ("gapless", one.gapless != other.gapless),
            ("memory", one.memory != other.memory),
            ("mode", one.mode != other.mode),
            ("prefetch", one.prefetch != other.prefetch),
            ("release", one.release != other.release),
            ("slots", one.slots != other.slots),
            ("threads", one.threads != other.threads),
            ("workers", one.workers != other.workers),
        ];
        differs.into_iter().filter_map(|(name, differs)| differs.then_some(name)).collect()
    }

    #[test]
    fn names_are_those_of_the_command_line() {
        for strategy in Strategy::ALL {
            assert_eq!(value_name(&strategy), strategy.name());
            assert_eq!(serde_json::to_value(strategy).unwrap(), strategy.name());
        }
        assert_eq!(Strategy::Original.label(), "original");
        assert_eq!(Strategy::GpuAug.label(), "+gpu-aug");
    }

    #[test]
    fn modes_share_the_workers() {
        let single = Strategy::RingBuffer.settings();
        let both = Settings { mode: Mode::Collaborative, ..single };
        let derived = |settings: &Settings| {
            (settings.batches_at_once(), settings.threads_of_batch(), settings.batches_ahead())
        };
        assert_eq!(derived(&single), (2, 1, 4));
        assert_eq!(derived(&both), (1, 2, 2));
        assert_eq!(derived(&Settings { threads: 3, ..single }), (2, 3, 4));
        // The consumer loads each batch itself.
        assert_eq!(derived(&Settings { workers: 0, ..both }), (0, 1, 0));
    }
}
