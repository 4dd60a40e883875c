//! What was read under a limit, and whether the limit was held.

use bench_report::{Measured, Status};
use storage::{ReadLimit, ReadLimitUse};

use super::io::{IoLimit, check_rate, device_bytes, from_page_cache};

/// Counts the bytes that are read under a limit in an epoch.
#[derive(Debug)]
pub struct LimitMeter<'a> {
    limit: &'a IoLimit,
    /// The bucket with its count at the start, if that enforces the limit.
    bucket: Option<(&'a ReadLimit, ReadLimitUse)>,
    device_bytes: u64,
}

impl<'a> LimitMeter<'a> {
    /// Begins to count, by the bucket or, without one, by the kernel. Fails if the kernel's count
    /// cannot be read.
    pub fn start(limit: &'a IoLimit, bucket: Option<&'a ReadLimit>) -> anyhow::Result<Self> {
        let device_bytes = if bucket.is_some() { 0 } else { device_bytes()? };
        let bucket = bucket.map(|bucket| (bucket, bucket.used()));
        Ok(Self { limit, bucket, device_bytes })
    }

    /// Records bytes, time and rate; a row that read faster than the limit becomes an error. The
    /// bucket's time includes reads under way and pauses in which it fills up for the next read;
    /// the kernel's time is that of the epoch, `elapsed` seconds.
    pub fn finish(self, measured: &mut Measured, elapsed: f64) -> anyhow::Result<()> {
        let (bytes, secs, burst) = match &self.bucket {
            Some((bucket, before)) => {
                let used = bucket.used();
                let secs = used.reading.saturating_sub(before.reading).as_secs_f64();
                (used.bytes - before.bytes, secs, bucket.burst_bytes())
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
