//! The task of a process that measures, and its answers.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use bench_report::{DataInfo, EpochRecord, GridPoint};
use bench_run::{Secrets, Workload, data_name, grouped, shown_uri};
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
}

impl Workload for StoreData {
    type Point = Point;
    type Task = SequenceTask;
    type Answer = SequenceAnswer;

    fn task(&self, point: &Point) -> SequenceTask {
        SequenceTask { folder: self.folder.clone(), point: point.clone() }
    }

    fn point_name(&self, point: &Point) -> String {
        format!("{}: {point}", self.name())
    }

    fn recorded(&self, point: &Point, cache: &str) -> GridPoint {
        point.recorded(cache)
    }

    fn record(&self, _point: &Point, answer: SequenceAnswer) -> Option<EpochRecord> {
        Some(*answer)
    }

    fn n_records(&self, point: &Point) -> usize {
        point.epochs as usize
    }

    fn info(&self) -> DataInfo {
        DataInfo {
            uri: shown_uri(&self.uri()),
            total_rows: self.summary.n_sequences,
            ..DataInfo::default()
        }
    }

    fn secrets(&self) -> Secrets {
        secrets(&self.folder)
    }

    fn format(record: &EpochRecord) -> String {
        let measured = &record.measured;
        let rate = grouped(measured.samples_per_sec.unwrap_or_default().round() as u64);
        let words = measured
            .nnz_per_sec
            .map_or_else(String::new, |rate| format!(", {:.1} million words/s", rate / 1e6));
        let peak = measured
            .max_mem
            .map_or_else(String::new, |bytes| format!(", {:.2} GB peak", bytes as f64 / 1e9));
        let secs = measured.elapsed.unwrap_or_default();
        format!("{secs:.2} s, {rate} documents/s{words}{peak}")
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
fn secrets(folder: &Path) -> Secrets {
    Secrets::in_task(&folder.to_string_lossy(), &BTreeMap::new(), storage::environment_secrets())
}

/// The record of an epoch. The command adds run, host and data to it.
pub(crate) type SequenceAnswer = Box<EpochRecord>;
