//! The settings of a point that not every kind of samples has, by name.
//!
//! A name is that of the setting itself, like `prefetch_blocks`; tables, pictures and the page show
//! its words. A value is text. Bytes have their unit, like `1048576 B` or `90000000 B/s`.

use std::{collections::BTreeMap, fmt::Display};

use arrow_array::RecordBatch;
use serde::{Deserialize, Serialize};

use crate::{
    column::{BadColumn, ColumnValue},
    record::GridPoint,
};

/// The rate at which reads are limited, in bytes per second.
pub const IO_LIMIT: &str = "io_limit";
/// How that limit was enforced: `bucket`, which counts requested bytes, or `kernel`, which counts
/// bytes read from the disk.
pub const IO_LIMIT_BY: &str = "io_limit_by";
/// The link that the data was read over, like `30ms,90MB/s,1GB/s`: the latency of a request, the
/// rate of a connection and the rate of all.
pub const LINK: &str = "link";
/// Faults of the link, like `cut=1/40,seed=7`.
pub const LINK_FAULTS: &str = "link_faults";
/// Cores of the machine that the link's server had for itself.
pub const LINK_CORES: &str = "link_cores";

/// Settings by name, as text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Settings(BTreeMap<String, String>);

impl Settings {
    /// Sets one more.
    pub fn set(&mut self, name: &str, value: impl Display) {
        self.0.insert(name.to_owned(), value.to_string());
    }

    /// Sets all of `other`, which go before.
    pub fn set_all(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// Leaves some of them out.
    pub fn remove(&mut self, names: &[&str]) {
        self.0.retain(|name, _| !names.contains(&name.as_str()));
    }

    /// These settings and one more.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Display) -> Self {
        self.set(name, value);
        self
    }

    /// These settings and one more, if it has a value.
    #[must_use]
    pub fn with_some(self, name: &str, value: Option<impl Display>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    /// These settings and a number of bytes, if there is one.
    #[must_use]
    pub fn with_bytes(self, name: &str, bytes: Option<u64>) -> Self {
        self.with_some(name, bytes.map(|bytes| format!("{bytes} B")))
    }

    /// These settings and a number of bytes per second, if there is one.
    #[must_use]
    pub fn with_rate(self, name: &str, rate: Option<u64>) -> Self {
        self.with_some(name, rate.map(|rate| format!("{rate} B/s")))
    }

    /// The value of a setting, if it has one.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// The value of a setting that is a whole number, without its unit.
    pub fn number(&self, name: &str) -> Option<u64> {
        self.get(name)?.split(' ').next()?.parse().ok()
    }

    /// All settings with their names, in the order of the names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    pub(crate) fn map(&self) -> &BTreeMap<String, String> {
        &self.0
    }
}

impl From<BTreeMap<String, String>> for Settings {
    fn from(map: BTreeMap<String, String>) -> Self {
        Self(map)
    }
}

/// How a column of before, when each setting had one, becomes a setting.
enum Kind {
    Text,
    Number,
    /// A number that is left out where it is this one, as old rows may lack it or have it where
    /// there is no such setting.
    NumberUnless(u64),
    Bytes,
    Rate,
    /// A setting only where it is true.
    Truth,
}

/// The columns that files of record version 2 and before have for settings. `stored_form` of cubes
/// may be `packed16` there, a form of version 0.1.0 up to commit 8a93f6aa.
const COLUMNS_OF_BEFORE: [(&str, Kind); 32] = [
    ("strategy", Kind::Text),
    ("part", Kind::Text),
    ("stored_form", Kind::Text),
    ("augmentation", Kind::Text),
    ("batch_memory", Kind::Text),
    ("slot_release", Kind::Text),
    ("gapless", Kind::Truth),
    ("sharing", Kind::Text),
    ("slots", Kind::Number),
    ("transform", Kind::Text),
    ("prefetch_blocks", Kind::NumberUnless(0)),
    ("ramp_blocks", Kind::Number),
    ("drop_last", Kind::Truth),
    ("soma_buffer_size", Kind::Bytes),
    ("n_threads", Kind::Number),
    ("read_threads", Kind::NumberUnless(1)),
    ("memory_limit", Kind::Bytes),
    ("keep_decoded", Kind::Bytes),
    ("prefetch_batches", Kind::NumberUnless(1)),
    ("point_memory_limit", Kind::Bytes),
    ("point_memory_limit_by", Kind::Text),
    (IO_LIMIT, Kind::Rate),
    (IO_LIMIT_BY, Kind::Text),
    (LINK, Kind::Text),
    (LINK_FAULTS, Kind::Text),
    (LINK_CORES, Kind::Number),
    ("storage_cache", Kind::Bytes),
    ("row_cache", Kind::Bytes),
    ("measurement", Kind::Text),
    ("layer", Kind::Text),
    ("obs_filter", Kind::Text),
    ("var_filter", Kind::Text),
];

/// Adds the settings that `batch` has in columns of their own.
pub(crate) fn add_columns_of_before(
    batch: &RecordBatch,
    points: &mut [GridPoint],
) -> Result<(), BadColumn> {
    for (name, kind) in &COLUMNS_OF_BEFORE {
        let numbers = |unit: &str| -> Result<Vec<Option<String>>, BadColumn> {
            let numbers = <Option<u64>>::decode(batch, name)?.into_iter();
            Ok(numbers.map(|number| number.map(|number| format!("{number}{unit}"))).collect())
        };
        let values = match kind {
            Kind::Text => <Option<String>>::decode(batch, name)?,
            Kind::Number => numbers("")?,
            Kind::NumberUnless(usual) => {
                let numbers = <Option<u64>>::decode(batch, name)?.into_iter();
                let kept = numbers.map(|number| number.filter(|number| number != usual));
                kept.map(|number| number.map(|number| number.to_string())).collect()
            }
            Kind::Bytes => numbers(" B")?,
            Kind::Rate => numbers(" B/s")?,
            Kind::Truth => {
                let truths = <Option<bool>>::decode(batch, name)?.into_iter();
                truths.map(|truth| (truth == Some(true)).then(|| "true".to_owned())).collect()
            }
        };
        for (point, value) in points.iter_mut().zip(values) {
            point.settings.0.extend(value.map(|value| ((*name).to_owned(), value)));
        }
    }
    Ok(())
}
