//! The order for a reader's process, its answers, and the records of a run.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

use bench_report::{BatchSample, EpochRecord, GridPoint, Measured, Versions};
use bench_run::{Order, ProcessSpec};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::bench::{CubeData, Point};

/// The script that runs the readers, and its Python.
#[derive(Debug, Clone)]
pub(crate) struct Script {
    pub(crate) python: PathBuf,
    pub(crate) path: PathBuf,
}

impl Script {
    /// Makes the process that performs `task` with `reader`. It removes files from the page cache
    /// before each epoch if that is to be cold.
    pub(crate) fn process(
        &self,
        reader: &str,
        (is_cold, task): (bool, ReaderTask),
        data: &CubeData,
    ) -> anyhow::Result<ProcessSpec<'static>> {
        let mut command = Command::new(&self.python);
        // -B: the script's folder gets no compiled files.
        command.arg("-B").arg(&self.path).args(["--reader", reader]);
        let cache = if is_cold { "cold" } else { "warm" }.to_owned();
        ProcessSpec::new(command, &Order { cache, task }, data.secrets())
    }
}

/// The task of a reader.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ReaderTask {
    /// The folder of the data set.
    pub(crate) data: PathBuf,
    /// The form of the cubes.
    pub(crate) format: String,
    /// The samples of each epoch, in their order.
    pub(crate) epochs: Vec<Vec<u64>>,
    /// Samples of a batch.
    pub(crate) batch: u64,
    /// Processes or, for some readers, threads.
    pub(crate) workers: usize,
    /// Threads of blosc in each of them; `None` leaves that to python-blosc.
    pub(crate) codec_threads: Option<usize>,
    /// Whether cubes are augmented on the CPU.
    pub(crate) augment: bool,
    pub(crate) seed: u64,
    /// Whether to report checksums instead of times.
    pub(crate) check: bool,
}

/// An answer of a reader.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum ReaderAnswer {
    /// The times of an epoch.
    Read(ReadEpoch),
    /// The checksums of a sample.
    Checksum {
        /// Number of the sample.
        sample: u64,
        /// A checksum for each array.
        crc32: Vec<u32>,
    },
}

/// The times of an epoch, as the script measured them. Memory is in bytes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ReadEpoch {
    epoch: u64,
    open_secs: f64,
    versions: BTreeMap<String, String>,
    /// Bytes of the files of the epoch's samples.
    file_bytes: u64,
    /// Seconds of the wait for each batch, seconds spent on it, and its samples.
    batches: Vec<(f64, f64, u64)>,
    end_wait_secs: f64,
    n_bytes: u64,
    /// Seconds since 1970.
    start_time: f64,
    end_time: f64,
    cpu_user_secs: f64,
    cpu_system_secs: f64,
    start_mem_bytes: u64,
    max_mem: u64,
}

impl ReadEpoch {
    /// The record of the epoch.
    pub(crate) fn record(&self, point: GridPoint) -> EpochRecord {
        let batches: Vec<BatchSample> = self.batches.iter().map(batch_sample).collect();
        let cpu_secs = self.cpu_user_secs + self.cpu_system_secs;
        let measured = Measured {
            epoch: Some(self.epoch),
            nnz: None,
            nnz_per_sec: None,
            start_dt: timestamp(self.start_time),
            end_dt: timestamp(self.end_time),
            open_secs: (self.epoch == 0).then_some(self.open_secs),
            bytes_read: Some(self.file_bytes),
            bytes_needed: Some(self.n_bytes),
            cpu_secs: Some(cpu_secs),
            cpu_user_secs: Some(self.cpu_user_secs),
            cpu_system_secs: Some(self.cpu_system_secs),
            start_mem_bytes: Some(self.start_mem_bytes),
            max_mem: Some(self.max_mem),
            ..Measured::from_batches(&batches, self.end_wait_secs)
        };
        let versions: Vec<String> =
            self.versions.iter().map(|(name, version)| format!("{name} {version}")).collect();
        let versions = Versions { peer: Some(versions.join(", ")), ..Versions::default() };
        EpochRecord { versions, point, measured, ..EpochRecord::default() }
    }
}

fn batch_sample(&(wait_secs, consume_secs, n_rows): &(f64, f64, u64)) -> BatchSample {
    BatchSample { wait_secs, consume_secs, n_rows, nnz: 0 }
}

fn timestamp(secs: f64) -> Option<Timestamp> {
    let since_epoch = SignedDuration::try_from_secs_f64(secs).ok()?;
    Timestamp::from_duration(since_epoch).ok()
}

/// The settings for the record of a reader that feeds the epochs of `point`.
pub(crate) fn recorded(reader: &str, point: &Point, cache: &str) -> GridPoint {
    GridPoint {
        loader: Some(reader.to_owned()),
        chunk_method: reader.to_owned(),
        reader: reader.to_owned(),
        read_threads: Some(point.settings.workers as u64),
        // These are ours.
        strategy: None,
        batch_memory: None,
        slot_release: None,
        sharing: None,
        slots: None,
        n_threads: None,
        prefetch_batches: None,
        prefetch_blocks: 0,
        ..point.recorded(cache)
    }
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
}
