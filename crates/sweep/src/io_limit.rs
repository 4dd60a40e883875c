//! `--io-limit`: bytes from storage held to a rate, by a token bucket in the native reader or by the kernel, and whether they were.
//!
//! The two do not count the same. The bucket counts the bytes that the native reader asks for, wherever they lie, so that it holds with a
//! warm page cache, too; libtiledb's reads it does not see. The kernel counts what the device reads for the process, so that what lies
//! in the page cache is free; it holds any reader. Each row says which it was, and the rate that came of it.

mod kernel;

use std::fmt;
use std::fs;
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use bench_report::{Measured, Status};
use bytesize::ByteSize;
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use soma_io::{ReadLimit, ReadLimitUse, ReaderChoice};

pub(crate) use kernel::KernelLimit;

use crate::config::UsageError;
use crate::control_group::{self, Version};
use crate::secrets::Address;

/// How much more than the limit a row may have read, beside a burst.
const TOLERANCE: f64 = 1.05;

/// Rates below it would have a burst that is no small part of a second's bytes.
const LEAST_BYTES_PER_SECOND: u64 = 64 << 10;

/// A rate as typed: a size a second, as `1000MB/s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rate(NonZeroU64);

impl FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || format!("{text:?} is no rate: expected one as 1000MB/s or 250MiB/s");
        let size = text.trim().strip_suffix("/s").ok_or_else(expected)?;
        let bytes = size.parse::<ByteSize>().map_err(|_| expected())?.as_u64();
        if bytes < LEAST_BYTES_PER_SECOND {
            return Err(format!("{text:?} is too little: 64KiB/s is the least"));
        }
        NonZeroU64::new(bytes).map(Self).ok_or_else(expected)
    }
}

/// What is to hold the rate, as typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LimitBy {
    /// The bucket; the kernel for what libtiledb reads, where that is permitted
    Auto,
    /// A token bucket in the native reader
    Bucket,
    /// A control group of the kernel's
    Kernel,
}

/// A limit as the measuring process is told of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct IoLimit {
    pub(crate) bytes_per_second: NonZeroU64,
    pub(crate) by: Holder,
}

/// What holds it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Holder {
    Bucket,
    /// The control group that the process is to join.
    Kernel(PathBuf),
}

impl Holder {
    /// As it is noted with each row.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Bucket => "bucket",
            Self::Kernel(_) => "kernel",
        }
    }
}

impl IoLimit {
    /// What the native reader is to be held to.
    pub(crate) fn bucket(&self) -> Option<Arc<ReadLimit>> {
        (self.by == Holder::Bucket).then(|| Arc::new(ReadLimit::new(self.bytes_per_second)))
    }

    /// Puts this process, and what it starts, under the kernel's limit where that is what holds.
    pub(crate) fn enter(&self) -> anyhow::Result<()> {
        match &self.by {
            Holder::Bucket => Ok(()),
            Holder::Kernel(folder) => {
                control_group::join(folder, std::process::id()).with_context(|| {
                    format!("--io-limit: cannot join the control group {}", folder.display())
                })
            }
        }
    }
}

impl fmt::Display for IoLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} by {}", told_rate(self.bytes_per_second.get() as f64), self.by.name())
    }
}

/// A limit that is in force as long as this is kept, and why it is held by what holds it.
#[derive(Debug)]
pub(crate) struct Decided {
    pub(crate) limit: IoLimit,
    pub(crate) why: String,
    group: Option<KernelLimit>,
}

impl Decided {
    /// The version of the control group that processes are put into, if they are.
    pub(crate) fn group_version(&self) -> Option<Version> {
        self.group.as_ref().map(KernelLimit::version)
    }
}

