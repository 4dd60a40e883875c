//! The task of a process that measures, and its answers.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use bench_report::{DataInfo, EpochRecord};
use bench_run::{Secrets, data_name, shown_uri};
use sequences::{SequenceStore as _, Summary};
use serde::{Deserialize, Serialize};

use super::open;
use super::point::Point;

/// A store that a command measures.
#[derive(Debug, Clone)]
pub(crate) struct StoreData {
    pub(crate) folder: PathBuf,
    pub(crate) summary: Summary,
}

impl StoreData {
    /// Opens the store in a folder, and reads what it says about itself.
    pub(crate) fn open(folder: &Path) -> anyhow::Result<Self> {
        let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
        let summary = open(&folder)?.summary().clone();
        Ok(Self { folder, summary })
    }

    pub(crate) fn uri(&self) -> String {
        self.folder.to_string_lossy().into_owned()
    }

    /// Its name in tables.
    pub(crate) fn name(&self) -> String {
        data_name(&self.uri())
    }

    /// What records have of it.
    pub(crate) fn info(&self) -> DataInfo {
        DataInfo {
            uri: shown_uri(&self.uri()),
            total_rows: self.summary.n_sequences,
            ..DataInfo::default()
        }
    }
}

/// A point and its data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct SequenceTask {
    pub(crate) folder: PathBuf,
    pub(crate) point: Point,
}

impl SequenceTask {
    pub(crate) fn secrets(&self) -> Secrets {
        secrets(&self.folder)
    }
}

/// The secrets in a path and the environment.
pub(crate) fn secrets(folder: &Path) -> Secrets {
    Secrets::of(&folder.to_string_lossy(), &BTreeMap::new(), storage::environment_secrets())
}

/// The record of an epoch. The command adds run, host and data to it.
pub(crate) type SequenceAnswer = Box<EpochRecord>;
