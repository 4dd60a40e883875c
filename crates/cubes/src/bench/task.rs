//! The task of a process that measures, and its answers.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bench_report::EpochRecord;
use bench_run::Secrets;
use images::{DataSet, Form};
use serde::{Deserialize, Serialize};
use storage::{LimitedStorage, LocalStorage, ReadLimit, Storage};

use super::evicting::EvictingStorage;
use super::floors::Floor;
use super::point::Point;

/// The folder of masks in a data set.
const SEGMENTATIONS: &str = "segmentations";

/// The data of a measurement: a folder of this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CubeData {
    pub(crate) folder: PathBuf,
}

impl CubeData {
    /// The folders that reading a form reads: its own, and that of the masks. Zarr has masks beside
    /// its cubes.
    pub(crate) fn folders(&self, form: Form) -> Vec<PathBuf> {
        let masks = (form != Form::Zarr).then(|| self.folder.join(SEGMENTATIONS));
        std::iter::once(self.folder.join(form.folder())).chain(masks).collect()
    }

    /// Opens the data set. Reads keep `limit`; what they read leaves the page cache if `evict` is
    /// set.
    pub(crate) fn open(
        &self,
        limit: Option<&Arc<ReadLimit>>,
        evict: bool,
    ) -> anyhow::Result<DataSet> {
        let mut storage: Arc<dyn Storage> = Arc::new(LocalStorage::new(&self.folder));
        if let Some(limit) = limit {
            storage = Arc::new(LimitedStorage::new(storage, Arc::clone(limit)));
        }
        // Outside of the limit, which cuts a read into parts: pages that the kernel reads ahead for
        // the next part must stay.
        if evict {
            storage = Arc::new(EvictingStorage::new(storage, self.folder.clone()));
        }
        Ok(DataSet::open(storage)?)
    }

    pub(crate) fn secrets(&self) -> Secrets {
        Secrets::in_task(
            &self.folder.to_string_lossy(),
            &BTreeMap::new(),
            storage::environment_secrets(),
        )
    }

    pub(crate) fn path(&self) -> &Path {
        &self.folder
    }
}

/// What a process measures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum CubeWork {
    /// The epochs of a point.
    Load(Box<Point>),
    /// A bound that no loader can beat.
    Floor(Floor),
}

impl fmt::Display for CubeWork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Load(point) => point.fmt(f),
            Self::Floor(floor) => floor.fmt(f),
        }
    }
}

/// A task with its data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct CubeTask {
    pub(crate) data: CubeData,
    pub(crate) work: CubeWork,
}

/// The record of an epoch. The command adds run, host and data to it.
pub(crate) type CubeAnswer = Box<EpochRecord>;