/// Decides what holds a rate for the data at `uri`. Fails where it would not be held.
pub(crate) fn decide(
    rate: Rate,
    by: LimitBy,
    reader: ReaderChoice,
    uri: &Address,
) -> anyhow::Result<Decided> {
    let kernel = || KernelLimit::make(uri, rate.0);
    let bucket = |why: &str| Decided {
        limit: IoLimit { bytes_per_second: rate.0, by: Holder::Bucket },
        why: why.to_owned(),
        group: None,
    };
    let of_kernel = |group: KernelLimit, why: &str| Decided {
        limit: IoLimit { bytes_per_second: rate.0, by: Holder::Kernel(group.folder().to_owned()) },
        why: why.to_owned(),
        group: Some(group),
    };
    let usage = |message: String| anyhow::Error::from(UsageError::new(message));
    match (by, reader) {
        (LimitBy::Bucket, ReaderChoice::Libtiledb) => Err(usage(
            "--io-limit-by bucket does not hold libtiledb, whose reads it does not see: take --reader native, or --io-limit-by kernel"
                .to_owned(),
        )),
        (LimitBy::Bucket, _) => Ok(bucket("as asked for")),
        (LimitBy::Auto, ReaderChoice::Libtiledb) => match kernel() {
            Ok(group) => Ok(of_kernel(group, "for libtiledb's reads are not seen by a bucket")),
            Err(why) => Err(usage(format!(
                "--io-limit cannot hold --reader libtiledb, whose reads a bucket does not see, for the kernel's limit cannot be had: {why}; take --reader native"
            ))),
        },
        (LimitBy::Auto, _) => {
            Ok(bucket("which counts what the reader asks for, in the page cache or not"))
        }
        (LimitBy::Kernel, _) => match kernel() {
            Ok(group) => Ok(of_kernel(group, "as asked for; what is in the page cache is free")),
            Err(why) => Err(usage(format!("--io-limit-by kernel cannot be had: {why}"))),
        },
    }
}

/// Counts what is read in an epoch.
#[derive(Debug)]
pub(crate) struct IoMeter<'a> {
    limit: &'a IoLimit,
    bucket: Option<(&'a ReadLimit, ReadLimitUse)>,
    device_bytes: u64,
}

impl<'a> IoMeter<'a> {
    pub(crate) fn start(limit: &'a IoLimit, bucket: Option<&'a ReadLimit>) -> anyhow::Result<Self> {
        let device_bytes = if bucket.is_some() { 0 } else { device_bytes()? };
        Ok(Self { limit, bucket: bucket.map(|bucket| (bucket, bucket.used())), device_bytes })
    }

    /// Enters bytes, time and rate, and makes an error of a row that has read faster than it may. By the bucket the time is that in which
    /// reads were under way or the bucket filled up for the next, by the kernel that of the epoch.
    pub(crate) fn finish(self, measured: &mut Measured) -> anyhow::Result<()> {
        let (bytes, secs, burst) = match self.bucket {
            Some((bucket, before)) => {
                let used = bucket.used();
                let secs = used.reading.saturating_sub(before.reading).as_secs_f64();
                (used.bytes - before.bytes, secs, bucket.burst_bytes())
            }
            // The kernel gives out a tenth of a second's bytes at a time.
            None => (
                device_bytes()?.saturating_sub(self.device_bytes),
                measured.elapsed.unwrap_or(0.0),
                self.limit.bytes_per_second.get() / 10,
            ),
        };
        measured.io_bytes = Some(bytes);
        measured.io_secs = Some(secs);
        measured.io_bytes_per_sec = (0.0 < secs).then(|| bytes as f64 / secs);
        if let Err(message) = check(self.limit, bytes, secs, burst) {
            measured.status = Status::Error;
            measured.message = Some(message);
        } else if self.bucket.is_none() {
            measured.message = from_page_cache(bytes, measured.bytes_read);
        }
        Ok(())
    }
}

/// Fails where more was read than a limit leaves for so long.
fn check(limit: &IoLimit, bytes: u64, secs: f64, burst: u64) -> Result<(), String> {
    let most = limit.bytes_per_second.get() as f64 * secs * TOLERANCE + burst as f64;
    if bytes as f64 <= most {
        return Ok(());
    }
    let rate = told_rate(bytes as f64 / secs.max(1e-9));
    Err(format!("--io-limit {limit} was not held: {bytes} bytes in {secs:.3} s are {rate}"))
}

