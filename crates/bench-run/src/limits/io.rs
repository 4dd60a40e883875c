//! `--io-limit`: limits the rate of reads from storage and checks that the limit worked. A token
//! bucket in the reader or the kernel enforces it.
//!
//! The two count different bytes. The bucket counts the bytes that its reader requests, cached or
//! not. The kernel counts the bytes that the device reads for the process, so cached pages are
//! free; it limits any reader. Each row records which of the two limited it, and the measured rate.

use std::fmt;
use std::fs;
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use anyhow::Context as _;
use bench_report::kernel_entry;
use bytesize::ByteSize;
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use storage::ReadLimit;

use super::control_group;

/// Factor by which a row may exceed the limit, in addition to a burst.
const TOLERANCE: f64 = 1.05;

/// Least rate accepted. Below it, a burst would be a large part of a second's bytes.
const LEAST_BYTES_PER_SECOND: u64 = 64 << 10;

/// A rate as typed: a size per second, like `1000MB/s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate(NonZeroU64);

impl Rate {
    /// Returns the rate in bytes per second.
    pub fn bytes_per_second(self) -> NonZeroU64 {
        self.0
    }
}

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

/// How to enforce the rate, as typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LimitBy {
    /// The bucket; the kernel for what libtiledb reads, where that is permitted
    Auto,
    /// A token bucket in the native reader
    Bucket,
    /// A control group of the kernel's
    Kernel,
}

/// A limit as the measured process receives it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IoLimit {
    /// Most bytes per second.
    pub bytes_per_second: NonZeroU64,
    /// How the limit is enforced.
    pub by: Holder,
}

/// How a limit is enforced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Holder {
    /// A token bucket in the reader.
    Bucket,
    /// Path of a control group, which the measured process joins.
    Kernel(PathBuf),
}

impl Holder {
    /// Returns the name recorded in each row.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Bucket => "bucket",
            Self::Kernel(_) => "kernel",
        }
    }
}

impl IoLimit {
    /// Makes the token bucket, if that enforces the limit.
    pub fn bucket(&self) -> Option<Arc<ReadLimit>> {
        (self.by == Holder::Bucket).then(|| Arc::new(ReadLimit::new(self.bytes_per_second)))
    }

    /// Moves this process into the control group, if the kernel enforces the limit. Processes that
    /// it starts inherit the group. Fails if the group cannot be joined.
    pub fn enter(&self) -> anyhow::Result<()> {
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
        write!(f, "{} by {}", format_rate(self.bytes_per_second.get() as f64), self.by.name())
    }
}

/// Fails if `bytes` exceed the limit for `secs` seconds plus `burst` bytes, with a small tolerance.
pub(super) fn check_rate(limit: &IoLimit, bytes: u64, secs: f64, burst: u64) -> Result<(), String> {
    let most = limit.bytes_per_second.get() as f64 * secs * TOLERANCE + burst as f64;
    if bytes as f64 <= most {
        return Ok(());
    }
    let rate = format_rate(bytes as f64 / secs.max(1e-9));
    Err(format!("--io-limit {limit} was not held: {bytes} bytes in {secs:.3} s are {rate}"))
}

/// Returns a warning if most bytes came from the page cache, which the kernel's limit does not
/// cover.
pub(super) fn from_page_cache(device_bytes: u64, asked_for: Option<u64>) -> Option<String> {
    let asked_for = asked_for.filter(|asked_for| device_bytes < asked_for / 2)?;
    Some(format!(
        "the kernel's limit held {device_bytes} of {asked_for} bytes: the others were in the page cache"
    ))
}

/// Returns the bytes that devices have read for this process, by the kernel's count. Fails if the
/// kernel does not report them.
pub(super) fn device_bytes() -> anyhow::Result<u64> {
    const PATH: &str = "/proc/self/io";
    let text = fs::read_to_string(PATH).with_context(|| format!("cannot read {PATH}"))?;
    kernel_entry(&text, "read_bytes:").with_context(|| format!("{PATH} names no read_bytes"))
}

/// Formats a rate like `49.9 MB/s`.
pub fn format_rate(bytes_per_second: f64) -> String {
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
        let check = |bytes, secs| check_rate(&limit(1_000_000), bytes, secs, 10_000);
        for (bytes, secs) in [(0, 0.0), (10_000, 0.0), (1_000_000, 1.0), (1_060_000, 1.0)] {
            check(bytes, secs).unwrap();
        }
        let error = check(2_000_000, 1.0).unwrap_err();
        assert_eq!(
            error,
            "--io-limit 1.0 MB/s by bucket was not held: 2000000 bytes in 1.000 s are 2.0 MB/s"
        );
        check(1_060_001, 1.0).unwrap_err();
        check(10_001, 0.0).unwrap_err();
    }

    #[test]
    fn a_limit_that_the_page_cache_evades_is_a_warning() {
        device_bytes().unwrap();
        assert_eq!(from_page_cache(60, Some(100)), None);
        assert_eq!(from_page_cache(0, None), None);
        assert!(from_page_cache(40, Some(100)).unwrap().contains("held 40 of 100 bytes"));
    }
}
