//! Scripts that feed the same samples with other loaders, each in a process of its own.
//!
//! A script is started with `--reader NAME`. It reads an [`Order`] from stdin and prints events
//! with [`ReaderAnswer`]s, as our own measured processes do.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

use bench_report::{BatchSample, EpochRecord, GridPoint, Measured, Status, Versions};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::order::Order;
use crate::process::ProcessSpec;
use crate::secrets::Secrets;

/// A script that runs readers, and its Python.
#[derive(Debug, Clone)]
pub struct Script {
    /// The interpreter.
    pub python: PathBuf,
    /// The script.
    pub path: PathBuf,
}

impl Script {
    /// Makes the process that performs `task` with `reader`. With the `cache` "cold", the
    /// script removes files from the page cache before each epoch.
    ///
    /// # Errors
    /// The task has no form as JSON.
    pub fn process<Task: Serialize>(
        &self,
        reader: &str,
        cache: &str,
        task: Task,
        secrets: Secrets,
    ) -> anyhow::Result<ProcessSpec<'static>> {
        let mut command = Command::new(&self.python);
        // -B: the script's folder gets no compiled files.
        command.arg("-B").arg(&self.path).args(["--reader", reader]);
        ProcessSpec::new(command, &Order { cache: cache.to_owned(), task }, secrets)
    }
}

/// An answer of a reader.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum ReaderAnswer {
    /// The times of an epoch.
    Read(Box<ReadEpoch>),
    /// The checksums of a sample.
    Checksum {
        /// Number of the sample.
        sample: u64,
        /// A checksum for each of its parts.
        crc32: Vec<u32>,
    },
}

/// The times of an epoch, as the script measured them. Memory is in bytes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ReadEpoch {
    #[serde(default)]
    epoch: u64,
    open_secs: f64,
    versions: BTreeMap<String, String>,
    /// Bytes of the files of the epoch's samples, if the script counts them.
    file_bytes: Option<u64>,
    /// Seconds of the wait for each batch, seconds spent on it, and its samples.
    batches: Vec<(f64, f64, u64)>,
    #[serde(default)]
    end_wait_secs: f64,
    n_bytes: Option<u64>,
    /// Seconds since 1970.
    start_time: f64,
    end_time: f64,
    cpu_user_secs: f64,
    cpu_system_secs: f64,
    start_mem_bytes: u64,
    max_mem: u64,
}

impl ReadEpoch {
    /// The number of the epoch.
    pub fn number(&self) -> u64 {
        self.epoch
    }

    /// Formats the versions, that of `first` first.
    pub fn format_versions(&self, first: &str) -> String {
        format_versions(&self.versions, first)
    }

    /// The outcome of the epoch; a failure if numbers are impossible, since they come from another
    /// program.
    pub fn measured(&self) -> Measured {
        let secs = [
            self.open_secs,
            self.end_wait_secs,
            self.start_time,
            self.end_time,
            self.cpu_user_secs,
            self.cpu_system_secs,
        ];
        let of_batches = self.batches.iter().flat_map(|(wait, consume, _)| [wait, consume]);
        if let Some(bad) = secs.iter().chain(of_batches).find(|secs| !(0.0..1e11).contains(*secs)) {
            return Measured::failed(Status::Error, format!("it says that something took {bad} s"));
        }
        let batches: Vec<BatchSample> = self.batches.iter().map(batch_sample).collect();
        let cpu_secs = self.cpu_user_secs + self.cpu_system_secs;
        Measured {
            epoch: Some(self.epoch),
            nnz: None,
            nnz_per_sec: None,
            start_dt: timestamp(self.start_time),
            end_dt: timestamp(self.end_time),
            open_secs: (self.epoch == 0).then_some(self.open_secs),
            bytes_read: self.file_bytes,
            bytes_needed: self.n_bytes,
            cpu_secs: Some(cpu_secs),
            cpu_user_secs: Some(self.cpu_user_secs),
            cpu_system_secs: Some(self.cpu_system_secs),
            start_mem_bytes: Some(self.start_mem_bytes),
            max_mem: Some(self.max_mem),
            ..Measured::from_batches(&batches, self.end_wait_secs)
        }
    }

