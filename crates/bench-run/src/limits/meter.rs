//! What was read under a limit, and whether the limit was held.

use std::fmt;
use std::time::Duration;

use bench_report::{Measured, Status};

use super::io::{IoLimit, check_rate, device_bytes, from_page_cache};

/// The count of a token bucket. This crate knows the bucket by its numbers only.
pub struct BucketCount<'a> {
    /// The bytes that were read so far, and the time in which reads were under way.
    pub used: Box<dyn Fn() -> (u64, Duration) + 'a>,
    /// Bytes that the bucket lets through at once.
    pub burst_bytes: u64,
}

impl fmt::Debug for BucketCount<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BucketCount")
            .field("burst_bytes", &self.burst_bytes)
            .finish_non_exhaustive()
    }
}

/// Counts the bytes that are read under a limit in an epoch.
#[derive(Debug)]
pub struct LimitMeter<'a> {
    limit: &'a IoLimit,
    /// The bucket with its count at the start, if that enforces the limit.
    bucket: Option<(BucketCount<'a>, (u64, Duration))>,
    device_bytes: u64,
}

impl<'a> LimitMeter<'a> {
    /// Begins to count, by the bucket or, without one, by the kernel. Fails if the kernel's count
    /// cannot be read.
    pub fn start(limit: &'a IoLimit, bucket: Option<BucketCount<'a>>) -> anyhow::Result<Self> {
        let device_bytes = if bucket.is_some() { 0 } else { device_bytes()? };
        let bucket = bucket.map(|bucket| {
            let before = (bucket.used)();
            (bucket, before)
        });
        Ok(Self { limit, bucket, device_bytes })
    }

    /// Records bytes, time and rate; a row that read faster than the limit becomes an error. The
    /// bucket's time includes reads under way and pauses in which it fills up for the next read;
    /// the kernel's time is that of the epoch, `elapsed` seconds.
    pub fn finish(self, measured: &mut Measured, elapsed: f64) -> anyhow::Result<()> {
        let (bytes, secs, burst) = match &self.bucket {
            Some((bucket, (bytes_before, reading_before))) => {
                let (bytes, reading) = (bucket.used)();
                let secs = reading.saturating_sub(*reading_before).as_secs_f64();
                (bytes - bytes_before, secs, bucket.burst_bytes)
            }
            // The kernel grants the bytes of a tenth of a second at a time.
            None => (
                device_bytes()?.saturating_sub(self.device_bytes),
                elapsed,
                self.limit.bytes_per_second.get() / 10,
            ),
        };
        measured.io_bytes = Some(bytes);
        measured.io_secs = Some(secs);
        measured.io_bytes_per_sec = (0.0 < secs).then(|| bytes as f64 / secs);
        if let Err(message) = check_rate(self.limit, bytes, secs, burst) {
            measured.status = Status::Error;
            measured.message = Some(message);
        } else if self.bucket.is_none() {
            measured.message = from_page_cache(bytes, measured.bytes_read);
        }
        Ok(())
    }
}
