//! The task for a reader's process, its answers, and the record of a run.

use std::collections::BTreeMap;
use std::path::PathBuf;

use bench_report::{BatchSample, EpochRecord, GridPoint, Measured, Versions};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::bench::Point;

/// The task of a reader.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ReaderTask {
    /// Path of the store.
    pub(crate) store: PathBuf,
    /// The arrays of a sample.
    pub(crate) arrays: Vec<String>,
    /// The samples of each batch.
    pub(crate) batches: Vec<Vec<u64>>,
    /// Threads of one read.
    pub(crate) threads: usize,
    /// Whether to report checksums instead of times.
    pub(crate) check: bool,
}

/// An answer of a reader.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum ReaderAnswer {
    /// The times of a run.
    Read(ReadRun),
    /// The checksums of a sample.
    Checksum {
        /// Number of the sample.
        sample: u64,
        /// A checksum for each array.
        crc32: Vec<u32>,
    },
}

/// The times of a run, as the script measured them. Memory is in bytes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ReadRun {
    open_secs: f64,
    versions: BTreeMap<String, String>,
    /// Seconds of the wait for each batch, seconds spent on it, and its samples.
    batches: Vec<(f64, f64, u64)>,
    n_bytes: u64,
    /// Seconds since 1970.
    start_time: f64,
    end_time: f64,
    cpu_user_secs: f64,
    cpu_system_secs: f64,
    start_mem_bytes: u64,
    max_mem: u64,
}

impl ReadRun {
    /// The record of the run.
    pub(crate) fn record(&self, point: GridPoint) -> EpochRecord {
        let batches: Vec<BatchSample> = self.batches.iter().map(batch_sample).collect();
        let mut measured = Measured::from_batches(&batches, 0.0);
        measured.epoch = Some(0);
        measured.nnz = None;
        measured.nnz_per_sec = None;
        measured.start_dt = timestamp(self.start_time);
        measured.end_dt = timestamp(self.end_time);
        measured.open_secs = Some(self.open_secs);
        measured.bytes_needed = Some(self.n_bytes);
        measured.cpu_secs = Some(self.cpu_user_secs + self.cpu_system_secs);
        measured.cpu_user_secs = Some(self.cpu_user_secs);
        measured.cpu_system_secs = Some(self.cpu_system_secs);
        measured.start_mem_bytes = Some(self.start_mem_bytes);
        measured.max_mem = Some(self.max_mem);
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

/// The settings for the record of a reader that reads the batches of `point`.
pub(crate) fn recorded(reader: &str, point: &Point, cache: &str) -> GridPoint {
    GridPoint {
        loader: Some(reader.to_owned()),
        chunk_method: reader.to_owned(),
        reader: reader.to_owned(),
        ..point.recorded(cache)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_becomes_a_record() {
        let line = r#"{"Read": {"open_secs": 0.5, "versions": {"zarr": "3.4", "numpy": "2.5"},
            "batches": [[2.0, 0.5, 4], [1.0, 0.5, 4]], "n_bytes": 800, "start_time": 1000.0,
            "end_time": 1004.0, "cpu_user_secs": 1.5, "cpu_system_secs": 0.25,
            "start_mem_bytes": 10, "max_mem": 99}}"#;
        let ReaderAnswer::Read(run) = serde_json::from_str(line).unwrap() else {
            panic!("no run: {line}");
        };
        let record = run.record(GridPoint::default());
        let measured = &record.measured;
        assert_eq!((measured.elapsed, measured.elapsed_after_first), (Some(4.0), Some(1.5)));
        assert_eq!((measured.n_rows, measured.n_rows_after_first), (Some(8), Some(4)));
        assert_eq!((measured.cpu_secs, measured.max_mem), (Some(1.75), Some(99)));
        assert_eq!(measured.start_dt.map(Timestamp::as_second), Some(1000));
        assert_eq!(record.versions.peer.as_deref(), Some("numpy 2.5, zarr 3.4"));
    }
}