    /// The record of the epoch.
    pub fn record(&self, point: GridPoint) -> EpochRecord {
        let versions = Versions { peer: Some(self.format_versions("")), ..Versions::default() };
        EpochRecord { versions, point, measured: self.measured(), ..EpochRecord::default() }
    }
}

/// Formats versions like `tiledbsoma-ml 0.1.0, torch 2.11.0`, that of `first` first.
pub fn format_versions(versions: &BTreeMap<String, String>, first: &str) -> String {
    let own = versions.iter().filter(|(name, _)| *name == first);
    let others = versions.iter().filter(|(name, _)| *name != first);
    let all = own.chain(others).map(|(name, version)| format!("{name} {version}"));
    all.collect::<Vec<_>>().join(", ")
}

fn batch_sample(&(wait_secs, consume_secs, n_rows): &(f64, f64, u64)) -> BatchSample {
    BatchSample { wait_secs, consume_secs, n_rows, nnz: 0 }
}

fn timestamp(secs: f64) -> Option<Timestamp> {
    let since_epoch = SignedDuration::try_from_secs_f64(secs).ok()?;
    Timestamp::from_duration(since_epoch).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_epoch_becomes_a_record() {
        let line = r#"{"Read": {"epoch": 1, "open_secs": 0.5, "versions": {"torch": "2", "blosc": "1"},
            "file_bytes": 300, "batches": [[2.0, 0.5, 4], [1.0, 0.5, 4]], "end_wait_secs": 0.25,
            "n_bytes": 800, "start_time": 1000.0, "end_time": 1004.0, "cpu_user_secs": 1.5,
            "cpu_system_secs": 0.25, "start_mem_bytes": 10, "max_mem": 99}}"#;
        let ReaderAnswer::Read(epoch) = serde_json::from_str(line).unwrap() else {
            panic!("no epoch: {line}");
        };
        let record = epoch.record(GridPoint::default());
        let measured = &record.measured;
        assert_eq!((measured.elapsed, measured.n_rows), (Some(4.25), Some(8)));
        assert_eq!((measured.cpu_secs, measured.max_mem), (Some(1.75), Some(99)));
        assert_eq!((measured.epoch, measured.open_secs), (Some(1), None));
        assert_eq!(measured.start_dt.map(Timestamp::as_second), Some(1000));
        assert_eq!(record.versions.peer.as_deref(), Some("blosc 1, torch 2"));
    }

    #[test]
    fn a_script_need_not_number_epochs_nor_count_files() {
        let line = r#"{"Read": {"open_secs": 0.5, "versions": {}, "batches": [[2.0, 0.5, 4], [1.0, 0.5, 4]],
            "n_bytes": 800, "start_time": 1000.0, "end_time": 1004.0, "cpu_user_secs": 1.5,
            "cpu_system_secs": 0.25, "start_mem_bytes": 10, "max_mem": 99}}"#;
        let read = |line: &str| match serde_json::from_str(line).unwrap() {
            ReaderAnswer::Read(epoch) => epoch.measured(),
            ReaderAnswer::Checksum { .. } => panic!("a checksum, not an epoch"),
        };
        let measured = read(line);
        assert_eq!((measured.elapsed, measured.elapsed_after_first), (Some(4.0), Some(1.5)));
        assert_eq!((measured.n_rows, measured.n_rows_after_first), (Some(8), Some(4)));
        assert_eq!((measured.epoch, measured.bytes_read), (Some(0), None));
        let message = read(&line.replace("0.25", "-1")).message.unwrap();
        assert!(message.contains("took -1 s"), "{message}");
    }
}
