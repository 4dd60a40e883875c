//! Scripts that feed the same samples with other loaders, each in a process of its own.
//!
//! A script is started with `--reader NAME`. It reads an [`Order`] from stdin and prints events
//! with [`ReaderAnswer`]s, as our own measured processes do.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

use bench_report::{BatchSample, EpochRecord, GridPoint, Measured, Versions};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::checksums::{Checksums, difference};
use crate::order::Order;
use crate::process::{Ended, ProcessSpec};
use crate::secrets::Secrets;
use crate::session::Session;

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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReadEpoch {
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
    pub fn record(&self, point: GridPoint) -> EpochRecord {
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

/// Runs a process that reports checksums of samples. Returns what is wrong with them; `None` if
/// they are those that are `expected`. `parts` are the names of a sample's checksums.
///
/// # Errors
/// The process cannot be started.
pub fn check_reader(
    session: &Session,
    (name, process): (&str, ProcessSpec<'_>),
    expected: &Checksums,
    parts: &[&str],
) -> anyhow::Result<Option<String>> {
    let mut found = Checksums::new();
    let ended = session.run(name, process, &mut |answer: ReaderAnswer| {
        if let ReaderAnswer::Checksum { sample, crc32 } = answer {
            found.insert(sample, crc32);
        }
        Ok(())
    })?;
    Ok(match ended {
        Ended::Failed(failure) => Some(failure.message),
        Ended::Interrupted => Some("interrupted".to_owned()),
        Ended::Done { .. } => difference(expected, &found, parts),
    })
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