/// A warning where the kernel's limit was none for most of what was read.
fn from_page_cache(device_bytes: u64, asked_for: Option<u64>) -> Option<String> {
    let asked_for = asked_for.filter(|asked_for| device_bytes < asked_for / 2)?;
    Some(format!(
        "the kernel's limit held {device_bytes} of {asked_for} bytes: the others were in the page cache"
    ))
}

/// Bytes that devices have read for this process, by the kernel's count.
fn device_bytes() -> anyhow::Result<u64> {
    const PATH: &str = "/proc/self/io";
    let text = fs::read_to_string(PATH).with_context(|| format!("cannot read {PATH}"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("read_bytes:"));
    match line.and_then(|number| number.trim().parse().ok()) {
        Some(bytes) => Ok(bytes),
        None => bail!("{PATH} names no read_bytes"),
    }
}

/// As `49.9 MB/s`.
pub(crate) fn told_rate(bytes_per_second: f64) -> String {
    format!("{:.1} MB/s", bytes_per_second / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(bytes_per_second: u64) -> IoLimit {
        let bytes_per_second = NonZeroU64::new(bytes_per_second).unwrap();
        IoLimit { bytes_per_second, by: Holder::Bucket }
    }

    #[test]
    fn rates_are_understood_as_they_are_written() {
        let bytes = |text: &str| text.parse::<Rate>().map(|rate| rate.0.get());
        assert_eq!(bytes("1000MB/s"), Ok(1_000_000_000));
        assert_eq!(bytes("250 MiB/s"), Ok(250 << 20));
        assert_eq!(bytes("65536/s"), Ok(65_536));
        for bad in ["", "1000MB", "fast/s", "-1MB/s", "/s", "1000MB/m"] {
            assert!(bytes(bad).unwrap_err().contains("1000MB/s or 250MiB/s"), "{bad}");
        }
        assert!(bytes("1kB/s").unwrap_err().contains("64KiB/s is the least"));
    }

    #[test]
    fn more_than_the_limit_is_an_error() {
        let check = |bytes, secs| check(&limit(1_000_000), bytes, secs, 10_000);
        for (bytes, secs) in [(0, 0.0), (10_000, 0.0), (1_000_000, 1.0), (1_060_000, 1.0)] {
            check(bytes, secs).unwrap();
        }
        let told = check(2_000_000, 1.0).unwrap_err();
        assert_eq!(
            told,
            "--io-limit 1.0 MB/s by bucket was not held: 2000000 bytes in 1.000 s are 2.0 MB/s"
        );
        check(1_060_001, 1.0).unwrap_err();
        check(10_001, 0.0).unwrap_err();
    }

    #[test]
    fn libtiledb_is_not_held_by_a_bucket() {
        let rate = "1MB/s".parse().unwrap();
        let error =
            decide(rate, LimitBy::Bucket, ReaderChoice::Libtiledb, &"x".into()).unwrap_err();
        assert!(error.to_string().contains("take --reader native"), "{error}");
        // In a store there is no device that the kernel could hold.
        for by in [LimitBy::Auto, LimitBy::Kernel] {
            let error = decide(rate, by, ReaderChoice::Libtiledb, &"s3://b/x".into()).unwrap_err();
            assert!(error.to_string().contains("not on a disk of this machine"), "{error}");
        }
        let decided = decide(rate, LimitBy::Auto, ReaderChoice::Auto, &"s3://b/x".into()).unwrap();
        assert_eq!(decided.limit.to_string(), "1.0 MB/s by bucket");
    }

    #[test]
    fn a_row_has_what_was_read() {
        let limit = limit(1_000_000);
        let bucket = limit.bucket().unwrap();
        let mut measured = Measured::from_batches(&[], 0.0);
        IoMeter::start(&limit, Some(&bucket)).unwrap().finish(&mut measured).unwrap();
        assert_eq!((measured.io_bytes, measured.io_bytes_per_sec), (Some(0), None));
        assert_eq!((measured.status, measured.message), (Status::Ok, None));
        device_bytes().unwrap();
        assert_eq!(from_page_cache(60, Some(100)), None);
        assert_eq!(from_page_cache(0, None), None);
        assert!(from_page_cache(40, Some(100)).unwrap().contains("held 40 of 100 bytes"));
    }
}
